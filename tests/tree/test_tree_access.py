"""What a token allows, over every row of the registry and every request of a kernel.

The requests are made of inodes that the kernel knows since before the token counted: what is remembered opens nothing.
"""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyfuse3
import pytest
import trio
from furnished import SPACE, Furnished, Met, ask, folder_in, furnish, tree, walk
from hosts import READ, read_all, refused

from livememfs.errors import Denied, LiveMemError, NotFound
from livememfs.fuse.adapter import FuseOperations, _OpenDirectory, _OpenFile
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, NOTHING, Access
from livememfs.tree.node import NOBODY, Directory, File, Handle, Node, Symlink
from livememfs.tree.registry import PLACE, REGISTRY, find, is_there
from livememfs.tree.root import Root

ELSEWHERE = Access("guest", frozenset({"write"}), ("beta",))
READER = Access("reader", frozenset({"read"}), (SPACE,))
OWNER = Access("owner", frozenset({"admin"}), (SPACE,))
EVERYWHERE = Access("all", frozenset({"write"}))
CONTEXT = pyfuse3.RequestContext()
FIELDS = pyfuse3.SetattrFields()
SECRET = "brother"
"""A word of the space that is hidden."""

Request = Callable[[int, int, int], tuple[Any, ...]]
"""The arguments for the inode of a node, its file handle, and the inode of another directory."""


class Mount:
    """A furnished tree behind the handlers of a limited mount. `met` are the nodes that the kernel holds."""

    def __init__(self, made: Furnished, met: Met) -> None:
        self.made, self.met = made, met
        self.operations = FuseOperations(made.root, made.root.context.errors, 30.0, limited=True)
        self._another: Node = made.root
        for number, node in enumerate(met.values(), start=1000):
            self.operations._inodes.number(node)
            self.operations._inodes.count(node)
            if isinstance(node, Directory):
                self.operations._directories[number] = _OpenDirectory(node, ())
            elif isinstance(node, File):
                self.operations._files[number] = _OpenFile(node, Handle())
        self._handles = {id(node): number for number, node in enumerate(met.values(), start=1000)}

    async def errno(self, operation: str, path: str, request: Request) -> int:
        """What the kernel is told; 0 where there is no failure."""
        node = self.met[path]
        arguments = request(node.ino, self._handles[id(node)], self.made.root.ino)
        try:
            await getattr(self.operations, operation)(*arguments)
        except pyfuse3.FUSEError as error:
            return error.errno
        return 0


@pytest.fixture
async def mount(tmp_path: Path) -> AsyncIterator[Mount]:
    async with tree(tmp_path) as made:
        session = await furnish(made)
        gc.collect()
        yield Mount(made, {"": made.root, **await walk(made.root), **await ask(made.root)})
        assert session.name == "one"


CHANGES: dict[str, Request] = {
    "mkdir": lambda ino, fh, other: (ino, b"x", 0o755, CONTEXT),
    "symlink": lambda ino, fh, other: (ino, b"x", b"y", CONTEXT),
    "mknod": lambda ino, fh, other: (ino, b"x", 0o100644, 0, CONTEXT),
    "link": lambda ino, fh, other: (ino, other, b"x", CONTEXT),
    "unlink": lambda ino, fh, other: (ino, b"x", CONTEXT),
    "rmdir": lambda ino, fh, other: (ino, b"x", CONTEXT),
    "rename": lambda ino, fh, other: (ino, b"x", other, b"y", 0, CONTEXT),
    "setattr": lambda ino, fh, other: (ino, pyfuse3.EntryAttributes(), FIELDS, None, CONTEXT),
    "setxattr": lambda ino, fh, other: (ino, b"user.x", b"y", CONTEXT),
    "removexattr": lambda ino, fh, other: (ino, b"user.x", CONTEXT),
    "create": lambda ino, fh, other: (ino, b"x", 0o644, os.O_RDWR, CONTEXT),
}
LOOKS: dict[str, Request] = {
    "lookup": lambda ino, fh, other: (ino, b"x", CONTEXT),
    "getattr": lambda ino, fh, other: (ino, CONTEXT),
    "readlink": lambda ino, fh, other: (ino, CONTEXT),
    "getxattr": lambda ino, fh, other: (ino, b"user.livememfs.key", CONTEXT),
    "listxattr": lambda ino, fh, other: (ino, CONTEXT),
    "open": lambda ino, fh, other: (ino, os.O_RDONLY, CONTEXT),
    "opendir": lambda ino, fh, other: (ino, CONTEXT),
}
IN_OPEN_FILES: dict[str, Request] = {
    "read": lambda ino, fh, other: (fh, 0, 10),
    "write": lambda ino, fh, other: (fh, 0, b"x"),
    "fsync": lambda ino, fh, other: (fh, False),
}
IN_OPEN_DIRECTORIES: dict[str, Request] = {"readdir": lambda ino, fh, other: (fh, 0, None)}
INTO: Request = lambda ino, fh, other: (other, b"x", ino, b"y", 0, CONTEXT)  # noqa: E731 - one of those above
OPENS: dict[str, Request] = {
    name: lambda ino, fh, other, flags=flags: (ino, flags, CONTEXT)  # type: ignore[misc]
    for name, flags in {
        "w": os.O_WRONLY,
        "rw": os.O_RDWR,
        "trunc": os.O_TRUNC,
        "append": os.O_RDWR | os.O_APPEND,
    }.items()
}
ENDS = {"flush", "release", "releasedir", "fsyncdir", "statfs"}
"""What ends something, or says nothing of any path."""


