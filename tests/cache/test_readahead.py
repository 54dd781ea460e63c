"""Reading ahead: who reads in order waits less, who does not pays nothing."""

from __future__ import annotations

import itertools
import random

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.store.memory import MemoryStore
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
