"""One level of the bucket: the same answer whichever way it is asked for, and no request more than it is worth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.listing import STREAMS, list_level
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

PREFIX = "space/live/"


async def filled(count: int, *, span: timedelta, more: tuple[str, ...] = ()) -> FaultyStore:
    """A bucket with notes spread evenly over the time until now."""
    memory = MemoryStore(ManualClock())
    start = datetime.now(UTC) - span
    for number in range(count):
        stamp = start + span * number / count
        await memory.put(f"{PREFIX}{stamp:%Y%m%dT%H%M%S}_me_todo_{number:08x}.md", b"")
    for key in more:
        await memory.put(key, b"")
    return FaultyStore(memory)


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 1_001, 2_500, 25_000])
async def test_everything_is_listed_once_and_in_order(count: int) -> None:
    more = (f"{PREFIX}.keep", f"{PREFIX}zz.md", f"{PREFIX}folder/x", "space/other", "space/mive/x")
    store = await filled(count, span=timedelta(days=300), more=more)

    found = await list_level(store, PREFIX)

    expected = await list_all(store.inner, PREFIX, delimiter="/")
    assert found == expected
    assert len(found.objects) == count + 2


async def test_ten_thousand_notes_and_the_sentinel_cost_eleven_requests(autojump_clock: Clock) -> None:
    store = await filled(10_000, span=timedelta(days=300), more=(f"{PREFIX}.keep",))
    await list_level(store, PREFIX)
    assert dict(store.counts) == {"list": 11}


async def test_very_many_are_asked_for_side_by_side(autojump_clock: Clock) -> None:
    store = await filled(40_000, span=timedelta(days=300))
    store.latency("list", 1.0)
    started = trio.current_time()

    await list_level(store, PREFIX)

    assert trio.current_time() - started < 40 / 2
    assert store.counts["list"] <= 40 + STREAMS


async def test_many_notes_of_one_busy_day_are_all_there(autojump_clock: Clock) -> None:
    """The guess of how they are spread is then all wrong, which costs time and nothing else."""
    store = await filled(30_000, span=timedelta(days=1))
    await store.inner.put(f"{PREFIX}20200101T000000_me_todo_00000000.md", b"")
    assert await list_level(store, PREFIX) == await list_all(store.inner, PREFIX, delimiter="/")
