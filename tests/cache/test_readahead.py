"""Reading ahead: who reads in order waits less, who does not pays nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.levels import Level
from livememfs.cache.readahead import AT_ONCE, LARGEST, LEVELS, LONGEST_WINDOW, NEAR, Readahead
from livememfs.cache.replica import Replica
from livememfs.store.base import ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.store.s3_client import S3Options
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

COUNT = 100


class Reader:
    """Somebody who reads the files of one folder."""

    def __init__(self) -> None:
        self.memory = MemoryStore(ManualClock())
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store)

    async def read(self, number: int) -> None:
        info = (await self.replica.names.listing("s/")).objects[f"{number:03}"]
        assert await self.replica.read_version(info) == f"text {number}".encode()


@pytest.fixture
async def reader(autojump_clock: Clock, nursery: trio.Nursery) -> Reader:
    made = Reader()
    for number in range(COUNT):
        await made.memory.put(f"s/{number:03}", f"text {number}".encode())
    await nursery.start(made.replica.run)
    made.store.latency("get", 1.0)
    return made


async def test_reading_in_order_takes_a_fraction_of_the_time_and_not_one_request_more(
    reader: Reader, autojump_clock: Clock
) -> None:
    started = trio.current_time()
    for number in range(COUNT):
        await reader.read(number)
    assert reader.store.counts["get"] == COUNT
    assert trio.current_time() - started < COUNT / 4


async def test_a_single_read_fetches_nothing_else(reader: Reader, autojump_clock: Clock) -> None:
    await reader.read(50)
    await trio.sleep(10)
    assert reader.store.counts["get"] == 1


async def test_reading_here_and_there_fetches_nothing_else(reader: Reader, autojump_clock: Clock) -> None:
    order = [number * 37 % COUNT for number in range(0, COUNT, 5)]
    assert all(abs(one - other) > 8 for one, other in itertools.pairwise(order))
    for number in order:
        await reader.read(number)
    await trio.sleep(10)
    assert reader.store.counts["get"] == len(order)


async def test_a_listing_alone_fetches_nothing(reader: Reader, autojump_clock: Clock) -> None:
    await reader.replica.names.listing("s/")
    await trio.sleep(10)
    assert reader.store.counts["get"] == 0


async def test_several_readers_at_once_cost_each_object_once(reader: Reader, autojump_clock: Clock) -> None:
    async def read_all(seed: int) -> None:
        for number in range(COUNT):
            await reader.read(number)
            await trio.sleep(random.Random(seed + number).random())

    async with trio.open_nursery() as nursery:
        for seed in range(4):
            nursery.start_soon(read_all, seed)
    assert reader.store.counts["get"] == COUNT


async def test_a_failing_store_fails_the_reader_and_nobody_else(reader: Reader, autojump_clock: Clock) -> None:
    await reader.read(0)
    await reader.read(1)
    reader.store.blackhole = True
    await trio.sleep(5)
    reader.store.blackhole = False
    for number in range(2, COUNT):
        await reader.read(number)
    assert reader.store.counts["get"] == COUNT


async def test_who_looks_each_file_up_before_reading_it_waits_no_longer(reader: Reader, autojump_clock: Clock) -> None:
    """As it is when the kernel has forgotten the names of a listing: a lookup brings the content of a small file."""
    names, started = reader.replica.names, trio.current_time()
    for number in range(COUNT):
        info = (await names.listing("s/")).objects[f"{number:03}"]
        if info.meta is None:
            await reader.replica.fetch([info])
        await reader.read(number)
    assert reader.store.counts["get"] == COUNT
    assert trio.current_time() - started < COUNT / 4


async def test_looking_one_file_up_fetches_nothing_else(reader: Reader, autojump_clock: Clock) -> None:
    info = (await reader.replica.names.listing("s/")).objects["050"]
    await reader.replica.fetch([info])
    await reader.read(50)
    await trio.sleep(10)
    assert reader.store.counts["get"] == 1


async def test_many_files_asked_for_at_once_open_no_window(reader: Reader, autojump_clock: Clock) -> None:
    objects = (await reader.replica.names.listing("s/")).objects
    await reader.replica.fetch([objects[f"{number:03}"] for number in range(10)])
    await trio.sleep(10)
    assert reader.store.counts["get"] == 10


def test_reading_ahead_leaves_threads_for_others() -> None:
    assert S3Options(bucket="any").threads >= AT_ONCE + 16


class Ahead:
    """A level of objects, and what is fetched ahead of its reader. `here` are the names that need no fetching."""

    def __init__(self, count: int = COUNT, sizes: dict[str, int] | None = None) -> None:
        self.level = named(count, sizes or {})
        self.here: set[str] = set()
        self.fetched: list[str] = []
        self.at_once = self.most = 0
        self.ahead = Readahead(self._fetch, lambda info: info.key in self.here)

    async def _fetch(self, info: ObjectInfo) -> None:
        self.fetched.append(info.key)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await trio.sleep(1.0)
        self.at_once -= 1
        self.here.add(info.key)

    async def read(self, *numbers: int, prefix: str = "", here: bool = False) -> list[int]:
        """Read these; the numbers of what was fetched ahead for it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ahead.run)
            before = len(self.fetched)
            for number in numbers:
                self.ahead.read(prefix, f"{number:03}", self.level, here=here)
            await trio.sleep(100)
            nursery.cancel_scope.cancel()
        return sorted(int(key) for key in self.fetched[before:])


