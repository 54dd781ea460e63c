"""Where no other host is at work, looking for others' changes costs little, and the first one is seen all the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import trio
from several import CLOCK, INTERVAL, META, NOTE, SOON, Host
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.beacon import QUIET, WAIT
from livememfs.cache.watcher import EVERYTHING_AFTER, ROOM
from livememfs.cache.watching.pace import CALM_SECONDS, SLACK, STIRRED_SECONDS
from livememfs.store.base import MAX_PAGE, Page
from livememfs.store.memory import MemoryStore

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
FOLDERS = ("s/", "s/live/", "s/folder/")
FIRST = CALM_SECONDS + WAIT
A_MINUTE = 6
LARGE = MAX_PAGE + 1


class World:
    """A bucket with one space, as large as wanted, and hosts that use it once a second."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.memory = MemoryStore(CLOCK)
        self._nursery = nursery

    async def fill(self, objects: int) -> None:
        for key in (META, "s/live/.keep", "s/file", NOTE.format(1, 1), "s/folder/.keep"):
            await self.memory.put(key, b"{}")
        for number in range(objects):
            await self.memory.put(f"s/bulk/{number:05}", b"x")

    async def join(self, name: str, *, stays: bool = True) -> Host:
        host = Host(self.memory, name)
        await self._nursery.start(host.replica.run)
        with trio.move_on_after(SOON):
            await self._use(host)
        if stays:
            self._nursery.start_soon(self._use, host)
        return host

    async def _use(self, host: Host) -> None:
        while True:
            for prefix in FOLDERS:
                await host.names(prefix)
            await trio.sleep(1.0)


@pytest.fixture
def world(autojump_clock: Clock, nursery: trio.Nursery) -> World:
    return World(nursery)


async def seen(host: Host, key: str, within: float, kind: str = "put") -> None:
    """Wait until it is told; for no longer than that."""
    with trio.move_on_after(within + 0.01):
        while (kind, key) not in host.told:
            await trio.sleep(0.01)
    assert (kind, key) in host.told, f"{key} is not seen within {within} s"


SIZES = pytest.mark.parametrize("objects", [0, LARGE], ids=["a page", "more than a page"])


@SIZES
async def test_a_host_that_is_alone_asks_six_times_a_minute(world: World, autojump_clock: Clock, objects: int) -> None:
    """Of more than a page, each directory in use is listed once in five minutes besides."""
    await world.fill(objects)
    host = await world.join("here")
    await trio.sleep(CALM_SECONDS)
    spent = []
    for _ in range(10):
        host.store.forget()
        await trio.sleep(60.0)
        spent.append(host.store.counts.total())
        assert set(host.store.counts) == {"list"}
    assert sorted(spent)[:8] == [A_MINUTE] * 8
    assert max(spent) <= A_MINUTE + (len(FOLDERS) if objects else 0)


async def test_what_a_host_that_is_alone_writes_costs_a_put_and_its_beacon(world: World, autojump_clock: Clock) -> None:
    """A note not even that: where all of a space is looked at, others find it."""
    await world.fill(0)
    host = await world.join("here")
    await trio.sleep(CALM_SECONDS)
    host.store.forget()
    for number in range(2, 8):
        await host.put(NOTE.format(number, number), b"note")
        await trio.sleep(CALM_SECONDS)
    assert host.store.counts == {"put": 6, "list": 6}
    await host.put("s/file", b"edit")
    await trio.sleep(CALM_SECONDS)
    assert host.store.counts == {"put": 8, "list": 7}, host.store.requests
    assert host.told == []


CHANGES: dict[str, Callable[[int], str]] = {
    "an edit": lambda _: "s/file",
    "a note": lambda number: NOTE.format(number, number),
    "a file": lambda number: f"s/folder/{number}",
}


@pytest.mark.parametrize(
    ("what", "objects"),
    [*((what, 0) for what in CHANGES), *((what, LARGE) for what in CHANGES if LONG or what == "a note")],
)
async def test_the_first_change_is_seen_within_ten_seconds_and_the_next_ones_within_three(
    world: World, autojump_clock: Clock, what: str, objects: int
) -> None:
    """Whenever the next one comes, while there is one every few minutes; and then it begins anew."""
    await world.fill(objects)
    here, there = await world.join("here"), await world.join("there")
    await trio.sleep(20.0 + WAIT)
    late = [(FIRST, STIRRED_SECONDS + 2 * CALM_SECONDS + number * 2.3) for number in range(4)]
    for within, pause in ((FIRST, 0.0), (SOON, 3.5), (SOON, QUIET), (SOON, QUIET - 10.0), (SOON, 0.7), *late):
        here.told.clear()
        await trio.sleep(pause)
        number = int(trio.current_time()) % 60
        await there.put(CHANGES[what](number), f"{trio.current_time()}".encode())
        await seen(here, CHANGES[what](number), within)


