"""The kernel's requests, answered by the tree.

Owns file handles and the order of small steps around each call. Every handler is bounded in time and lets nothing but
FUSEError out (see `guard`). Refuses to decide what a name means. The session calls the handlers on the trio thread.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import pyfuse3
import structlog
import trio

from livememfs import errors
from livememfs.fuse import translate
from livememfs.fuse.guard import Needs, Request, handler
from livememfs.fuse.inodes import Inodes, InodeStatistics
from livememfs.fuse.listings import Listed, Listings
from livememfs.fuse.notify import Notifier
from livememfs.tree.node import Attrs, Directory, File, Handle, Node, Symlink

if TYPE_CHECKING:
    from pathlib import Path

    from livememfs.tree.errorlog import ErrorLog
    from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

_RENAME_NOREPLACE = 1


@dataclass(frozen=True)
class AdapterStatistics:
    """Requests since the mount, handlers that failed for no reason we know, open files, and the inodes."""

    requests: int
    bugs: int
    open_files: int
    inodes: InodeStatistics


@dataclass(slots=True)
class _OpenFile:
    node: File
    handle: Handle


@dataclass(slots=True)
class _OpenDirectory:
    node: Directory
    names: Sequence[Listed]


class FuseOperations(pyfuse3.Operations):
    """One mount. `op_timeout` is the longest time one request may take, in seconds. `limited`: by a token."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, root: Root, errorlog: ErrorLog, op_timeout: float, *, limited: bool = False) -> None:
        super().__init__()
        self.root = root
        self.errors = errorlog
        self.op_timeout = op_timeout
        self.limited = limited
        self.requests = self.bugs = 0
        self._inodes = Inodes(root)
        self._files: dict[int, _OpenFile] = {}
        self._directories: dict[int, _OpenDirectory] = {}
        self._listings = Listings(self._inodes)
        self.notifier: Notifier | None = None
        self._handles = count(1)

    def notify_with(self, mountpoint: Path) -> Notifier:
        """Make the thread that tells this mount's kernel of changes. Its owner starts and stops it."""
        self.notifier = Notifier(self.root, mountpoint, self._inodes.known)
        return self.notifier

    def permit(self, request: Request) -> None:
        """Have the tree decide whether the mount's token allows a request. NotFound, ReadOnly, Forbidden."""
        if request.needs is Needs.NOTHING or (request.operation == "setattr" and self._is_own(request.pid)):
            return
        making = request.needs is Needs.MAKING
        to_write = request.needs is Needs.BY_FLAGS and request.flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC)
        writing = bool(to_write) or making or request.needs is Needs.WRITING
        named = [(self._inodes.node(ino), os.fsdecode(name)) for ino, name in request.places]
        if request.opened is not None:
            named.append((self._opened(request.opened), ""))
        for position, (node, name) in enumerate(named, 1):
            self.root.permit(node, name, writing=writing, making=making and position == len(named))

    def _is_own(self, pid: int) -> bool:
        """Whether a request comes from the thread that tells the kernel of changes."""
        return self.notifier is not None and self.notifier.is_own(pid)

    def _opened(self, fh: int) -> Node:
        """What is open under a number, which no file has together with a directory. KeyError."""
        return self._files[fh].node if fh in self._files else self._directories[fh].node

    def statistics(self) -> AdapterStatistics:
        """Counters, cheap."""
        return AdapterStatistics(self.requests, self.bugs, len(self._files), self._inodes.statistics())

    def path_of(self, request: Request) -> str:
        """The path that a request is about, for messages; empty when it cannot be told."""
        try:
            if request.opened is not None:
                return self._opened(request.opened).path
            if not request.places:
                return ""
            ino, name = request.places[0]
            node = self._inodes.node(ino)
            return node.path_of(os.fsdecode(name)) if name and isinstance(node, Directory) else node.path
        except (errors.Stale, KeyError):
            return ""

    # --- names ------------------------------------------------------------------------------------------------

    @handler(Needs.READING)
    async def lookup(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        # That a name is not there is never kept by the kernel: its coming could not be told without waiting there.
        node = await self._directory(parent).child(os.fsdecode(name))
        return await self._reveal(node)

    async def forget(self, inodes: Sequence[tuple[int, int]]) -> None:
        for ino, lookups in inodes:
            try:
                node = self._inodes.forget(ino, lookups)
                if isinstance(node, Directory):
                    self._listings.drop(node)
            except Exception:  # nobody waits for an answer, and what left this handler would end the mount
                self.bugs += 1
                log.exception("an inode could not be forgotten", ino=ino)

    @handler(Needs.MAKING)
    async def mkdir(self, parent: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        made = await self._directory(parent).mkdir(os.fsdecode(name), stat.S_IMODE(mode), translate.caller(ctx))
        return await self._reveal(made)

    @handler(Needs.MAKING)
    async def symlink(
        self, parent: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        directory = self._directory(parent)
        made = await directory.symlink(os.fsdecode(name), os.fsdecode(target), translate.caller(ctx))
        return await self._reveal(made)

    @handler(Needs.MAKING)
    async def mknod(
        self, parent: int, name: bytes, mode: int, rdev: int, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        if not stat.S_ISREG(mode):
            raise self._never(parent, "special files")
        caller = translate.caller(ctx)
        made = await self._directory(parent).create(os.fsdecode(name), stat.S_IMODE(mode), caller)
        handle = await made.open(translate.open_mode(os.O_WRONLY), caller)
        try:
            await handle.flush()
        finally:
            await handle.release()
        return await self._reveal(made)

    @handler(Needs.MAKING)
    async def link(self, ino: int, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        raise self._never(parent, "hard links")

    @handler(Needs.WRITING)
    async def unlink(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        directory, text = self._directory(parent), os.fsdecode(name)
        await self._meet(directory, text)
        await directory.unlink(text)

    @handler(Needs.WRITING)
    async def rmdir(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        await self._directory(parent).rmdir(os.fsdecode(name))

    @handler(Needs.MAKING)
    async def rename(
        self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int, ctx: pyfuse3.RequestContext
    ) -> None:
        if flags & ~_RENAME_NOREPLACE:
            raise pyfuse3.FUSEError(errno.EINVAL)
        source, target = self._directory(parent), self._directory(new_parent)
        old, new = os.fsdecode(name), os.fsdecode(new_name)
        await self._meet(source, old)
        await self._meet(target, new)
        await source.rename(old, target, new, replace=not flags & _RENAME_NOREPLACE)

    @handler(Needs.READING)
    async def readlink(self, ino: int, ctx: pyfuse3.RequestContext) -> bytes:
        node = self._inodes.node(ino)
        if not isinstance(node, Symlink):
            raise pyfuse3.FUSEError(errno.EINVAL)
        return os.fsencode(await node.target())

    # --- attributes -------------------------------------------------------------------------------------------

    @handler(Needs.READING)
    async def getattr(self, ino: int, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        node = self._inodes.node(ino)
        return self._entry(node, await node.attrs())

    @handler(Needs.WRITING)
    async def setattr(
        self,
        ino: int,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        node = self._inodes.node(ino)
        if self._is_own(ctx.pid):
            return self._entry(node, await node.attrs())  # for inotify alone
        change = translate.attr_change(attr, fields)
        opened = self._files.get(fh) if fh is not None else None
        if opened is not None:
            await opened.handle.change(opened.node, change, translate.caller(ctx))
        else:
            await node.change(change, translate.caller(ctx))
        return self._entry(node, await node.attrs())

    @handler(Needs.READING)
    async def getxattr(self, ino: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        if name.startswith(b"security."):  # asked once for every write
            raise pyfuse3.FUSEError(errno.ENODATA)
        if name.startswith(b"system.posix_acl_"):
            raise pyfuse3.FUSEError(errno.EOPNOTSUPP)
        value = (await self._inodes.node(ino).xattrs()).get(os.fsdecode(name))
        if value is None:
            raise pyfuse3.FUSEError(errno.ENODATA)
        return value

    @handler(Needs.READING)
    async def listxattr(self, ino: int, ctx: pyfuse3.RequestContext) -> Sequence[bytes]:
        return [os.fsencode(name) for name in await self._inodes.node(ino).xattrs()]

    @handler(Needs.WRITING)
    async def setxattr(self, ino: int, name: bytes, value: bytes, ctx: pyfuse3.RequestContext) -> None:
        await self._set_xattr(ino, name, value)

    @handler(Needs.WRITING)
    async def removexattr(self, ino: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        await self._set_xattr(ino, name, None)

    async def _set_xattr(self, ino: int, name: bytes, value: bytes | None) -> None:
        node = self._inodes.node(ino)
        if not name.startswith(b"user.") and not isinstance(node.refuse("setting attributes"), errors.ReadOnly):
            raise pyfuse3.FUSEError(errno.EOPNOTSUPP)  # `cp -p` goes on without access lists, and only on this errno
        await node.set_xattr(os.fsdecode(name), value)

    @handler(Needs.NOTHING)
    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        return translate.statfs()

    # --- files ------------------------------------------------------------------------------------------------

    @handler(Needs.BY_FLAGS)
    async def open(self, ino: int, flags: int, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        node = self._inodes.node(ino)
        if not isinstance(node, File):
            raise pyfuse3.FUSEError(errno.EISDIR)
        return await self._open(node, flags, ctx)

    @handler(Needs.MAKING)
    async def create(
        self, parent: int, name: bytes, mode: int, flags: int, ctx: pyfuse3.RequestContext
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        directory, text = self._directory(parent), os.fsdecode(name)
        try:
            node = await directory.create(text, stat.S_IMODE(mode), translate.caller(ctx))
        except errors.AlreadyExists:
            if flags & os.O_EXCL:
                raise
            found = await directory.child(text)  # somebody was faster, and without O_EXCL that is as good
            if not isinstance(found, File):
                raise
            node = found
        self._inodes.number(node)
        try:
            info = await self._open(node, flags, ctx)
            entry = await self._reveal(node)
            # It is empty until somebody writes, and a write makes the kernel forget the size by itself: without this it
            # would ask again between the creation and the first write.
            entry.attr_timeout = max(entry.attr_timeout, translate.KERNEL_SECONDS)
            return info, entry
        finally:
            self._inodes.drop_uncounted(node)

    async def _open(self, node: File, flags: int, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        handle = await node.open(translate.open_mode(flags), translate.caller(ctx))
        fh = next(self._handles)
        self._files[fh] = _OpenFile(node, handle)
        told = self._inodes.told(node.ino)
        if told is not None and told != handle.version:
            # The kernel would cut these bytes at the size of the version it remembers.
            await _invalidate_attrs(node.ino)
            self._inodes.tell(node.ino, None)
        keep = not handle.direct and self._inodes.keeps_pages(node.ino, handle.version)
        return pyfuse3.FileInfo(fh=fh, direct_io=handle.direct, keep_cache=keep, nonseekable=not handle.seekable)

    @handler(Needs.READING)
    async def read(self, fh: int, offset: int, size: int) -> bytes:
        return await self._files[fh].handle.read(offset, size)

    @handler(Needs.WRITING)
    async def write(self, fh: int, offset: int, data: bytes) -> int:
        return await self._files[fh].handle.write(offset, data)

    @handler(Needs.NOTHING)
    async def flush(self, fh: int) -> None:
        await self._files[fh].handle.flush()

    @handler(Needs.READING)
    async def fsync(self, fh: int, datasync: bool) -> None:
        await self._files[fh].handle.fsync()

    @handler(Needs.NOTHING)
    async def release(self, fh: int) -> None:
        opened = self._files.pop(fh, None)
        if opened is not None:
            await opened.handle.release()

    # --- directories ------------------------------------------------------------------------------------------

    @handler(Needs.READING)
    async def opendir(self, ino: int, ctx: pyfuse3.RequestContext) -> int:
        directory = self._directory(ino)
        names = await self._listings.of(directory)
        fh = next(self._handles)
        self._directories[fh] = _OpenDirectory(directory, names)
        return fh

    @handler(Needs.READING)
    async def readdir(self, fh: int, start: int, token: pyfuse3.ReaddirToken) -> None:
        opened = self._directories[fh]
        if start == 0:  # opened, or rewound: `rewinddir` asks for what is there now
            opened.names = await self._listings.of(opened.node)
        inodes, listings, position = self._inodes, self._listings, start
        changed = start > 0 and not listings.current(opened.node, opened.names)
        for listed in opened.names[start:] if start else opened.names:
            name, held, entry = listed
            position += 1
            if not held.live:
                entry.st_ino = inodes.revive(held)  # the kernel has given the node back since the listing was made
            if changed:
                entry = listings.again(opened.node, listed)
            if not pyfuse3.readdir_reply(token, name, entry, position):
                break
            held.lookups += 1

    @handler(Needs.NOTHING)
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        """Names are in the bucket when the call that made them returns."""

    @handler(Needs.NOTHING)
    async def releasedir(self, fh: int) -> None:
        self._directories.pop(fh, None)

    def _never(self, parent: int, what: str) -> Exception:
        """The refusal of something that no place offers: EROFS where nothing may be written, else EPERM.

        git and rsync try hard links and copy on EPERM, so that one is no news for `errors.ndjson`.
        """
        refusal = self._directory(parent).refuse(what)
        return refusal if isinstance(refusal, errors.ReadOnly) else pyfuse3.FUSEError(errno.EPERM)

    # --- inside -----------------------------------------------------------------------------------------------

    def _directory(self, ino: int) -> Directory:
        node = self._inodes.node(ino)
        if not isinstance(node, Directory):
            raise errors.NotADirectory(path=node.path)
        return node

    async def _meet(self, directory: Directory, name: str) -> None:
        """Before a name is taken away: have the node of what the kernel has only been shown in a listing.

        Such a number leads to whatever has the name, which would be the next file of that name.
        """
        if self._inodes.known(directory, name, None) is not None:
            with suppress(errors.NotFound):
                self._inodes.number(await directory.child(name))

    def _entry(self, node: Node, attrs: Attrs) -> pyfuse3.EntryAttributes:
        """The attributes to answer with; what the kernel may keep of them is noted."""
        ino = self._inodes.number(node)
        self._inodes.tell(ino, None if attrs.volatile else attrs.version)
        return translate.entry(ino, attrs, steady=node.steady())

    async def _reveal(self, node: Node) -> pyfuse3.EntryAttributes:
        """The attributes for an answer by which the kernel comes to hold the node."""
        attrs = await node.attrs()
        self._inodes.count(node)
        return self._entry(node, attrs)


async def _invalidate_attrs(ino: int) -> None:
    """Make the kernel forget an inode's attributes. From a thread: a notify may wait for requests we still owe."""
    try:
        await trio.to_thread.run_sync(pyfuse3.invalidate_inode, ino, True)
    except FileNotFoundError:
        return  # it does not know the inode
