"""How often memories were used: every host's counts, summed; none written when one is used, none lost at the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.errors import Unreachable
from livememfs.memories.uses import MOST_KEPT, READ_SECONDS, WRITTEN_SECONDS, Uses
from livememfs.records import keys
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

SPACE = "alpha"
DAVID, SHOULDER = "20260101T000000_fact_0000000a", "20260101T000000_fact_0000000b"


class World:
    """A bucket, and hosts that count."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.told: dict[tuple[str, str], tuple[int, int]] = {}

    def tell(self, counts: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        self.told.update(counts)

    @asynccontextmanager
    async def host(self, name: str = "one") -> AsyncIterator[Uses]:
        replica = Replica(self.store)
        uses = Uses(replica, self.clock, name, self.tell)
        async with trio.open_nursery() as nursery:
            await nursery.start(replica.run)
            nursery.start_soon(uses.run)
            yield uses
            uses.write()
            await replica.uploaded()
            nursery.cancel_scope.cancel()
        replica.close()

    async def written(self, host: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = json.loads((await self.memory.get(keys.uses_key(SPACE, host))).data)
        return found


@pytest.fixture
def world() -> World:
    return World()


def moment(world: World) -> datetime:
    return world.clock.now().astimezone(UTC).replace(microsecond=0)


async def test_uses_are_summed_over_hosts_and_over_restarts(world: World, autojump_clock: Clock) -> None:
    async with world.host("one") as one:
        await one.opened(SPACE)
        one.count(SPACE, [DAVID, f"{SPACE}/memories/{DAVID}_until_20270101T000000.md", SHOULDER])
    world.clock.advance(3_600)
    async with world.host("two") as two:
        await two.opened(SPACE)
        two.count(SPACE, [DAVID])
        assert two.of(SPACE, DAVID) == (3, moment(world))
    async with world.host("one") as one:
        one.count(SPACE, [SHOULDER])
        await one.opened(SPACE)
        assert one.of(SPACE, DAVID) == (3, moment(world))
        assert one.of(SPACE, SHOULDER)[0] == 2
        assert world.told[SPACE, DAVID][0] == 3
    assert {name: count[0] for name, count in (await world.written("one")).items()} == {DAVID: 2, SHOULDER: 2}


async def test_a_use_writes_nothing_and_a_minute_of_them_one_object(world: World, autojump_clock: Clock) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        world.store.forget()
        for _ in range(1_000):
            uses.count(SPACE, [DAVID])
        await trio.sleep(WRITTEN_SECONDS - 1)
        assert world.store.counts["put"] == 0
        await trio.sleep(3)
        assert world.store.counts["put"] == 1
        await trio.sleep(WRITTEN_SECONDS * 5)
        assert world.store.counts["put"] == 1


async def test_counts_of_others_come_after_a_while(world: World, autojump_clock: Clock) -> None:
    async with world.host("one") as one, world.host("two") as two:
        await one.opened(SPACE)
        await two.opened(SPACE)
        two.count(SPACE, [DAVID])
        await trio.sleep(READ_SECONDS + 2 * WRITTEN_SECONDS)
        assert one.of(SPACE, DAVID)[0] == 1
        assert one.of(SPACE, "nobody") == (0, None)


async def test_what_was_counted_before_is_never_written_over_while_it_could_not_be_read(
    world: World, autojump_clock: Clock
) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID] * 5)
    async with world.host() as uses:
        world.store.fail_all = Unreachable("reset", endpoint="the bucket")
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        uses.write()
        world.store.fail_all = None
        await trio.sleep(3 * WRITTEN_SECONDS)
        assert uses.of(SPACE, DAVID)[0] == 6
    assert (await world.written("one"))[DAVID][0] == 6


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"a": 1}', b'{"a": ["x", 2]}', b"\xff", b"null"])
async def test_what_is_no_count_counts_nothing(world: World, autojump_clock: Clock, data: bytes) -> None:
    await world.memory.put(keys.uses_key(SPACE, "other"), data)
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        assert uses.of(SPACE, DAVID)[0] == 1


@pytest.mark.parametrize("seconds", [0.0, WRITTEN_SECONDS - 0.5])
async def test_a_removed_space_is_not_brought_back_by_what_was_counted(
    world: World, autojump_clock: Clock, seconds: float
) -> None:
    """Also when the minute ends while it is removed."""
    async with world.host() as uses:
        replica = uses._replica
        await spaces.create(replica, world.clock, SPACE)
        await replica.names.listing(f"{SPACE}/")
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        await trio.sleep(seconds)
        world.store.latency("*", 0.3)
        await spaces.remove_empty(replica, SPACE)
        await trio.sleep(3 * WRITTEN_SECONDS)
    assert (await world.memory.list_page("")).objects == ()


async def test_of_too_many_those_used_last_are_kept(world: World, autojump_clock: Clock) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [f"old{n}" for n in range(50)])
        world.clock.advance(10)
        uses.count(SPACE, [f"new{n}" for n in range(MOST_KEPT)])
    kept = await world.written("one")
    assert len(kept) == MOST_KEPT
    assert not any(name.startswith("old") for name in kept)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"%s": [1, 1771596000000]}', (1, None)),
        (b'{"%s": [1, -5]}', (1, None)),
        (b'{"%s": [1, 1e999]}', (0, None)),
        (b'{"%s": ' + b"[" * 100_000, (0, None)),
        (b'{"%s": [2, 0]}', (2, None)),
    ],
)
async def test_what_no_host_can_have_counted_stops_nobody(
    world: World, data: bytes, told: tuple[int, None], autojump_clock: Clock
) -> None:
    await world.memory.put(keys.uses_key(SPACE, "other"), data.replace(b"%s", DAVID.encode()))
    async with world.host() as uses:
        await uses.opened(SPACE)

        assert uses.of(SPACE, DAVID) == told
