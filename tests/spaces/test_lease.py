"""The lease: one runner at a time on whatever host, nobody refused, the dead taken over, the late stopped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import virtual
from consolidation_world import SPACE, World, asking, begun, filing, result_of
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.records import keys
from livememfs.runs.apply import Recovery
from livememfs.spaces.lease import (
    LOOKED_AT_EVERY,
    RENEWED_EVERY,
    SECONDS,
    HeldLease,
    Leases,
    LeaseStatistics,
)
from livememfs.store.base import Condition, ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.llm import Scripted, ScriptedLLM, consolidation_reply
from livememfs.testing.store import Fault, FaultyStore

ROUNDS = 50
KEY = keys.lease_key(SPACE)
REPLY = consolidation_reply({"progress.md": "# Progress\n\nnew\n"}, action="created")


class WithoutConditions(MemoryStore):
    """A store that honours none."""

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        if condition is not None:
            raise errors.ConditionsUnsupported(key=key)
        return await super().put(key, data, meta=meta)


class Hosts:
    """Two hosts in front of one bucket."""

    def __init__(self, nursery: trio.Nursery, memory: MemoryStore | None = None) -> None:
        self.memory = memory or MemoryStore(ManualClock())
        self.stores = [FaultyStore(self.memory), FaultyStore(self.memory)]
        clock = ManualClock()
        self.one, self.two = (
            Leases(Replica(store), clock, name, nursery)
            for store, name in zip(self.stores, ("one", "two"), strict=True)
        )

    async def fence(self) -> int:
        return int(json.loads((await self.memory.get(KEY)).data)["fence"])


@pytest.fixture
def hosts(nursery: trio.Nursery) -> Hosts:
    return Hosts(nursery)


async def took(leases: Leases) -> tuple[HeldLease, float]:
    began = trio.current_time()
    held = await leases.acquire(SPACE)
    return held, trio.current_time() - began


async def test_a_lease_given_back_is_had_at_once_with_a_larger_number(hosts: Hosts, autojump_clock: Clock) -> None:
    numbers = []
    for leases in (hosts.one, hosts.two, hosts.one):
        async with leases.hold(SPACE) as held:
            numbers.append(held.fence)
            await held.check()
    assert numbers == [1, 2, 3]


async def test_whoever_comes_second_waits_until_the_first_is_done(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE), trio.open_nursery() as nursery:
        waited: list[float] = []

        @nursery.start_soon
        async def _() -> None:
            _, seconds = await took(hosts.two)
            waited.append(seconds)

        await trio.sleep(3 * SECONDS)
        assert waited == []
        nursery.cancel_scope.cancel()
    assert (await took(hosts.two))[1] < LOOKED_AT_EVERY


async def test_a_dead_holder_is_taken_over_after_the_time_of_a_lease(hosts: Hosts, autojump_clock: Clock) -> None:
    dead = await hosts.one.acquire(SPACE)
    held, seconds = await took(hosts.two)
    assert SECONDS <= seconds < SECONDS + 2 * LOOKED_AT_EVERY
    assert held.fence == dead.fence + 1


async def test_of_two_who_wait_for_the_dead_one_takes_over(
    hosts: Hosts, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    await Leases(Replica(hosts.memory), ManualClock(), "dead", nursery).acquire(SPACE)
    with trio.move_on_after(SECONDS + 5):
        async with trio.open_nursery() as waiting:
            waiting.start_soon(hosts.one.acquire, SPACE)
            waiting.start_soon(hosts.two.acquire, SPACE)

    assert sorted(host.statistics().takeovers for host in (hosts.one, hosts.two)) == [0, 1]
    assert await hosts.fence() == 2


async def test_the_next_process_of_the_same_host_need_not_wait(hosts: Hosts, autojump_clock: Clock) -> None:
    await hosts.one.acquire(SPACE)
    assert (await took(hosts.one))[1] < LOOKED_AT_EVERY


async def test_whoever_has_lost_the_lease_is_told_before_a_commit(hosts: Hosts, autojump_clock: Clock) -> None:
    late = await hosts.one.acquire(SPACE)  # nobody renews it
    await hosts.two.acquire(SPACE)
    with pytest.raises(errors.LeaseLost):
        await late.check()
    with pytest.raises(errors.LeaseLost):
        await late.check()


async def test_a_holder_who_cannot_renew_it_does_not_commit(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE) as held:
        hosts.stores[0].fail_all = errors.Unreachable("reset", endpoint="the bucket")
        with pytest.raises(errors.LeaseLost):
            await held.check()
        hosts.stores[0].fail_all = None
        await held.check()


async def test_a_holder_who_cannot_renew_it_has_given_it_up_before_anybody_may_take_it_over(
    hosts: Hosts, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("the lease of a space is lost")
    hosts.stores[0].latency("put", 0.1)
    async with hosts.one.hold(SPACE) as held:
        hosts.stores[0].fail_all = errors.Unreachable("reset", endpoint="the bucket")
        await trio.sleep(SECONDS - 1)
        hosts.stores[0].fail_all = None
        with pytest.raises(errors.LeaseLost):
            await held.check()


async def test_a_holder_does_not_take_the_lease_of_its_next_process_for_its_own(
    hosts: Hosts, autojump_clock: Clock
) -> None:
    late = await hosts.one.acquire(SPACE)
    await hosts.one.acquire(SPACE)
    with pytest.raises(errors.LeaseLost):
        await late.check()


async def test_a_check_while_it_is_being_renewed_is_no_loss(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE) as held:
        hosts.stores[0].latency("put", 0.4)
        await trio.sleep(RENEWED_EVERY + 0.1)
        await held.check()
        await trio.sleep(RENEWED_EVERY - 0.1)
        await held.check()
    assert (await took(hosts.two))[1] < LOOKED_AT_EVERY


async def test_a_renewal_whose_answer_was_lost_is_no_loss(hosts: Hosts, autojump_clock: Clock) -> None:
    """What a run has paid for must not be thrown away because the lease has changed by our own hand."""
    async with hosts.one.hold(SPACE) as held:
        hosts.stores[0].script("put", Fault(after=errors.Unreachable("reset", endpoint="the bucket")))
        await trio.sleep(3 * RENEWED_EVERY)
        await held.check()
        assert await hosts.fence() == held.fence
    assert (await took(hosts.two))[1] < LOOKED_AT_EVERY


async def test_a_holder_who_has_renewed_it_for_long_may_miss_one_renewal(hosts: Hosts, autojump_clock: Clock) -> None:
    """What counts is when it was renewed last, not when it was taken."""
    async with hosts.one.hold(SPACE) as held:
        await trio.sleep(3 * SECONDS + 1)
        hosts.stores[0].script("put", Fault(before=errors.Unreachable("reset", endpoint="the bucket")))
        await trio.sleep(2 * RENEWED_EVERY)
        await held.check()


async def test_a_run_that_ends_during_a_renewal_gives_the_lease_back(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE):
        hosts.stores[0].script("put", Fault(late=2.0))
        await trio.sleep(RENEWED_EVERY + 1)
    assert (await took(hosts.two))[1] < LOOKED_AT_EVERY


async def test_what_was_abandoned_is_not_given_back(
    hosts: Hosts, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    """As after a crash: what follows may not wait for the store."""
    expect_log("the lease of a space is lost")
    async with hosts.one.hold(SPACE) as held:
        held.abandon()
        with pytest.raises(errors.LeaseLost, match="abandoned"):
            await held.check()
        await trio.sleep(RENEWED_EVERY + 1)
    assert hosts.stores[0].counts["put"] == 1  # when it was taken
    assert (await took(hosts.two))[1] >= SECONDS


async def test_who_is_done_waits_for_the_store_a_moment_only(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE):
        hosts.stores[0].latency("put", 60)
        done = trio.current_time()
    assert trio.current_time() - done == 5


async def test_a_store_that_fails_at_the_end_fails_nobodys_work(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE):
        hosts.stores[0].fail_all = errors.Unreachable("reset", endpoint="the bucket")
    assert hosts.one.statistics().held == 0


async def test_what_is_held_waited_for_and_taken_over_is_counted(hosts: Hosts, autojump_clock: Clock) -> None:
    """A takeover is of a dead host's: not of one that was given back, nor of the former process of the same host."""
    for leases in (hosts.one, hosts.two):
        async with leases.hold(SPACE):
            assert leases.statistics() == LeaseStatistics(held=1, waits=0, takeovers=0)
        assert leases.statistics() == LeaseStatistics(held=0, waits=0, takeovers=0)
    await hosts.two.acquire(SPACE)
    await hosts.two.acquire(SPACE)
    assert hosts.two.statistics() == LeaseStatistics(held=0, waits=0, takeovers=0)
    await hosts.one.acquire(SPACE)
    assert hosts.one.statistics() == LeaseStatistics(held=0, waits=60, takeovers=1)


