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
from pathlib import Path

import pyfuse3
import structlog
import trio
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, ReaddirToken, RequestContext, SetattrFields, StatvfsData

from livememfs import errors
from livememfs.fuse import translate
from livememfs.fuse.announcer import Announcer
from livememfs.fuse.guard import Needs, Request, handler
from livememfs.fuse.inodes import Inodes, InodeStatistics
from livememfs.fuse.listings import Listed, Listings
from livememfs.fuse.notify import Notifier
from livememfs.fuse.pretence import Pretence
from livememfs.fuse.watched import Attention
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.node import ACTING, UNLISTED, Attrs, Caller, Directory, File, Handle, Node, Symlink
from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

_RENAME_NOREPLACE = 1


@dataclass(frozen=True)
class AdapterStatistics:
    """Requests since the mount, handlers that failed because of a bug, open files, and the inodes."""

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
    """One mount. `op_timeout` is the longest time of one request, in seconds. `limited`: a token limits the mount."""

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
        self._ids = root.context.ids
        self._listings = Listings(self._inodes, self._ids, root.owned, root.ids_in)
        self._handles = count(1)
        self.pretence = Pretence(root, self._inodes, self._entry, self._opens)
        self.announcer: Announcer | None = None
        self.attention = Attention(self._inodes, lambda: self.requests)

    def notify_with(self, mountpoint: Path) -> Notifier:
        """Make the thread that tells the kernel of changes. The caller starts and stops it."""
        self.announcer = Announcer(mountpoint)
        return Notifier(self.root, self._inodes.known, self.pretence.expect, self.announcer)

    def permit(self, request: Request) -> None:
        """Raise unless the mount's token allows a request, which the tree decides. NotFound, ReadOnly, Forbidden."""
        if request.needs is Needs.NOTHING:
            return
        making = request.needs is Needs.MAKING
        to_write = request.needs is Needs.BY_FLAGS and request.flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC)
        writing = bool(to_write) or making or request.needs is Needs.WRITING
        named = [(self._inodes.node(ino), os.fsdecode(name)) for ino, name in request.places]
        if request.opened is not None:
            named.append((self._opened(request.opened), ""))
        for position, (node, name) in enumerate(named, 1):
            self.root.permit(node, name, writing=writing, making=making and position == len(named))

    def _opened(self, fh: int) -> Node:
        """The node that is open under a number. No file and directory share a number. KeyError."""
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
    async def lookup(self, parent: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        # The kernel is never told to remember that a name is missing: a notice that it is there now may block.
        node = await self._directory(parent).child(os.fsdecode(name))
        return await self._reveal(node)

    async def forget(self, inodes: Sequence[tuple[int, int]]) -> None:
        for ino, lookups in inodes:
            try:
                node = self._inodes.forget(ino, lookups)
                if isinstance(node, Directory):
                    self._listings.drop(node)
            except Exception:  # nobody waits for an answer, and an exception from this handler would end the mount
                self.bugs += 1
                log.exception("an inode could not be forgotten", ino=ino)

    @handler(Needs.MAKING)
    async def mkdir(self, parent: int, name: bytes, mode: int, ctx: RequestContext) -> EntryAttributes:
        made = await self._directory(parent).mkdir(os.fsdecode(name), stat.S_IMODE(mode), translate.caller(ctx))
        return await self._reveal(made)

    @handler(Needs.MAKING)
    async def symlink(self, parent: int, name: bytes, target: bytes, ctx: RequestContext) -> EntryAttributes:
        directory = self._directory(parent)
        made = await directory.symlink(os.fsdecode(name), os.fsdecode(target), translate.caller(ctx))
        return await self._reveal(made)

    @handler(Needs.MAKING)
    async def mknod(self, parent: int, name: bytes, mode: int, rdev: int, ctx: RequestContext) -> EntryAttributes:
        caller = translate.caller(ctx)
        if not stat.S_ISREG(mode):
            return await self._reveal(await self._special(parent, os.fsdecode(name), mode, rdev, caller))
        made = await self._directory(parent).create(os.fsdecode(name), stat.S_IMODE(mode), caller)
        handle = await made.open(translate.open_mode(os.O_WRONLY), caller)
        try:
            await handle.flush()
        finally:
            await handle.release()
        return await self._reveal(made)

    async def _special(self, parent: int, name: str, mode: int, rdev: int, caller: Caller) -> Node:
        kind = translate.kind_of(mode)
        numbers = (os.major(rdev), os.minor(rdev)) if kind in ("char", "block") else (0, 0)
        return await self._directory(parent).mknod(name, kind, stat.S_IMODE(mode), numbers, caller)

    @handler(Needs.MAKING)
    async def link(self, ino: int, parent: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        raise self._never(parent, "hard links")

    @handler(Needs.WRITING)
    async def unlink(self, parent: int, name: bytes, ctx: RequestContext) -> None:
        directory, text = self._directory(parent), os.fsdecode(name)
        ACTING.set(translate.caller(ctx))
        await self._meet(directory, text)
        await directory.unlink(text)

    @handler(Needs.WRITING)
    async def rmdir(self, parent: int, name: bytes, ctx: RequestContext) -> None:
        await self._directory(parent).rmdir(os.fsdecode(name))

    @handler(Needs.MAKING)
    async def rename(
        self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int, ctx: RequestContext
    ) -> None:
        if flags & ~_RENAME_NOREPLACE:
            raise FUSEError(errno.EINVAL)
        source, target = self._directory(parent), self._directory(new_parent)
        old, new = os.fsdecode(name), os.fsdecode(new_name)
        ACTING.set(translate.caller(ctx))
        await self._meet(source, old)
        await self._meet(target, new)
        await source.rename(old, target, new, replace=not flags & _RENAME_NOREPLACE)

    @handler(Needs.READING)
    async def readlink(self, ino: int, ctx: RequestContext) -> bytes:
        node = self._inodes.node(ino)
        if not isinstance(node, Symlink):
            raise FUSEError(errno.EINVAL)
        return os.fsencode(await node.target())

    # --- attributes -------------------------------------------------------------------------------------------

    @handler(Needs.READING)
    async def getattr(self, ino: int, ctx: RequestContext) -> EntryAttributes:
        node = self._inodes.node(ino)
        return self._entry(node, await node.attrs())

    @handler(Needs.WRITING)
    async def setattr(
        self, ino: int, attr: EntryAttributes, fields: SetattrFields, fh: int | None, ctx: RequestContext
    ) -> EntryAttributes:
        node = self._inodes.node(ino)
        change = translate.attr_change(attr, fields)
        opened = self._files.get(fh) if fh is not None else None
        if opened is not None:
            await opened.handle.change(opened.node, change, translate.caller(ctx))
        else:
            await node.change(change, translate.caller(ctx))
        return self._entry(node, await node.attrs())

    @handler(Needs.READING)
    async def getxattr(self, ino: int, name: bytes, ctx: RequestContext) -> bytes:
        if name.startswith(b"security."):  # the kernel asks for it at every write
            raise FUSEError(errno.ENODATA)
        if name.startswith(b"system.posix_acl_"):
            raise FUSEError(errno.EOPNOTSUPP)
        value = (await self._inodes.node(ino).xattrs()).get(os.fsdecode(name))
        if value is None:
            raise FUSEError(errno.ENODATA)
        return value

    @handler(Needs.READING)
    async def listxattr(self, ino: int, ctx: RequestContext) -> Sequence[bytes]:
        return [os.fsencode(name) for name in await self._inodes.node(ino).xattrs() if name not in UNLISTED]

    @handler(Needs.WRITING)
    async def setxattr(self, ino: int, name: bytes, value: bytes, ctx: RequestContext) -> None:
        await self._set_xattr(ino, name, value, ctx)

    @handler(Needs.WRITING)
    async def removexattr(self, ino: int, name: bytes, ctx: RequestContext) -> None:
        await self._set_xattr(ino, name, None, ctx)

    async def _set_xattr(self, ino: int, name: bytes, value: bytes | None, ctx: RequestContext) -> None:
        node = self._inodes.node(ino)
        if not node.sets(os.fsdecode(name)):
            return  # a copier brings back what it has read here
        if not name.startswith(b"user.") and not isinstance(node.refuse("setting attributes"), errors.ReadOnly):
            raise FUSEError(errno.EOPNOTSUPP)  # only after this errno does `cp -p` go on without access lists
        await node.set_xattr(os.fsdecode(name), value, translate.caller(ctx))

    @handler(Needs.NOTHING)
    async def statfs(self, ctx: RequestContext) -> StatvfsData:
        return translate.statfs(*self.root.context.replica.room.space())

    # --- files ------------------------------------------------------------------------------------------------

    @handler(Needs.BY_FLAGS)
    async def open(self, ino: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self._inodes.node(ino)
        if not isinstance(node, File):
            raise FUSEError(errno.EISDIR)
        return await self._open(node, flags, ctx)

    @handler(Needs.MAKING)
    async def create(
        self, parent: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        directory, text = self._directory(parent), os.fsdecode(name)
        try:
            node = await directory.create(text, stat.S_IMODE(mode), translate.caller(ctx))
        except errors.AlreadyExists:
            if flags & os.O_EXCL:
                raise
            existing = await directory.child(text)  # somebody was faster, and without O_EXCL that is as good
            if not isinstance(existing, File):
                raise
            node = existing
        self._inodes.number(node)
        try:
            info = await self._open(node, flags, ctx)
            entry = await self._reveal(node)
            # Without this the kernel would ask again between the creation and the first write. Until then the file is
            # empty, and a write makes the kernel forget the size by itself.
            entry.attr_timeout = max(entry.attr_timeout, translate.KERNEL_SECONDS)
            return info, entry
        finally:
            self._inodes.drop_uncounted(node)

    async def _open(self, node: File, flags: int, ctx: RequestContext) -> FileInfo:
        handle = await node.open(translate.open_mode(flags), translate.caller(ctx))
        fh = self._opens(node, handle)
        cached = self._inodes.told(node.ino)
        if cached is not None and cached != handle.version:
            # Otherwise the kernel would cut these bytes at the size of the version that it remembers.
            await _invalidate_attrs(node.ino)
            self._inodes.tell(node.ino, None)
            node.shown(handle.version)
        keep = not handle.direct and self._inodes.keeps_pages(node.ino, handle.version)
        return FileInfo(fh=fh, direct_io=handle.direct, keep_cache=keep, nonseekable=not handle.seekable)

    def _opens(self, node: File, handle: Handle) -> int:
        fh = next(self._handles)
        self._files[fh] = _OpenFile(node, handle)
        return fh

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
    async def opendir(self, ino: int, ctx: RequestContext) -> int:
        directory = self._directory(ino)
        names = await self._listings.of(directory)
        fh = next(self._handles)
        self._directories[fh] = _OpenDirectory(directory, names)
        return fh

    @handler(Needs.READING)
    async def readdir(self, fh: int, start: int, token: ReaddirToken) -> None:
        opened = self._directories[fh]
        if start == 0:  # opened, or rewound: `rewinddir` asks for what is there now
            opened.names = await self._listings.of(opened.node)
        inodes, listings, position = self._inodes, self._listings, start
        changed = start > 0 and not listings.current(opened.node, opened.names)
        for listed in opened.names[start:] if start else opened.names:
            name, held, entry = listed
            position += 1
            if not held.live:
                held = inodes.revive(held)  # the kernel has given the node back since the listing was made
                entry.st_ino = held.ino
            if changed:
                entry = listings.again(opened.node, listed)
            if self.pretence.is_coming(opened.node, os.fsdecode(name)):
                entry = translate.unkept(entry)
            if not pyfuse3.readdir_reply(token, name, entry, position):
                break
            held.lookups += 1
            if held.node is not None:
                held.node.shown(held.told)

    @handler(Needs.NOTHING)
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        """Names are in the bucket when the call that made them returns."""

    @handler(Needs.NOTHING)
    async def releasedir(self, fh: int) -> None:
        self._directories.pop(fh, None)

    def _never(self, parent: int, what: str) -> Exception:
        """The refusal of something that no directory offers: EROFS where nothing may be written, else EPERM.

        git and rsync try a hard link and copy after EPERM, so EPERM is not reported in `errors.ndjson`.
        """
        refusal = self._directory(parent).refuse(what)
        return refusal if isinstance(refusal, errors.ReadOnly) else FUSEError(errno.EPERM)

    # --- inside -----------------------------------------------------------------------------------------------

    def _directory(self, ino: int) -> Directory:
        node = self._inodes.node(ino)
        if not isinstance(node, Directory):
            raise errors.NotADirectory(path=node.path)
        return node

    async def _meet(self, directory: Directory, name: str) -> None:
        """Before a name is removed or moved: make its node, if the kernel knows the name from a listing only.

        Without a node the number of the old file would lead to the next file of that name.
        """
        if self._inodes.known(directory, name, None) is not None:
            with suppress(errors.NotFound):
                self._inodes.number(await directory.child(name))

    def _entry(self, node: Node, attrs: Attrs) -> EntryAttributes:
        """The attributes for an answer. The version that the kernel may cache is noted."""
        ino = self._inodes.number(node)
        self._inodes.tell(ino, None if attrs.volatile else attrs.version)
        node.shown(attrs.version)
        entry = translate.entry(ino, self.root.owned(node, attrs), self._ids, steady=node.steady())
        if self.pretence.is_coming(node.parent, node.name):
            entry.entry_timeout = 0.0
        return entry

    async def _reveal(self, node: Node) -> EntryAttributes:
        """The attributes for an answer that counts as a lookup: the kernel holds the node from then on."""
        attrs = await node.attrs()
        self._inodes.count(node)
        return self._entry(node, attrs)


async def _invalidate_attrs(ino: int) -> None:
    """Make the kernel forget an inode's attributes. In a thread: it may wait for requests that we must still answer."""
    with suppress(FileNotFoundError):  # the kernel does not know the inode
        await trio.to_thread.run_sync(pyfuse3.invalidate_inode, ino, True)
