"""The files of an agent's own memory, in the agent's own layout: ordinary files, but for an index. Of topics, former
versions are kept.

Owns how an index is stored: line by line, joined with what others have stored since its writer read it, whether that
appends, writes it anew or puts another file in its place. So no line of another writer is lost, and none that somebody
took out comes back. The writer's descriptor goes on seeing its own bytes. Whoever opens an index that lost its name to
another file a moment ago gets that one: the kernel looks a name up again only once. Refuses to join what is too large
to be held in memory: that is an ordinary file. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.records import keys
from livememfs.text.mergelines import merge_lines
from livememfs.tree.body import Body
from livememfs.tree.indexreads import Kin
from livememfs.tree.node import MAX_KEY_BYTES, AttrChange, Attrs, Caller, Handle, OpenMode
from livememfs.tree.objectfile import READ_ATTEMPTS, ObjectFile, ObjectHandle, held, pending_attrs, replaced, stat_here
from livememfs.tree.plainfile import PlainFile

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context
    from livememfs.tree.plain import PlainDirectory


class AdoptedFile(PlainFile):
    """A file below `agents/<agent>/`.

    `maker` is who has made it here, `successor` the index that took its place.
    """

    __slots__ = ("_is_joined", "maker", "successor")

    def __init__(
        self, parent: PlainDirectory, name: str, context: Context, info: ObjectInfo | None, key: str, maker: Caller
    ) -> None:
        super().__init__(parent, name, context, info, key)
        self.maker = context.index_reads.who(maker.pid)
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
                handle = await (file._opened(mode, caller) if file is self else file._opened_apart(mode, caller))
            except errors.Stale:
                if file.successor is None:
                    raise
                continue
            if file.successor is None:
                break
            await handle.release()  # it lost its place meanwhile: what is written to it would be lost
        return handle

    async def _opened_apart(self, mode: OpenMode, caller: Caller) -> Handle:
        """A descriptor that the kernel has under the inode of a former index."""
        handle = await self._opened(replace(mode, truncate=False), caller)
        if isinstance(handle, AdoptedHandle):
            handle.apart = True
            if mode.truncate:
                base = await self._seen_by(handle.who)
                handle.body, handle.mode = Body(self.body.info, b""), mode
                handle.body.mark_dirty()
                handle.body.base = base
        return handle

    async def _opened(self, mode: OpenMode, caller: Caller) -> Handle:
        if not self.is_index:
            return await super().open(mode, caller)
        assert self.key is not None  # an index has one
        who = self.context.index_reads.who(caller.pid)
        base = await self._seen_by(who) if mode.write and mode.truncate else None
        handle = await super().open(mode, caller)
        assert isinstance(handle, AdoptedHandle)  # by `opens`
        handle.who = who
        if mode.truncate:
            handle.body.base = base
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

    async def flush(self, body: Body) -> None:
        await super().flush(body)
        if body.dirty and self.successor is not None:  # it lost its place since this was opened, or while it waited
            await self.latest.flush(body)

    async def save(self, body: Body) -> None:
        if not self.is_index or body.in_parts:
            await self.keep(unless=None if body.in_parts else body.value())
            await super().save(body)
            return
        changes, mine, xattrs = body.changes, body.value(), self._xattrs
        data, body.info = await self._joined(body, mine)
        self._is_joined = data != mine or self.body is not body
        try:
            with pending_attrs(self) as attrs:
                body.info = await self.store(body, data, self.meta(attrs))
        finally:
            self._is_joined = False
        body.saved = changes
        self._stored(xattrs)
        self.parent.known.saved(self)
        is_known = data == mine if self.body is body else self.body.dirty
        if not is_known:
            self.body = Body(body.info)  # for all but the writer, who goes on from its own bytes

    async def keep(self, *, unless: bytes | None = None) -> None:
        """Before a topic is changed or goes: keep the version that the bucket has, as that of a memory is kept.

        Not a version that is equal to `unless`, or that is only here, or that cannot be read now.
        """
        info, parsed, replica = self.body.info, keys.parse(self.key or ""), self.context.replica
        if info is None or parsed.kind != "agent" or self.orphaned or replica.journal.ops.newest(info.key) is not None:
            return
        name = parsed.name.removeprefix(f"{keys.AGENTS}/")
        key = keys.memory_history_key(parsed.space, keys.AGENTS, name, self.context.clock.now())
        with suppress(errors.ObjectMissing, errors.PreconditionFailed, errors.Unreachable, errors.Throttled):
            data = await replica.read_version(info)
            if data != unless and len(key.encode()) <= MAX_KEY_BYTES:
                replica.save(key, data, meta={}, base=replica.names.now(key), by_caller=False)

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
            except (errors.ObjectMissing, errors.PreconditionFailed, errors.Unreachable, errors.Throttled):
                continue
            if (again := replica.names.now(self.key)) is not None and again.etag == now.etag:
                base = theirs if body.base is None and info is not None and info.etag == now.etag else body.base
                return merge_lines(base, mine, theirs), again
        return mine, info

    async def replace(self, existing: AdoptedFile | None, target: PlainDirectory, name: str) -> None:
        """Take the place of an index, `existing` if somebody knows it. Raises, and everything is as it was."""
        key = target.prefix + name
        if existing is None:
            async with held(self._saving):
                await self._save_as(key)
            return
        while True:
            existing = existing.latest
            async with held(existing._saving), held(self._saving):
                if existing.successor is not None:
                    continue  # another file was faster
                if existing.body.dirty:
                    await existing.save(existing.body)
                await self._save_as(key)
                existing.orphaned, existing.successor = True, self
                self.context.unsaved.discard(existing)
                target.known.forget(name)  # at once: whoever looks it up meanwhile must not make a third one
                target.known.stored[name] = self
                return

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
            mine = body.value()
            await self.save(body)
            self.context.index_reads.note(key, self.maker, mine)
        except BaseException:
            self.key, self.own, body.base = before
            body.info = former
            raise


class AdoptedHandle(ObjectHandle):
    """An open file. Reads of an index come here, past the kernel's pages: what a process has read, or written anew, it
    knows.
    """

    def __init__(self, file: ObjectFile, body: Body, mode: OpenMode) -> None:
        super().__init__(file, body, mode)
        self.who = Kin()
        self.direct = self.direct or self._is_index
        self._begun: bytes | None = None
        """The version that its reader began with, until its end was read: lines that others put in between would move
        the rest, and the reader would get half of one line and half of another."""

    @property
    def _is_index(self) -> bool:
        return self.file.key is not None and keys.is_agent_index(self.file.key) and not self.body.in_parts

    def begin(self) -> None:
        if self._is_index and not self.body.dirty:
            self.body.base = self.body.value()

    async def read(self, offset: int, size: int) -> bytes:
        if offset and self._begun is not None:
            data = self._begun[offset : offset + size]
            self._note(self._begun[: offset + len(data)])
            self._begun = self._begun if data else None
            return data
        data = await super().read(offset, size)
        is_reader = self._is_index and not self.mode.write
        self._begun = self.body.value() if is_reader and not offset and data else None
        self._knows(offset + len(data))
        return data

    async def flush(self) -> None:
        if self.mode.truncate:
            self._knows(self.body.size)
        await super().flush()

    def _knows(self, size: int) -> None:
        if self._is_index:
            self._note(self.body.read(0, size))

    def _note(self, data: bytes) -> None:
        assert self.file.key is not None  # an index has one
        self.file.context.index_reads.note(self.file.key, self.who, data)


AdoptedFile.opens = AdoptedHandle
