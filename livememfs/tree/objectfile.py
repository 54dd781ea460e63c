"""Files that are objects of the bucket, and their handles.

Owns the life of a file's content between `open` and the bucket: which version a handle sees, what was written and not
saved, and the one save at a time. A subclass says what saving means. Refuses to show one version's size with another
version's bytes. Trio thread only; sync bodies are critical sections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from mmap import PAGESIZE
from typing import Any, ClassVar, TypeVar

import trio

from livememfs import errors
from livememfs.records.metadata import META_CONFLICT, META_MADE, META_OP, META_SHA256
from livememfs.records.posix import NOTHING, OWN_NAMES, PERMISSIONS, Stat
from livememfs.store.base import ObjectInfo
from livememfs.store.content import Content, content_etag
from livememfs.tree.body import Body
from livememfs.tree.context import Context
from livememfs.tree.following import follow
from livememfs.tree.node import NOBODY, AttrChange, Attrs, Caller, Directory, File, Handle, Node, OpenMode

AnyFile = TypeVar("AnyFile", bound="ObjectFile")
READ_ATTEMPTS = 3
HASHED_AT_ONCE = 1 << 20
"""Larger content is hashed in a thread."""
OURS = frozenset({META_OP, META_MADE, META_SHA256, META_CONFLICT})
"""User metadata that belongs to one version and is not inherited by the next."""
DEFAULT_MODE = 0o644
IN_MEMORY = 64 << 20
"""Bytes of the largest file that is worked on as a whole, such as a note."""
NO_HANDLES: frozenset[ObjectHandle] = frozenset()
"""Shared by all files that are not open: a hundred thousand empty sets would waste memory."""


class ObjectFile(File):
    """A file whose bytes are, or will be, one object.

    `body` is what an `open` gets now. `key` is where it is or will be stored; None while it has no place in the bucket.
    """

    __slots__ = ("_lock", "body", "context", "handles", "key", "orphaned", "own", "size_limit")
    opens: ClassVar[type[ObjectHandle]]
    """What a descriptor of it is."""

    def __init__(
        self, parent: Directory, name: str, context: Context, info: ObjectInfo | None, key: str | None
    ) -> None:
        super().__init__(parent, name)
        self.context = context
        self.key = key
        self.body = Body(info)
        self.handles: set[ObjectHandle] | frozenset[ObjectHandle] = NO_HANDLES
        self.own = NOTHING if info is not None else Stat(mtime_ns=context.now_ns())
        """What was set here and is not stored: it counts before what the object says."""
        self.orphaned = False
        self.size_limit = min(context.max_file_size, IN_MEMORY)
        self._lock: trio.Lock | None = None

    # --- what a subclass decides ------------------------------------------------------------------------------

    @property
    def by_caller(self) -> bool:
        """Whether the kernel itself brought what is saved, so that it need not be told of the change."""
        return True

    async def save(self, body: Body) -> None:
        """Have `body` accepted. Called only when it is dirty, and while no other save of this file runs."""
        raise self.refuse("saving")

    async def draft(self) -> bytes:
        """The loaded content, as it may be kept on the local disk before the file is closed."""
        return self.body.value()

    @property
    def draft_path(self) -> str:
        """The path under which the draft is kept."""
        return self.path

    def check_writable(self) -> None:
        """Raise when this file cannot be written to."""

    @property
    def _saving(self) -> trio.Lock:
        """One save at a time. Made when it is first needed: most files of a listing are never saved."""
        if self._lock is None:
            self._lock = trio.Lock()
        return self._lock

    # --- versions ---------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the bytes here are newer than the bucket's, or somebody has the file open for writing."""
        if self.body.dirty:
            return True
        return bool(self.handles) and any(handle.mode.write for handle in self.handles)

    @property
    def volatile(self) -> bool:
        """Whether the attributes may change without notice."""
        return self.busy

    def accepts(self, info: ObjectInfo) -> bool:
        """Take over the bucket's current version, also for those who have the file open to read (see `following`).

        False: the file has lost its name, and is another one than that.
        """
        mine = self.body.info
        if mine is not None and mine.etag == info.etag and mine.size == info.size:
            if info.meta is not None or mine.meta is None:
                self.body.info = info
            return True
        if self.orphaned:
            return False
        if self.busy:
            return True
        self.body = Body(info)
        self.own = NOTHING
        return True

    async def refresh(self) -> None:
        """Learn whether the bucket has another version. Stale when the object is gone and nobody holds it open."""
        if self.orphaned and not self.handles:
            raise errors.Stale(path=self.path)  # the kernel still had the name; another one may stand under it now
        if self.orphaned or self.busy or self.key is None:
            return
        try:
            info = await self.context.replica.names.look(self.key)
        except errors.ObjectMissing:
            if self.handles or self.busy:
                return
            raise errors.Stale(path=self.path) from None
        self.accepts(info)

    async def detach(self) -> None:
        """Become a file without a name: open handles keep its bytes.

        A running save ends first: otherwise it would be accepted later, and overwrite the file that gets the name next.
        """
        async with held(self._saving):
            if self.handles:
                await self._load(self.body)
            self.orphaned = True
            self.context.unsaved.discard(self)

    def attach(self) -> None:
        """Undo `detach`: the file keeps its name."""
        self.orphaned = False
        if self.body.dirty:
            self.context.unsaved.add(self)

    @asynccontextmanager
    async def removing(self) -> AsyncIterator[None]:
        """Around the removal of the object: a running save ends first, no other begins; a failure undoes it."""
        await self.detach()
        try:
            async with self._saving:
                yield
        except BaseException:  # a deadline too: the file is still there
            self.attach()
            raise

    async def _load(self, body: Body, offset: int = 0, size: int | None = None) -> Body:
        """The body with its bytes, at least those of a range, or the one that replaced it meanwhile."""
        for attempt in range(READ_ATTEMPTS):
            try:
                await body.load(self.context.replica, offset, size)
            except (errors.PreconditionFailed, errors.ObjectMissing):
                if body.begun:
                    raise errors.Stale(path=self.path) from None  # no reader gets two parts of two versions
                if attempt + 1 == READ_ATTEMPTS or self.key is None or self.busy:
                    raise
                info = await self.context.replica.names.stat(self.key, fresh=True)
                if body is self.body:
                    self.body = Body(info)
                body = self.body
            else:
                break
        return body

    # --- the calls of Node and File ---------------------------------------------------------------------------

    def steady(self) -> bool:
        return self.key is not None and self.context.replica.names.watched(self.key)

    async def attrs(self) -> Attrs:
        await self.refresh()
        return self.listed_attrs()

    def listed_attrs(self) -> Attrs:
        links, version = 0 if self.orphaned else 1, self.body.serial
        return Attrs.of("file", stat_here(self), self.body.size, version=version, nlink=links, volatile=self.volatile)

    def shown(self, version: int | None) -> None:
        if self.handles and version == self.body.serial:
            follow(self)

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            self.check_writable()
        await self.refresh()
        if mode.write and self.orphaned:
            raise errors.Stale(path=self.path)  # writes would be lost; the kernel now looks the name up again
        body = self.body
        if mode.truncate:
            self.truncate(0)
            body = self.body
        elif mode.read or mode.write:
            body = await self._load(body, 0, None if mode.write else 0)
        handle = self.opens(self, body, mode)
        self.handles = {*self.handles, handle}
        self.context.writes.count += mode.write
        return handle

    def truncate(self, size: int) -> None:
        """Change the size of the loaded content, or drop it all."""
        self.body.truncate(size, limit=self.size_limit, path=self.path, large=self.context.replica.large)
        touched(self)
        self.context.writes.count += 1
        self.context.written.add(self)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        self.check_writable()
        if change.size is not None:
            await self.refresh()
            if change.size:
                self.body = await self._load(self.body)
                await self.body.own()
            self.truncate(change.size)
        before, self.own = self.own, changed(self.own, change, self.context, stat_here(self))
        self.context.writes.count += self.own is not before
        # A close saves the body that is shown only if its descriptor writes, and writes to that body.
        saved_at_close = any(handle.mode.write and handle.body is self.body for handle in self.handles)
        cut = change.size is not None and not saved_at_close
        if cut or (self.own is not before and not self.busy):
            await self.flush(self.body)

    @property
    def attrs_pending(self) -> bool:
        """Whether mode, owner or times were set and the bucket does not have them."""
        stored = self.key is not None and self.body.info is not None and not self.orphaned
        return stored and self.own is not NOTHING

    async def save_attrs(self) -> None:
        """Store mode, owner and times; the content is unchanged. Called while no save of this file runs."""
        with pending_attrs(self) as attrs:
            assert self.body.info is not None  # `attrs_pending` said so
            self.body.info = self.context.replica.restamp(self.body.info, self.meta(attrs))

    def meta(self, attrs: Mapping[str, str]) -> dict[str, str]:
        """The metadata of the next version: what others put there stays."""
        kept = {name: value for name, value in inherited(self.body.info).items() if name not in OWN_NAMES}
        return {**kept, **attrs}

    async def store(self, body: Body, data: Content, meta: Mapping[str, str]) -> ObjectInfo:
        """Have `data` accepted as the version after the body's. NoSpace."""
        assert self.key is not None  # the caller has chosen one
        etag = content_etag(data) if len(data) <= HASHED_AT_ONCE else await trio.to_thread.run_sync(content_etag, data)
        return self.context.replica.save(self.key, data, meta=meta, base=body.info, etag=etag, by_caller=self.by_caller)

    async def flush(self, body: Body) -> None:
        """Save `body` when it is dirty, else attributes that were set. Raises the errors that `close` must report."""
        async with held(self._saving):
            if body.dirty and not self.orphaned:
                self.context.unsaved.add(self)
                await self._learn_meta(body)
                await self.save(body)
            elif self.attrs_pending:
                await self.save_attrs()
            if not self.body.dirty:
                self.context.unsaved.discard(self)
        if self._lock is not None and not self._lock.locked():
            self._lock = None  # of very many files that were written, each would keep one

    async def _learn_meta(self, body: Body) -> None:
        """Ask for the metadata of the version that is about to be replaced: the next version keeps what others set."""
        info = body.info
        if info is None or info.meta is not None or self.key is None:
            return
        try:
            stored = await self.context.replica.names.stat(self.key)
        except (errors.ObjectMissing, errors.Unreachable, errors.Throttled):
            return
        if stored.etag == info.etag and body.info is info:
            body.info = stored

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        self.check_writable()
        raise errors.NotSupported(path=self.path, detail=f"setting {name}")

    async def xattrs(self) -> Mapping[str, bytes]:
        info = self.body.info
        op = self.context.replica.journal.ops.newest(self.key) if self.key is not None else None
        state = "local" if self.key is None else "pending" if self.body.dirty or op is not None else "clean"
        shown = {"state": state, "key": self.key or "", "etag": info.etag if info is not None else ""}
        if op is not None and op.error is not None:
            shown |= {"state": "stuck", "error": op.error}
        shown["conflict"] = ((info.meta if info is not None else None) or {}).get(META_CONFLICT, "")
        return {f"user.livememfs.{name}": value.encode() for name, value in shown.items() if value}


