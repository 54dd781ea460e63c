"""What the announcer is told: its calls succeed where a change is to be announced, and never change anything."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyfuse3
import pytest
import trio
from hosts import Host, World
from test_tree_kernel import ANYBODY, Kernel
from trio.abc import Clock

from livememfs.fuse.announcer import Act, Announcer
from livememfs.fuse.notify import Notifier
from livememfs.fuse.pretence import ANNOUNCED_WITHIN, AT_ONCE
from livememfs.tree.node import Directory

PID = 77
OURS = cast(pyfuse3.RequestContext, SimpleNamespace(uid=0, gid=0, pid=PID, umask=0))
FILE, FOLDER, NAME = "alpha/work/f", "alpha/work", b"f"


class Process:
    """An announcer that only takes note."""

    pid = PID

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def send(self, act: Act, path: str) -> bool:
        self.sent.append((act.value, path))
        return True


@pytest.fixture
async def kernel(here: Host, there: Host, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel that has looked at a directory with one file, which another host has made."""
    monkeypatch.setattr(pyfuse3, "readdir_reply", lambda page, *told: page.add(*told))
    await there.mkdir(FOLDER)
    await there.write(FILE, "one\n")
    await there.replica.uploaded()
    kernel = Kernel(here)
    kernel.operations.announcer = cast(Announcer, Process())
    await kernel.lookup(FILE)
    return kernel


@pytest.fixture
def heard(here: Host, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Sequence[tuple[str, str]]]:
    """`heard()`: what the announcer was sent by now."""
    process = Process()
    operations = kernel.operations
    known = operations._inodes.known
    notifier = Notifier(here.root, known, operations.pretence.expect, cast(Announcer, process))
    here.replica.changes.subscribe(notifier.changed)
    monkeypatch.setattr(pyfuse3, "invalidate_inode", lambda *_, **__: None)

    def sent() -> Sequence[tuple[str, str]]:
        notifier._queue.put(None)
        notifier._run()
        return process.sent

    return sent


async def folder_of(here: Host) -> Directory:
    return await here.folder(FOLDER)


async def refusal(call: Any) -> int:
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await call
    return caught.value.errno


# --- which calls are made ------------------------------------------------------------------------------------------


async def test_what_others_do_in_a_directory_that_the_kernel_knows_is_announced(
    world: World, here: Host, there: Host, heard: Any, autojump_clock: Clock
) -> None:
    await there.write("alpha/work/new", "x")
    await there.write(FILE, "two\n")
    await there.mkdir("alpha/work/folder")
    await world.settle()
    await here.names(FOLDER)
    await there.unlink("alpha/work/new")
    await there.rmdir("alpha/work/folder")
    await world.settle()
    await here.names(FOLDER)

    assert set(heard()) == {
        ("file", "alpha/work/new"), ("changed", "alpha/work/new"), ("changed", FILE),
        ("directory", "alpha/work/folder"), ("unlink", "alpha/work/new"), ("rmdir", "alpha/work/folder"),
    }  # fmt: skip


async def test_nothing_is_announced_of_what_the_kernel_itself_did_nor_of_what_it_never_looked_at(
    world: World, here: Host, there: Host, heard: Any, autojump_clock: Clock
) -> None:
    await here.write("alpha/work/mine", "x")
    await here.unlink("alpha/work/mine")
    await there.mkdir("alpha/unseen")
    await world.settle()
    await here.names("alpha/unseen")
    await there.write("alpha/unseen/f", "x")
    await world.settle()
    await here.names("alpha/unseen")
    await here.names("alpha")

    assert heard() == [("directory", "alpha/unseen")]


# --- what they are answered ----------------------------------------------------------------------------------------