async def test_a_lease_says_until_when_it_is_held_for_people(hosts: Hosts, autojump_clock: Clock) -> None:
    async with hosts.one.hold(SPACE):
        held = json.loads((await hosts.memory.get(KEY)).data)
        assert (held["holder"], held["released"], held["expires_at"]) == ("one", False, "2026-02-20T14:01:00Z")
    assert json.loads((await hosts.memory.get(KEY)).data)["released"]


async def test_without_conditions_only_who_takes_it_from_others_waits_for_their_writes(
    nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    hosts = Hosts(nursery, WithoutConditions(ManualClock()))
    for leases, waits in ((hosts.one, 2), (hosts.one, 0), (hosts.two, SECONDS + 2)):
        held, seconds = await took(leases)
        assert seconds == waits
        renewed = trio.current_time()
        await held.check()
        assert trio.current_time() == renewed


async def test_what_is_no_lease_may_be_somebodys_and_is_taken_over_like_a_dead_hosts(
    hosts: Hosts, autojump_clock: Clock
) -> None:
    """It is had once it has not changed for the time of a lease, by one host."""
    odd = (b"", b"{}", b"[]", b"\xff", b'{"holder": "x", "fence": "many", "expires_at": 7}', b'{"fence": 1e999}')
    for data in odd:
        await hosts.memory.put(KEY, data)
        waited = (await took(hosts.one))[1]
        assert SECONDS <= waited < SECONDS + 2 * LOOKED_AT_EVERY


async def test_without_conditions_one_of_two_that_want_it_at_once_has_it(
    nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    hosts = Hosts(nursery, WithoutConditions(ManualClock()))
    for _ in range(ROUNDS):
        within: list[str] = []
        most: list[int] = []

        async def work(leases: Leases, within: list[str] = within, most: list[int] = most) -> None:
            async with leases.hold(SPACE):
                within.append("")
                most.append(len(within))
                await trio.sleep(5)
                within.pop()

        async with trio.open_nursery() as both:
            both.start_soon(work, hosts.one)
            both.start_soon(work, hosts.two)
        assert most == [1, 1]


async def test_without_conditions_whoever_wrote_first_sees_that_a_slower_one_wrote_after_it(
    nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    hosts = Hosts(nursery, WithoutConditions(ManualClock()))
    hosts.stores[1].script("put", None, Fault(delay=1.0))  # the first of the two asks for a condition
    had: list[str] = []

    async def take(name: str, leases: Leases) -> None:
        await leases.acquire(SPACE)
        had.append(name)

    with trio.move_on_after(SECONDS / 2):
        async with trio.open_nursery() as both:
            both.start_soon(take, "one", hosts.one)
            both.start_soon(take, "two", hosts.two)
    assert had == ["two"]


# --- whole runs -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def two_hosts(world: World, llm: ScriptedLLM) -> AsyncIterator[list[Any]]:
    """Consolidations on two hosts."""
    there = World()
    there.memory = world.memory
    there.store = FaultyStore(world.memory)
    there.replica = Replica(there.store)
    async with asking(world, llm, timeout=600.0) as one, asking(there, llm, timeout=600.0) as two:
        yield [one, two]


@virtual.timed
async def test_two_hosts_that_are_touched_at_the_same_instant_make_one_run_and_both_end_well() -> None:
    world = await World.seeded()
    with ScriptedLLM(responder=lambda _: REPLY) as llm:
        async with two_hosts(world, llm) as hosts:
            for number in range(1, ROUNDS + 1):
                await world.note(f"This is note {number}.")
                ends: list[dict[str, Any]] = []

                async def touched(host: Any, ends: list[dict[str, Any]] = ends) -> None:
                    ends.append(await result_of(host, host.touch(SPACE)))

                async with trio.open_nursery() as nursery:
                    for host in hosts:
                        nursery.start_soon(touched, host)
                assert [end["state"] for end in ends] == ["ok", "ok"]
                assert sorted(end["notes_processed"] for end in ends) == [0, 1]
                assert await world.live() == []
    ledger = await world.ledger()
    assert [(entry.number, entry.state) for entry in ledger] == [(n, "applied") for n in range(1, ROUNDS + 1)]
    assert len({note.key for entry in ledger for note in entry.removes}) == ROUNDS


@virtual.timed
async def test_a_host_that_was_asleep_while_another_one_did_its_work_commits_nothing(
    expect_log: Callable[[str], None],
) -> None:
    expect_log("the lease of a space is lost")
    world = await World.seeded(notes=2)
    with ScriptedLLM(Scripted(json.dumps(REPLY), hold=True), REPLY) as llm:
        async with two_hosts(world, llm) as (one, two):
            late = await begun(one, llm)
            world.store.fail_all = errors.Unreachable("asleep", endpoint="the bucket")
            assert (await two.run_once(SPACE)).metrics.notes_processed == 2
            after = await world.bucket()
            world.store.fail_all = None
            llm.release()
            end = await result_of(one, late)
    assert (end["state"], "lease" in end["reason"]) == ("error", True)
    assert await world.bucket() == after
    assert [entry.number for entry in await world.ledger()] == [1]


async def _left_open() -> World:
    """A space whose run is committed, and whose notes could not be removed."""
    world = await World.seeded(notes=2)
    unreachable = errors.Unreachable("reset", endpoint="the bucket")
    world.store.plan = lambda asked, _: Fault(before=unreachable) if asked.verb == "delete" else None
    async with filing(world) as consolidations:
        await consolidations.run_once(SPACE)
    world.store.plan = None
    return world


async def test_a_run_whose_notes_could_not_be_removed_is_not_applied_until_they_are(
    nursery: trio.Nursery, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("a consolidated note could not be removed")
    world = await _left_open()
    assert ([entry.state for entry in await world.ledger()], len(await world.live())) == (["committed"], 2)

    recovery = Recovery(world.replica, world.clock, Leases(world.replica, world.clock, "one", nursery))

    assert await recovery.finish(SPACE)
    assert ([entry.state for entry in await world.ledger()], len(await world.live())) == (["applied"], 0)


async def test_nobody_carries_out_a_run_while_another_host_holds_the_lease(
    nursery: trio.Nursery, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("a consolidated note could not be removed")
    world = await _left_open()
    recovery = Recovery(world.replica, world.clock, Leases(world.replica, world.clock, "one", nursery))

    two = Leases(Replica(world.memory), world.clock, "two", nursery)
    async with trio.open_nursery() as recovering, two.hold(SPACE):
        recovering.start_soon(recovery.finish, SPACE)
        await trio.sleep(10 * LOOKED_AT_EVERY)
        assert len(await world.live()) == 2

    assert await world.live() == []