def node_of(known: AnyFile | None, info: ObjectInfo, make: Callable[[], AnyFile]) -> AnyFile:
    """The node for this version: the known one, which keeps its inode, or a new one when that has lost its name."""
    return known if known is not None and known.accepts(info) else make()


def lose(known: MutableMapping[str, Any], name: str) -> bool:
    """See Directory.lose, for the nodes that a directory knows."""
    node = known.get(name)
    if isinstance(node, ObjectFile):
        if node.busy:
            return False
        node.orphaned = True
    known.pop(name, None)
    return True


class ObjectHandle(Handle):
    """An open file: a body, and the file it belongs to."""

    def __init__(self, file: ObjectFile, body: Body, mode: OpenMode) -> None:
        self.file = file
        self.body = self._opened = body
        self.mode = mode
        self.flushed = self.reached = 0
        self.torn = False
        self.apart = False
        """Whether the kernel has it under another inode: it would not know of a change in the bytes of this one."""
        # All bodies behind one inode share the kernel's page cache: a handle with another body must bypass it. Those
        # that only read will follow.
        self.direct = any(other.body is not body and other.mode.write for other in file.handles)

    @property
    def version(self) -> int:  # type: ignore[override]  # read-only here: it is the body's
        """The version these bytes are of."""
        return self.body.serial

    async def read(self, offset: int, size: int) -> bytes:
        if self.torn:
            raise errors.Stale(path=self.file.path)
        while not (body := self.body).has(offset, size):
            loaded = await self.file._load(body, offset, size)
            if self.body is body:  # else it has followed meanwhile
                self.body = loaded
        self.reached = offset + size
        return self.body.read(offset, size)

    async def write(self, offset: int, data: bytes) -> int:
        file = self.file
        if self.mode.append and not self.body.dirty:
            self.body = file.body  # an append follows whatever was stored meanwhile
        if not self.body.loaded:
            self.body = await file._load(self.body)
        if self.apart and self.body is file.body:
            self.body = Body(self.body.info, self.body.value())
        await self.body.own()
        self.begin()
        file.context.replica.room.expect(len(data))
        # The kernel computes an append's offset from its own idea of the size, which another body may have set.
        start = self.body.size if self.mode.append and not self._is_page(offset, len(data)) else offset
        self.body.write(start, data, limit=file.size_limit, path=file.path, large=file.context.replica.large)
        touched(file)
        file.context.writes.count += 1
        file.context.written.add(file)
        return len(data)

    def begin(self) -> None:
        """The loaded content is about to be changed."""

    def _is_page(self, offset: int, size: int) -> bool:
        """Whether these are changed pages of a mapping, which the kernel brings by any descriptor, appending or not.

        They are whole or end with the file. Only while the kernel can have no other idea of the size than ours, and
        somebody has the file open for both reading and writing: nothing else can be mapped so.
        """
        end, file = offset + size, self.file
        if offset % PAGESIZE or end > self.body.size or (end % PAGESIZE and end != self.body.size):
            return False
        if not any(other.mode.read and other.mode.write for other in file.handles):
            return False
        return self.body is self._opened and all(other.body is file.body for other in file.handles)

    async def flush(self) -> None:
        if self.mode.write:
            self.flushed = self.body.changes
            await self.file.flush(self.body)

    async def fsync(self) -> None:
        await self.flush()
        file = self.file
        if file.key is not None and not file.orphaned:
            if file.body.dirty:  # written by another descriptor; a file without a key is left to its writer
                await file.flush(file.body)
            await file.context.replica.sync(file.key, remote=file.context.fsync_remote)

    async def change(self, node: Node, change: AttrChange, caller: Caller) -> None:
        file = self.file
        if change.size is not None and self.mode.write:
            self.body = await file._load(self.body)
            await self.body.own()
            self.begin()
            self.body.truncate(change.size, limit=file.size_limit, path=file.path, large=file.context.replica.large)
            touched(file)
            file.context.writes.count += 1
            change = replace(change, size=None)
        await file.change(change, caller)

    async def release(self) -> None:
        self.file.handles = {*self.file.handles} - {self} or NO_HANDLES
        self.file.context.writes.count += self.mode.write
        # A memory mapping may write after the last close. Nobody hears an error now, but the bytes must not be lost.
        if self.mode.write and self.body.dirty and self.body.changes != self.flushed:
            await self.file.flush(self.body)
        for body in () if self.file.handles else (self.body, self.file.body):
            body.let_go()


