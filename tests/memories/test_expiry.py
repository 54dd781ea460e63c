"""What has ended is removed, however often that must be tried and however often it comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import trio
from consolidation_world import SPACE, World
from trio.abc import Clock

from livememfs.cache.changes import Change
from livememfs.errors import Unreachable
from livememfs.memories.expiry import AGAIN, LOOK_SECONDS, Expiry, ExpiryStatistics
from livememfs.records import keys

HOUR = 3_600.0


@asynccontextmanager
async def expiring(world: World) -> AsyncIterator[tuple[Expiry, str]]:
    """A bucket with a memory that ended just now, and what is to remove it; the memory's key."""
    ends = world.clock.now() + timedelta(hours=1)
    key = f"{SPACE}/memories/20260101T000000_fact_00000001_until_{ends:%Y%m%dT%H%M%S}.md"
    assert keys.MemoryName.parse(key.rpartition("/")[2]) is not None
    await world.put(key, "Mickael is ill")
    world.clock.advance(HOUR + 1)
    expiry = Expiry(world.replica, world.clock)
    async with trio.open_nursery() as nursery:
        await nursery.start(world.replica.run)
        nursery.start_soon(expiry.run)
        yield expiry, key
        nursery.cancel_scope.cancel()


async def test_what_could_not_be_removed_is_removed_later(autojump_clock: Clock) -> None:
    world = World()
    async with expiring(world) as (expiry, key):
        world.store.fail_all = Unreachable("reset", endpoint="the bucket")
        expiry.note([key])
        await trio.sleep(1)
        figures = expiry.statistics()
        assert (figures.removed, figures.waiting) == (0, 1)
        world.store.fail_all = None
        expiry.note([key])  # it is known of, so there is one of it
        assert expiry.statistics().waiting == 1
        world.clock.advance(AGAIN.total_seconds())
        await trio.sleep(LOOK_SECONDS)
        await world.replica.uploaded()
        assert key not in await world.everything()


async def test_what_has_ended_and_comes_back_is_removed_again(autojump_clock: Clock) -> None:
    world = World()
    async with expiring(world) as (expiry, key):
        for removed in (1, 2):
            await world.put(key, "Mickael is ill")
            expiry.note([key])
            await trio.sleep(LOOK_SECONDS)
            await world.replica.uploaded()
            assert (expiry.statistics().removed, key in await world.everything()) == (removed, False)


async def test_it_goes_at_its_second_however_many_others_are_waited_for(autojump_clock: Clock) -> None:
    """Also one that is heard of while a later one is waited for."""
    world = World()
    expiry = Expiry(world.replica, world.clock)
    world.replica.changes.subscribe(expiry.heard)
    async with trio.open_nursery() as nursery:
        await nursery.start(world.replica.run)
        nursery.start_soon(expiry.run)
        later, sooner = await ending_in(world, 40), await ending_in(world, 10)
        assert expiry.statistics() == ExpiryStatistics(waiting=2, removed=0)
        await trio.sleep(9)
        world.clock.advance(10)  # as much as will have passed when it is looked at
        await trio.sleep(0.5)
        assert sooner in await world.everything()
        await trio.sleep(1)
        await world.replica.uploaded()
        assert expiry.statistics() == ExpiryStatistics(waiting=1, removed=1)
        assert (sooner in await world.everything(), later in await world.everything()) == (False, True)
        nursery.cancel_scope.cancel()


async def test_what_ends_later_goes_when_the_clock_is_set(autojump_clock: Clock) -> None:
    world = World()
    expiry = Expiry(world.replica, world.clock)
    async with trio.open_nursery() as nursery:
        await nursery.start(world.replica.run)
        nursery.start_soon(expiry.run)
        expiry.note([await ending_in(world, 5 * HOUR)])
        await trio.sleep(1)
        world.clock.advance(5 * HOUR)
        await trio.sleep(LOOK_SECONDS - 2)
        assert expiry.statistics() == ExpiryStatistics(waiting=1, removed=0)
        await trio.sleep(2)
        assert expiry.statistics() == ExpiryStatistics(waiting=0, removed=1)
        nursery.cancel_scope.cancel()


async def test_what_is_there_no_more_is_no_longer_waited_for(autojump_clock: Clock) -> None:
    world = World()
    async with expiring(world) as (expiry, key):
        await world.store.delete(key)
        expiry.note([key])
        await trio.sleep(1)
        assert expiry.statistics() == ExpiryStatistics(waiting=0, removed=0)


async def test_only_memories_that_are_there_and_end_are_waited_for() -> None:
    world = World()
    expiry = Expiry(world.replica, world.clock)
    ends = "20260101T000000_fact_00000001_until_20270101T000000.md"
    expiry.note(
        [f"{SPACE}/memories/{ends[:29]}.md", f"{SPACE}/memories/shoulder_until_spring.md", f"{SPACE}/bank/{ends}", ends]
    )
    expiry.heard(Change(f"{SPACE}/memories/{ends}", "delete", "", "remote"))
    assert expiry.statistics().waiting == 0
    expiry.heard(Change(f"{SPACE}/memories/{ends}", "put", "etag", "remote"))
    assert expiry.statistics().waiting == 1


async def ending_in(world: World, seconds: float) -> str:
    """A memory that ends so many seconds from now; its key."""
    ends = world.clock.now() + timedelta(seconds=seconds)
    key = f"{SPACE}/memories/20260101T000000_fact_00000001_until_{ends:%Y%m%dT%H%M%S}.md"
    await world.replica.put(key, b"Mickael is ill")
    return key
