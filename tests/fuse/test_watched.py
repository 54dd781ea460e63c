"""What somebody watches stays in use, and nothing is looked for where nobody asks anything."""

from __future__ import annotations

import pytest
import trio
from trio.abc import Clock
from trio.testing import wait_all_tasks_blocked

from livememfs.fuse import watched
from livememfs.fuse.inodes import Inodes
from livememfs.fuse.watched import AWAKE, EVERY, KEPT_IN_USE, Attention
from livememfs.tree.node import Directory, Node


class Folder(Directory):
    """Counts the looks."""

    __slots__ = ("looks",)

    def __init__(self, parent: Directory | None, name: str) -> None:
        super().__init__(parent, name)
        self.looks = 0

    async def look(self) -> None:
        self.looks += 1


class Mount:
    """Inodes, the count of requests, and what is watched; `looks` are those into the processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> None:
        self.root = Folder(None, "")
        self.inodes = Inodes(self.root)
        self.requests, self.looks, self.found = 0, 0, list[int]()
        self.attention = Attention(self.inodes, lambda: self.requests)
        monkeypatch.setattr(watched, "find_aside", self._find)
        nursery.start_soon(self.attention.run, 0)

    async def _find(self, _: int) -> list[int]:
        self.looks += 1
        return self.found

    def folder(self, name: str) -> Folder:
        folder = Folder(self.root, name)
        self.inodes.count(folder)
        return folder


@pytest.fixture
async def mount(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> Mount:
    mount = Mount(monkeypatch, nursery)
    await wait_all_tasks_blocked()
    return mount


async def test_a_watched_directory_and_that_of_a_watched_file_stay_in_use_for_as_long(
    mount: Mount, autojump_clock: Clock
) -> None:
    folder, above = mount.folder("watched"), mount.folder("above")
    file = Node(above, "file")
    mount.inodes.count(file)
    mount.found = [folder.ino, file.ino, 1 << 40]
    await trio.sleep(1_000 * EVERY + 1)
    assert (folder.looks, above.looks, mount.root.looks) == (1_000, 1_000, 0)
    mount.found = []
    await trio.sleep(1_000 * EVERY)
    assert folder.looks <= 1_001


async def test_no_more_than_some_directories_cost_requests_those_watched_last(
    mount: Mount, autojump_clock: Clock
) -> None:
    folders = [mount.folder(f"f{number}") for number in range(KEPT_IN_USE + 2)]
    mount.found = [folder.ino for folder in folders]
    await trio.sleep(EVERY + 1)
    assert [folder.looks for folder in folders] == [0, 0] + [1] * KEPT_IN_USE


async def test_a_mount_that_nobody_asks_anything_looks_for_nothing(mount: Mount, autojump_clock: Clock) -> None:
    """But for a while after a request: a watch on a name that the kernel remembers makes none."""
    await trio.sleep(1_000 * EVERY)
    before = mount.looks
    await trio.sleep(1_000 * EVERY)
    assert mount.looks == before
    mount.requests += 1
    await trio.sleep(1_000 * EVERY)
    assert AWAKE / EVERY - 1 <= mount.looks - before <= AWAKE / EVERY + 1