ObjectFile.opens = ObjectHandle


class held:  # read as a verb, like `trio.fail_after`
    """`async with lock`, but without a checkpoint when the lock is free: then no other task runs in between."""

    __slots__ = ("lock",)

    def __init__(self, lock: trio.Lock) -> None:
        self.lock = lock

    async def __aenter__(self) -> None:
        try:
            self.lock.acquire_nowait()
        except trio.WouldBlock:
            await self.lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.lock.release()


def inherited(info: ObjectInfo | None) -> dict[str, str]:
    """User metadata that the next version of an object keeps.

    Left out is what belongs to one version only. With the id of its write, for instance, the next write of another
    host would pass for ours.
    """
    meta = (info.meta if info is not None else None) or {}
    return {name: value for name, value in meta.items() if name not in OURS}


def replaced(info: ObjectInfo) -> ObjectInfo:
    """A version that another file is about to replace: that file inherits none of its metadata."""
    return replace(info, meta={name: value for name, value in (info.meta or {}).items() if name in OURS})


def stat_of(info: ObjectInfo, default_mode: int = DEFAULT_MODE) -> Stat:
    """What a version alone says of a file that nobody has open. Mode and time are always set."""
    stat = Stat.of(info.meta)
    if stat.mode is None or stat.mtime_ns is None:
        stat = Stat(mode=default_mode, mtime_ns=info.modified_ns).under(stat)
    return stat


