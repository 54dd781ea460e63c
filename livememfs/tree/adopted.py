"""The files of an agent's own memory, in the agent's own layout: ordinary files, but for an index.

Owns how an index is stored: line by line, joined with what others have stored since its writer read it, whether that
appends, writes it anew or puts another file in its place. So no line of another writer is lost, and none that somebody
took out comes back. The writer's descriptor goes on seeing its own bytes. Whoever opens an index that lost its name to
another file a moment ago gets that one: the kernel looks a name up again only once. Refuses to join what is too large
to be held in memory: that is an ordinary file. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.records import keys
from livememfs.text.mergelines import merge_lines
from livememfs.tree.body import Body
from livememfs.tree.indexreads import Kin
from livememfs.tree.node import AttrChange, Attrs, Caller, Handle, OpenMode
from livememfs.tree.objectfile import READ_ATTEMPTS, ObjectHandle, held, pending_attrs, replaced, stat_here
from livememfs.tree.plainfile import PlainFile

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context
    from livememfs.tree.plain import PlainDirectory


class AdoptedFile(PlainFile):
    """A file below `agents/<agent>/`.

    `maker` is who has made it here, `writer` who writes it anew, `successor` the index that took its place.
    """

    __slots__ = ("_is_joined", "maker", "successor", "writer")

    def __init__(
        self, parent: PlainDirectory, name: str, context: Context, info: ObjectInfo | None, key: str, maker: Caller
    ) -> None:
        super().__init__(parent, name, context, info, key)
        self.maker = context.index_reads.who(maker.pid)
        self.writer: Kin | None = None
        self.successor: AdoptedFile | None = None
        self._is_joined = False

    @property
    def is_index(self) -> bool:
        """Whether each of its lines stands for itself."""
        return self.key is not None and keys.is_agent_index(self.key) and not self.orphaned

    @property
    def by_caller(self) -> bool:
        """False where lines of others were joined in, which the kernel has not seen."""
        return not self._is_joined

    @property
    def latest(self) -> AdoptedFile:
        """What stands in its place now: itself, unless it is an index and another one took that."""
        file = self
        while file.successor is not None:
            file = file.successor
        self.successor = file if file is not self else None  # those between need not be kept
        return file

    async def attrs(self) -> Attrs:
        latest = self.latest
        return await (super().attrs() if latest is self else latest.attrs())

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        while True:
            file = self.latest
            try:
                handle = await file._opened(mode, caller)
            except errors.Stale:
                if file.successor is None:
                    raise
                continue
            if file.successor is None:
                break
            await handle.release()  # it lost its place meanwhile: what is written to it would be lost
        if file is not self and isinstance(handle, ObjectHandle):
            handle.direct = True  # the kernel has pages of another file under this inode
        return handle

    async def _opened(self, mode: OpenMode, caller: Caller) -> Handle:
        if not self.is_index:
            return await super().open(mode, caller)
        assert self.key is not None  # an index has one
        who = self.context.index_reads.who(caller.pid)
        base = await self._seen_by(who) if mode.write and mode.truncate else None
        handle = await super().open(mode, caller)
        if not isinstance(handle, ObjectHandle) or handle.body.in_parts:
            return handle
        if mode.write:
            self.writer = who if mode.truncate else None
        if mode.truncate:
            handle.body.base = base
        elif handle.body.loaded:
            if mode.write and not handle.body.dirty:
                handle.body.base = handle.body.value()
            self.context.index_reads.note(self.key, who, handle.body.value())
        return handle

    async def change(self, change: AttrChange, caller: Caller) -> None:
        if self.successor is not None:
            await self.latest.change(change, caller)
            return
        if self.is_index and change.size is not None and not self.body.dirty:
            self.body.base = await self._seen_by(self.context.index_reads.who(caller.pid))
        await super().change(change, caller)

    async def _seen_by(self, who: Kin) -> bytes | None:
        """What a process that writes an index anew has seen of it: what it read, else what is there."""
        assert self.key is not None  # an index has one
        read = self.context.index_reads.base(self.key, who)
        if read is not None or self.body.dirty:
            return self.body.base if read is None else read
        await self.refresh()
        body = await self._load(self.body)
        return None if body.in_parts else body.value()

    # --- storing --------------------------------------------------------------------------------------------------

    async def save(self, body: Body) -> None:
        if not self.is_index or body.in_parts:
            await super().save(body)
            return
        changes, mine, xattrs = body.changes, body.value(), self._xattrs
        data, body.info = await self._joined(body, mine)
        self._is_joined = data != mine
        try:
            with pending_attrs(self) as attrs:
                body.info = await self.store(body, data, self.meta(attrs))
        finally:
            self._is_joined = False
        body.saved, body.base = changes, mine
        if self.writer is not None:
            self.context.index_reads.note(self.key or "", self.writer, mine)
        self._stored(xattrs)
        self.parent.known.saved(self)
        if data != mine and self.body is body:
            self.body = Body(body.info)  # for all but the writer, who goes on from its own bytes

    async def _joined(self, body: Body, mine: bytes) -> tuple[bytes, ObjectInfo | None]:
        """A writer's bytes with what others have stored, and the version that they replace. Where that cannot be read,
        the bytes alone: the bucket joins them then, when they arrive.
        """
        assert self.key is not None  # an index has one
        replica, info = self.context.replica, body.info
        for _ in range(READ_ATTEMPTS):
            now = replica.names.now(self.key)
            if now is None:
                break
            try:
                theirs = await replica.read_version(now)
                base = body.base
                if base is None and info is not None:
                    base = theirs if info.etag == now.etag else await replica.read_version(info)
            except (errors.ObjectMissing, errors.PreconditionFailed, errors.Unreachable, errors.Throttled):
                continue
            if (again := replica.names.now(self.key)) is not None and again.etag == now.etag:
                return merge_lines(base, mine, theirs), again
        return mine, info

    async def replace(self, existing: AdoptedFile | None, key: str) -> None:
        """Take the place of an index, `existing` if somebody knows it. Raises, and everything is as it was."""
        if existing is None:
            async with held(self._saving):
                await self._save_as(key)
            return
        async with held(existing._saving), held(self._saving):
            if existing.body.dirty:
                await existing.save(existing.body)
            await self._save_as(key)
            existing.orphaned, existing.successor = True, self
            self.context.unsaved.discard(existing)
            _hand_over(existing, self)
            if existing.body.dirty:  # somebody appended meanwhile
                await self.save(existing.body)

    async def _save_as(self, key: str) -> None:
        before, info = (self.key, self.own, self.body.base), await self.context.stored(key)
        body = await self._load(self.body)
        former = body.info
        try:
            self.own = stat_here(self)  # its mode and times, not those of the version that it replaces
            self.key = key
            base = self.context.index_reads.base(key, self.maker)
            if base is None and info is not None:
                base = await self.context.replica.read_version(info)
            body.base, body.info = base, replaced(info) if info is not None else None
            body.mark_dirty()
            self.writer = self.maker
            await self.save(body)
        except BaseException:
            self.key, self.own, body.base = before
            body.info = former
            raise


def _hand_over(file: AdoptedFile, to: AdoptedFile) -> None:
    """Whoever has a file open to append goes on in the one that took its place: other writes are about its bytes."""
    for handle in [handle for handle in file.handles if handle.mode.append]:
        file.handles = {*file.handles} - {handle}
        to.handles = {*to.handles, handle}
        handle.file = to
        if not handle.body.dirty:
            handle.body = to.body
