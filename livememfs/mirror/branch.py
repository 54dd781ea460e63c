"""The tree's side of a mirror: one space or the whole bucket, with what of it a plain directory can show.

Owns the walk from paths to nodes, which names are mirrored, and each change as the calls that the kernel would make for
it, so that every rule of a mount holds here as well. Refuses views and what is computed at each look, except the pages
`README.md` and `context.md`. Trio thread only.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from livememfs import errors
from livememfs.mirror.place import CHUNK, OURS
from livememfs.mirror.rows import MirrorRow, Remote
from livememfs.records import keys, names
from livememfs.records.names import STATE
from livememfs.records.sealing import says_nothing
from livememfs.store.base import ObjectInfo
from livememfs.tree.body import Body
from livememfs.tree.computed import ComputedFile
from livememfs.tree.node import AttrChange, Caller, Directory, File, Node, OpenMode
from livememfs.tree.objectfile import ObjectFile, ObjectHandle, inherited
from livememfs.tree.plain import PlainDirectory
from livememfs.tree.plainfile import PlainFile, PlainSymlink, type_of
from livememfs.tree.root import Root
from livememfs.tree.space.bank import StoredDirectory
from livememfs.tree.space.live import Live
from livememfs.tree.space.note import NoteFile
from livememfs.tree.space.root import CONTEXT, README, Space

if TYPE_CHECKING:
    from livememfs.tree.context import Context

PAGES = frozenset({README, CONTEXT})
"""What is computed for a space and mirrored all the same: agents read it before anything else."""
APART = frozenset({STATE, keys.BACKUPS, "search", OURS})
NOT_IN_A_SPACE = frozenset({"search", keys.SESSIONS, OURS})
MAKER = Caller()


class Hidden(Exception):
    """A path that is not mirrored, whatever the tree has there."""


class Branch:
    """What is mirrored: `space`, or everything for an empty one."""

    def __init__(self, root: Root, space: str) -> None:
        self.root, self.space = root, space
        self.context: Context = root.context

    async def top(self) -> Directory:
        """The node of the directory itself. MountError for a space that does not exist, or not any more."""
        if not self.space:
            return self.root
        try:
            node: Node = await self.root.child(self.space)
        except errors.NotFound:
            node = self.root
        if not isinstance(node, Space):
            raise errors.MountError(f"there is no space {self.space}; `livememfs space list` lists the spaces")
        return node

    def path_of(self, key: str) -> str | None:
        """The path that a key shows at, as far as it is in this branch."""
        key = key.rstrip("/")
        if not self.space:
            return key
        return key[len(self.space) + 1 :] if key.startswith(f"{self.space}/") else None

    # --- looking --------------------------------------------------------------------------------------------------

    async def node(self, path: str) -> Node | None:
        """The node of a path; None when there is none. Hidden, and what the store fails with."""
        node: Node = await self.top()
        for part in path.split("/"):
            if not isinstance(node, Directory):
                return None
            if not _is_mirrored(node, part):
                raise Hidden
            try:
                node = await node.child(part)
            except errors.NotFound:
                return None
            self.root.permit(node, writing=False)
        return node

    async def look(self, path: str) -> tuple[Remote | None, Node | None]:
        """What the tree has under a path. Of a second name of a note there is a node and nothing to mirror."""
        node = await self.node(path)
        if node is None or node.name != path.rpartition("/")[2]:
            return None, node
        return await _remote(node), node

    async def names(self, directory: Directory) -> Sequence[str]:
        """The names in a directory that are mirrored."""
        return [name for name, _ in await directory.entries() if _is_mirrored(directory, name)]

    async def walk(self) -> AsyncIterator[tuple[str, Remote]]:
        """Every path that is mirrored."""
        waiting: list[tuple[str, Directory]] = [("", await self.top())]
        while waiting:
            above, directory = waiting.pop()
            for name, entry in await directory.entries():
                if not _is_mirrored(directory, name):
                    continue
                if isinstance(entry, ObjectInfo):
                    found = _of_info(entry, fixed=False)
                else:
                    found = await _remote(entry)
                if found is None:
                    continue
                yield above + name, found
                if isinstance(entry, Directory):
                    waiting.append((f"{above}{name}/", entry))

    async def directory(self, path: str) -> Directory:
        """The directory of a path, made if it is not there. Raises why it cannot be."""
        node: Directory = await self.top()
        for part in filter(None, path.split("/")):
            if not _is_mirrored(node, part):
                raise Hidden
            try:
                below = await node.child(part)
            except errors.NotFound:
                self.root.permit(node, part, writing=True, making=True)
                try:
                    below = await node.mkdir(part, 0o755, MAKER)
                except errors.AlreadyExists:  # for another file of the same directory
                    below = await node.child(part)
            if not isinstance(below, Directory):
                raise errors.NotADirectory(path=below.path)
            node = below
        return node

    async def spaces(self) -> Sequence[str]:
        """The spaces that are mirrored."""
        if self.space:
            return (self.space,)
        return [name for name, node in await self.root.children() if isinstance(node, Space)]

    async def set_aside_as(self, path: str, etag: str) -> str:
        """The name of the conflict copy that a version of a file has become; empty when it has not."""
        above, _, name = path.rpartition("/")
        stem = f"{name.rpartition('.')[0] or name}.conflict-"
        for other, entry in await (await self.directory(above)).entries():
            info = (
                entry if isinstance(entry, ObjectInfo) else entry.body.info if isinstance(entry, ObjectFile) else None
            )
            if info is not None and info.etag == etag and other.startswith(stem):
                return other
        return ""

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(self, node: File) -> AsyncIterator[bytes | ObjectInfo]:
        """The content in parts, and at the end the version that it was, if it is an object's."""
        handle = await node.open(OpenMode(), MAKER)
        try:
            offset = 0
            while part := await handle.read(offset, CHUNK):
                offset += len(part)
                yield part
            if isinstance(handle, ObjectHandle) and handle.body.info is not None:
                yield handle.body.info
        finally:
            await handle.release()

    def keep_contents(self) -> None:
        """Have what was read on the disk, where it outlives this process. A full disk costs the cache, nothing else."""
        with suppress(errors.NoSpace):
            self.context.replica.blobs.persist()

    # --- changing -------------------------------------------------------------------------------------------------

    async def write(
        self, path: str, data: bytes | Path, mode: int, mtime_ns: int, row: MirrorRow | None, node: Node | None
    ) -> ObjectFile | None:
        """Write a file as a program would: create or open, write, close. The file that has it then.

        It replaces the version of `row`, which the writer has seen; without one it was seen by nobody, and what is
        there is kept as well. None where it says nothing yet: a note without a word. Raises why the tree refuses.
        """
        above, _, name = path.rpartition("/")
        directory = await self.directory(above)
        made = node is None
        if node is None:
            if isinstance(directory, Live) and _is_empty(data):
                return None
            self.root.permit(directory, name, writing=True, making=True)
            node = await directory.create(name, mode, MAKER)
        if not isinstance(node, File):
            raise errors.IsADirectory(path=node.path)
        self.root.permit(node, writing=True)
        if isinstance(node, NoteFile) and _is_empty(data):
            return None
        handle = await node.open(OpenMode(read=False, write=True, truncate=True), MAKER)
        try:
            await _copy(data, handle)
            if isinstance(handle, ObjectHandle) and isinstance(node, PlainFile | NoteFile):
                _rebase(handle, row, second_name=node.name != name)
                await handle.change(node, AttrChange(mode=mode, mtime_ns=mtime_ns), MAKER)
            await handle.flush()
        except errors.LiveMemError:
            await self._give_up(directory, name, node, made=made)
            raise
        finally:
            await handle.release()
        return node if isinstance(node, ObjectFile) else None

    async def _give_up(self, directory: Directory, name: str, node: File, *, made: bool) -> None:
        """What was refused is not in the tree either: it would be tried again at the end, and shown until then."""
        if isinstance(node, ObjectFile):
            node.body = Body(node.body.info)
            self.context.unsaved.discard(node)
            self.context.written.discard(node)
        if made and isinstance(directory, Live | PlainDirectory):
            await directory.unlink(name)

    async def link(self, path: str, target: str, node: Node | None) -> PlainSymlink | None:
        """Make a symbolic link, in place of another one. Raises why the tree refuses."""
        above, _, name = path.rpartition("/")
        directory = await self.directory(above)
        if node is not None:
            self.root.permit(directory, name, writing=True)
            await directory.unlink(name)
        self.root.permit(directory, name, writing=True, making=True)
        made = await directory.symlink(name, target, MAKER)
        return made if isinstance(made, PlainSymlink) else None

    async def remove(self, path: str, node: Node) -> None:
        """Remove a name. NotEmpty for a directory in which somebody else has something; raises why it is refused."""
        above, _, name = path.rpartition("/")
        directory = await self.directory(above)
        self.root.permit(directory, name, writing=True)
        if isinstance(node, Directory):
            await directory.rmdir(name)
        else:
            await directory.unlink(name)

    async def rename(self, old: str, new: str) -> None:
        """Move a name. Raises why it is refused."""
        (above, _, name), (other, _, new_name) = old.rpartition("/"), new.rpartition("/")
        source, target = await self.directory(above), await self.directory(other)
        self.root.permit(source, name, writing=True)
        self.root.permit(target, new_name, writing=True, making=True)
        await source.rename(name, target, new_name, replace=False)

    async def set_attrs(self, node: Node, mode: int, mtime_ns: int) -> None:
        """Set permission bits and the time, where they are kept."""
        if isinstance(node, PlainFile | NoteFile):
            self.root.permit(node, writing=True)
            await node.change(AttrChange(mode=mode, mtime_ns=mtime_ns), MAKER)


