"""What WebDAV asks for, as acts of the tree: the calls that the kernel would make for it.

Owns the way from paths to nodes, and what of the tree WebDAV has words for: files and directories, and a link to a file
as that file. Refuses what the caller's token does not allow, at each act, and to follow a link to a directory, which
could lead round in circles. What was refused is not in the tree afterwards. Trio thread only.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.concurrency import for_each
from livememfs.tree.body import Body
from livememfs.tree.node import ACTING, AttrChange, Attrs, Caller, Directory, File, Handle, Node, OpenMode, Symlink
from livememfs.tree.objectfile import ObjectFile, ObjectHandle
from livememfs.tree.plain import PlainDirectory
from livememfs.tree.space.live import Live
from livememfs.tree.space.root import Space

if TYPE_CHECKING:
    from livememfs.records.access import Access
    from livememfs.tree.root import Root

CHUNK = 1 << 20
_WRITE = OpenMode(read=False, write=True, truncate=True)


@dataclass(frozen=True, slots=True)
class DavEntry:
    """What a path leads to. `node` is the file or the directory itself, never a link to it. `etag` changes with the
    content.
    """

    path: str
    node: Node
    attrs: Attrs
    etag: str

    @classmethod
    async def of(cls, path: str, node: Node) -> DavEntry:
        """As it is now. NotFound."""
        attrs = node.listed_attrs() or await node.attrs()
        etag = f"{attrs.version:x}-{attrs.size:x}-{attrs.mtime_ns:x}"
        if isinstance(node, ObjectFile) and node.body.info is not None and not node.body.dirty:
            etag = node.body.info.etag
        return cls(path, node, attrs, etag)

    @property
    def is_directory(self) -> bool:
        """Whether it has members."""
        return isinstance(self.node, Directory)


@dataclass(slots=True)
class DavReader:
    """An open file of a known size. `data`: all of it, where the size is known only afterwards."""

    entry: DavEntry
    handle: Handle
    size: int
    data: bytes | None

    async def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; empty at the end."""
        if self.data is not None:
            return self.data[offset : offset + size]
        return await self.handle.read(offset, size)


@dataclass(slots=True)
class DavWriter:
    """A file that is written anew. `finish` it, or `give_up`. `made`: it was not there before."""

    path: str
    directory: Directory
    name: str
    node: File
    handle: Handle
    made: bool
    size: int = 0

    async def write(self, data: bytes) -> None:
        """Write what follows. Raises why the tree refuses."""
        self.size += await self.handle.write(self.size, data)

    async def finish(self) -> DavEntry:
        """Close it. Raises why the tree refuses."""
        await self.handle.flush()
        await self.handle.release()
        return await DavEntry.of(self.path, self.node)

    async def give_up(self) -> None:
        """What was refused is not in the tree either: it would be tried again at the end, and shown until then."""
        node, handle = self.node, self.handle
        if isinstance(handle, ObjectHandle):
            handle.flushed = handle.body.changes
        if isinstance(node, ObjectFile):
            node.body = Body(node.body.info)
            node.context.unsaved.discard(node)
            node.context.written.discard(node)
        await handle.release()
        if self.made and isinstance(self.directory, Live | PlainDirectory):
            await self.directory.unlink(self.name)


