"""Patience: when a request is repeated, how long that takes, and what becomes of a write without an answer."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from livememfs.errors import (
    BucketMissing,
    ConflictRetry,
    Denied,
    LiveMemError,
    ObjectMissing,
    PreconditionFailed,
    Throttled,
    Unreachable,
)
from livememfs.records.metadata import META_OP
from livememfs.store.base import IfAbsent, IfMatch, Store
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing.store import Fault, FaultyStore

LOST = Fault(after=Unreachable("reset"))
REFUSED = Fault(before=Throttled())
UNSENT = Fault(before=Unreachable("refused"))


class Longest(random.Random):
    """Jitter that always takes the whole interval."""

    def uniform(self, a: float, b: float) -> float:
        return b


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def faulty(memory: MemoryStore) -> FaultyStore:
    return FaultyStore(memory)


def patient(store: Store, **policy: float) -> RetryingStore:
    return RetryingStore(store, RetryPolicy(random=Longest(), **policy))


async def test_waits_double_up_to_the_cap(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    """0.2 + 0.4 + 0.8 + 1 + 1 seconds: the upper edge of full jitter."""
    faulty.script("head", *[REFUSED] * 5)
    with pytest.raises(ObjectMissing):
        await patient(faulty, max_delay=1.0, attempts=9).head("k")

    assert trio.current_time() == pytest.approx(3.4)
    assert faulty.counts["head"] == 6


async def test_waits_are_spread_over_the_whole_interval() -> None:
    policy = RetryPolicy(random=random.Random(1))
    waits = [policy.delay(3, Throttled()) for _ in range(200)]

    assert min(waits) < 0.1
    assert 0.7 < max(waits) <= 0.8


async def test_the_store_may_ask_for_a_longer_wait_but_not_for_any(
    faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    faulty.script("list", Fault(before=Throttled(retry_after=3.0)), Fault(before=Throttled(retry_after=9999.0)))
    await patient(faulty, max_delay=5.0).list_page()

    assert trio.current_time() == pytest.approx(8.0)


async def test_it_gives_up_after_so_many_attempts(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.fail_all = Throttled(key="k")
    store = patient(faulty, attempts=4)
    with pytest.raises(Throttled):
        await store.get("k")

    assert faulty.counts["get"] == 4
    assert (store.retry_statistics().retries, store.retry_statistics().given_up) == (3, 1)


async def test_it_gives_up_rather_than_pass_the_deadline(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.fail_all = Unreachable("down")
    with pytest.raises(Unreachable):
        await patient(faulty, first_delay=4.0, attempts=99, deadline=30.0).get("k")

    assert trio.current_time() <= 30.0


@pytest.mark.parametrize("error", [Denied(), BucketMissing(), ObjectMissing(), PreconditionFailed()], ids=repr)
async def test_a_clear_answer_is_not_asked_for_twice(faulty: FaultyStore, error: LiveMemError) -> None:
    faulty.script("put", Fault(before=error))
    with pytest.raises(type(error)):
        await patient(faulty).put("k", b"1", condition=IfAbsent())

    assert faulty.counts == {"put": 1}


@pytest.mark.parametrize("fault", [LOST, REFUSED, UNSENT, Fault(after=ConflictRetry())], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.put("k", b"2"),
        lambda store: store.delete("k"),
        lambda store: store.copy("k", "l"),
    ],
    ids=["put", "delete", "copy"],
)
async def test_an_unconditional_write_is_repeated_without_looking(
    memory: MemoryStore,
    faulty: FaultyStore,
    autojump_clock: MockClock,
    call: Callable[[Store], Awaitable[object]],
    fault: Fault,
) -> None:
    await memory.put("k", b"1")
    for verb in ("put", "delete"):
        faulty.script(verb, fault)
    faulty.script("copy", Fault(before=fault.before or fault.after))
    await call(patient(faulty))

    assert faulty.counts["head"] == 0
    assert sum(faulty.counts.values()) == 2


async def test_an_unconditional_put_has_no_id(memory: MemoryStore) -> None:
    await RetryingStore(memory).put("k", b"1", meta={"m": "1"})

    assert (await memory.head("k")).meta == {"m": "1"}


@pytest.mark.parametrize("error", [Unreachable("reset"), ConflictRetry()], ids=repr)
async def test_a_put_whose_answer_was_lost_is_known_again(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock, error: LiveMemError
) -> None:
    store = patient(faulty)
    first = await memory.put("old", b"1")
    faulty.script("put", Fault(after=error), Fault(after=error))
    created = await store.put("new", b"1", meta={"m": "1"}, condition=IfAbsent())
    replaced = await store.put("old", b"2", condition=IfMatch(first.etag))

    assert faulty.counts == {"put": 2, "head": 2}, "each was sent once and looked at once"
    assert created == await memory.head("new")
    assert replaced == await memory.head("old")
    assert store.retry_statistics().settled == 2


async def test_a_put_that_never_arrived_is_repeated(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    first = await memory.put("old", b"1")
    faulty.script("put", UNSENT, None, UNSENT, None)
    store = patient(faulty)
    await store.put("new", b"2", condition=IfAbsent())
    await store.put("old", b"2", condition=IfMatch(first.etag))

    assert (await memory.get("new")).data == (await memory.get("old")).data == b"2"


async def test_what_may_have_been_there_is_not_put_again_by_whoever_cannot_tell(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    """Stored, removed by somebody, and the answer lost: `once` leaves it to the caller to find that out."""
    put, once = memory.put, IfAbsent(once=True)

    async def removed(key: str, data: bytes, **more: object) -> object:
        await put(key, data, **more)  # type: ignore[arg-type]  # what was given
        await memory.delete(key)
        raise Unreachable("reset")

    memory.put = removed  # type: ignore[method-assign, assignment]
    with pytest.raises(Unreachable):
        await patient(faulty).put("k", b"v", condition=once)
    assert faulty.counts == {"put": 1, "head": 1}

    memory.put = put  # type: ignore[method-assign]
    faulty.script("put", REFUSED, LOST)
    await patient(faulty).put("k", b"v", condition=once)
    assert (await memory.get("k")).data == b"v"


class Overtaken(MemoryStore):
    """Somebody else's object is there as soon as our first put has failed."""

    async def put(self, key: str, data: bytes, **how: object) -> object:
        await super().put(key, b"theirs")
        raise Unreachable("reset")


