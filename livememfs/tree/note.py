"""One note of `live/`: a draft, a stored note, or a file that stays on this machine.

Owns sealing: when a note is closed with content, its front matter is completed and it becomes one object under a
canonical key; the name it was written under goes on naming it. What the writer's descriptors see are the bytes it
wrote; whoever opens the note afterwards sees the sealed ones. Refuses what is not text or too large, at close. Trio
thread only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.records import keys, names
from livememfs.records.note import Note, canonical_name, complete, uid8
from livememfs.store.base import IfAbsent, IfMatch
from livememfs.tree.body import Body
from livememfs.tree.conflict import keep_both
from livememfs.tree.node import Attrs, Caller, Handle, OpenMode
from livememfs.tree.objectfile import ObjectFile, inherited, pending_attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context
    from livememfs.tree.live import Live

META_NAME = "livememfs-name"
UID_ATTEMPTS = 8


class NoteFile(ObjectFile):
    """A file in `live/`.

    `key` is None for a draft that was never sealed and for litter. `written` is the name a user gave it, empty when
    only its canonical name is known. `parks` is the key of the note that an editor moved aside under this (litter)
    name: its object stays in the bucket until the editor has decided.
    """

    __slots__ = ("agent", "live", "parks", "unanswered", "written")

    def __init__(self, live: Live, name: str, context: Context, info: ObjectInfo | None) -> None:
        super().__init__(live, name, context, info, info.key if info is not None else None)
        self.live = live
        self.written = (info.meta or {}).get(META_NAME, "") if info is not None else name
        self.parks: str | None = None
        self.unanswered: tuple[str, bytes] | None = None
        self.agent = ""

    @property
    def local(self) -> bool:
        """Whether nothing of it is in the bucket."""
        return self.key is None

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        handle = await super().open(mode, caller)
        if mode.write:
            # Asked now: at close the process may be past the point where its environment can be read.
            self.agent = self.context.agent_of(caller.pid)
            # At close the note gets longer than what this descriptor sees: the kernel would show zeros for the rest.
            handle.direct = handle.direct or mode.read
        return handle

    def current_attrs(self) -> Attrs:
        attrs = super().current_attrs()
        # A draft's size changes at close, when its front matter is completed.
        return replace(attrs, volatile=attrs.volatile or self.local)

    async def save(self, body: Body) -> None:
        """Seal, unless there is nothing to seal or the name says that it is an editor's own business."""
        if self.key is None and names.is_litter(self.name):
            body.saved = body.changes
            return
        changes, raw = body.changes, body.value()
        if not raw:
            return  # an empty note says nothing: it stays a draft, and a stored note keeps what it said
        await self.recover(body)
        previous = await self._previous()
        note, sealed = complete(
            raw,
            path=self.path,
            written_name=self.written or self.name,
            space=self.live.space,
            agent=self.agent or self.context.agent_of(0),
            now=self.context.clock.now(),
            previous=previous,
        )
        if self.key is None:
            info, ours = await self._store_new(note, sealed), True
        else:
            info, ours = await self._store_again(body, sealed)
        body.saved = changes
        if ours:
            body.info = info
        self._settle(info, as_stored=body is self.body and ours and raw == sealed)

    def _settle(self, info: ObjectInfo, *, as_stored: bool) -> None:
        """What the next `open` gets: the bytes the bucket has. The writer's own descriptor keeps what it wrote."""
        if not as_stored:
            self.body = Body(info)
        self.parks = None
        self.live.sealed(self)

    async def recover(self, body: Body) -> None:
        """A put that failed without an answer may have happened. Then the note is stored, and this its next version."""
        if self.key is not None or self.unanswered is None:
            return
        key, sealed = self.unanswered
        try:
            found = await self.context.replica.read(key, fresh=True)
        except errors.ObjectMissing:
            return
        if found.data == sealed:
            self.key, body.info = key, found.info

    async def _previous(self) -> Note | None:
        """The note that this one is a new version of."""
        if self.key is None:
            return None
        try:
            found = await self.context.replica.read(self.key)
        except errors.ObjectMissing:
            return None
        return Note.parse(found.data, path=self.path, name=self.key.rpartition("/")[2])

    async def _store_new(self, note: Note, sealed: bytes) -> ObjectInfo:
        """Put under a canonical key nobody has. A note written under a canonical name keeps that name."""
        space = self.live.space
        for attempt in range(UID_ATTEMPTS):
            name = self.name if keys.NoteName.parse(self.name) else ""
            name = name or canonical_name(note, uid8(space, self.written, attempt))
            try:
                with pending_attrs(self) as attrs:
                    key = keys.live_key(space, name)
                    self.unanswered = (key, sealed)
                    info = await self.context.replica.put(key, sealed, meta=self.meta(attrs), condition=IfAbsent())
            except errors.PreconditionFailed:
                self.unanswered = None
                if name == self.name:
                    raise
                continue
            self.key, self.unanswered = key, None
            return info
        raise errors.AlreadyExists(path=self.path)

    async def _store_again(self, body: Body, sealed: bytes) -> tuple[ObjectInfo, bool]:
        """Put a new version of a stored note; a version that this one does not follow is kept beside it."""
        assert self.key is not None  # the caller looked
        base = body.info
        with pending_attrs(self) as attrs:
            meta = self.meta(attrs)
            try:
                condition = IfMatch(base.etag) if base is not None else IfAbsent()
                return await self.context.replica.put(self.key, sealed, meta=meta, condition=condition), True
            except (errors.PreconditionFailed, errors.ObjectMissing):
                return await keep_both(self.context, self.path, self.key, sealed, meta)

    async def store_name(self, written: str) -> None:
        """Give a stored note another second name, so that other hosts resolve it too."""
        assert self.key is not None  # only stored notes have a canonical name beside the written one
        self.written = written
        async with self._saving:
            info = await self.context.replica.stat(self.key)
            await self.restamp({**inherited(info), META_NAME: written})

    def meta(self, attrs: Mapping[str, str]) -> dict[str, str]:
        meta = super().meta(attrs)
        if self.written and not keys.NoteName.parse(self.written):
            meta[META_NAME] = self.written
        return meta