async def test_a_name_that_has_come_is_missing_to_the_announcer_until_it_makes_it(
    here: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    """Everybody else finds it, but the kernel may not keep it: it could not be made then."""
    above, operations = await kernel.lookup(FOLDER), kernel.operations
    assert operations.pretence.expect(await folder_of(here), "f", FILE, made=True)

    assert (await operations.lookup(above, NAME, ANYBODY)).entry_timeout == 0.0
    assert (await kernel.ls(FOLDER))["f"].name_seconds == 0.0
    assert await refusal(operations.lookup(above, NAME, OURS)) == errno.ENOENT
    made = await operations.mknod(above, NAME, 0o100644, 0, OURS)

    assert made.st_ino == await kernel.lookup(FILE)
    assert (await operations.lookup(above, NAME, OURS)).st_ino == made.st_ino
    assert (await operations.lookup(above, NAME, ANYBODY)).entry_timeout > 0.0
    assert (await kernel.ls(FOLDER))["f"].name_seconds > 0.0


async def test_a_name_that_has_gone_is_there_for_the_announcer_until_it_removes_it(
    world: World, here: Host, there: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    above, operations, ino = await kernel.lookup(FOLDER), kernel.operations, await kernel.lookup(FILE)
    node = await here.node(FILE)
    await there.unlink(FILE)
    await world.settle()
    await here.names(FOLDER)
    operations.pretence.expect(await folder_of(here), "f", FILE, made=False)

    assert (await operations.lookup(above, NAME, OURS)).st_ino == ino
    assert await refusal(operations.lookup(above, NAME, ANYBODY)) == errno.ENOENT
    await operations.unlink(above, NAME, OURS)

    assert await refusal(operations.lookup(above, NAME, OURS)) == errno.ENOENT
    await there.write(FILE, "again")
    await world.settle()
    assert await here.node(FILE) is not node, "who holds the removed file would have the new one"


async def test_a_directory_that_comes_back_is_another_one(
    world: World, here: Host, there: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    """The kernel takes the former one for dead, and could make nothing in it."""
    await there.mkdir("alpha/work/d")
    await world.settle()
    above, former = await kernel.lookup(FOLDER), await kernel.lookup("alpha/work/d")
    await there.rmdir("alpha/work/d")
    await world.settle()
    await here.names(FOLDER)
    kernel.operations.pretence.expect(await folder_of(here), "d", "alpha/work/d/", made=False)
    await kernel.operations.rmdir(above, b"d", OURS)
    await there.mkdir("alpha/work/d")
    await world.settle()

    assert (await kernel.operations.lookup(above, b"d", ANYBODY)).st_ino != former


async def test_a_change_is_announced_with_the_new_versions_size(
    world: World, here: Host, there: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    """The kernel has the size before anybody hears of the change."""
    await there.write(FILE, "one\ntwo\n")
    await world.settle()
    await here.names(FOLDER)
    ino = await kernel.lookup(FILE)
    nothing = cast(Any, None)

    assert (await kernel.operations.setattr(ino, nothing, nothing, None, OURS)).st_size == 8


# --- that nothing is changed ---------------------------------------------------------------------------------------


def calls(kernel: Kernel, above: int, ino: int) -> list[Any]:
    operations = kernel.operations
    return [
        operations.unlink(above, NAME, OURS),
        operations.rmdir(above, NAME, OURS),
        operations.create(above, b"other", 0o644, os.O_WRONLY, OURS),
        operations.create(above, NAME, 0o644, os.O_WRONLY | os.O_TRUNC, OURS),
        operations.mknod(above, b"other", 0o100644, 0, OURS),
        operations.mkdir(above, b"other", 0o755, OURS),
        operations.symlink(above, b"other", b"f", OURS),
        operations.link(ino, above, b"other", OURS),
        operations.rename(above, NAME, above, b"other", 0, OURS),
        operations.setxattr(ino, b"user.colour", b"red", OURS),
        operations.removexattr(ino, b"user.colour", OURS),
        operations.readlink(ino, OURS),
        operations.opendir(above, OURS),
        operations.unlink(ino, NAME, OURS),
        operations.lookup(above, b"other", OURS),
    ]


async def test_no_call_of_the_announcer_changes_anything(world: World, kernel: Kernel, autojump_clock: Clock) -> None:
    """Whatever it is asked to do, also when the change that it announces has been followed by another."""
    before = await world.bucket()
    above, ino = await kernel.lookup(FOLDER), await kernel.lookup(FILE)
    for call in calls(kernel, above, ino):
        assert await refusal(call) in (errno.EPERM, errno.ENOENT, errno.ENOTDIR)
    truncated = pyfuse3.EntryAttributes()
    truncated.st_size = 0
    fields = cast(pyfuse3.SetattrFields, SimpleNamespace(update_size=True))
    assert (await kernel.operations.setattr(ino, truncated, fields, None, OURS)).st_size == 4
    info = await kernel.operations.open(ino, os.O_WRONLY | os.O_TRUNC, OURS)
    assert await refusal(kernel.operations.write(info.fh, 0, b"changed")) == errno.EOPNOTSUPP
    await kernel.operations.flush(info.fh)
    await kernel.operations.release(info.fh)

    assert await world.bucket() == before
    assert await kernel.read(ino) == b"one\n"


async def test_what_is_there_again_is_not_removed(
    world: World, here: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    above = await kernel.lookup(FOLDER)
    node = await here.node(FILE)
    kernel.operations.pretence.expect(await folder_of(here), "f", FILE, made=False)

    assert await refusal(kernel.operations.unlink(above, NAME, OURS)) == errno.ENOENT
    assert await here.node(FILE) is node


async def test_an_announcement_that_fails_is_over_after_a_while_and_there_are_never_too_many(
    here: Host, kernel: Kernel, autojump_clock: Clock
) -> None:
    above, pretence, folder = await kernel.lookup(FOLDER), kernel.operations.pretence, await folder_of(here)
    accepted = [pretence.expect(folder, f"f{number}", f"{FILE}{number}", made=True) for number in range(AT_ONCE)]
    assert all(accepted)
    assert not pretence.expect(folder, "f", FILE, made=True)
    await trio.sleep(ANNOUNCED_WITHIN)

    assert pretence.expect(folder, "f", FILE, made=True)
    await trio.sleep(ANNOUNCED_WITHIN)
    assert (await kernel.operations.lookup(above, NAME, OURS)).entry_timeout > 0.0
