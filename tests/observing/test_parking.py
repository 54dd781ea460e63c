"""What is not observed when a mount ends is in the bucket, and is observed once by whoever takes it up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from observe_world import Here, World, accounted
from trio.testing import MockClock

from livememfs.errors import Unreachable
from livememfs.observing.parking import ELSEWHERE, Parking
from livememfs.records import keys
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault

Main = Callable[[World], Awaitable[None]]


def mount(memory: MemoryStore, folder: Path, main: Main, *, host: str = "desk", waits: bool = False) -> None:
    """One mount from its beginning to its end in order. `waits`: nothing is observed by itself."""

    async def whole() -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery, memory=memory, folder=folder)
            parking = Parking(world.replica, host)
            world.observer._parking = parking
            if waits:
                world.observer._due._of = lambda *_: 10.0**9  # type: ignore[method-assign]  # an observer with no time
            await world.start()
            await main(world)
            await world.observer.stop()
            await world.replica.uploaded()
            world.observer.leave()
            await world.replica.uploaded()
            assert accounted(world.events())
            nursery.cancel_scope.cancel()
        world.replica.close()

    trio.run(whole, clock=MockClock(autojump_threshold=0))


def bucket() -> MemoryStore:
    return MemoryStore(ManualClock())


PROMPT = "Mend it,\u2028then\x85tell\u2029me"
"""Within a line of JSON, where Python would end lines as well."""


async def three(world: World) -> None:
    await world.say("prompt", PROMPT)
    for number in range(3):
        await world.tool(number)


async def observed_once(world: World) -> None:
    await trio.sleep(5)
    await world.settled()
    observed = [event for one in await world.observations() for event in one.events]
    assert sorted(observed) == ["t0", "t1", "t2"]
    prompts = (await world.bucket())[keys.session_key("alpha", "s-1", keys.PROMPTS)]
    assert prompts.count(PROMPT.encode()) == 1


async def parked(world: World) -> list[str]:
    return [key for key in await world.bucket() if key.startswith(keys.parked_prefix())]


def test_after_a_clean_end_the_local_state_may_go_and_nothing_is_lost(tmp_path: Path) -> None:
    memory = bucket()
    mount(memory, tmp_path / "one", three, waits=True)
    mount(memory, tmp_path / "another", observed_once)


def test_the_same_local_state_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    memory = bucket()

    async def again(world: World) -> None:
        await observed_once(world)
        assert await parked(world) == []

    mount(memory, tmp_path, three, waits=True)
    mount(memory, tmp_path, again)
    mount(memory, tmp_path / "another", again)


def test_what_another_local_state_has_taken_is_not_observed_by_the_first(tmp_path: Path) -> None:
    memory = bucket()

    async def nothing(world: World) -> None:
        await observed_once(world)
        assert world.events().skipped == {ELSEWHERE: 4}

    mount(memory, tmp_path / "one", three, waits=True)
    mount(memory, tmp_path / "another", observed_once)
    mount(memory, tmp_path / "one", nothing)


def test_another_machine_leaves_them_alone(tmp_path: Path) -> None:
    memory = bucket()

    async def look(world: World) -> None:
        await trio.sleep(60)
        assert await world.observations() == []
        assert len(await parked(world)) == 1

    mount(memory, tmp_path / "one", three, waits=True)
    mount(memory, tmp_path / "another", look, host="laptop")


def test_while_the_bucket_is_away_the_next_mount_asks_until_it_is_back(tmp_path: Path) -> None:
    memory = bucket()

    async def away(world: World) -> None:
        world.away(True)
        await trio.sleep(100)
        world.away(False)
        await trio.sleep(100)
        await observed_once(world)

    mount(memory, tmp_path / "one", three, waits=True)
    mount(memory, tmp_path / "another", away)


def test_when_nothing_is_left_nothing_is_written(tmp_path: Path) -> None:
    memory = bucket()

    async def main(world: World) -> None:
        await three(world)
        await world.settled()

    async def look(world: World) -> None:
        assert await parked(world) == []

    mount(memory, tmp_path, main)
    mount(memory, tmp_path, look)


def test_an_object_that_cannot_be_read_stops_nobody(tmp_path: Path, expect_log: Callable[[str], None]) -> None:
    expect_log("an event of an earlier mount cannot be read")
    memory = bucket()

    async def main(world: World) -> None:
        await trio.sleep(1)
        await three(world)
        await world.settled()
        (left,) = await parked(world)
        assert (await world.bucket())[left] == b"what\n"

    trio.run(memory.put, f"{keys.parked_prefix()}desk-00000000.ndjson", b"what\n")
    mount(memory, tmp_path, main)
    mount(memory, tmp_path, look_at_what)


async def look_at_what(world: World) -> None:
    """What cannot be read is still there, once, at the next mount."""
    await trio.sleep(60)
    (left,) = await parked(world)
    assert (await world.bucket())[left] == b"what\n"


async def change(memory: MemoryStore, changed: Callable[[bytes], bytes]) -> None:
    """Have the one parked object say something else."""
    (info,) = (await list_all(memory, keys.parked_prefix())).objects
    await memory.put(info.key, changed((await memory.get(info.key)).data))


def test_events_of_a_newer_version_are_taken_up(tmp_path: Path) -> None:
    memory = bucket()

    def newer(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.split(b"\n") if line]
        events = [{**one, "event": json.dumps({**json.loads(one["event"]), "branch": "main"})} for one in lines]
        return b"".join(json.dumps(one).encode() + b"\n" for one in events)

    mount(memory, tmp_path / "one", three, waits=True)
    trio.run(change, memory, newer)
    mount(memory, tmp_path / "another", observed_once)


def test_a_line_that_cannot_be_read_stays_in_the_bucket_and_the_others_are_taken_up_once(
    tmp_path: Path, expect_log: Callable[[str], None]
) -> None:
    expect_log("an event of an earlier mount cannot be read")
    memory = bucket()
    mount(memory, tmp_path / "one", three, waits=True)
    trio.run(change, memory, lambda data: b"what\n" + data)
    mount(memory, tmp_path / "another", observed_once)
    mount(memory, tmp_path / "another", look_at_what)
    mount(memory, tmp_path / "third", observed_once)
    mount(memory, tmp_path / "third", look_at_what)


def test_a_removal_whose_answer_is_lost_costs_no_event(tmp_path: Path) -> None:
    memory = bucket()

    async def lost(world: World) -> None:
        own = world.observer._parking._own  # type: ignore[union-attr]
        faults = [Fault(after=Unreachable("reset", endpoint="the bucket"))]
        world.store.plan = lambda asked, _: (
            faults.pop() if faults and (asked.verb, asked.key) == ("delete", own) else None
        )
        await trio.sleep(60)
        assert not faults
        await observed_once(world)

    mount(memory, tmp_path, three, waits=True)
    mount(memory, tmp_path, lost)


def test_another_object_that_cannot_be_had_costs_none_of_our_own_events(tmp_path: Path) -> None:
    memory = bucket()

    async def unread(world: World) -> None:
        own = world.observer._parking._own  # type: ignore[union-attr]
        faults = [Fault(before=Unreachable("no route", endpoint="the bucket"))]
        world.store.plan = lambda asked, _: (
            faults.pop()
            if faults and asked.verb == "get" and asked.key.startswith(keys.parked_prefix()) and asked.key != own
            else None
        )
        await trio.sleep(60)
        assert not faults
        await observed_once(world)

    mount(memory, tmp_path, three, waits=True)
    trio.run(memory.put, f"{keys.parked_prefix()}desk-ffffffff.ndjson", b"")
    mount(memory, tmp_path, unread)


def test_what_was_captured_since_is_not_taken_for_what_another_state_has(tmp_path: Path) -> None:
    memory = bucket()

    async def captured(world: World) -> None:
        world.away(True)
        await world.tool(7)
        await trio.sleep(60)
        world.away(False)
        await trio.sleep(60)
        await world.settled()
        assert world.events().skipped == {ELSEWHERE: 4}
        assert [one.events for one in await world.observations() if "t7" in one.events]

    mount(memory, tmp_path / "one", three, waits=True)
    mount(memory, tmp_path / "another", observed_once)
    mount(memory, tmp_path / "one", captured)


def test_a_machine_whose_name_begins_with_ours_keeps_its_events(tmp_path: Path) -> None:
    memory = bucket()

    async def look(world: World) -> None:
        await trio.sleep(60)
        assert await world.observations() == []
        assert len(await parked(world)) == 1

    mount(memory, tmp_path / "one", three, waits=True, host="desk-2")
    mount(memory, tmp_path / "another", look, host="desk")


def test_the_clock_of_the_world_goes_on_with_trios() -> None:
    async def main() -> None:
        clock = Here()
        before = clock.now()
        await trio.sleep(5)
        assert (clock.now() - before).total_seconds() == 5

    trio.run(main, clock=MockClock(autojump_threshold=0))
