"""The faulty store and the manual clock: doubles that others rely on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import trio
from trio.testing import MockClock

from livememfs.errors import ObjectMissing, Throttled, Unreachable
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest


@pytest.fixture
def faulty() -> FaultyStore:
    return FaultyStore(MemoryStore())


async def test_without_faults_it_is_the_store_it_wraps(faulty: FaultyStore) -> None:
    await faulty.put("k", b"1", meta={"m": "1"})

    assert (await faulty.get("k")).data == b"1"
    assert faulty.label == "memory"
    assert faulty.statistics().requests == {"put": 1, "get": 1}


async def test_a_fault_before_has_no_effect_and_a_fault_after_has_one(faulty: FaultyStore) -> None:
    faulty.script("put", Fault(before=Throttled()), None, Fault(after=Unreachable("reset")))
    with pytest.raises(Throttled):
        await faulty.put("a", b"1")
    await faulty.put("b", b"1")
    with pytest.raises(Unreachable):
        await faulty.put("c", b"1")

    assert [info.key for info in (await faulty.list_page()).objects] == ["b", "c"]


async def test_a_refused_request_has_no_answer_to_lose(faulty: FaultyStore) -> None:
    faulty.script("get", Fault(after=Unreachable("reset")))
    with pytest.raises(ObjectMissing):
        await faulty.get("k")


async def test_scripts_are_for_their_verb_alone(faulty: FaultyStore) -> None:
    faulty.script("put", Fault(before=Throttled()))
    await faulty.delete("k")
    with pytest.raises(Throttled):
        await faulty.put("k", b"1")


async def test_latency_passes_on_trios_clock(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.latency("*", 2.0)
    faulty.latency("put", 5.0)
    faulty.script("list", Fault(delay=10.0))
    await faulty.put("k", b"1")
    await faulty.head("k")
    await faulty.list_page()

    assert trio.current_time() == pytest.approx(5 + 2 + 12)


async def test_a_blackhole_holds_requests_until_it_ends(faulty: FaultyStore, autojump_clock: MockClock) -> None:
    faulty.blackhole = True
    with trio.move_on_after(3600) as scope:
        await faulty.put("k", b"1")
    assert scope.cancelled_caught

    async with trio.open_nursery() as nursery:
        nursery.start_soon(faulty.put, "k", b"2")
        await trio.sleep(1)
        faulty.blackhole = False

    assert (await faulty.get("k")).data == b"2"


async def test_all_requests_can_be_made_to_fail(faulty: FaultyStore) -> None:
    faulty.fail_all = Unreachable("down")
    for call in (faulty.get, faulty.head, faulty.delete):
        with pytest.raises(Unreachable):
            await call("k")
    faulty.fail_all = None
    await faulty.delete("k")


async def test_what_was_asked_is_on_record_until_forgotten(faulty: FaultyStore) -> None:
    await faulty.put("a", b"1")
    await faulty.copy("a", "b")
    await faulty.list_page("x/")

    assert faulty.requests == [StoreRequest("put", "a"), StoreRequest("copy", "b"), StoreRequest("list", "x/")]
    assert faulty.counts == {"put": 1, "copy": 1, "list": 1}

    faulty.forget()

    assert faulty.requests == []
    assert not faulty.counts


async def test_a_plan_decides_by_request_and_count() -> None:
    faulty = FaultyStore(MemoryStore(), plan=lambda asked, count: Fault(before=Throttled()) if count == 1 else None)
    await faulty.put("k", b"1")
    with pytest.raises(Throttled):
        await faulty.put("k", b"1")
    await faulty.put("k", b"1")


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock()
    assert clock.now() == clock.now() == START

    assert clock.advance(90) == START + timedelta(seconds=90)
    assert clock.advance(days=1) == START + timedelta(days=1, seconds=90)

    clock.set(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))))

    assert clock.now() == datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert clock.now().tzinfo is UTC
