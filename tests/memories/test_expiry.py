"""What has ended is removed, however often that must be tried and however often it comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import trio
from consolidation_world import SPACE, World
from trio.abc import Clock

from livememfs.errors import Unreachable
from livememfs.memories.expiry import AGAIN, LOOK_SECONDS, Expiry
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