class DavActs:
    """The acts on one tree. Every path is relative to its top, without a slash at either end."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._caller = Caller(root.context.ids.uid, root.context.ids.gid)

    # --- looking ----------------------------------------------------------------------------------------------

    async def find(self, path: str, access: Access) -> DavEntry:
        """What a path leads to. NotFound."""
        node = await self._shown(await self._node(path), access)
        return await DavEntry.of(path, node)

    async def list(self, path: str, access: Access) -> list[DavEntry]:
        """What is in a directory, by name. NotADirectory."""
        directory = await self._directory(path, access)
        found: dict[str, DavEntry] = {}

        async def look(child: tuple[str, Node]) -> None:
            try:
                node = await self._shown(child[1], access)
                found[child[0]] = await DavEntry.of(posixpath.join(path, child[0]), node)
            except (errors.NotFound, errors.ObjectMissing):
                return  # it is gone, is none of WebDAV's kinds, or is not for this caller

        await for_each(await directory.children(), look)
        return [found[name] for name in sorted(found)]

    async def _node(self, path: str) -> Node:
        node: Node = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                raise errors.NotFound(path=path)
            node = await node.child(part)
        return node

    async def _shown(self, node: Node, access: Access) -> Node:
        """The file that a link leads to, or the node itself, if the caller may see it. NotFound."""
        self._permit(node, access)
        if isinstance(node, Symlink):
            above = node.parent.path if node.parent is not None else ""
            target = posixpath.normpath(posixpath.join(above, await node.target()))
            if target.startswith(("/", "..")):
                raise errors.NotFound(path=node.path)
            node = await self._node(target)
            self._permit(node, access)
            if not isinstance(node, File):
                raise errors.NotFound(path=node.path)
        if not isinstance(node, File | Directory):
            raise errors.NotFound(path=node.path)
        return node

    def _permit(
        self, node: Node, access: Access, name: str = "", *, writing: bool = False, making: bool = False
    ) -> None:
        self.root.permit(node, name, writing=writing, making=making, access=access)
        top = node.path.partition("/")[0]
        # What is computed at the top for all spaces is made with the rights of this process, not with the caller's.
        if access.spaces and top and top not in access.spaces:
            raise errors.NotFound(path=node.path)

    async def _directory(self, path: str, access: Access) -> Directory:
        node = await self._node(path)
        self._permit(node, access)
        if not isinstance(node, Directory):
            raise errors.NotADirectory(path=path)
        return node

    async def _above(self, path: str, access: Access, *, making: bool = False) -> tuple[Directory, str]:
        """The directory of a path that is about to change, and the name in it."""
        above, name = posixpath.split(path)
        if not name:
            raise errors.NotPermitted(path="/", detail="the top stays what it is")
        directory = await self._directory(above, access)
        self._permit(directory, access, name, writing=True, making=making)
        ACTING.set(self._caller)
        return directory, name

    # --- reading ----------------------------------------------------------------------------------------------

    async def open(self, path: str, access: Access) -> DavReader:
        """Open a file to read it. IsADirectory, NotFound. The caller releases its handle."""
        entry = await self.find(path, access)
        if not isinstance(entry.node, File):
            raise errors.IsADirectory(path=path)
        handle = await entry.node.open(OpenMode(), self._caller)
        try:
            if isinstance(handle, ObjectHandle):
                return DavReader(await DavEntry.of(path, entry.node), handle, handle.body.size, None)
            data = b""
            while part := await handle.read(len(data), CHUNK):
                data += part
        except BaseException:
            await handle.release()
            raise
        return DavReader(entry, handle, len(data), data)

    # --- changing ---------------------------------------------------------------------------------------------

    async def begin(self, path: str, access: Access) -> DavWriter:
        """Open a file to write all of it anew; make it if it is not there. Raises why the tree refuses."""
        directory, name = await self._above(path, access, making=True)
        made = False
        try:
            node = await directory.child(name)
            if isinstance(node, Symlink):
                node = await self._shown(node, access)
        except errors.NotFound:
            node, made = await directory.create(name, 0o644, self._caller), True
        if not isinstance(node, File):
            raise errors.IsADirectory(path=path)
        self._permit(node, access, writing=True)
        handle = await node.open(_WRITE, self._caller)
        return DavWriter(path, directory, name, node, handle, made)

    async def make_directory(self, path: str, access: Access) -> None:
        """Make a directory; at the top, a space. AlreadyExists, and why the tree refuses."""
        directory, name = await self._above(path, access, making=True)
        await directory.mkdir(name, 0o755, self._caller)

    async def remove(self, path: str, access: Access) -> None:
        """Remove a name, of an ordinary directory with all that is in it. NotEmpty for a space in use."""
        directory, name = await self._above(path, access)
        await _remove(directory, name, await directory.child(name))

    async def move(self, path: str, new: str, access: Access) -> bool:
        """Give a file or directory another name, in place of a file that has it. Raises why the tree refuses.

        False for a file that goes to a place of another kind: it is to be copied there and removed, as `mv` does it.
        """
        source, name = await self._above(path, access)
        target, new_name = await self._above(new, access, making=True)
        try:
            await source.rename(name, target, new_name)
        except errors.CrossesKinds:
            if isinstance(await source.child(name), Directory):
                raise
            return False
        return True

    async def set_time(self, path: str, seconds: int, access: Access) -> None:
        """Set when a file or directory was changed."""
        node = (await self.find(path, access)).node
        self._permit(node, access, writing=True)
        await node.change(AttrChange(mtime_ns=seconds * 1_000_000_000), self._caller)


async def _remove(directory: Directory, name: str, node: Node) -> None:
    """Bottom-up. What is no ordinary directory says itself why it stays."""
    if not isinstance(node, Directory):
        await directory.unlink(name)
        return
    if is_removed_whole(node):
        for below, child in await node.children():
            await _remove(node, below, child)
    await directory.rmdir(name)


def is_removed_whole(node: Node) -> bool:
    """Whether a directory goes with all that is in it: no space, and nothing that is computed."""
    return isinstance(node, PlainDirectory) and node.parent is not None and not isinstance(node, Space)