def named(count: int, sizes: dict[str, int]) -> Level:
    names = [f"{number:03}" for number in range(count)]
    return Level([(name, ObjectInfo(name, "v1", sizes.get(name, 1), 1)) for name in names], set(), 0.0)


@pytest.mark.parametrize(
    ("numbers", "fetched"),
    [
        ((3, 4), range(5, 9)),
        ((3, 3 + NEAR), range(4 + NEAR, 8 + NEAR)),
        ((3, 4 + NEAR), []),
        ((4, 3), []),
        ((3, 3), []),
        ((3, 3, 4, 4, 5), range(5, 14)),
        ((0, 1), range(2, 6)),
        ((97, 98), [99]),
        ((98, 99), []),
        ((3, 4, 5), range(5, 14)),
        ((3, 4, 50, 51), [5, 6, 7, 8, 52, 53, 54, 55]),
    ],
)
async def test_a_window_opens_behind_two_reads_that_are_near_and_in_order(
    autojump_clock: Clock, numbers: tuple[int, ...], fetched: list[int]
) -> None:
    made = Ahead()
    assert await made.read(*numbers) == list(fetched)
    told = made.ahead.statistics()
    assert told.fetched == len(fetched)
    assert told.windows == (2 if len(numbers) == 4 else int(bool(fetched) or numbers == (98, 99)))


async def test_a_window_is_as_long_as_its_bound_and_so_many_are_fetched_at_once(autojump_clock: Clock) -> None:
    made = Ahead(300)
    assert await made.read(*range(8)) == list(range(2, 8 + LONGEST_WINDOW))
    assert made.most == AT_ONCE


async def test_what_is_empty_large_here_or_gone_is_not_fetched(autojump_clock: Clock) -> None:
    made = Ahead(sizes={"005": 0, "006": LARGEST, "007": LARGEST + 1, "003": 1})
    made.here.add("008")
    assert await made.read(3, 4) == [6]


async def test_a_reader_who_goes_back_is_helped_again_and_a_new_file_counts(autojump_clock: Clock) -> None:
    made = Ahead()
    assert await made.read(50, 51) == [52, 53, 54, 55]
    assert await made.read(10, 11) == [12, 13, 14, 15]
    made.level = named(COUNT + 5, {})
    made.here.clear()
    assert await made.read(99, 100) == [101, 102, 103, 104]


class Counted(dict[str, ObjectInfo]):
    """The objects of a level, and how often all of them were gone through."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


async def test_the_names_of_a_level_are_put_in_order_once_whatever_is_learned_of_its_objects() -> None:
    """Each object that is read is learned anew: of ten thousand names, putting them in order took a second in all."""
    level, ahead = named(COUNT, {}), Ahead().ahead
    level.objects = counted = Counted(level.objects)
    for name in list(counted):
        ahead.read("", name, level, here=False)
        level.set(name, counted[name])
        level.serial += 1
    assert counted.walks == 2  # the other one is the loop's


async def test_who_reads_what_is_here_needs_no_help(autojump_clock: Clock) -> None:
    assert await Ahead().read(3, 4, 5, here=True) == []


async def test_of_very_many_readers_the_first_is_forgotten(autojump_clock: Clock) -> None:
    made = Ahead()
    for number in range(LEVELS):
        made.ahead.read(f"{number}/", "003", made.level, here=False)
    assert await made.read(4, prefix="0/") == [5, 6, 7, 8]
    made.here.clear()
    made.ahead.read("one more/", "003", made.level, here=False)
    assert await made.read(4, prefix="1/") == [5, 6, 7, 8]
    assert await made.read(5, prefix="0/") == []
