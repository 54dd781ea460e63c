"""An undo brings back exactly what was there before a run, as a run of its own, or changes nothing."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
import trio
from consolidation_world import SPACE, World, answering, filing, result_of, run
from trio.abc import Clock
from undo_world import consolidate, dies, picture, recovered, space_of, take_back, twin_of

from livememfs.errors import LeaseLost, LiveMemError, NotFound, Unreachable
from livememfs.records import keys
from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.spaces import backups
from livememfs.testing.llm import Scripted, consolidation_reply
from livememfs.testing.store import Fault

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
OLD = "# Progress\r\n\r\nthe parser, Grüße\r\n"
META = keys.meta_key(SPACE)


@pytest.fixture
async def world() -> World:
    """The space with a bank, and two notes."""
    made = World()
    await made.seed(notes=2, bank={"progress.md": OLD, "more/deep.md": "no line end"})
    return made


async def meta(world: World) -> Meta:
    return Meta.parse(await world.get(META))


# --- what comes back ----------------------------------------------------------------------------------------------


async def test_ten_runs_each_undone_and_brought_back_leave_the_exact_bytes(world: World) -> None:
    for number in range(10):
        await world.note(f"note {number}\r\n\u2028 trailing  ", agent=f"agent-{number}")
        before = await picture(world)
        await consolidate(world, {"progress.md": f"# Progress\n\nstate {number}\n", f"new/{number}.md": "# New\n"})
        after = await picture(world)
        assert not [key for key in after if keys.parse(key).kind == "note"]

        undone = await take_back(world)
        assert await picture(world) == before
        again = await take_back(world, undone.number)
        assert await picture(world) == after

        record = await meta(world)
        assert (again.undoes, record.consolidation_count) == (undone.number, number + 1)
        assert record.ledger == again.number
    assert [entry.number for entry in await world.ledger()] == list(range(1, 31))


async def test_one_undo_takes_back_a_run_and_everything_after_it(world: World) -> None:
    await consolidate(world, {"progress.md": "# Progress\n\none\n"})
    before = await picture(world)
    await world.note("n")
    await consolidate(world, {"progress.md": "# Progress\n\ntwo\n", "b.md": "# B\n"})
    await world.note("m")
    await consolidate(world, {"progress.md": "# Progress\n\nthree\n", "c.md": "# C\n"})

    undone = await take_back(world, 2)

    after = await picture(world)
    assert {key: data for key, data in after.items() if keys.parse(key).kind != "note"} == {
        key: data for key, data in before.items() if keys.parse(key).kind != "note"
    }
    notes = [Note.parse(data, path=key).body for key, data in after.items() if keys.parse(key).kind == "note"]
    assert sorted(notes) == ["m", "n"]  # the third run's too: that it was written was not taken back
    assert (undone.kind, undone.undoes, undone.number) == ("undo", 2, 4)


async def test_a_second_undo_goes_one_run_further_back(world: World) -> None:
    first = await picture(world)
    await consolidate(world, {"progress.md": "# Progress\n\none\n"})
    second = await picture(world)
    await world.note("another")
    await consolidate(world, {"progress.md": "# Progress\n\ntwo\n"})

    assert (await take_back(world)).undoes == 2
    assert (await world.bank()) == {
        key.removeprefix(f"{SPACE}/bank/"): data.decode() for key, data in second.items() if "/bank/" in key
    }
    assert (await take_back(world)).undoes == 1

    restored = await picture(world)
    assert first.items() <= restored.items()
    assert len(restored) == len(first) + 1  # the note of the second run waits for another one
    with pytest.raises(NotFound, match="that could be taken back"):
        await take_back(world)


async def test_the_undo_of_an_undo_brings_back_what_it_took(world: World) -> None:
    await consolidate(world, {"progress.md": "# Progress\n\none\n"})
    after = await picture(world)
    figures = await meta(world)

    undone = await take_back(world)
    again = await take_back(world, undone.number)

    assert await picture(world) == after
    assert len(again.removes) == len(undone.writes) - 3  # the notes go again; bank, synthesis and record are no notes
    assert (await meta(world)).total_notes_processed == figures.total_notes_processed == 2
    assert (await take_back(world)).undoes == 1


async def test_the_record_is_as_it_was_before_but_for_the_number_in_the_ledger(world: World) -> None:
    await world.seed(notes=1, meta={"total_notes_processed": 40, "extra": {"colour": "blue"}})
    before = await meta(world)
    await consolidate(world, {"a.md": "# A\n"})
    await take_back(world)

    assert await world.get(META) == replace(before, ledger=2).render()
    await consolidate(world, {"a.md": "# A\n"})
    now = await meta(world)
    assert (now.consolidation_count, now.total_notes_processed, now.ledger) == (1, 43, 3)
    assert now.extra == {"colour": "blue"}


async def test_notes_written_or_edited_since_stay_as_they_are(world: World) -> None:
    await consolidate(world, {"progress.md": "# Progress\n\none\n"})
    later = await world.note("written since")
    undone = await take_back(world)
    [put, *_] = [write.key for write in undone.writes if write.key.startswith("live/")]
    await world.put(f"{SPACE}/{put}", "edited since")

    await take_back(world, undone.number)

    assert sorted(await world.live()) == sorted([later, f"{SPACE}/{put}"])
    assert await world.get(f"{SPACE}/{put}") == b"edited since"


async def test_a_note_that_a_run_left_is_not_written_again(world: World) -> None:
    reply = consolidation_reply({"progress.md": "# P\n\nfirst\n"}, used={1: ["progress.md"]})
    await run(world, reply)
    [left] = await world.live()
    stamp = (await world.memory.head(left)).modified_ns
    world.clock.advance(60)

    undone = await take_back(world)

    assert (await world.memory.head(left)).modified_ns == stamp
    assert left.removeprefix(f"{SPACE}/") not in [write.key for write in undone.writes]


async def test_a_bank_file_that_is_no_text_comes_back_by_copy(world: World) -> None:
    odd = keys.bank_key(SPACE, "odd.md")
    await world.put(odd, b"\xff\x00 not text")
    before = await picture(world)
    entry = await consolidate(world, {"progress.md": "# P\n\nfirst\n"})
    await world.put(odd, "somebody's text")

    undone = await take_back(world)

    assert await picture(world) == before
    [write] = [write for write in undone.writes if write.key == "bank/odd.md"]
    assert (write.content, write.copy) == (None, f"_backups/{SPACE}/{entry.backup}/bank/odd.md")


async def test_a_synthesis_that_was_not_there_before_goes(world: World) -> None:
    await consolidate(world, {"a.md": "# A\n"})
    assert keys.synthesis_key(SPACE) in await world.bucket()

    await take_back(world)

    assert keys.synthesis_key(SPACE) not in await world.bucket()


async def test_ordinary_files_and_rules_are_left_alone(world: World) -> None:
    await world.put(f"{SPACE}/plan.txt", "one")
    await consolidate(world, {"a.md": "# A\n"})
    await world.put(f"{SPACE}/plan.txt", "two")

    await take_back(world)

    assert await world.get(f"{SPACE}/plan.txt") == b"two"


async def test_twenty_runs_of_random_edits_keep_every_line_that_no_edit_named(world: World) -> None:
    chance = random.Random(20)
    first = await picture(world)
    kept: set[str] = set(OLD.splitlines())
    for number in range(20):
        for _ in range(chance.randint(1, 4)):
            await world.note(f"{chance.random()} {chance.choice(['ä', '# no heading', '```', 'x' * 300])}")
        headings = chance.sample(["Done", "Open", "Ideas"], chance.randint(1, 3))
        added = [f"- {heading} of run {number}: {chance.randint(0, 9)}" for heading in headings]
        edits = [
            {"op": "add", "heading": ["Progress", heading], "content": line}
            for heading, line in zip(headings, added, strict=True)
        ]
        answer = {"bank_files": [{"filename": "progress.md", "action": "updated", "edits": edits}]}
        reply = consolidation_reply({}, synthesis=f"run {number}") | answer
        world.clock.advance(60)
        result = await run(world, reply)
        assert (result.state, result.reason) == ("ok", "")
        kept |= set(added)
        lines = (await world.bank())["progress.md"].splitlines()
        assert kept <= set(lines)
        if number % 4 == 3:
            undone = await take_back(world)
            assert (await world.bank())["progress.md"].splitlines() != lines
            await take_back(world, undone.number)
            assert (await world.bank())["progress.md"].splitlines() == lines

    assert (await world.bank())["more/deep.md"] == first[keys.bank_key(SPACE, "more/deep.md")].decode()


# --- how ----------------------------------------------------------------------------------------------------------


async def test_lease_backup_ledger_notes_bank_synthesis_and_the_record_last(world: World) -> None:
    await consolidate(world, {"progress.md": "# P\n\nfirst\n", "new.md": "# N\n"})
    world.store.forget()

    await take_back(world)

    writes = [asked for asked in world.store.requests if asked.verb in ("put", "delete", "copy")]
    lease = f"_system/leases/{SPACE}.json"
    assert [writes[0].key, writes[-1].key] == [lease, lease]
    own = [asked.key.removeprefix(f"{SPACE}/") for asked in writes if asked.key.startswith(f"{SPACE}/")]
    kinds = [keys.parse(f"{SPACE}/{name}").kind for name in own]
    assert kinds == ["ledger", "note", "note", "bank", "bank", "synthesis", "meta", "ledger"]
    order = [asked.key.split("/")[0] for asked in writes]
    assert order.index("_backups") < order.index(SPACE)


async def test_an_undo_waits_for_the_run_that_is_at_work(world: World) -> None:
    held = Scripted(json.dumps(consolidation_reply({"progress.md": "# P\n\nfirst\n"})), hold=True)
    before = await picture(world)
    async with answering(world, held) as (consolidations, llm), trio.open_nursery() as nursery:
        ticket = consolidations.touch(SPACE)
        await trio.to_thread.run_sync(llm.wait_for_requests, 1)
        nursery.start_soon(take_back, world)
        await trio.testing.wait_all_tasks_blocked(0.01)
        llm.release()
        result = await result_of(consolidations, ticket)
        assert result["state"] == "ok"

    assert await picture(world) == before
    assert [entry.kind for entry in await world.ledger()] == ["consolidation", "undo"]


async def test_the_backup_that_is_brought_back_is_not_pruned_meanwhile(world: World) -> None:
    before = await picture(world)
    odd = keys.bank_key(SPACE, "odd.md")
    await world.put(odd, b"\xff")
    first = await consolidate(world, {"progress.md": "# P\n\nfirst\n"})
    for _ in range(backups.KEPT - 1):
        world.clock.advance(60)
        await backups.create(world.replica, world.clock, SPACE, automatic=True)
    await world.memory.delete(odd)

    await take_back(world, first.number)

    assert await picture(world) == before | {odd: b"\xff"}
    stamps = [backup.stamp for backup in await backups.list_backups(world.replica, SPACE)]
    assert (len(stamps), first.backup in stamps) == (backups.KEPT, False)


async def test_a_bank_file_that_an_undo_removes_is_kept_beside_when_it_was_edited_since(
    world: World, expect_log: Callable[[str], None]
) -> None:
    expect_log("a file of the bank was changed during a run")
    await consolidate(world, {"new.md": "# N\n"})
    dead = Fault(before=Unreachable("dead"))
    notes = keys.live_prefix(SPACE)
    world.store.plan = lambda asked, _: dead if asked.verb == "put" and asked.key.startswith(notes) else None
    with pytest.raises(LiveMemError, match="not all of it could be written yet"):
        await take_back(world)
    world.store.plan = None
    await world.put(keys.bank_key(SPACE, "new.md"), "edited since")

    await recovered(world)

    bank = await world.bank()
    assert ("new.md" in bank, [text for name, text in bank.items() if "conflict" in name]) == (False, ["edited since"])


async def test_an_undo_whose_lease_another_host_has_taken_over_commits_nothing(autojump_clock: Clock) -> None:
    world = await World.seeded(notes=2)
    async with filing(world) as consolidations:  # a model's endpoint has a clock of its own
        assert (await consolidations.run_once(SPACE)).state == "ok"
    before = await world.bucket()
    world.store.plan = lambda asked, _: Fault(delay=0.2) if asked.key.startswith("_backups/") else None

    async def take_over() -> None:
        await trio.sleep(0.1)
        await world.put(keys.lease_key(SPACE), json.dumps({"holder": "another", "fence": 9}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_over)
        with pytest.raises(LeaseLost):
            await take_back(world)

    assert await world.bucket() == before
    assert [entry.kind for entry in await world.ledger()] == ["consolidation"]


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [None, 1, 7])
async def test_a_run_that_is_not_there_is_refused(world: World, number: int | None) -> None:
    before = await world.bucket()

    with pytest.raises(NotFound, match="alpha"):
        await take_back(world, number)

    assert await world.bucket() == before


async def test_a_space_that_is_not_there_is_refused(world: World) -> None:
    with pytest.raises(NotFound) as caught:
        await take_back(world, space="nowhere")

    assert caught.value.values["path"] == "nowhere"


@pytest.mark.parametrize(("torn", "said"), [(False, "is gone"), (True, "is incomplete")])
async def test_a_run_whose_backup_is_gone_or_torn_is_refused(world: World, torn: bool, said: str) -> None:
    entry = await consolidate(world, {"progress.md": "# P\n\nfirst\n"})
    prefix = keys.backup_prefix(SPACE, entry.backup)
    for key in await world.everything():
        if key == prefix + keys.META or (key.startswith(prefix) and not torn):
            await world.memory.delete(key)
    before = await world.bucket()

    with pytest.raises(LiveMemError, match=f"run 1 of alpha cannot be taken back: its backup {entry.backup} {said}"):
        await take_back(world)

    assert await world.bucket() == before
    assert len(await world.ledger()) == 1


@pytest.mark.parametrize("number", [None, 1, 2])
async def test_a_damaged_entry_among_those_to_take_back_is_refused(world: World, number: int | None) -> None:
    await consolidate(world, {"progress.md": "# P\n\nfirst\n"})
    await world.note("since")
    await consolidate(world, {"progress.md": "# P\n\nmore\n"})
    await world.note("later")
    await consolidate(world, {"progress.md": "# P\n\neven more\n"})
    await take_back(world)
    await world.put(keys.ledger_key(SPACE, 2), "{}")
    before = await world.bucket()

    with pytest.raises(LiveMemError, match="run 2 cannot be read" if number else "taken back"):
        await take_back(world, number)

    assert await world.bucket() == before


async def test_a_note_of_a_later_run_whose_backup_is_gone_keeps_all_as_it_is(world: World) -> None:
    await consolidate(world, {"progress.md": "# P\n\nfirst\n"})
    await world.note("since")
    second = await consolidate(world, {"progress.md": "# P\n\nmore\n"})
    await backups.delete(world.replica, SPACE, second.backup)
    before = await world.bucket()

    with pytest.raises(LiveMemError, match="the notes that run 2 took in since are in its backup alone"):
        await take_back(world, 1)

    assert await world.bucket() == before


# --- crashes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a run", "an undo"])
@pytest.mark.parametrize("after", [False, *([True] if LONG else [])], ids=lambda after: "after" if after else "before")
async def test_a_crash_at_any_request_leaves_all_of_it_or_nothing(
    kind: str, after: bool, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("a consolidated note could not be removed")
    origin = World()
    await origin.seed(notes=2, bank={"progress.md": OLD, "same.md": "# Same\n"})
    await origin.put(keys.bank_key(SPACE, "odd.md"), b"\xff")
    await origin.note("a decision", category="decision")
    async with filing(origin) as consolidations:  # a model's endpoint has a clock of its own
        assert (await consolidations.run_once(SPACE)).state == "ok"
    number = 1
    await origin.memory.delete(keys.bank_key(SPACE, "odd.md"))
    if kind == "an undo":
        number = (await take_back(origin)).number
    await origin.note("since")
    before = await space_of(origin)
    whole = await twin_of(origin)
    await take_back(whole, number)
    done = await space_of(whole)
    assert before != done
    seen = set()

    for call in itertools.count(1):
        world = await twin_of(origin)
        died = dies(world, call, after=after)
        with suppress(LiveMemError):
            await take_back(world, number)
        if not died():
            break
        world.store.plan = None
        await recovered(world)

        left = await space_of(world)
        assert left in (before, done), f"request {call}"
        seen.add(left == done)

    assert seen == {False, True}
    assert call > 20
