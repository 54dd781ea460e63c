"""What the kernel is told from request to request, without a kernel: numbers, and how long it may believe what."""

from __future__ import annotations

import errno
import gc
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pyfuse3
import pytest
from hosts import Host, World
from trio.abc import Clock

from livememfs.fuse.adapter import FuseOperations
from livememfs.fuse.inodes import ROOT
from livememfs.fuse.listings import Listings
from livememfs.tree import plain

ANYBODY = cast(pyfuse3.RequestContext, SimpleNamespace(uid=0, gid=0, pid=0, umask=0o022))
REPLACE = os.O_WRONLY | os.O_TRUNC
FILES = [f"alpha/files/f{number}" for number in range(4)]


@dataclass(frozen=True)
class Shown:
    """One name of a listing as the kernel got it."""

    ino: int
    size: int
    name_seconds: float
    attr_seconds: float


class Kernel:
    """The requests of a kernel to one host."""

    def __init__(self, host: Host) -> None:
        self.operations = FuseOperations(host.root, host.errors, 30.0)
        self.inos: dict[str, int] = {"": ROOT}

    async def lookup(self, path: str) -> int:
        """The number of a path: what a listing has told, or what each directory says."""
        if path not in self.inos:
            above, _, name = path.rpartition("/")
            entry = await self.operations.lookup(await self.lookup(above), name.encode(), ANYBODY)
            self.inos[path] = entry.st_ino
        return self.inos[path]

    async def opendir(self, path: str) -> int:
        return await self.operations.opendir(await self.lookup(path), ANYBODY)

    async def readdir(self, fh: int, start: int, at_most: int = 1_000) -> dict[str, Shown]:
        """One READDIR: so many names, and no more."""
        page = _Page(at_most)
        await self.operations.readdir(fh, start, cast(pyfuse3.ReaddirToken, page))
        return page.shown

    async def ls(self, path: str) -> dict[str, Shown]:
        """A whole listing, which the kernel believes."""
        fh = await self.opendir(path)
        shown = await self.readdir(fh, 0)
        await self.operations.releasedir(fh)
        self.inos |= {f"{path}/{name}": entry.ino for name, entry in shown.items()}
        return shown

    async def rename(self, source: str, target: str) -> None:
        """A rename of names that the kernel knows: it takes the number along."""
        (above, name), (other, new) = os.path.split(source), os.path.split(target)
        parents = await self.lookup(above), await self.lookup(other)
        await self.operations.rename(parents[0], name.encode(), parents[1], new.encode(), 0, ANYBODY)
        self.inos[target] = self.inos.pop(source)

    async def unlink(self, path: str) -> None:
        above, name = os.path.split(path)
        await self.operations.unlink(await self.lookup(above), name.encode(), ANYBODY)
        self.inos.pop(path, None)

    async def write(self, path: str, data: bytes) -> None:
        """`cat > path`."""
        above, name = os.path.split(path)
        if path in self.inos:
            info = await self.operations.open(self.inos[path], REPLACE, ANYBODY)
        else:
            parent = await self.lookup(above)
            info, entry = await self.operations.create(parent, name.encode(), 0o644, REPLACE, ANYBODY)
            self.inos[path] = entry.st_ino
        await self.operations.write(info.fh, 0, data)
        await self.operations.flush(info.fh)
        await self.operations.release(info.fh)

    async def read(self, ino: int) -> bytes:
        """What is behind a number."""
        info = await self.operations.open(ino, os.O_RDONLY, ANYBODY)
        data = await self.operations.read(info.fh, 0, 1 << 20)
        await self.operations.release(info.fh)
        return data


class _Page:
    """The room for the names of one READDIR."""

    def __init__(self, at_most: int) -> None:
        self.at_most, self.shown = at_most, dict[str, Shown]()

    def add(self, name: bytes, entry: Any, position: int) -> bool:
        if len(self.shown) == self.at_most:
            return False
        self.shown[name.decode()] = Shown(entry.st_ino, entry.st_size, entry.entry_timeout, entry.attr_timeout)
        return True


