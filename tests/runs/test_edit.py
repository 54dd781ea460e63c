"""A bank or rules changed by hand are a run: all of it or nothing, named, and taken back like any other."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

import pytest
import trio
from consolidation_world import SPACE, World
from trio.abc import Clock
from undo_world import consolidate, dies, picture, recovered, space_of, take_back, twin_of

from livememfs.cache.replica import Replica
from livememfs.concurrency import the_one
from livememfs.errors import LiveMemError, NotFound, PreconditionFailed
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.space import Meta
from livememfs.runs.edit import Replacement, edit
from livememfs.runs.history import History
from livememfs.runs.ledger import commit
from livememfs.spaces.lease import Leases

OLD = "# Progress\r\n\r\nthe parser, Grüße\r\n\r\n## Open\r\n\r\nthe lexer\r\n"
NEW = OLD.replace("the lexer", "the linker")
META = keys.meta_key(SPACE)
CHANGES = (
    Replacement("bank/progress.md", NEW),
    Replacement("bank/new.md", "# New\n"),
    Replacement("bank/more/deep.md", None),
    Replacement(keys.RULES, "# Other rules\n"),
)


@pytest.fixture
async def world() -> World:
    """The space with a bank, and two notes."""
    made = World()
    await made.seed(notes=2, bank={"progress.md": OLD, "more/deep.md": "no line end"})
    return made


async def by_hand(world: World, *changes: Replacement, space: str = SPACE) -> Entry | None:
    """One edit by a process of its own, a minute later."""
    world.clock.advance(60)
    try:
        async with trio.open_nursery() as nursery:
            leases = Leases(world.replica, world.clock, "here", nursery)
            return await edit(world.replica, world.clock, leases, "here", space, changes, "ann")
    except BaseExceptionGroup as group:
        raise the_one(group) from None


async def rules(world: World) -> bytes:
    return await world.get(keys.rules_key(SPACE))


async def test_an_edit_writes_what_was_asked_and_its_entry_says_who_and_what_left(world: World) -> None:
    done = await by_hand(world, *CHANGES)

    assert done is not None
    assert await world.bank() == {"progress.md": NEW, "new.md": "# New\n"}
    assert await rules(world) == b"# Other rules\n"
    [entry] = await world.ledger()
    assert (entry.kind, entry.by, entry.state, entry.number) == ("edit", "ann", "applied", done.number)
    assert [(part.file, part.heading) for part in entry.parts] == [
        ("progress.md", ("Progress", "Open")),
        ("new.md", ("New",)),
    ]
    assert {line.text for line in entry.outgoing} == {"the lexer", "no line end"}
    figures = ("bank_files_updated", "bank_files_created", "bank_files_removed")
    assert [entry.metrics[name] for name in figures] == [1, 1, 1]
    meta = Meta.parse(await world.get(META))
    assert (meta.ledger, meta.consolidation_count, meta.last_consolidation) == (entry.number, 0, None)


async def test_a_page_of_why_names_who_wrote_a_part_and_keeps_the_trail_of_the_others(world: World) -> None:
    await consolidate(world, {"progress.md": "# P\n\nfirst\n\n## Old\n\nolder\n"})
    done = await by_hand(world, Replacement("bank/progress.md", "# P\n\nfirst\n\n## Old\n\nby hand\n"))

    assert done is not None
    why = await History(world.replica, SPACE, fresh=True).why("progress.md")
    first, old = why.rsplit("\n## ", 1)
    assert f"- run {done.number}" not in first
    assert "- run 1" in first
    assert f"- run {done.number}, " in old
    assert old.count("written by ann") == 1


async def test_edits_and_runs_are_taken_back_one_by_one_to_the_byte(world: World) -> None:
    pictures, sealed = [await picture(world)], [await rules(world)]
    await consolidate(world, {"progress.md": OLD + "more\r\n"})
    for changes in (CHANGES, (Replacement("bank/progress.md", "x\n"), Replacement(keys.RULES, "# Third\n"))):
        pictures.append(await picture(world))
        sealed.append(await rules(world))
        assert await by_hand(world, *changes) is not None
    runs = len(await world.ledger())

    for number in range(3, 0, -1):
        world.clock.advance(60)
        assert (await take_back(world)).undoes == number
        assert await picture(world) == pictures[number - 1]
        assert await rules(world) == sealed[number - 1]
    assert len(await world.ledger()) == runs + 3
    assert Meta.parse(await world.get(META)).consolidation_count == 0


async def test_what_is_so_already_is_no_run(world: World) -> None:
    before = await space_of(world)

    assert await by_hand(world, Replacement("bank/progress.md", OLD), Replacement("bank/none.md", None)) is None
    assert await space_of(world) == before


async def test_another_version_than_was_read_is_not_replaced(world: World) -> None:
    seen = (await world.memory.get(f"{SPACE}/bank/progress.md")).info.etag
    await consolidate(world, {"progress.md": OLD + "more\r\n"})
    before = await space_of(world)

    with pytest.raises(PreconditionFailed):
        await by_hand(world, Replacement("bank/new.md", "x"), Replacement("bank/progress.md", NEW, seen))
    with pytest.raises(NotFound):
        await by_hand(world, Replacement("bank/new.md", "x"), space="none")
    assert await space_of(world) == before


async def test_a_description_written_meanwhile_stays_and_no_consolidation_is_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def commit_and_more(replica: Replica, entry: Entry) -> None:
        await commit(replica, entry)
        theirs = replace(Meta.parse(await world.get(META)), description="theirs")
        await world.put(META, theirs.render())

    monkeypatch.setattr("livememfs.runs.edit.commit", commit_and_more)
    await by_hand(world, Replacement("bank/new.md", "# New\n"))

    meta = Meta.parse(await world.get(META))
    assert (meta.description, meta.consolidation_count, meta.ledger) == ("theirs", 0, 1)


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
async def test_a_crash_at_any_request_leaves_all_of_it_or_nothing(after: bool, autojump_clock: Clock) -> None:
    origin = World()
    await origin.seed(notes=1, bank={"progress.md": OLD, "more/deep.md": "no line end"})
    before = await space_of(origin)
    whole = await twin_of(origin)
    await by_hand(whole, *CHANGES)
    done = await space_of(whole)
    seen = set()

    for call in itertools.count(1):
        world = await twin_of(origin)
        died = dies(world, call, after=after)
        with suppress(LiveMemError):
            await by_hand(world, *CHANGES)
        if not died():
            break
        world.store.plan = None
        await recovered(world)
        left = await space_of(world)
        assert left in (before, done), f"request {call}"
        seen.add(left == done)

    assert seen == {True, False}
    assert call > 20
