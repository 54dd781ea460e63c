"""The beacon: what a host tells others, and that it never brings back a space that is gone."""

from __future__ import annotations

import json

import pytest
import trio
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.beacon import REMEMBERED, RETRY, WAIT, Announcement, Beacon
from livememfs.cache.upkeep import Upkeep
from livememfs.records import keys
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore

NOTE = "s/live/20261122T091001_me_todo_0a1b2c01.md"
FILE = "s/files/x"


class Host:
    """A host whose known objects are all but those of `gone`."""

    def __init__(self) -> None:
        self.memory = MemoryStore(ManualClock())
        self.store = FaultyStore(self.memory)
        self.gone: set[str] = set()
        self.upkeep = Upkeep()
        self.beacon = Beacon(self.store, "here", lambda key: key not in self.gone, self.upkeep)

    async def told(self, space: str = "s") -> Announcement:
        return Announcement.parse((await self.memory.get(f"{space}/{keys.CHANGES}/here.json")).data)


@pytest.fixture
def host() -> Host:
    return Host()


async def test_each_change_counts_and_the_last_ones_are_named(host: Host) -> None:
    for number in range(REMEMBERED + 2):
        host.beacon.changed(f"s/files/{number}", new=True)
    assert await host.beacon.flush()
    told = await host.told()
    assert told.number == REMEMBERED + 2
    assert told.recent[0] == (3, "s/files/2")
    assert len(told.recent) == REMEMBERED
    assert host.store.counts == {"put": 1}
    assert await host.beacon.flush()
    assert host.store.counts == {"put": 1}, "nothing is new"


@pytest.mark.parametrize(
    ("key", "new", "announced"),
    [
        (NOTE, True, False),
        (NOTE, False, True),
        (FILE, True, True),
        (keys.meta_key("s"), True, True),
        (keys.worth_key("s", "here"), False, False),
        ("_system/x", False, False),
        ("top", False, False),
        (f"{keys.backup_prefix('s', '20261122T091001Z')}x", False, False),
    ],
)
async def test_what_every_poller_finds_by_itself_is_not_announced(
    host: Host, key: str, new: bool, announced: bool
) -> None:
    host.beacon.changed(key, new)
    await host.beacon.flush()
    assert host.store.counts["put"] == int(announced)


async def test_a_space_that_is_gone_stays_gone_and_counts_anew_when_it_is_made_again(host: Host) -> None:
    host.beacon.changed(FILE, new=True)
    await host.beacon.flush()
    before = await host.told()
    host.beacon.changed(FILE, new=False)
    host.gone.add(keys.meta_key("s"))
    host.beacon.changed(keys.meta_key("s"), new=False)
    assert await host.beacon.flush()
    assert await host.told() == before
    host.gone.clear()
    host.beacon.changed(FILE, new=True)
    await host.beacon.flush()
    after = await host.told()
    assert after.number == 1
    assert after.epoch != before.epoch
    assert len(after.epoch) == 12

    host.gone.add("s/")
    host.beacon.changed(FILE, new=False)
    assert await host.beacon.flush()
    assert await host.told() == after


async def test_a_beacon_waits_for_the_end_of_a_removal_and_is_written_if_it_failed(
    host: Host, autojump_clock: Clock
) -> None:
    async with trio.open_nursery() as nursery:
        async with host.upkeep.removing("s"):
            host.beacon.changed(FILE, new=True)
            nursery.start_soon(host.beacon.run)
            await trio.sleep(60)
            assert host.store.counts["put"] == 0
        await trio.sleep(WAIT * 1.5)
        assert host.store.counts["put"] == 1
        nursery.cancel_scope.cancel()


async def test_what_could_not_be_announced_is_tried_again_and_others_do_not_wait_for_it(
    host: Host, autojump_clock: Clock
) -> None:
    host.store.script("put", Fault(before=errors.Throttled(key="x")))
    for key in (FILE, "other/files/x"):
        host.beacon.changed(key, new=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.beacon.run)
        await trio.sleep(WAIT * 1.5)
        assert (await host.told("other")).number == 1
        with pytest.raises(errors.ObjectMissing):
            await host.told()
        await trio.sleep(RETRY + WAIT)
        assert (await host.told()).all() == [FILE]
        await trio.sleep(60)
        assert host.store.counts["put"] == 3
        nursery.cancel_scope.cancel()


async def test_a_change_during_the_write_is_announced_by_the_next(host: Host, autojump_clock: Clock) -> None:
    host.store.latency("put", 5.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.beacon.run)
        host.beacon.changed(FILE, new=True)
        await trio.sleep(1.0)
        host.beacon.changed(FILE, new=False)
        await trio.sleep(20.0)
        nursery.cancel_scope.cancel()
    assert (await host.told()).recent == ((1, FILE), (2, FILE))


async def test_a_space_that_goes_while_another_is_announced_gets_no_beacon(host: Host, autojump_clock: Clock) -> None:
    host.store.latency("put", 5.0)
    host.beacon.changed("first/files/x", new=True)
    host.beacon.changed(FILE, new=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.beacon.flush)
        await trio.sleep(1.0)
        host.gone.add(keys.meta_key("s"))
        host.beacon.changed(keys.meta_key("s"), new=False)
    assert [asked.key for asked in host.store.requests] == ["first/_changes/here.json"]


def test_of_a_beacon_that_is_too_long_the_last_keys_count() -> None:
    recent = [[number, f"s/{number}"] for number in range(1, REMEMBERED + 3)]
    parsed = Announcement.parse(json.dumps({"epoch": "e", "seq": REMEMBERED + 2, "recent": recent}).encode())
    assert (len(parsed.recent), parsed.recent[-1]) == (REMEMBERED, (REMEMBERED + 2, f"s/{REMEMBERED + 2}"))
    assert parsed.all() is None


async def test_a_removal_waits_for_who_writes_and_each_space_for_its_own(autojump_clock: Clock) -> None:
    upkeep, heard = Upkeep(), list[str]()
    upkeep.after_removals(lambda: heard.append("ended"))

    async def write(seconds: float) -> None:
        with upkeep.writing("s") as may:
            assert may
            await trio.sleep(seconds)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, 2.0)
        nursery.start_soon(write, 3.0)
        await trio.sleep(1.0)
        async with upkeep.removing("s"):
            assert trio.current_time() == pytest.approx(3.0)
            with upkeep.writing("s") as may, upkeep.writing("other") as other:
                assert (may, other) == (False, True)
            async with upkeep.removing("s"):
                assert not heard
            with upkeep.writing("s") as may:
                assert not may, "the other removal goes on"
        with upkeep.writing("s") as may:
            assert may
    assert heard == ["ended", "ended"]