def requests_of(node: Node) -> list[tuple[str, Request]]:
    """Every request that a kernel can make of a node."""
    opened = IN_OPEN_DIRECTORIES if isinstance(node, Directory) else IN_OPEN_FILES if isinstance(node, File) else {}
    openings = [("open", request) for request in OPENS.values()]
    return [*LOOKS.items(), *CHANGES.items(), *opened.items(), *openings, ("rename", INTO)]


def test_no_request_is_forgotten_here() -> None:
    handlers = {name for name, value in vars(FuseOperations).items() if hasattr(value, "__wrapped__")}

    assert handlers == {*LOOKS, *CHANGES, *IN_OPEN_FILES, *IN_OPEN_DIRECTORIES, *ENDS}


def test_only_what_stands_beside_the_spaces_needs_anything_but_its_space() -> None:
    """Access to what is in a space is decided by the first part of its path alone: no row may ask for anything else."""
    apart = {entry.pattern.partition("/")[0] for entry in REGISTRY if entry.need != "space"}

    assert apart == {"", ".livememfs", "search", keys.BACKUPS, PLACE}
    assert {
        entry.pattern for entry in REGISTRY if entry.pattern.partition("/")[0] in apart and entry.need == "space"
    } == set()
    assert [entry.pattern for entry in REGISTRY if entry.asks] == ["<space>/.recall"]


PATHS = ("", ".livememfs", ".livememfs/rejected/x", "search", "_backups/a/b", "_system/tokens.json", "beta/x")


@pytest.mark.parametrize(
    ("access", "there"),
    [
        (EVERYTHING, {*PATHS}),
        (EVERYWHERE, {"", ".livememfs", ".livememfs/rejected/x", "search", "beta/x"}),
        (ELSEWHERE, {"", ".livememfs", "search", "beta/x"}),
        (OWNER, {"", ".livememfs", "search"}),
        (NOTHING, set()),
    ],
)
def test_what_is_there_for_whom(access: Access, there: set[str]) -> None:
    """A path that no row has, as a new kind of file that nobody thought of, is there for administrators alone."""
    assert {path for path in PATHS if is_there(path, access)} == there
    assert is_there(".livememfs/new", access) == (access is EVERYTHING)


async def test_a_foreign_path_is_not_there_for_any_request(mount: Mount) -> None:
    mount.made.access = ELSEWHERE
    hidden = [path for path in mount.met if not is_there(path, ELSEWHERE)]
    rows = {entry.pattern for path in hidden for entry in find(path, (await mount.met[path].attrs()).kind, {SPACE})}
    assert rows == {entry.pattern for entry in REGISTRY if entry.need != "nothing"}

    for path in hidden:
        for operation, request in requests_of(mount.met[path]):
            assert await mount.errno(operation, path, request) == errno.ENOENT, (operation, path)


async def test_an_own_path_cannot_be_changed_without_the_permission(mount: Mount) -> None:
    mount.made.access = READER
    own = [path for path in mount.met if is_there(path, READER) and path.startswith(SPACE)]
    assert len(own) > 50

    for path in own:
        changes = [*CHANGES.items(), *(("open", request) for request in OPENS.values()), ("rename", INTO)]
        for operation, request in changes:
            code = await mount.errno(operation, path, request)
            if path == f"{SPACE}/.recall" and operation != "rename":
                continue  # it is asked, and answers by itself what cannot be done with it
            assert code == errno.EROFS, (operation, path)


async def test_a_question_may_be_asked_by_whoever_reads(mount: Mount) -> None:
    mount.made.access = READER

    assert await mount.errno("open", f"{SPACE}/.recall", OPENS["rw"]) == 0
    assert await mount.errno("open", f"{SPACE}/.hooks/stop", OPENS["rw"]) == errno.EROFS


async def test_a_token_that_is_good_no_more_closes_everything(mount: Mount) -> None:
    mount.made.access = NOTHING

    for path, node in mount.met.items():
        for operation, request in requests_of(node):
            assert await mount.errno(operation, path, request) == errno.EACCES, (operation, path)


@pytest.mark.parametrize("access", [ELSEWHERE, OWNER, READER])
async def test_what_stands_at_the_root_is_found_and_listed_as_far_as_it_is_theirs(mount: Mount, access: Access) -> None:
    mount.made.access = access
    root = mount.made.root
    seen = {SPACE} & {*access.spaces}

    assert {name for name, _ in await root.children()} == {".livememfs", "search"} | seen
    assert "rejected" not in {name for name, _ in await root.state.children()}
    for name in (b"alpha", b"beta", b"beside", b"_backups", b"_system", b"gamma"):
        if name.decode() not in seen:
            assert await mount.errno("lookup", "", _naming(name, CONTEXT)) == errno.ENOENT, name