def _is_mirrored(directory: Directory, name: str) -> bool:
    """Whether a name of a directory is one that a mirror has."""
    if names.is_lock(name):
        return False
    if isinstance(directory, Root):
        return name not in APART and not name.startswith("_")
    if isinstance(directory, Space):
        return name not in NOT_IN_A_SPACE and not is_asked(name) and not _is_view(directory, name)
    if isinstance(directory, Live):
        return not name.startswith(".") and not names.is_litter(name)
    if isinstance(directory, StoredDirectory):
        return not name.startswith(".")
    return isinstance(directory, PlainDirectory)


def _is_view(space: Space, name: str) -> bool:
    node = space.met(name)
    if name in PAGES or node is None:
        return False
    return not isinstance(node, PlainDirectory | Live | StoredDirectory | ObjectFile | PlainSymlink)


def is_asked(name: str) -> bool:
    """Whether a file of this name in a space is a request; see `letters`."""
    first = name.split(".")[1] if name.startswith(".") else ""
    return first in ("consolidate", "digest", "recall", "hooks")


async def _remote(node: Node) -> Remote | None:
    """What a mirror has to know of a node; None for what is not mirrored."""
    if isinstance(node, PlainDirectory | Live | StoredDirectory):
        return Remote("d")
    if isinstance(node, ObjectFile):
        await node.refresh()
        info = node.body.info
        return None if info is None else _of_info(info, fixed=_is_fixed(node))
    if isinstance(node, PlainSymlink):
        return Remote("l", node.info.etag, node.info.size, node.key)
    if isinstance(node, ComputedFile) and node.name in PAGES:
        data = await node.data()
        return Remote("f", f"page {zlib.crc32(data):08x}", len(data), fixed=True)
    return None


