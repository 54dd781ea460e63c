"""One level of the bucket: the same answer whichever way it is asked for, and no request more than it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.listing import STREAMS, Named, list_level
from livememfs.store.base import ObjectInfo, list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

PREFIX = "space/live/"


async def filled(
    count: int, *, span: timedelta, ago: timedelta = timedelta(0), more: tuple[str, ...] = ()
) -> FaultyStore:
    """A bucket with notes spread evenly over a time that ended `ago`."""
    memory = MemoryStore(ManualClock())
    start = datetime.now(UTC) - ago - span
    for number in range(count):
        stamp = start + span * number / count
        await memory.put(f"{PREFIX}{stamp:%Y%m%dT%H%M%S}_me_todo_{number:08x}.md", b"")
    for key in more:
        await memory.put(key, b"")
    return FaultyStore(memory)


async def in_order(store: FaultyStore) -> list[ObjectInfo]:
    """What one LIST after the other tells."""
    return list((await list_all(store.inner, PREFIX, delimiter="/")).objects)


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 1_001, 2_500, 25_000])
async def test_everything_is_listed_once_and_in_order(count: int) -> None:
    more = (f"{PREFIX}.keep", f"{PREFIX}zz.md", f"{PREFIX}folder/x", "space/other", "space/mive/x")
    store = await filled(count, span=timedelta(days=300), more=more)

    objects, folders = await list_level(store, PREFIX)

    assert [info for _, info in objects] == await in_order(store)
    assert all(info.key == PREFIX + name for name, info in objects)
    assert len(objects) == count + 2
    assert folders == {"folder"}


async def test_ten_thousand_notes_and_the_sentinel_cost_eleven_requests(autojump_clock: Clock) -> None:
    store = await filled(10_000, span=timedelta(days=300), more=(f"{PREFIX}.keep",))
    await list_level(store, PREFIX)
    assert dict(store.counts) == {"list": 11}


async def test_a_few_pages_of_long_ago_cost_no_more_than_their_pages(autojump_clock: Clock) -> None:
    """By the first page alone, a busy week of last year looks like the beginning of very many."""
    store = await filled(3_500, span=timedelta(days=7), ago=timedelta(days=300))
    await list_level(store, PREFIX)
    assert dict(store.counts) == {"list": 4}


@pytest.mark.parametrize("ago", [timedelta(0), timedelta(days=300), timedelta(days=3_000)])
async def test_very_many_are_asked_for_side_by_side_wherever_they_are_in_time(
    ago: timedelta, autojump_clock: Clock
) -> None:
    store = await filled(40_000, span=timedelta(days=30), ago=ago, more=(f"{PREFIX}.keep",))
    store.latency("list", 1.0)
    started = trio.current_time()

    objects, _ = await list_level(store, PREFIX)

    assert trio.current_time() - started < 40 / 2
    assert store.counts["list"] <= 40 * 1.3
    assert [info for _, info in objects] == await in_order(store)


async def test_pages_are_heard_as_they_come_and_each_object_once(autojump_clock: Clock) -> None:
    """Whoever has work for each name does it while the store is at work as well."""
    store = await filled(30_000, span=timedelta(days=30))
    store.latency("list", 1.0)
    heard: list[tuple[float, str]] = []

    def hear(named: Sequence[Named]) -> None:
        heard.extend((trio.current_time(), name) for name, _ in named)

    objects, _ = await list_level(store, PREFIX, hear)

    assert sorted(name for _, name in heard) == [name for name, _ in objects]
    assert len({moment for moment, _ in heard}) >= 30 / STREAMS


async def test_many_notes_of_one_busy_day_are_all_there(autojump_clock: Clock) -> None:
    """The guess of how they are spread is then all wrong, which costs time and nothing else."""
    store = await filled(30_000, span=timedelta(days=1))
    await store.inner.put(f"{PREFIX}20200101T000000_me_todo_00000000.md", b"")
    objects, _ = await list_level(store, PREFIX)
    assert [info for _, info in objects] == await in_order(store)