@SIZES
async def test_two_hosts_that_are_both_calm_see_what_both_do_at_once(
    world: World, autojump_clock: Clock, objects: int
) -> None:
    await world.fill(objects)
    here, there = await world.join("here"), await world.join("there")
    await trio.sleep(20.0)
    for within in (FIRST, SOON):
        for number, host in enumerate((here, there)):
            host.told.clear()
            await host.put(NOTE.format(int(within), number), b"note")
            await host.put(f"s/folder/{number}", f"{within}".encode())
        async with trio.open_nursery() as both:
            for number, host in ((1, here), (0, there)):
                both.start_soon(seen, host, NOTE.format(int(within), number), within)
                both.start_soon(seen, host, f"s/folder/{number}", within)


@SIZES
async def test_a_removal_and_a_folder_that_comes_and_goes_are_seen_by_who_is_calm(
    world: World, autojump_clock: Clock, objects: int
) -> None:
    await world.fill(objects)
    here, there = await world.join("here"), await world.join("there")
    await there.put("s/new/deep/file", b"x")
    await seen(here, "s/new/", FIRST)
    await trio.sleep(STIRRED_SECONDS + CALM_SECONDS)
    there.replica.remove("s/new/deep/file", base=await there.replica.names.stat("s/new/deep/file"))
    await seen(here, "s/new/", FIRST, "delete")
    await trio.sleep(STIRRED_SECONDS + CALM_SECONDS)
    there.replica.remove("s/file", base=await there.replica.names.stat("s/file"))
    await seen(here, "s/file", FIRST, "delete")


async def test_a_program_without_a_beacon_is_seen_by_who_is_calm(world: World, autojump_clock: Clock) -> None:
    """Of a space that fits on a page; what it does after that shows as in any space that is not calm."""
    await world.fill(0)
    here = await world.join("here")
    await world.memory.put("s/new/deep/x", b"by another program")
    await seen(here, "s/new/", CALM_SECONDS)
    await world.memory.put("s/folder/y", b"by another program")
    await seen(here, "s/folder/y", 5.0)
    await trio.sleep(STIRRED_SECONDS + CALM_SECONDS)
    await world.memory.delete("s/file")
    await seen(here, "s/file", CALM_SECONDS, "delete")


async def test_in_a_large_calm_space_a_program_without_a_beacon_is_seen_within_some_minutes(
    world: World, autojump_clock: Clock
) -> None:
    await world.fill(LARGE)
    here = await world.join("here")
    await world.memory.put("s/folder/x", b"by another program")
    await seen(here, "s/folder/x", EVERYTHING_AFTER + CALM_SECONDS)


async def test_what_another_host_does_where_nobody_here_has_looked_ends_the_calm(
    world: World, autojump_clock: Clock
) -> None:
    await world.fill(0)
    here, there = await world.join("here"), await world.join("there")
    await trio.sleep(CALM_SECONDS)
    await there.put("s/folder/unseen/x", b"x")
    await there.put("s/folder/unseen/y", b"x")
    await trio.sleep(FIRST + STIRRED_SECONDS + CALM_SECONDS)
    await there.put("s/folder/unseen/y", b"y")
    await trio.sleep(FIRST)
    here.store.forget()
    await there.put("s/file", b"new")
    await seen(here, "s/file", SOON)


async def test_after_some_minutes_without_a_change_a_space_is_calm_again(world: World, autojump_clock: Clock) -> None:
    await world.fill(0)
    here, there = await world.join("here"), await world.join("there")
    await there.put("s/file", b"new")
    await seen(here, "s/file", FIRST)
    here.store.forget()
    await trio.sleep(60.0)
    assert here.store.counts["list"] > 10 * A_MINUTE
    await trio.sleep(STIRRED_SECONDS - 60.0 + CALM_SECONDS)
    here.store.forget()
    await trio.sleep(60.0)
    assert here.store.counts.total() <= A_MINUTE


@SIZES
@pytest.mark.parametrize("seconds", [7.0, 37.0])
async def test_after_an_outage_what_waits_is_released_at_the_old_pace(
    world: World, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch, objects: int, seconds: float
) -> None:
    """Also after one that ends before the next calm look would have come."""
    monkeypatch.setattr("livememfs.cache.uploader.random.uniform", lambda _, longest: longest)
    await world.fill(objects)
    here = await world.join("here", stays=False)
    looks = here.replica.watcher.statistics().looks
    while here.replica.watcher.statistics().looks == looks:
        await trio.sleep(0.1)
    here.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    here.replica.save("s/folder/mine", b"x", meta={}, base=None)
    await trio.sleep(seconds)
    assert here.replica.uploader.statistics().paused
    here.store.fail_all = None
    await trio.sleep(INTERVAL)
    assert (await world.memory.get("s/folder/mine")).data == b"x"
    here.store.forget()
    await trio.sleep(60.0)
    assert here.store.counts.total() <= A_MINUTE