def _is_fixed(node: ObjectFile) -> bool:
    try:
        node.check_writable()
    except errors.LiveMemError:
        return True
    return False


def _of_info(info: ObjectInfo, *, fixed: bool) -> Remote | None:
    kind = type_of(info)[0]
    if kind not in ("file", "symlink"):
        return None  # pipes, sockets and devices
    return Remote("l" if kind == "symlink" else "f", info.etag, info.size, info.key, fixed)


def _rebase(handle: ObjectHandle, row: MirrorRow | None, *, second_name: bool) -> None:
    """Say which version the writer has seen: the tree joins what others have done since, or keeps both.

    Who writes to a note by its second name has seen what it is, as on a mount.
    """
    info = handle.body.info
    if info is None or (row is not None and info.etag == row.etag) or (row is None and second_name):
        return
    if row is None or row.key != info.key:
        handle.body.info = None
    else:
        handle.body.info = ObjectInfo(row.key, row.etag, row.local.size, info.modified_ns, inherited(info))


def _is_empty(data: bytes | Path) -> bool:
    return isinstance(data, bytes) and says_nothing(data)


async def _copy(data: bytes | Path, handle: Any) -> None:
    """Write all of it through an open file."""
    if isinstance(data, bytes):
        for start in range(0, len(data), CHUNK):
            await handle.write(start, data[start : start + CHUNK])
        return
    async with await trio.open_file(data, "rb") as file:
        offset = 0
        while part := await file.read(CHUNK):
            await handle.write(offset, part)
            offset += len(part)
