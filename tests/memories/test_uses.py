"""How often memories were used: every host's counts, summed; none written when one is used, none lost at the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.errors import NoSpace, Unreachable
from livememfs.memories.opened import FEW, RESTS
from livememfs.memories.uses import (
    MOST_BYTES,
    MOST_KEPT,
    MOST_USES,
    NOTHING,
    READ_SECONDS,
    WRITTEN_SECONDS,
    Uses,
    UsesStatistics,
    Worth,
    moment,
    name_of,
)
from livememfs.records import keys
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

SPACE = "alpha"
DAVID, SHOULDER = "20260101T000000_fact_0000000a", "20260101T000000_fact_0000000b"


class World:
    """A bucket, and hosts that count."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.told: dict[tuple[str, str], tuple[int, int]] = {}

    def tell(self, counts: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        self.told.update(counts)

    @asynccontextmanager
    async def host(self, name: str = "one") -> AsyncIterator[Uses]:
        replica = Replica(self.store)
        uses = Uses(replica, self.clock, name, self.tell)
        async with trio.open_nursery() as nursery:
            await nursery.start(replica.run)
            nursery.start_soon(uses.run)
            yield uses
            uses.write()
            await replica.uploaded()
            nursery.cancel_scope.cancel()
        replica.close()

    async def written(self, host: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = json.loads((await self.memory.get(keys.worth_key(SPACE, host))).data)
        return found


@pytest.fixture
def world() -> World:
    return World()


def now(world: World) -> int:
    return int(world.clock.now().timestamp())


async def test_uses_are_summed_over_hosts_and_over_restarts(world: World, autojump_clock: Clock) -> None:
    async with world.host("one") as one:
        await one.opened(SPACE)
        one.count(SPACE, [DAVID, f"{SPACE}/memories/{DAVID}_until_20270101T000000.md", SHOULDER])
    world.clock.advance(3_600)
    async with world.host("two") as two:
        await two.opened(SPACE)
        two.count(SPACE, [DAVID])
        assert two.of(SPACE, DAVID)[:2] == (3, now(world))
    async with world.host("one") as one:
        one.count(SPACE, [SHOULDER])
        await one.opened(SPACE)
        assert one.of(SPACE, DAVID)[:2] == (3, now(world))
        assert one.of(SPACE, SHOULDER)[0] == 2
        assert world.told[SPACE, DAVID][0] == 3
    assert {name: count[0] for name, count in (await world.written("one")).items()} == {DAVID: 2, SHOULDER: 2}


async def test_a_use_writes_nothing_and_a_minute_of_them_one_object(world: World, autojump_clock: Clock) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        world.store.forget()
        for _ in range(1_000):
            uses.count(SPACE, [DAVID])
        await trio.sleep(WRITTEN_SECONDS - 1)
        assert world.store.counts["put"] == 0
        await trio.sleep(3)
        assert world.store.counts["put"] == 1
        await trio.sleep(WRITTEN_SECONDS * 5)
        assert world.store.counts["put"] == 1


async def test_counts_of_others_come_after_a_while(world: World, autojump_clock: Clock) -> None:
    async with world.host("one") as one, world.host("two") as two:
        await one.opened(SPACE)
        await two.opened(SPACE)
        two.count(SPACE, [DAVID])
        await trio.sleep(READ_SECONDS + 2 * WRITTEN_SECONDS)
        assert one.of(SPACE, DAVID)[0] == 1
        assert one.of(SPACE, "nobody") == one.of("a space that nobody opened", DAVID) == NOTHING


async def test_what_was_counted_before_is_never_written_over_while_it_could_not_be_read(
    world: World, autojump_clock: Clock
) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID] * 5)
    async with world.host() as uses:
        world.store.fail_all = Unreachable("reset", endpoint="the bucket")
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        uses.write()
        world.store.fail_all = None
        await trio.sleep(3 * WRITTEN_SECONDS)
        assert uses.of(SPACE, DAVID)[0] == 6
    assert (await world.written("one"))[DAVID][0] == 6


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"a": 1}', b'{"a": ["x", 2]}', b'{"a": [1, 2, 3, 4]}', b'{"a": "12345"}', b"\xff", b"null"],
)
async def test_what_is_no_count_counts_nothing(world: World, autojump_clock: Clock, data: bytes) -> None:
    await world.memory.put(keys.worth_key(SPACE, "other"), data)
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        assert uses.of(SPACE, DAVID)[0] == 1


