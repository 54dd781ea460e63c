"""Questions: whoever knows something already does not wait for a store that says nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.asking import OUTAGE_PAUSE, PATIENCE, StoreQuestions
from livememfs.cache.replica import DEFAULT_LISTING_TTL, Replica
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

EXPIRED = DEFAULT_LISTING_TTL * 1.1
PAGE = 1_000


class Bucket:
    """A bucket with the file a/x, whose names this host knows and believes no more."""

    def __init__(self) -> None:
        self.memory = MemoryStore(ManualClock())
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store)

    async def names(self, prefix: str = "a/") -> set[str]:
        return set((await self.replica.names.listing(prefix)).objects)


@pytest.fixture
async def bucket(autojump_clock: Clock, nursery: trio.Nursery) -> Bucket:
    made = Bucket()
    await nursery.start(made.replica.run)
    await made.memory.put("a/x", b"x")
    await made.names()
    await trio.sleep(EXPIRED)
    return made


async def took(call: Callable[[], Awaitable[object]]) -> float:
    began = trio.current_time()
    await call()
    return trio.current_time() - began


async def test_a_silent_store_costs_the_first_reader_a_second_and_the_next_ones_nothing(
    bucket: Bucket, autojump_clock: Clock
) -> None:
    bucket.store.blackhole = True
    assert await took(bucket.names) == pytest.approx(PATIENCE, abs=0.01)
    for _ in range(20):
        await trio.sleep(EXPIRED)
        assert await took(bucket.names) < 0.01
    assert await bucket.names() == {"x"}


async def test_the_question_that_nobody_waits_for_any_more_is_answered_for_those_who_come_later(
    bucket: Bucket, autojump_clock: Clock
) -> None:
    bucket.store.blackhole = True
    await bucket.names()
    await bucket.memory.put("a/y", b"y")

    bucket.store.blackhole = False
    await trio.sleep(0.1)

    known = bucket.replica.names.levels.get("a/")
    assert known is not None
    assert set(known.objects) == {"x", "y"}


async def test_a_store_that_is_slow_but_talks_is_waited_for(bucket: Bucket, autojump_clock: Clock) -> None:
    for number in range(5 * PAGE):
        await bucket.memory.put(f"a/{number:04}", b"")
    bucket.store.latency("list", PATIENCE * 0.9)
    assert await took(bucket.names) > 4 * PATIENCE
    assert len(await bucket.names()) == 5 * PAGE + 1


async def test_names_never_heard_are_waited_for_however_long_it_takes(bucket: Bucket, autojump_clock: Clock) -> None:
    await bucket.memory.put("b/z", b"")
    bucket.store.latency("list", 5 * PATIENCE)
    assert await bucket.names("b/") == {"z"}


async def test_the_bucket_s_word_is_waited_for_by_whoever_asks_for_it(bucket: Bucket, autojump_clock: Clock) -> None:
    bucket.store.latency("list", 5 * PATIENCE)
    await bucket.memory.put("a/y", b"")
    assert set((await bucket.replica.names.listing("a/", fresh=True)).objects) == {"x", "y"}


async def test_what_was_never_heard_fails_as_the_store_does_and_later_again(
    bucket: Bucket, autojump_clock: Clock
) -> None:
    bucket.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    for _ in range(2):
        with pytest.raises(errors.Unreachable):
            await bucket.names("never seen/")
        await trio.sleep(OUTAGE_PAUSE * 1.1)


async def test_contents_on_their_way_do_not_make_a_store_silent(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    asking = StoreQuestions()

    async def long() -> None:
        await trio.sleep(10 * PATIENCE)

    async def download() -> None:
        await asking.call(long, bulk=True)

    nursery.start_soon(download)
    await trio.sleep(5 * PATIENCE)
    assert not asking.silent
    nursery.start_soon(asking.call, long)
    await trio.sleep(PATIENCE * 1.1)
    assert asking.silent


async def test_a_refusal_is_an_answer(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    asking = StoreQuestions()

    async def slowly() -> None:
        await trio.sleep(3 * PATIENCE)

    async def missing() -> None:
        raise errors.ObjectMissing(key="x")

    nursery.start_soon(asking.call, slowly)
    await trio.sleep(2 * PATIENCE)
    assert asking.silent
    with pytest.raises(errors.ObjectMissing):
        await asking.call(missing)
    assert not asking.silent
    assert asking.failing_since is None
