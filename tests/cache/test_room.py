"""Whether there is room for new content: the cache's share, and what the disk has left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.blobs import Blobs
from livememfs.cache.changes import Change, Changes
from livememfs.cache.database import Database
from livememfs.cache.journal.steps import Journal
from livememfs.cache.room import BELIEVED, DISK_RESERVE, Room
from livememfs.cache.unread import Unread
from livememfs.errors import NoSpace
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text.foreign import Unreadable


class Disk:
    """A disk of 100 blocks; `free` bytes beside the reserve."""

    def __init__(self) -> None:
        self.free, self.asked = 100, 0

    def statvfs(self, _: Path) -> SimpleNamespace:
        self.asked += 1
        return SimpleNamespace(f_bavail=(DISK_RESERVE + self.free) // 4, f_frsize=4, f_blocks=100, f_bfree=0)


class World:
    """A cache of 100 bytes on a disk."""

    def __init__(self, folder: Path | None) -> None:
        self.database = Database(folder)
        self.blobs = Blobs(self.database, max_bytes=100, memory_bytes=100)
        self.journal = Journal(self.database, self.blobs)
        self.room = Room(self.database, self.journal, self.blobs, 100)

    def accept(self, size: int) -> None:
        self.journal.put("s/x", b"x" * size, "v1", {}, base=None)


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    with patch("os.statvfs", made.statvfs):
        yield made


@pytest.fixture
def world(tmp_path: Path, disk: Disk) -> Iterator[World]:
    made = World(tmp_path / "cache")
    yield made
    made.database.close()


async def test_what_waits_may_fill_the_cache_and_one_file_alone_may_be_larger(world: World) -> None:
    world.room.expect(101, is_here=True)
    world.accept(60)
    world.room.expect(40, is_here=True)
    with pytest.raises(NoSpace, match="60 bytes wait"):
        world.room.expect(41, is_here=True)


async def test_what_the_disk_has_beside_its_reserve_can_be_filled_to_the_last_byte(world: World, disk: Disk) -> None:
    world.room.expect(60)
    world.room.expect(40)
    assert disk.asked == 1, "many small files are saved in that time"
    disk.free = 0
    with pytest.raises(NoSpace, match="nearly full"):
        world.room.expect(1)
    world.room.expect(1_000, is_here=True)
    disk.free = 4
    world.room.expect(4)


async def test_a_full_disk_makes_room_by_what_was_only_read(world: World, disk: Disk) -> None:
    world.blobs.put("s/read", "v1", b"x")
    world.blobs.persist()
    disk.free = 0

    def evict() -> int:
        freed = Blobs.evict(world.blobs)
        disk.free += 4 * freed
        return freed

    with patch.object(world.blobs, "evict", evict):
        world.room.expect(4)
    assert world.blobs.statistics().disk_bytes == 0


async def test_the_disk_is_asked_again_when_some_time_has_passed(
    world: World, disk: Disk, autojump_clock: Clock
) -> None:
    assert world.room.space() == (400, 100)
    disk.free = 40
    assert world.room.space() == (400, 100)
    await trio.sleep(BELIEVED + 0.01)
    assert world.room.space() == (400, 40)
    disk.free = -40
    await trio.sleep(BELIEVED + 0.01)
    assert world.room.space() == (400, 0)
    disk.free = 40
    await trio.sleep(BELIEVED + 0.01)
    asked = disk.asked
    world.room.expect(1)
    assert disk.asked == asked + 1


async def test_the_room_is_what_the_cache_has_left_and_never_less_than_none(world: World) -> None:
    world.accept(70)
    assert world.room.space()[1] == 30
    world.accept(170)
    assert world.room.space()[1] == 0


async def test_without_a_disk_the_cache_is_all_there_is(disk: Disk) -> None:
    world = World(None)
    world.accept(70)
    world.room.expect(30)
    assert (world.room.space(), disk.asked) == ((100, 30), 0)
    world.database.close()


async def test_each_version_that_cannot_be_read_is_told_once() -> None:
    heard: list[tuple[str, str]] = []
    unread = Unread(lambda key, reason: heard.append((key, reason)))

    def parse(data: bytes) -> bytes:
        if data == b"bad":
            raise Unreadable("not JSON")
        return data

    def found(etag: str, data: bytes = b"bad") -> StoredObject:
        return StoredObject(ObjectInfo("k", etag, 3, 1), data)

    assert await unread.read(found("v0", b"good"), parse) == b"good"
    for etag in ("v1", "v1", "v2", "v1"):
        assert await unread.read(found(etag), parse) is None
    assert heard == [("k", "not JSON")] * 2
    assert unread.statistics().versions == 2


def test_of_very_many_unreadable_versions_the_last_are_remembered() -> None:
    heard: list[str] = []
    unread = Unread(lambda key, _: heard.append(key))
    with patch("livememfs.cache.unread.REMEMBERED", 2):
        for key in ("a", "b", "c", "b", "c", "a"):
            unread.note(key, "v1", "bad")
    assert heard == ["a", "b", "c", "a"]
    assert unread.statistics().versions == 4


def test_a_subscriber_that_fails_is_counted_and_stays_and_the_others_hear_all_the_same(expect_log) -> None:
    expect_log("a subscriber failed")
    changes, heard = Changes(), list[str]()

    def hear(change: Change) -> None:
        heard.append(change.key)

    def fail(_: Change) -> None:
        raise ValueError

    changes.subscribe(fail)
    changes.subscribe(hear)
    for key in ("a", "b"):
        changes.publish(Change(key, "put", "v1", "local"))
    changes.unsubscribe(hear)
    changes.publish(Change("c", "delete", "", "remote"))
    told = changes.statistics()
    assert (told.published, told.subscribers, told.failures) == (3, 1, 3)
    assert (heard, [change.key for change in changes.recent]) == (["a", "b"], ["a", "b", "c"])
    assert not changes.recent[0].by_caller