@pytest.mark.parametrize("condition", [IfAbsent(), IfMatch("0" * 32)], ids=repr)
async def test_a_put_that_somebody_else_overtook_is_refused(
    autojump_clock: MockClock, condition: IfAbsent | IfMatch
) -> None:
    store = Overtaken()
    with pytest.raises(PreconditionFailed):
        await patient(store).put("k", b"ours", condition=condition)

    assert (await store.get("k")).data == b"theirs"


async def test_a_replacement_of_something_deleted_meanwhile_is_refused(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    faulty.script("put", UNSENT)
    with pytest.raises(PreconditionFailed):
        await patient(faulty).put("k", b"1", condition=IfMatch("0" * 32))


class LateLanding(MemoryStore):
    """The first put is still under way when it is given up: it lands just before the second one."""

    late: dict[str, object] | None = None

    async def put(self, key: str, data: bytes, **how: object) -> object:
        if self.late is None:
            self.late = how
            raise Unreachable("timeout")
        await super().put(key, data, **self.late)
        return await super().put(key, data, **how)


async def test_a_put_that_lands_late_is_known_again_by_the_refusal_of_the_next(autojump_clock: MockClock) -> None:
    store = LateLanding()
    info = await patient(store).put("k", b"1", condition=IfAbsent())

    assert info == await store.head("k")


async def test_a_caller_with_an_id_recognises_its_own_write_after_a_crash(memory: MemoryStore) -> None:
    meta = {META_OP: "id-from-the-journal"}
    store = RetryingStore(memory)
    first = await store.put("k", b"1", meta=meta, condition=IfAbsent())
    again = await store.put("k", b"1", meta=meta, condition=IfAbsent())

    assert again == first

    with pytest.raises(PreconditionFailed):
        await store.put("k", b"1", meta={META_OP: "another"}, condition=IfAbsent())


async def test_a_throttled_conditional_put_is_repeated_without_looking(
    faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    faulty.script("put", REFUSED)
    await patient(faulty).put("k", b"1", condition=IfAbsent())

    assert faulty.counts == {"put": 2}


async def test_a_delete_whose_answer_was_lost_is_done(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    info = await memory.put("k", b"1")
    faulty.script("delete", LOST)
    await patient(faulty).delete("k", condition=IfMatch(info.etag))

    assert faulty.counts == {"delete": 1, "head": 1}


async def test_a_delete_that_never_arrived_is_repeated(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    info = await memory.put("k", b"1")
    faulty.script("delete", UNSENT)
    await patient(faulty).delete("k", condition=IfMatch(info.etag))
    with pytest.raises(ObjectMissing):
        await memory.head("k")


async def test_a_delete_spares_what_somebody_else_wrote_meanwhile(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    old = await memory.put("k", b"1")
    await memory.put("k", b"2")
    faulty.script("delete", UNSENT)
    with pytest.raises(PreconditionFailed):
        await patient(faulty).delete("k", condition=IfMatch(old.etag))

    assert (await memory.get("k")).data == b"2"


async def test_a_throttled_delete_of_nothing_is_still_told(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.script("delete", REFUSED)
    with pytest.raises(ObjectMissing):
        await patient(faulty).delete("k", condition=IfMatch("0" * 32))


@pytest.mark.parametrize("meta", [None, {"m": "2"}], ids=repr)
async def test_a_copy_whose_answer_was_lost_is_known_again(
    memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock, meta: dict[str, str] | None
) -> None:
    await memory.put("a", b"1", meta={"m": "1"})
    faulty.script("copy", LOST)
    info = await patient(faulty).copy("a", "b", meta=meta, condition=IfAbsent())

    assert faulty.counts["copy"] == 1
    assert info == await memory.head("b")
    assert {**(meta or {"m": "1"})}.items() <= dict(info.meta or {}).items()


async def test_looking_may_fail_as_well(memory: MemoryStore, faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.script("put", LOST)
    faulty.script("head", REFUSED, LOST)
    await patient(faulty).put("k", b"1", condition=IfAbsent())

    assert faulty.counts == {"put": 1, "head": 3}


async def test_an_outcome_that_stays_open_is_the_error(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.fail_all = Unreachable("down")
    with pytest.raises(Unreachable):
        await patient(faulty).put("k", b"1", condition=IfAbsent())


async def test_without_a_policy_it_asks_six_times_within_the_minute(
    faulty: FaultyStore, autojump_clock: MockClock
) -> None:
    faulty.fail_all = Throttled(key="k")
    with pytest.raises(Throttled):
        await RetryingStore(faulty, RetryPolicy(random=Longest())).get("k")

    assert faulty.counts["get"] == 6
    assert trio.current_time() == pytest.approx(0.2 + 0.4 + 0.8 + 1.6 + 3.2)


@pytest.mark.parametrize(("deadline", "asked"), [(3.0, 3), (2.9, 2)])
async def test_a_wait_may_end_at_the_deadline_and_no_later(
    faulty: FaultyStore, autojump_clock: MockClock, deadline: float, asked: int
) -> None:
    faulty.fail_all = Throttled(key="k")
    with pytest.raises(Throttled):
        await patient(faulty, first_delay=1.0, deadline=deadline).get("k")

    assert faulty.counts["get"] == asked
