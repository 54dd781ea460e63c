"""What is left behind is found, what is in use is not, and only what was found goes, after a backup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from consolidation_world import SPACE, World, run

from livememfs.errors import NotFound, Unreachable
from livememfs.records import keys
from livememfs.records.ledger import Entry, NoteEntry
from livememfs.runs.upkeep.gc import Finding, Removed, _modified, find, remove
from livememfs.spaces import backups
from livememfs.spaces import making as spaces
from livememfs.spaces.lease import Leases
from livememfs.store.base import ObjectInfo
from livememfs.testing.llm import consolidation_reply
from livememfs.testing.store import Fault, StoreRequest

LIVE = keys.live_prefix(SPACE)
TORN = "_backups/alpha/2026-01-01T00-00-00/"
LATER = timedelta(days=40)


@pytest.fixture
async def world() -> World:
    return await World.seeded()


def kinds(found: list[Finding]) -> dict[str, str]:
    """Kind by key."""
    return {one.key: one.kind for one in found}


async def look(world: World, space: str | None = None, **options: Any) -> dict[str, str]:
    return kinds(await find(world.replica, world.clock, space, **options))


async def clean(world: World, found: list[Finding]) -> Removed:
    async with trio.open_nursery() as nursery:
        leases = Leases(world.replica, world.clock, "here", nursery)
        removed = await remove(world.replica, world.clock, leases, found)
        nursery.cancel_scope.cancel()
    return removed


@asynccontextmanager
async def unchanged(world: World) -> AsyncIterator[None]:
    before = await world.everything()
    yield
    assert await world.everything() == before


async def consolidate(world: World, agent: str | None = None) -> None:
    """A run that takes every note of an agent, or every note."""
    reply = consolidation_reply({"progress.md": "# Progress\n\nnew\n"}, action="created")
    if await world.bank():
        reply = consolidation_reply({"progress.md": f"# Progress\n\nnew {world.written}\n"})
    result = await run(world, reply, options={"agent": agent} if agent else None)
    assert result.state == "ok", result.reason


async def furnish(world: World) -> dict[str, str]:
    """One of each kind; what `find` says of it after a while."""
    await world.put(f"{LIVE}20260101T000000_a_todo_00000001.md", b"\xff\xfe")
    await world.put(f"{LIVE}picture.png", b"png")
    await world.put(f"{LIVE}deep/note.md", "in a folder")
    await world.put(f"{LIVE}note.md~", "a backup of an editor")
    await world.put(f"{LIVE}x.tmp.md", "half a note")
    await world.put(f"{TORN}live/.keep", b"")
    await world.put(f"{TORN}bank/a.md", b"a")
    await world.put(keys.lease_key("gone"), b"{}")
    await world.put(f"{SPACE}/_changes/silent-1.json", b"{}")
    await world.put(f"{SPACE}/sessions/ended/told.json", b"{}")
    return {
        f"{LIVE}20260101T000000_a_todo_00000001.md": "unreadable",
        f"{LIVE}picture.png": "no-note",
        f"{LIVE}deep/note.md": "no-note",
        f"{LIVE}note.md~": "litter",
        f"{LIVE}x.tmp.md": "litter",
        TORN: "torn-backup",
        keys.lease_key("gone"): "lease",
        f"{SPACE}/_changes/silent-1.json": "beacon",
        f"{SPACE}/sessions/ended/told.json": "told",
    }


# --- finding ------------------------------------------------------------------------------------------------------


async def test_one_of_each_kind_is_found_and_looking_changes_nothing(world: World) -> None:
    expected = await furnish(world)
    world.clock.advance(days=31)

    async with unchanged(world):
        assert await look(world) == expected


async def test_the_trace_of_a_removed_note_outlives_every_machine_that_was_off(world: World) -> None:
    trace = keys.removed_key(f"{LIVE}20260101T000000_a_todo_00000001.md")
    await world.put(trace, b"{}")
    world.clock.advance(days=179)
    assert trace not in await look(world)

    world.clock.advance(days=2)
    assert (await look(world))[trace] == "trace"


async def test_what_is_young_is_not_left_behind(world: World) -> None:
    await furnish(world)
    world.clock.advance(days=29)

    assert await look(world) == {}
    assert set((await look(world, older_than=timedelta(days=28))).values()) == {
        "unreadable",
        "no-note",
        "litter",
        "torn-backup",
        "lease",
        "told",
    }


async def test_nothing_is_so_young_that_somebody_may_be_at_it(world: World) -> None:
    """A backup has no `_meta.json` until it is whole, and a restored space has a lease before it is a space."""
    await furnish(world)
    world.clock.advance(hours=23)

    assert await look(world, older_than=timedelta(0)) == {}
    world.clock.advance(hours=2)
    assert {"torn-backup", "lease", "litter"} <= set((await look(world, older_than=timedelta(0))).values())


async def test_each_says_for_people_and_programs_what_and_how_much_it_is(world: World) -> None:
    await world.put(f"{TORN}live/.keep", b"")
    world.clock.advance(60)
    await world.put(f"{TORN}bank/a.md", b"abc")
    written = world.clock.now()
    world.clock.advance(days=31)

    [found] = await find(world.replica, world.clock)

    assert (found.size, len(found.objects), found.modified) == (3, 2, written)
    assert found.to_json() == {
        "kind": "torn-backup",
        "space": "alpha",
        "key": TORN,
        "why": "it was interrupted and cannot be restored",
        "objects": 2,
        "bytes": 3,
        "modified": "2026-02-20T14:01:00Z",
    }


async def test_without_the_times_of_a_store_nothing_is_left_behind() -> None:
    timed, untimed = ObjectInfo("a", "e", 1, 5_000_000_000), ObjectInfo("b", "e", 1, 0)

    assert _modified([timed]) == datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert _modified([timed, untimed]) == datetime.max.replace(tzinfo=UTC)


async def test_vectors_are_left_behind_when_another_model_has_been_in_use_for_long(world: World) -> None:
    old, new = keys.index_prefix(SPACE, "old-1"), keys.index_prefix(SPACE, "new-1")
    await world.put(f"{old}a.vec", b"a")
    world.clock.advance(days=60)
    assert await look(world) == {}, "the only vectors there are"

    await world.put(f"{new}b.vec", b"b")

    assert await look(world) == {old: "vectors"}
    world.clock.advance(days=60)
    assert await look(world) == {old: "vectors"}, "the newest stay, however old"


async def test_vectors_of_a_model_that_somebody_used_lately_stay(world: World) -> None:
    await world.put(f"{keys.index_prefix(SPACE, 'old-1')}a.vec", b"a")
    world.clock.advance(days=1)
    await world.put(f"{keys.index_prefix(SPACE, 'new-1')}b.vec", b"b")
    world.clock.advance(days=20)

    assert await look(world) == {}


async def test_a_backup_is_as_young_as_its_youngest_object(world: World) -> None:
    await world.put(f"{TORN}live/.keep", b"")
    world.clock.advance(days=31)
    await world.put(f"{TORN}bank/a.md", b"a")

    assert await look(world) == {}


async def test_what_is_in_use_is_not_left_behind(world: World) -> None:
    await world.note("a note that waits for the first run")
    await world.put(keys.lease_key(SPACE), b"{}")
    await world.put(f"{SPACE}/folder/picture.png", b"an ordinary file")
    await world.put("beside/live/picture.png", b"no space")
    await backups.create(world.replica, world.clock, SPACE, automatic=True)
    world.clock.advance(days=365)

    assert await look(world) == {}


async def test_one_space_is_looked_at_without_the_others(world: World) -> None:
    await furnish(world)
    await spaces.create(world.replica, world.clock, "beta")
    await world.put("beta/live/picture.png", b"png")
    world.clock.advance(days=31)

    assert await look(world, "beta") == {"beta/live/picture.png": "no-note"}
    assert await look(world, "gone") == {keys.lease_key("gone"): "lease"}


@pytest.mark.parametrize("name", ["never", "_backups", "a/b", ""])
async def test_a_space_of_which_there_is_nothing_is_not_found(world: World, name: str) -> None:
    with pytest.raises(NotFound):
        await look(world, name)


# --- notes that runs pass over ------------------------------------------------------------------------------------


async def test_notes_of_an_agent_that_every_run_leaves_out_are_passed_over(world: World) -> None:
    await world.note("taken", agent="cline")
    left = await world.note("left out", agent="codex")
    world.clock.advance(LATER.total_seconds())
    await consolidate(world, "cline")

    [found] = await find(world.replica, world.clock)
    assert (found.kind, found.key) == ("passed-over", left)
    assert "codex" in found.why


async def test_notes_of_an_agent_that_was_ever_taken_wait(world: World) -> None:
    await world.note("taken", agent="codex")
    await consolidate(world)
    await world.note("waits", agent="codex")
    await world.note("taken", agent="cline")
    world.clock.advance(LATER.total_seconds())
    await consolidate(world, "cline")

    assert await look(world) == {}


async def test_of_whom_the_first_of_many_runs_took_a_note_is_not_passed_over(world: World) -> None:
    waits, left = await world.note("waits", agent="codex"), await world.note("left out", agent="other")
    world.clock.advance(LATER.total_seconds())
    for number in range(1, 20):
        taken = (NoteEntry(f"{LIVE}1.md", "e", "0", "codex", "", ""),) if number == 1 else ()
        entry = Entry(
            number=number, space=SPACE, committed_at=world.clock.now(), host="h", fence=1, writes=(), removes=taken
        )
        await world.put(keys.ledger_key(SPACE, number), entry.render())

    assert await look(world) == {left: "passed-over"}
    assert waits in await world.live()


async def test_notes_that_no_run_has_met_wait(world: World) -> None:
    await world.note("taken", agent="cline")
    await consolidate(world)
    world.clock.advance(60)
    await world.note("waits", agent="codex")
    world.clock.advance(LATER.total_seconds())

    assert await look(world) == {}


async def test_a_ledger_that_cannot_be_read_accuses_nobody(world: World, expect_log: Any) -> None:
    expect_log("an entry of the ledger cannot be read")
    await world.note("taken", agent="cline")
    await world.note("left out", agent="codex")
    world.clock.advance(LATER.total_seconds())
    await consolidate(world, "cline")
    await world.put(keys.ledger_key(SPACE, 2), b"garbage")

    assert await look(world) == {}


async def test_the_ledger_is_read_only_for_old_notes(world: World) -> None:
    await world.note("taken", agent="cline")
    await consolidate(world)
    world.clock.advance(LATER.total_seconds())
    await world.note("young")
    world.store.requests.clear()

    assert await look(world) == {}
    of_ledger = [one.key for one in world.store.requests if keys.LEDGER in one.key]
    assert set(of_ledger) == {keys.removed_prefix(SPACE)}


# --- removing -----------------------------------------------------------------------------------------------------


async def test_what_was_found_goes_and_a_backup_has_what_stood_in_live(world: World) -> None:
    expected = await furnish(world)
    before = await world.everything()
    world.clock.advance(days=31)

    removed = await clean(world, await find(world.replica, world.clock))

    assert (removed.objects, removed.kept) == (len(expected) + 1, ())
    after = await world.everything()
    prefix = keys.backup_prefix(SPACE, removed.backups[SPACE])
    for key in expected:
        assert not any(found.startswith(key) for found in after)
        if key.startswith(LIVE):
            assert after[prefix + key.removeprefix(f"{SPACE}/")] == before[key]
    assert await look(world) == {}
    kept = {key: data for key, data in before.items() if key in after}
    assert kept == {key: data for key, data in after.items() if key in before}


async def test_how_far_a_removal_has_come_is_told_object_by_object(world: World) -> None:
    await furnish(world)
    world.clock.advance(days=31)
    found = await find(world.replica, world.clock)
    await world.put(keys.lease_key("gone"), b"written meanwhile")
    told: list[tuple[int, int]] = []

    async with trio.open_nursery() as nursery:
        leases = Leases(world.replica, world.clock, "here", nursery)
        removed = await remove(
            world.replica, world.clock, leases, found, progress=lambda done, total: told.append((done, total))
        )
        nursery.cancel_scope.cancel()

    assert told == [(done, 10) for done in range(1, 11)]
    assert (removed.objects, removed.kept) == (9, (keys.lease_key("gone"),))


async def test_without_anything_of_live_there_is_no_backup(world: World) -> None:
    await world.put(f"{SPACE}/_changes/silent-1.json", b"{}")
    await world.put(keys.lease_key("gone"), b"{}")
    world.clock.advance(days=31)

    removed = await clean(world, await find(world.replica, world.clock))

    assert (removed.objects, removed.backups) == (2, {})


async def test_what_somebody_writes_meanwhile_stays(world: World) -> None:
    await furnish(world)
    world.clock.advance(days=31)
    found = await find(world.replica, world.clock)
    changed = [f"{LIVE}picture.png", f"{SPACE}/_changes/silent-1.json", keys.lease_key("gone")]
    for key in changed:
        await world.put(key, b"new")
    await world.memory.delete(f"{LIVE}note.md~")

    removed = await clean(world, found)

    assert removed.kept == tuple(sorted(changed))
    assert [await world.get(key) for key in changed] == [b"new"] * 3


async def test_a_backup_that_was_completed_and_a_space_that_came_back_lose_nothing(world: World) -> None:
    await furnish(world)
    world.clock.advance(days=31)
    found = [one for one in await find(world.replica, world.clock) if one.kind in ("torn-backup", "lease")]
    await world.put(f"{TORN}_meta.json", b"{}")
    await spaces.create(world.replica, world.clock, "gone")

    removed = await clean(world, found)

    assert removed.objects == 0
    assert await world.get(f"{TORN}bank/a.md") == b"a"
    assert await world.get(keys.lease_key("gone")) == b"{}"


async def test_when_the_backup_fails_nothing_of_the_space_goes(world: World) -> None:
    await world.put(f"{LIVE}picture.png", b"png")
    world.clock.advance(days=31)
    found = await find(world.replica, world.clock)
    world.store.plan = lambda asked, _: _no_copy(asked)

    with pytest.raises(Unreachable):
        async with _unwrapped():
            await clean(world, found)

    assert await world.get(f"{LIVE}picture.png") == b"png"


def _no_copy(asked: StoreRequest) -> Fault | None:
    return Fault(before=Unreachable("gone")) if asked.verb == "copy" else None


@asynccontextmanager
async def _unwrapped() -> AsyncIterator[None]:
    from livememfs.concurrency import the_one

    try:
        yield
    except BaseExceptionGroup as group:
        raise the_one(group) from None


async def test_of_automatic_backups_the_last_ten_stay(world: World) -> None:
    for number in range(12):
        await world.put(f"{LIVE}picture{number}.png", b"png")
        world.clock.advance(days=31)
        await clean(world, await find(world.replica, world.clock))

    found = await backups.list_backups(world.replica, SPACE)
    assert (len(found), {one.automatic for one in found}) == (backups.KEPT, {True})