@pytest.mark.parametrize("seconds", [0.0, WRITTEN_SECONDS - 0.5])
async def test_a_removed_space_is_not_brought_back_by_what_was_counted(
    world: World, autojump_clock: Clock, seconds: float
) -> None:
    """Also when the minute ends while it is removed."""
    async with world.host() as uses:
        replica = uses._replica
        await spaces.create(replica, world.clock, SPACE)
        await replica.names.listing(f"{SPACE}/")
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        await trio.sleep(seconds)
        world.store.latency("*", 0.3)
        await spaces.remove_empty(replica, SPACE)
        await trio.sleep(3 * WRITTEN_SECONDS)
    assert (await world.memory.list_page("")).objects == ()


async def test_of_too_many_those_used_last_are_kept(world: World, autojump_clock: Clock) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [f"old{n}" for n in range(50)] * 2)
        world.clock.advance(10)
        uses.count(SPACE, [f"new{n}" for n in range(MOST_KEPT)])
    kept = await world.written("one")
    assert len(kept) == MOST_KEPT
    assert not any(name.startswith("old") for name in kept)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"%s": [1, 1771596000000, 0, 0, 0]}', (1, None)),
        (b'{"%s": [1, -5, "x", null, -3]}', (1, None)),
        (b'{"%s": [1, 1e999, 0, 0, 0]}', (0, None)),
        (b'{"%s": ' + b"[" * 100_000, (0, None)),
        (b'{"%s": [2, 0, 0, 0, 0, "of a later version"]}', (2, None)),
        (b'{"%s": [2, 253402300799, 0, 0, 0]}', (2, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))),
        (b'{"%s": [2, 253402300800, 0, 0, 0]}', (2, None)),
        (b'{"%s": [1000000000, 1, 0, 0, 0]}', (MOST_USES, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))),
        (b'{"%s": [1000000001, 1, 0, 0, 0]}', (MOST_USES, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))),
    ],
)
async def test_what_no_host_can_have_counted_stops_nobody(
    world: World, data: bytes, told: tuple[int, datetime | None], autojump_clock: Clock
) -> None:
    await world.memory.put(keys.worth_key(SPACE, "other"), data.replace(b"%s", DAVID.encode()))
    async with world.host() as uses:
        await uses.opened(SPACE)

        found = uses.of(SPACE, DAVID)
        assert (found.uses, moment(found.used_at)) == told


async def test_what_was_done_is_counted(world: World, autojump_clock: Clock) -> None:
    """Of no use of no memory nothing is kept, and no space is read anew before its time."""
    await world.memory.put(keys.worth_key(SPACE, "other"), b'{"%s": [2, 0, 0, 0, 0]}' % DAVID.encode())
    await world.memory.put(f"{keys.worth_prefix(SPACE)}notes.txt", b"no counts")
    async with world.host() as uses:
        uses.count(SPACE, [])
        assert (uses.statistics(), world.told) == (UsesStatistics(0, 0, 0, 0, 0), {})
        await uses.opened(SPACE)
        assert (uses.statistics(), world.told) == (UsesStatistics(0, 0, 0, 0, 1), {(SPACE, DAVID): (2, 0)})
        uses.count(SPACE, [])
        await trio.sleep(READ_SECONDS - 1)
        assert uses.statistics() == UsesStatistics(0, 0, 0, 0, 1)
        uses.count(SPACE, [DAVID, SHOULDER, DAVID])
        assert uses.statistics() == UsesStatistics(2, 3, 0, 0, 1)
        await trio.sleep(WRITTEN_SECONDS)
        assert uses.statistics() == UsesStatistics(2, 3, 0, 1, 2)
        assert uses.of(SPACE, DAVID)[0] == world.told[SPACE, DAVID][0] == 4
        await trio.sleep(2 * WRITTEN_SECONDS)
        assert uses.statistics().written == 1  # there is nothing new


