"""What sessions were told, on every mount of a bucket: in virtual time, with a store that fails on demand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.recall.turn.inject import Candidate, tell
from livememfs.recall.turn.told import FIRST, FRESH, PAUSE, RETRY, ToldSessions
from livememfs.records import keys
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore

SPACE, SESSION = "alpha", "s"
KEY = keys.session_key(SPACE, SESSION, keys.TOLD)


class Mount:
    """One mount, and what it tells."""

    def __init__(self, store: FaultyStore) -> None:
        self.sessions = ToldSessions(Replica(store))

    async def tell(self, *names: str, session: str = SESSION) -> list[str]:
        """A turn of which these are the candidates; those that were told."""
        kept = self.sessions.of(SPACE, session)
        async with kept.lock:
            await self.sessions.caught_up(kept)
            told = tell(kept.session, [Candidate(name, "relevant", f"text of {name}") for name in names])
        if told.emitted:
            self.sessions.changed(kept)
        return [one.id for one in told.emitted]


@pytest.fixture
async def store() -> FaultyStore:
    memory = MemoryStore()
    await spaces.create(Replica(memory), ManualClock(), SPACE)
    return FaultyStore(memory)


@asynccontextmanager
async def mounts(store: FaultyStore, count: int = 2) -> AsyncIterator[list[Mount]]:
    made = [Mount(store) for _ in range(count)]
    async with trio.open_nursery() as nursery:
        for one in made:
            nursery.start_soon(one.sessions.run)
        await wait_all_tasks_blocked()
        yield made
        nursery.cancel_scope.cancel()


async def kept(store: FaultyStore) -> Any:
    return json.loads((await store.inner.get(KEY)).data)


async def test_what_one_mount_told_no_other_tells_again(autojump_clock: MockClock, store: FaultyStore) -> None:
    async with mounts(store, 3) as (here, there, command):
        assert await here.tell("a", "b") == ["a", "b"]
        await trio.sleep(0.1)
        assert await there.tell("a", "b", "c") == ["c"]
        await trio.sleep(FRESH)
        assert await here.tell("a", "b", "c", "d") == ["d"]
        await there.sessions.flush()
        await here.sessions.flush()
        assert await command.tell("a", "b", "c", "d") == []
        assert await command.tell("a", session="another") == ["a"]
    assert (await kept(store))["told"].keys() == {"a", "b", "c", "d"}


async def test_what_two_tell_at_the_same_time_is_kept_of_both(autojump_clock: MockClock, store: FaultyStore) -> None:
    store.latency("put", 0.5)
    async with mounts(store) as (here, there):
        await here.tell("a")
        await there.tell("b")
        await trio.sleep(3)

    assert (await kept(store))["told"].keys() == {"a", "b"}


@pytest.mark.parametrize("who", [0, 1])
async def test_what_is_forgotten_is_told_again_by_every_mount(
    autojump_clock: MockClock, store: FaultyStore, who: int
) -> None:
    async with mounts(store) as both:
        await both[0].tell("a")
        await trio.sleep(FRESH)
        assert await both[1].tell("a") == []
        await trio.sleep(FRESH)
        await both[who].sessions.forget(SPACE, SESSION)
        await both[who].sessions.forget(SPACE, SESSION)
        assert (await both[who].tell("a")) == ["a"]
        await trio.sleep(PAUSE)
        assert await both[1 - who].tell("a") == [], "told again once, not once by each"
    assert (await kept(store))["forgotten"] == 1


@pytest.mark.parametrize("before", [0, 1, 3])
async def test_forgetting_a_session_that_a_mount_knows_nothing_of_counts_for_the_others(
    autojump_clock: MockClock, store: FaultyStore, before: int
) -> None:
    async with mounts(store) as (here, there):
        for _ in range(before):
            await here.tell("a")
            await here.sessions.forget(SPACE, SESSION)
        assert await here.tell("a") == ["a"]
        await here.sessions.flush()
        store.latency("get", FIRST + 1)
        await there.sessions.forget(SPACE, SESSION)
        await trio.sleep(2 * PAUSE)
        store.latency("get", 0)
        assert await here.tell("a") == ["a"]


async def test_forgetting_what_was_never_told_writes_nothing(autojump_clock: MockClock, store: FaultyStore) -> None:
    async with mounts(store, 1) as (here,):
        await here.sessions.forget(SPACE, SESSION)
        await trio.sleep(2 * PAUSE)
    assert store.counts["put"] == 0


async def test_writes_are_few_and_none_when_nothing_was_told(autojump_clock: MockClock, store: FaultyStore) -> None:
    async with mounts(store, 1) as (here,):
        for number in range(100):
            await here.tell(f"m{number}")
            await trio.sleep(0.2)
        assert 3 <= store.counts["put"] <= 20 / PAUSE + 1
        assert store.counts["get"] <= 20 / FRESH
        await trio.sleep(PAUSE)
        before = store.counts["put"]
        for _ in range(50):
            await here.tell()
            await trio.sleep(1)
        assert store.counts["put"] == before


@pytest.mark.parametrize("verb", ["get", "*"])
async def test_a_bucket_that_is_silent_holds_an_answer_up_for_a_moment_only(
    autojump_clock: MockClock, store: FaultyStore, verb: str
) -> None:
    async with mounts(store, 1) as (here,):
        store.latency(verb, 60)
        began = trio.current_time()
        for number in range(20):
            assert await here.tell(f"m{number}") == [f"m{number}"]
        assert trio.current_time() - began <= FIRST + 0.01


async def test_what_could_not_be_written_is_said_and_written_later(
    autojump_clock: MockClock, store: FaultyStore
) -> None:
    store.script("put", Fault(before=errors.Unreachable("reset", endpoint="the bucket")))
    async with mounts(store, 1) as (here,):
        await here.tell("a")
        await trio.sleep(1)
        assert "reset" in here.sessions.of(SPACE, SESSION).reason
        assert here.sessions.statistics()["unkept"] == 1
        await trio.sleep(RETRY)
        assert here.sessions.of(SPACE, SESSION).reason == ""
    assert (await kept(store))["told"].keys() == {"a"}


@pytest.mark.parametrize("data", [b"", b"no", b"[" * 10_000, b'{"turn": 1e400}', b'{"turn": 1, "told": {"a": "b"}}'])
async def test_an_object_that_is_lost_or_no_session_tells_again_and_is_made_anew(
    autojump_clock: MockClock, store: FaultyStore, data: bytes
) -> None:
    await store.inner.put(KEY, data)
    async with mounts(store, 1) as (here,):
        assert await here.tell("a") == ["a"]
        await trio.sleep(1)
        assert (await kept(store))["told"] == {"a": 1}
        await store.inner.delete(KEY)
        await trio.sleep(PAUSE)
        assert await here.tell("a", "b") == ["b"], "this mount remembers"
        await trio.sleep(1)
    async with mounts(store, 1) as (again,):
        assert await again.tell("a", "b") == []


async def test_a_space_that_was_removed_does_not_come_back(autojump_clock: MockClock, store: FaultyStore) -> None:
    async with mounts(store, 1) as (here,):
        await here.tell("a")
        await trio.sleep(1)
        await store.inner.delete(KEY)
        await store.inner.delete(keys.meta_key(SPACE))
        here.sessions._replica.names.doubt(f"{SPACE}/")
        await here.tell("b")
        await trio.sleep(PAUSE)
    assert [info.key for info in (await store.inner.list_page(f"{SPACE}/sessions/")).objects] == []


async def test_a_sessions_name_may_be_anything(autojump_clock: MockClock, store: FaultyStore) -> None:
    names = ["", "../..", "a" * 300, "\0", "\U0001f600", "a/b", "CON"]
    async with mounts(store, 1) as (here,):
        for name in names:
            assert await here.tell("a", session=name) == ["a"]
        await here.sessions.flush()
        found = [info.key for info in (await store.inner.list_page(f"{SPACE}/sessions/")).objects]
    assert len(found) == len(names)
    assert all(keys.parse(key).kind == "session" for key in found)