def stat_here(file: ObjectFile) -> Stat:
    """What is known of a file beside its bytes, stored or not, with mode and time."""
    info = file.body.info
    stored = stat_of(info) if info is not None else Stat(mode=DEFAULT_MODE, mtime_ns=0)
    return stored.under(file.own)


def touched(file: ObjectFile) -> None:
    """The content of a file was changed just now."""
    now = file.context.now_ns()
    file.own = replace(file.own, mtime_ns=now, ctime_ns=now)


def changed(own: Stat, change: AttrChange, context: Context, shown: Stat) -> Stat:
    """What is set of a file after a change of attributes; the same object when that asks for nothing that is kept."""
    new = Stat(mode=None if change.mode is None else change.mode & PERMISSIONS, mtime_ns=change.mtime_ns)
    new = replace(new, atime_ns=change.atime_ns)
    if context.ids.by_number and (change.uid is not None or change.gid is not None):
        uid, gid = context.ids.shown(shown.uid, shown.gid)  # both are stored, or none is
        new = replace(new, uid=uid if change.uid is None else change.uid, gid=gid if change.gid is None else change.gid)
    if new == NOTHING:
        return own
    return own.under(replace(new, ctime_ns=context.now_ns()))


@contextmanager
def pending_attrs(file: ObjectFile) -> Iterator[Mapping[str, str]]:
    """The metadata to store with the next put; the file's own copies are dropped once that has succeeded."""
    before = file.own
    yield stat_here(file).render()
    if file.own is before:
        file.own = NOTHING