async def test_an_outage_that_nobody_here_has_met_is_met_by_looks_and_ends_what_is_vouched_for(
    world: World, autojump_clock: Clock
) -> None:
    await world.fill(0)
    here = await world.join("here")
    await trio.sleep(CALM_SECONDS)
    here.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    await trio.sleep(CALM_SECONDS + SLACK)
    assert not here.replica.names.watched("s/")


async def test_a_newcomer_sees_within_three_seconds_what_a_host_does_that_was_at_work_before(
    world: World, autojump_clock: Clock
) -> None:
    """That one need not announce its next note: whoever heard its last announcement looks at notes."""
    await world.fill(LARGE)
    there = await world.join("there")
    await trio.sleep(CALM_SECONDS)
    await there.put(NOTE.format(2, 2), b"announced")
    await trio.sleep(QUIET / 2)
    newcomer = await world.join("newcomer")
    there.store.forget()
    await there.put(NOTE.format(3, 3), b"not announced")
    await seen(newcomer, NOTE.format(3, 3), SOON)
    assert there.store.counts["put"] == 1


@SIZES
async def test_of_a_host_that_dies_after_its_first_note_the_note_is_seen(
    world: World, autojump_clock: Clock, objects: int
) -> None:
    """Of a large space the beacon was not written any more: there it takes some minutes."""
    await world.fill(objects)
    here = await world.join("here")
    await trio.sleep(CALM_SECONDS)
    await world.memory.put(NOTE.format(2, 2), b"its last")
    await seen(here, NOTE.format(2, 2), EVERYTHING_AFTER + CALM_SECONDS if objects else CALM_SECONDS)


async def test_a_space_that_grows_beyond_a_page_and_shrinks_again_hides_no_note(
    world: World, autojump_clock: Clock
) -> None:
    await world.fill(MAX_PAGE - ROOM - 20)
    here, there = await world.join("here"), await world.join("there")
    await trio.sleep(CALM_SECONDS)
    for number in range(ROOM + 40):
        await here.put(f"s/live/20261122T1{number // 60:03}{number % 60:02}_me_todo_0a1b2c3d.md", b"x")
    there.store.forget()
    last = NOTE.format(59, 59).replace("20261122", "20261123")
    await there.put(last, b"not announced, as there was room")
    assert there.store.counts["put"] == 1
    await seen(here, last, FIRST)
    await trio.sleep(STIRRED_SECONDS + CALM_SECONDS)
    for info in (await world.memory.list_page("s/bulk/")).objects:
        await there.replica.delete(info.key)
    await trio.sleep(STIRRED_SECONDS + CALM_SECONDS)
    await there.put(NOTE.format(5, 5), b"x")
    await seen(here, NOTE.format(5, 5), FIRST)


async def test_counts_of_uses_alone_are_no_work(world: World, autojump_clock: Clock) -> None:
    """Every host writes its own each ten minutes, whether or not anybody does anything."""
    await world.fill(0)
    here = await world.join("here")
    await here.names("s/_index/_worth/")
    await world.memory.put("s/_index/_worth/there.json", b"{}")
    await seen(here, "s/_index/_worth/there.json", CALM_SECONDS)
    here.store.forget()
    await trio.sleep(60.0)
    assert here.store.counts.total() <= A_MINUTE


async def test_a_folder_that_the_store_goes_on_naming_is_asked_for_once(
    world: World, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.fill(0)
    here = await world.join("here")
    level = here.replica.names.levels.get("s/")
    assert level is not None
    asked: list[str] = []

    async def named_again(prefix: str) -> None:
        asked.append(prefix)

    monkeypatch.setattr(here.replica.names, "refresh", named_again)
    level.folders.add("bare")
    await trio.sleep(5 * CALM_SECONDS)
    assert asked == ["s/"]


async def test_what_our_own_hand_does_while_all_is_listed_is_not_undone(world: World, autojump_clock: Clock) -> None:
    await world.fill(0)
    here = await world.join("here")
    await trio.sleep(CALM_SECONDS)
    list_page = here.store.list_page

    async def late(prefix: str, **more: Any) -> Page:
        page = await list_page(prefix, **more)
        await trio.sleep(2.0)
        return page

    here.store.list_page = late  # type: ignore[method-assign]  # what happens meanwhile is not in the answer
    for number in range(12):
        await trio.sleep(0.9)
        await here.put(f"s/folder/{number}", b"x")
        await here.put("s/file", f"{number}".encode())
        here.replica.remove(f"s/folder/{number - 1}", base=here.replica.names.now(f"s/folder/{number - 1}"))
        await trio.sleep(0.9)
        assert await here.names("s/folder/") == {".keep", f"{number}"}
    assert here.told == []