async def test_a_foreign_name_cannot_be_made(mount: Mount) -> None:
    """EACCES and not ENOENT, which `mkdir` would take for a missing folder above."""
    mount.made.access = ELSEWHERE
    for operation in ("mkdir", "symlink", "create"):
        _, _, *rest = CHANGES[operation](0, 0, 0)
        for name in (b"gamma", SPACE.encode(), b"_backups", b"_system"):
            assert await mount.errno(operation, "", _naming(name, *rest)) == errno.EACCES, (operation, name)
    await refused(NotFound, mount.made.root.child("gamma"))


async def test_nothing_that_a_limited_mount_tells_is_of_another_space(mount: Mount) -> None:
    """Everything that is there is read, with what a mount may have to say put into it first."""
    made, context = mount.made, mount.made.root.context
    for path in (
        f"{SPACE}/live/{SECRET}.md",
        f"{keys.BACKUPS}/{SPACE}/{SECRET}",
        f"{keys.SYSTEM}/{SECRET}",
        "",
        f"/{SECRET}",
    ):
        context.errors.record("observe", path, LiveMemError(f"{SPACE} {SECRET}"))
        context.errors.conflict(path, f"{path}{SECRET}", "both")
    made.status |= {
        "state": "degraded",
        "last_error": f"{SPACE}/{SECRET}",
        "stuck": [{"key": f"{SPACE}/{SECRET}", "reason": SECRET}, {"key": "beta/x", "reason": "too large"}],
        "schedule": {"spaces": {SPACE: {"last": SECRET}, "beta": {"last": "well"}}, "digests": {SPACE: {}}},
        "statistics": {"replica": {"last_error": SECRET, "pending": 3}, "tasks": [SECRET]},
    }
    everything = await _all_told(made.root)
    assert SPACE in everything
    assert SECRET in everything

    made.access = ELSEWHERE
    told = await _all_told(made.root)
    for shown in ("beta/x", "too large", "well", '"pending": 3', "degraded"):
        assert shown in told
    assert SPACE not in told
    assert SECRET not in told


@pytest.mark.parametrize("access", [ELSEWHERE, OWNER, EVERYTHING])
async def test_what_the_bucket_refuses_of_another_space_is_not_waited_for_and_not_named(
    mount: Mount, access: Access, expect_log: Callable[[str], None]
) -> None:
    """It may have been accepted by a wider mount with the same local state, and is tried again all the same."""
    expect_log("the bucket does not take it")
    replica = mount.made.root.context.replica
    await replica.uploaded()
    with patch.object(mount.made.store, "put", side_effect=Denied("no right", key="x")):
        replica.save(f"{SPACE}/{SECRET}", b"x", meta={}, base=None)
        with trio.fail_after(10):
            while not replica.journal.ops.stuck():
                await trio.sleep(0.01)
        mount.made.access = access
        wait = mount.met[".livememfs/journal.wait"]
        assert isinstance(wait, File)
        handle = await wait.open(READ, NOBODY)
        told = (await handle.read(0, 10_000)).decode()
        with nullcontext() if access is ELSEWHERE else pytest.raises(LiveMemError):
            assert await handle.read(0, 10_000) == b""

    assert (SECRET in told) == (access is not ELSEWHERE)
    assert f"{SPACE}/{SECRET}" in {op.key for op in replica.journal.ops.all()}


async def test_drafts_of_other_spaces_are_neither_shown_nor_read_nor_removed(mount: Mount) -> None:
    """The folder of the cache may have been a wider mount's."""
    (recovered,) = [path for path in mount.met if path.startswith(".livememfs/recovered/")]
    mount.made.access = ELSEWHERE
    folder = mount.met[".livememfs/recovered"]
    assert isinstance(folder, Directory)
    name = recovered.rpartition("/")[2]

    assert await folder.children() == []
    await refused(NotFound, folder.child(name), folder.unlink(name))
    with pytest.raises(NotFound):  # a node that was met before
        await mount.met[recovered].open(READ, NOBODY)  # type: ignore[attr-defined]
    mount.made.access = OWNER
    await folder.unlink(name)
    assert await folder.children() == []


def _naming(name: bytes, *rest: object) -> Request:
    """A request about a name in a directory."""
    return lambda ino, fh, other: (ino, name, *rest)


async def _all_told(root: Root) -> str:
    """All names, attributes and contents of a mount, but for those whose reading does not end."""
    told = ""
    for path, node in {**await walk(root), **await _searched(root)}.items():
        told += f"\n{path}: {dict(await node.xattrs())}"
        told += await node.target() if isinstance(node, Symlink) else ""
        if isinstance(node, File):
            handle = await node.open(READ, NOBODY)
            told += os.fsdecode(await read_all(handle)) if handle.seekable else ""
    return told


async def _searched(root: Directory) -> Met:
    search = await folder_in(root, "search")
    explain = await folder_in(search, ".explain")
    answer = await walk(await folder_in(search, "David"))
    return {"page": await search.child("David.md"), "why": await explain.child("David.md"), **answer}
