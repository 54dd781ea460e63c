"""Consolidations are counted as far as they stand, whoever made them, and whatever numbers the ledger gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from consolidation_world import SPACE, World, ask
from consolidation_world import run as run_once
from digest_world import digest
from undo_world import consolidate, recovered, take_back

from livememfs.errors import Unreachable
from livememfs.records import keys
from livememfs.records.ledger import Entry, Kind, Write
from livememfs.records.space import Meta, parse_synthesis
from livememfs.spaces.counts import counted
from livememfs.testing.llm import consolidation_reply, digest_reply
from livememfs.testing.store import Fault, StoreRequest
from livememfs.text.times import iso

META = keys.meta_key(SPACE)
FILES = {"progress.md": "# Progress\n\n- done\n"}


@pytest.fixture
async def world() -> World:
    made = World()
    await made.seed(notes=2)
    return made


async def meta(world: World) -> Meta:
    return Meta.parse(await world.get(META))


async def number_of_synthesis(world: World) -> int:
    return parse_synthesis(await world.get(keys.synthesis_key(SPACE))).number


async def server_consolidates(world: World, notes: int = 1, *, keeps_fields: bool = True) -> None:
    """What a Live Memory server does with the record."""
    world.clock.advance(60)
    found = json.loads(await world.get(META))
    if not keeps_fields:
        found.pop("livememfs_ledger", None)
    found["last_consolidation"] = iso(world.clock.now())
    found["consolidation_count"] += 1
    found["total_notes_processed"] += notes
    await world.put(META, json.dumps(found))


async def test_digests_are_not_counted(world: World) -> None:
    await digest(world, digest_reply(skipped={1: "nothing", 2: "nothing"}))
    entry = await consolidate(world, FILES)

    assert (entry.number, entry.metrics["ledger"]) == (2, 2)
    assert (await meta(world)).consolidation_count == await number_of_synthesis(world) == 1


async def test_an_undo_is_not_counted_and_takes_back_what_it_undoes(world: World) -> None:
    await consolidate(world, FILES)
    one = await meta(world)
    await world.note("more")
    await consolidate(world, FILES)
    two = await meta(world)

    undone = await take_back(world)
    assert await meta(world) == replace(one, ledger=undone.number)
    assert await number_of_synthesis(world) == 1
    again = await take_back(world, undone.number)
    assert await meta(world) == replace(two, ledger=again.number)
    await take_back(world, 1)
    last = await meta(world)
    assert (last.consolidation_count, last.last_consolidation, last.total_notes_processed) == (0, None, 0)
    assert [entry.number for entry in await world.ledger()] == [1, 2, 3, 4, 5]


async def test_the_model_is_told_which_consolidation_it_is(world: World) -> None:
    await digest(world, digest_reply(skipped={1: "nothing", 2: "nothing"}))
    await consolidate(world, FILES)
    await world.note("more")
    _, [request] = await ask(world, consolidation_reply(FILES))

    assert "Consolidation 2 of the space" in request.text


@pytest.mark.parametrize("keeps_fields", [True, False])
async def test_runs_of_a_live_memory_server_in_between_are_kept(world: World, keeps_fields: bool) -> None:
    await consolidate(world, FILES)
    await server_consolidates(world, 5, keeps_fields=keeps_fields)
    await server_consolidates(world, 6, keeps_fields=keeps_fields)
    await world.note("more")
    entry = await consolidate(world, FILES)

    now = await meta(world)
    assert (now.consolidation_count, now.total_notes_processed, now.ledger) == (4, 14, 2)
    assert (entry.number, await number_of_synthesis(world)) == (2, 4)
    await take_back(world)
    assert ((await meta(world)).consolidation_count, (await meta(world)).total_notes_processed) == (3, 13)


@pytest.mark.parametrize("keeps_fields", [True, False])
async def test_a_server_that_runs_before_a_committed_run_is_written_does_not_hide_it(
    world: World, keeps_fields: bool
) -> None:
    """Its count would pass for ours: the notes would go, and nothing of them would be in the bank."""
    if not keeps_fields:
        await consolidate(world, {"other.md": "# Other\n"})
        await world.note("more")
    before = await meta(world)
    world.store.plan = _no_bank
    result = await run_once(world, consolidation_reply(FILES))
    assert result.state == "partial"
    world.store.plan = None
    await server_consolidates(world, 5, keeps_fields=keeps_fields)

    await recovered(world)

    assert (await world.bank())["progress.md"] == FILES["progress.md"]
    assert await world.live() == []
    now, taken = await meta(world), 1 if not keeps_fields else 2
    assert now.consolidation_count == before.consolidation_count + 2
    assert now.total_notes_processed == before.total_notes_processed + 5 + taken


def _no_bank(asked: StoreRequest, _: int) -> Fault | None:
    return Fault(before=Unreachable("gone")) if asked.verb == "put" and "/bank/" in asked.key else None


async def test_a_server_that_runs_after_a_run_was_written_is_not_written_over(
    world: World, expect_log: Callable[[str], None]
) -> None:
    """The run died with its notes still there: only those are left to be removed."""
    expect_log("a consolidated note could not be removed")
    world.store.plan = lambda asked, _: (
        Fault(before=Unreachable("gone")) if asked.verb == "delete" and "/live/" in asked.key else None
    )
    await run_once(world, consolidation_reply(FILES))
    world.store.plan = None
    theirs = "# Progress\n\n- done, and more\n"
    await world.put(keys.bank_key(SPACE, "progress.md"), theirs)
    await server_consolidates(world)
    then = await meta(world)

    await recovered(world)

    assert await world.bank() == {"progress.md": theirs}
    assert (await meta(world), await world.live()) == (then, [])


# --- buckets of the first version, which wrote the number of the run as the count -----------


def entry(world: World, number: int, kind: Kind, record: Meta | None = None, undoes: int = 0) -> Entry:
    writes = (Write(keys.META, "e", record.render().decode()),) if record is not None else ()
    now = world.clock.now() + timedelta(minutes=number)
    return Entry(number=number, space=SPACE, kind=kind, state="applied", committed_at=now, writes=writes, undoes=undoes)


async def first_version(world: World, *kinds: Kind | int | None) -> None:
    """Runs of livememfs 0.1.0; a number is an undo of that run, None a run of a Live Memory server."""
    record, last = await meta(world), 0
    for kind in kinds:
        number = max(record.consolidation_count, last) + 1
        if kind is None:
            record = replace(record, consolidation_count=record.consolidation_count + 1)
        elif kind == "digest":
            await world.put(keys.ledger_key(SPACE, number), entry(world, number, "digest").render())
            await world.put(keys.stored_key(SPACE, number), b"")
            last = number
        else:
            record = replace(record, consolidation_count=number)
            found = entry(world, number, "consolidation", record)
            if isinstance(kind, int):
                found = entry(world, number, "undo", record, kind)
            await world.put(keys.ledger_key(SPACE, number), found.render())
            last = number
    await world.put(META, record.render())


@pytest.mark.parametrize(
    ("runs", "stand"),
    [
        (["consolidation"], 1),
        (["digest", "consolidation"], 1),
        (["consolidation", 1], 0),
        (["consolidation", 1, 2], 1),
        (["consolidation", "consolidation", 2, "consolidation"], 2),
        (["digest", "consolidation", "digest", "consolidation", 2, "digest"], 0),
        (["consolidation", None], 2),
        ([None, None, "consolidation"], 3),
        (["consolidation", None, "consolidation", 3, "digest", None], 3),
        (["consolidation", "digest", None, None], 3),
        ([None, None], 2),
        ([], 0),
    ],
)
async def test_a_bucket_of_the_first_version_is_put_right_by_the_first_run(
    world: World, runs: Sequence[Any], stand: int
) -> None:
    await first_version(world, *runs)
    used = [one.number for one in await world.ledger()]

    made = await consolidate(world, FILES)

    now = await meta(world)
    assert now.consolidation_count == await number_of_synthesis(world) == stand + 1
    assert made.number == now.ledger == max(used, default=0) + 1
    await take_back(world)
    assert (await meta(world)).consolidation_count == stand
    assert (await meta(world)).ledger == made.number + 1


async def test_a_run_of_the_first_version_between_two_of_ours_is_put_right_by_the_next(world: World) -> None:
    await consolidate(world, FILES)
    record = await meta(world)
    await world.put(keys.ledger_key(SPACE, 2), entry(world, 2, "digest").render())
    await world.put(keys.stored_key(SPACE, 2), b"")
    record = replace(record, consolidation_count=3)  # it keeps our field, and writes its own number
    await world.put(keys.ledger_key(SPACE, 3), entry(world, 3, "consolidation", record).render())
    await world.put(META, record.render())

    await world.note("One more.")
    made = await consolidate(world, {"new.md": "# New\n\nOne more.\n"})

    assert ((await meta(world)).consolidation_count, made.number) == (3, 4)


async def test_an_undo_of_a_run_of_the_first_version_puts_its_record_right(world: World) -> None:
    await first_version(world, "digest", "consolidation", "digest", "consolidation")
    copied = f"{keys.backup_prefix(SPACE, '2026-01-01T00-00-00')}_meta.json"
    then = replace(await meta(world), consolidation_count=2)
    await world.put(copied, then.render())
    four = replace((await world.ledger())[-1], backup="2026-01-01T00-00-00")
    await world.put(keys.ledger_key(SPACE, 4), four.render())

    await take_back(world, 4)

    now = await meta(world)
    assert (now.consolidation_count, now.ledger) == (1, 5)


def test_a_record_that_names_its_run_needs_no_ledger_and_an_odd_ledger_does_no_harm() -> None:
    world = World()
    record = Meta(SPACE, "", "", world.clock.now(), consolidation_count=3)
    odd = replace(entry(world, 2, "consolidation"), writes=(Write(keys.META, "e", "not JSON"),))

    assert counted(record, []) == record
    assert counted(record, [odd]).consolidation_count == 3  # the gap before it, itself, and one since
    assert counted(record, [replace(entry(world, 3, "undo"), undoes=12)]).consolidation_count == 2