@pytest.mark.parametrize("counted", [MOST_KEPT, MOST_KEPT + 1])
async def test_of_another_hosts_counts_no_more_are_taken_than_a_host_writes(
    world: World, autojump_clock: Clock, counted: int
) -> None:
    await world.memory.put(
        keys.worth_key(SPACE, "other"), json.dumps({f"m{n}": [1, 0, 0, 0, 0] for n in range(counted)}).encode()
    )
    async with world.host() as uses:
        await uses.opened(SPACE)
    assert len(world.told) == MOST_KEPT


async def test_of_those_used_at_the_same_second_the_first_names_are_kept(world: World, autojump_clock: Clock) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [f"m{n:05}" for n in reversed(range(MOST_KEPT + 1))])
    assert sorted(await world.written("one")) == [f"m{n:05}" for n in range(MOST_KEPT)]


@pytest.mark.parametrize("changed", ["put", "delete"])
async def test_counts_outlive_every_change_but_the_removal_of_their_space(
    world: World, autojump_clock: Clock, changed: str
) -> None:
    async with world.host() as uses:
        replica = uses._replica
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        await spaces.create(replica, world.clock, SPACE)  # its record is put
        if changed == "delete":
            await replica.put(f"{SPACE}/memories/{DAVID}.md", b"David lives in Pau")
            await replica.delete(f"{SPACE}/memories/{DAVID}.md")
        assert uses.of(SPACE, DAVID)[0] == 1


async def test_counts_that_could_not_be_written_are_written_by_the_next_minute(
    world: World, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, [DAVID])
        with monkeypatch.context() as broken:
            broken.setattr(uses._replica, "save", _refuse)
            await trio.sleep(WRITTEN_SECONDS + 1)
        assert uses.statistics().written == 0
        await trio.sleep(WRITTEN_SECONDS)
        assert uses.statistics().written == 1
    assert (await world.written("one"))[DAVID][0] == 1


def _refuse(*_: object, **__: object) -> None:
    raise NoSpace(path="the disk")


@pytest.mark.parametrize("moments", [(100, 50), (50, 100)])
async def test_of_several_hosts_the_last_use_counts(
    world: World, autojump_clock: Clock, moments: tuple[int, int]
) -> None:
    for host, last in zip(("other", "third"), moments, strict=True):
        await world.memory.put(keys.worth_key(SPACE, host), b'{"%s": [7, %d, 0, 0, 0]}' % (DAVID.encode(), last))
    async with world.host() as uses:
        await uses.opened(SPACE)
        assert uses.of(SPACE, DAVID) == (14, 100, 0, 0, 0)


async def test_a_telling_is_no_use_and_both_are_summed_over_hosts(world: World, autojump_clock: Clock) -> None:
    for name in ("one", "two"):
        async with world.host(name) as host:
            await host.opened(SPACE)
            host.told(SPACE, [(f"{SPACE}/memories/{DAVID}", 12), (SHOULDER, 8)])
            host.count(SPACE, [DAVID])
            world.clock.advance(100)
    async with world.host("three") as third:
        await third.opened(SPACE)
        assert third.of(SPACE, DAVID) == Worth(2, now(world) - 100, 2, now(world) - 100, 24)
        assert third.all(SPACE)[SHOULDER] == Worth(0, 0, 2, now(world) - 100, 16)
    assert world.told.keys() == {(SPACE, DAVID)}, "what ranks memories hears of tellings"