@pytest.fixture
def kernel(here: Host, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The kernel of the host `here`, which asks for nobody's metadata when it lists."""
    monkeypatch.setattr(plain, "COMPLETED", 0)
    monkeypatch.setattr(pyfuse3, "readdir_reply", lambda page, *told: page.add(*told))
    monkeypatch.setattr(pyfuse3, "invalidate_inode", lambda *_: None)
    return Kernel(here)


@pytest.fixture
async def files(there: Host, autojump_clock: Clock) -> Sequence[str]:
    """Files that another host has made, and that `here` knows from listings alone."""
    await there.mkdir("alpha/files")
    for path in FILES:
        await there.write(path, path)
    return FILES


async def expect_stale(kernel: Kernel, ino: int) -> None:
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await kernel.read(ino)
    assert caught.value.errno == errno.ESTALE


# --- names that only a listing has shown -------------------------------------------------------------------------


async def test_a_file_moved_away_and_the_next_one_of_its_name_have_a_number_each(
    kernel: Kernel, files: Sequence[str], world: World
) -> None:
    number = (await kernel.ls("alpha/files"))["f0"].ino

    await kernel.rename("alpha/files/f0", "alpha/files/moved")
    await kernel.write("alpha/files/f0", b"new")

    assert kernel.inos["alpha/files/f0"] != number == kernel.inos["alpha/files/moved"]
    assert await kernel.read(number) == files[0].encode()
    await kernel.write("alpha/files/moved", b"written to")
    objects = await world.bucket("alpha/files/f0"), await world.bucket("alpha/files/moved")
    assert objects == ({"": b"new"}, {"": b"written to"})


async def test_a_file_that_a_move_replaces_leaves_its_number_to_nobody(kernel: Kernel, files: Sequence[str]) -> None:
    shown = await kernel.ls("alpha/files")

    await kernel.rename("alpha/files/f0", "alpha/files/f1")

    assert await kernel.read(shown["f0"].ino) == files[0].encode()
    await expect_stale(kernel, shown["f1"].ino)
    assert (await kernel.ls("alpha/files"))["f1"].ino == shown["f0"].ino


async def test_a_file_that_was_removed_leaves_its_number_to_nobody_while_the_kernel_has_it(
    kernel: Kernel, files: Sequence[str]
) -> None:
    number = (await kernel.ls("alpha/files"))["f0"].ino

    await kernel.unlink(files[0])
    await kernel.write(files[0], b"new")

    assert kernel.inos[files[0]] != number
    await expect_stale(kernel, number)


@pytest.mark.parametrize("backup", ["later.md", "{name}~"], ids=["under another name", "by an editor"])
async def test_a_note_moved_aside_and_the_one_that_takes_its_name_have_a_number_each(
    kernel: Kernel, there: Host, autojump_clock: Clock, backup: str
) -> None:
    await there.write("alpha/live/todo.md", "what was to be done")
    [(name, shown)] = (await kernel.ls("alpha/live")).items()
    aside = f"alpha/live/{backup.format(name=name)}"

    await kernel.rename(f"alpha/live/{name}", aside)
    await kernel.write(f"alpha/live/{name}", b"what is to be done")

    assert kernel.inos[f"alpha/live/{name}"] != shown.ino == kernel.inos[aside]
    assert (await kernel.read(shown.ino)).endswith(b"what was to be done")
    assert (await kernel.read(kernel.inos[f"alpha/live/{name}"])).endswith(b"what is to be done")


# --- a listing that takes several requests -----------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["alpha", "alpha/files", "alpha/live"])
async def test_what_is_written_during_a_listing_shows_in_its_later_parts(
    kernel: Kernel, here: Host, autojump_clock: Clock, folder: str
) -> None:
    """Else the kernel would go back to the old size, and cut at it what is read."""
    if folder == "alpha/files":
        await here.mkdir(folder)
    for name in ("aa.md", "zz.md"):
        await here.write(f"{folder}/{name}", "short")
    *_, (name, before) = (await kernel.ls(folder)).items()
    fh = await kernel.opendir(folder)
    await kernel.readdir(fh, 0, at_most=1)

    await kernel.write(f"{folder}/{name}", b"a good deal longer" * 100)
    shown = (await kernel.readdir(fh, 1))[name]

    assert shown.ino == before.ino
    assert shown.size == (await here.attrs(f"{folder}/{name}")).size > 1_000
    assert len(await kernel.read(shown.ino)) == shown.size


@pytest.mark.parametrize("folder", ["alpha", "alpha/files"])
async def test_a_name_that_goes_during_a_listing_is_not_believed_when_a_later_part_shows_it(
    kernel: Kernel, here: Host, autojump_clock: Clock, folder: str
) -> None:
    if folder == "alpha/files":
        await here.mkdir(folder)
    for name in ("aa", "zz-kept", "zz-moved", "zz-removed"):
        await here.write(f"{folder}/{name}", name)
    await here.mkdir(f"{folder}/zz-directory")
    await here.symlink(f"{folder}/zz-link", "aa")
    await kernel.ls(folder)
    fh = await kernel.opendir(folder)
    await kernel.readdir(fh, 0, at_most=1)

    await kernel.rename(f"{folder}/zz-moved", f"{folder}/aa-moved")
    await kernel.unlink(f"{folder}/zz-removed")
    await kernel.unlink(f"{folder}/zz-link")
    await kernel.operations.rmdir(await kernel.lookup(folder), b"zz-directory", ANYBODY)
    later = await kernel.readdir(fh, 1)

    assert later["zz-kept"].name_seconds > 0
    gone = {later[f"zz-{name}"] for name in ("directory", "link", "moved", "removed")}
    assert {(entry.name_seconds, entry.attr_seconds) for entry in gone} == {(0.0, 0.0)}


async def test_a_file_known_from_a_listing_is_not_believed_after_its_removal(
    kernel: Kernel, files: Sequence[str]
) -> None:
    await kernel.ls("alpha/files")
    fh = await kernel.opendir("alpha/files")
    await kernel.readdir(fh, 0, at_most=1)

    await kernel.unlink(files[3])
    await kernel.rename(files[1], files[2])
    later = await kernel.readdir(fh, 1)

    assert {entry.name_seconds for entry in later.values()} == {0.0}


async def test_a_listing_during_which_nothing_changes_gives_every_name_once(
    kernel: Kernel, files: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its later parts cost what the first one does: nothing is looked at again."""
    monkeypatch.setattr(Listings, "again", None)
    fh = await kernel.opendir("alpha/files")

    parts = [await kernel.readdir(fh, start, at_most=1) for start in range(5)]

    assert [list(part) for part in parts] == [["f0"], ["f1"], ["f2"], ["f3"], []]


# --- what the kernel gives back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [0, 1, 1_000], ids=["opened", "begun", "read"])
async def test_a_directory_that_was_listed_is_freed_when_the_kernel_gives_it_back(
    kernel: Kernel, here: Host, names: int, autojump_clock: Clock
) -> None:
    """However much of the listing was read; else a mount would grow with each directory that somebody makes."""
    await here.mkdir("alpha/files")
    for name in ("one", "two"):
        await here.write(f"alpha/files/{name}", name)
    here.context.written.clear()  # as whoever keeps drafts does
    fh, number = await kernel.opendir("alpha/files"), await kernel.lookup("alpha/files")
    node = weakref.ref(await here.folder("alpha/files"))
    shown = await kernel.readdir(fh, 0, at_most=names)
    await kernel.operations.releasedir(fh)

    await kernel.operations.forget([(entry.ino, 1) for entry in shown.values()])
    await kernel.operations.forget([(number, 1)])
    gc.collect()

    assert node() is None
    assert kernel.operations.statistics().inodes.held == 2, "the root and the space"


async def test_names_of_an_unread_listing_are_freed_with_their_directory(kernel: Kernel, files: Sequence[str]) -> None:
    number = await kernel.lookup("alpha/files")
    fh = await kernel.opendir("alpha/files")
    await kernel.readdir(fh, 0, at_most=0)
    await kernel.operations.releasedir(fh)

    await kernel.operations.forget([(number, 1)])

    assert kernel.operations.statistics().inodes.held == 2, "the root and the space"


async def test_a_listing_on_its_way_outlives_what_the_kernel_gives_back(kernel: Kernel, files: Sequence[str]) -> None:
    fh = await kernel.opendir("alpha/files")
    first = await kernel.readdir(fh, 0, at_most=1)

    await kernel.operations.forget([(await kernel.lookup("alpha/files"), 1), (first["f0"].ino, 1)])
    later = await kernel.readdir(fh, 1)

    assert [await kernel.read(later[name].ino) for name in ("f1", "f2", "f3")] == [path.encode() for path in files[1:]]