async def test_what_an_earlier_version_counted_are_tellings(world: World, autojump_clock: Clock) -> None:
    """It counted one use for each telling: taken for uses, what it told often would rank first for ever."""
    await world.memory.put(f"{keys.worth_prefix(SPACE, keys.USES)}old.json", b'{"%s": [40, 100]}' % DAVID.encode())
    await world.memory.put(f"{keys.worth_prefix(SPACE, keys.USES)}odd.json", b'{"%s": [1, 2, 3]}' % DAVID.encode())
    async with world.host() as uses:
        await uses.opened(SPACE)
        assert uses.of(SPACE, DAVID) == Worth(told=40, told_at=100)
        uses.count(SPACE, [DAVID])
    assert (await world.memory.get(f"{keys.worth_prefix(SPACE, keys.USES)}old.json")).data, (
        "an earlier version still counts there"
    )
    assert not world.told.get((SPACE, DAVID), (0, 0))[0] > 1


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (DAVID, DAVID),
        (f"alpha/memories/{DAVID}_until_20270101T000000.md", DAVID),
        (f"alpha/self/{DAVID}", DAVID),
        ("alpha/observations/20260101T000000_bugfix_0000000a.md", "observations/20260101T000000_bugfix_0000000a"),
        ("alpha/bank/architecture.md#Store > S3~0123abcd", "bank/architecture.md#Store > S3"),
        ("alpha/bank/architecture.md", "bank/architecture"),
        ("alpha/live/" + "x" * 400, ""),
    ],
)
def test_a_record_has_one_name_by_its_key_and_by_the_id_that_a_session_knows(record: str, name: str) -> None:
    assert name_of(record) == name


async def test_of_long_names_as_many_are_kept_as_can_be_read_again(world: World, autojump_clock: Clock) -> None:
    long = [f"{SPACE}/bank/{n:06}{'x' * 250}.md" for n in range(MOST_KEPT)]
    async with world.host() as uses:
        await uses.opened(SPACE)
        uses.count(SPACE, long)
        uses.write()
    data = (await world.memory.get(keys.worth_key(SPACE, "one"))).data
    assert len(data) <= MOST_BYTES + 100
    async with world.host() as again:
        await again.opened(SPACE)
        assert len(again.all(SPACE)) > 5_000


async def test_who_opens_many_files_is_looked_up_once(world: World, autojump_clock: Clock) -> None:
    """To ask the kernel for a process takes as long as to open a file."""
    asked: list[int] = []

    def find(pid: int) -> int:
        asked.append(pid)
        return pid % 2

    async with world.host() as uses:
        await uses.opened(SPACE)
        for number in range(100):
            for pid in (4, 5):
                uses.opened_by(pid, SPACE, f"{SPACE}/memories/m{number % 2}.md", find)
        assert asked == [4, 5]
        await trio.sleep(RESTS)
        uses.opened_by(5, SPACE, f"{SPACE}/memories/m9.md", find)
        assert asked == [4, 5, 5]
        assert [worth.uses for worth in uses.all(SPACE).values()] == [1, 1], "what belongs to nobody uses nothing"


@pytest.mark.parametrize(("files", "used"), [(1, 1), (FEW, FEW), (FEW + 1, 0), (500, 0)])
async def test_who_opens_a_few_files_uses_them_and_who_opens_all_does_not(
    world: World, autojump_clock: Clock, files: int, used: int
) -> None:
    """A backup, an indexer, `grep -r`."""
    async with world.host() as uses:
        await uses.opened(SPACE)
        for number in [*range(files)] * 2:
            uses.opened_by(4711, SPACE, f"{SPACE}/memories/m{number}.md")
        assert uses.all(SPACE) == {}, "it may go on"
        await trio.sleep(RESTS)
        assert [worth.uses for worth in uses.all(SPACE).values()] == [1] * used
        uses.opened_by(4711, SPACE, f"{SPACE}/memories/m0.md")
        await trio.sleep(RESTS)
        assert uses.of(SPACE, f"{SPACE}/memories/m0.md").uses == 1 + (used > 0)
