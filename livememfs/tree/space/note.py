"""One note of `live/`: a draft, a stored note, or a file that stays on this machine.

Owns when a file is sealed (`records/sealing` knows how). A file that is closed with content becomes one object under a
canonical key; the written name goes on leading to it. The writer's descriptors see the bytes that were written; later
opens see the sealed ones. Refuses, at close, what is not text or too large; nothing private leaves the memory of this
process. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.concurrency import aside
from livememfs.memories.storing import trust_of_object, vouch
from livememfs.records import names
from livememfs.records.metadata import META_MODE, META_NAME, META_TRUST
from livememfs.records.note import order_of
from livememfs.records.sealing import Former, Provenance, Sealed, is_public, redacted_name, says_nothing
from livememfs.records.trust import Trust
from livememfs.spaces.objects import public_as_it_is
from livememfs.text.privacy import redaction as privacy
from livememfs.tree.body import Body
from livememfs.tree.node import NOBODY, OWN_XATTRS, Caller, Handle, OpenMode
from livememfs.tree.objectfile import DEFAULT_MODE, ObjectFile, inherited, pending_attrs
from livememfs.tree.writer import working_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context
    from livememfs.tree.space.live import Live

TRUST = f"{OWN_XATTRS}trust"
"""The attribute with the class of a note or a memory. It is not listed, so that no copier gives it to another file."""
USUAL_MODE = (META_MODE, f"{DEFAULT_MODE:o}")


class NoteFile(ObjectFile):
    """A file in `live/`.

    `key` is None for a draft that was never sealed and for litter. `written` is the name a user gave it, empty when
    only its canonical name is known. `parks` is the key of the note that an editor moved aside under this (litter)
    name: its object stays in the bucket until the editor has saved, or removed the backup. `given` is the class that
    its next version gets; None: it is judged.
    """

    __slots__ = ("agent", "folder", "given", "live", "parks", "written")

    def __init__(self, live: Live, name: str, context: Context, info: ObjectInfo | None) -> None:
        super().__init__(live, name, context, info, info.key if info is not None else None)
        self.live = live
        self.written = (info.meta or {}).get(META_NAME, "") if info is not None else name
        self.parks: str | None = None
        self.agent = self.folder = ""
        self.given: Trust | None = None

    @property
    def local(self) -> bool:
        """Whether nothing of it is in the bucket."""
        return self.key is None

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        handle = await super().open(mode, caller)
        if self.key is not None and caller.pid:
            self.context.opened(self.key, caller.pid)
        if mode.write:
            # Asked now: at close the process may have ended, and its environment is gone.
            self.agent, self.folder = self.context.agent_of(caller.pid), working_directory(caller.pid)
            # At close the stored note gets longer than these bytes: from its cache the kernel would show zeros there.
            handle.direct = handle.direct or mode.read
        return handle

    @property
    def unsaved(self) -> bool:
        """Whether it has content that is not in the bucket. Litter is not meant to be."""
        return self.body.dirty and not names.is_litter(self.name) and not says_nothing(self.body.value())

    @property
    def volatile(self) -> bool:
        # A draft's size changes at close, when its front matter is completed.
        return self.key is None or self.busy

    async def save(self, body: Body) -> None:
        """Seal the note. Empty content stays a draft, and an editor's litter stays on this machine."""
        if self.key is None and names.is_litter(self.name):
            body.saved = body.changes
            return
        changes, raw = body.changes, body.value()
        if says_nothing(raw):
            return  # a new file stays a draft, and a stored note keeps its version
        about = await self.context.code.fields(self.live.space, raw, self.folder)
        seal = partial(
            self.live.form.seal,
            raw,
            path=self.path,
            written_name=self.written or self.name,
            space=self.live.space,
            agent=self.agent or self.context.agent_of(0),
            now=self.context.clock.now(),
            former=await self._former(),
            origin=self._origin(raw, about),
        )
        sealed = await aside(len(raw), seal)
        if self.key is None:
            self.key = self._free_key(sealed)
        elif (name := self.live.form.renewed(self.key.rpartition("/")[2], sealed)) != self.key.rpartition("/")[2]:
            self._move(body, self.live.prefix + name)
        with pending_attrs(self) as attrs:
            kept = {name: value for name, value in self.meta(attrs).items() if name != META_TRUST}
            info = await self.store(body, sealed.data, {**kept, **sealed.meta})
        body.saved, body.info = changes, info
        self._report_private(sealed.replaced)
        if body is not self.body or raw != sealed.data:
            self.body = Body(info)  # the next `open` gets the bytes of the bucket, the writer keeps those that it wrote
        self.parks = None
        self.live.known.sealed(self)

    def _origin(self, raw: bytes, about: Mapping[str, object]) -> Provenance:
        """How the text came: with a class that is given, or as a user has dictated it, or from an agent."""
        if self.given is not None:
            return Provenance(given=self.given, about=about)
        return replace(self.context.dictated.origin(self.live.space, raw, self.context.clock.now()), about=about)

    def _report_private(self, kinds: tuple[str, ...]) -> None:
        """Tell the writer which kinds of private text were replaced, if any were."""
        if kinds:
            self.context.errors.record("privacy", self.path, privacy.told(self.path, kinds))

    async def draft(self) -> bytes:
        data = self.body.value()
        return (await aside(len(data), partial(privacy.redact_file, data)))[0]

    @property
    def draft_path(self) -> str:
        return privacy.redact(self.path).text

    def _move(self, body: Body, key: str) -> None:
        """Move the object to the key that its new version needs."""
        if body.info is None:
            self.key = key
            return
        moved = self.context.replica.move(body.info, key, replaces=None)
        if self.body is not body and self.body.info is body.info:
            self.body.info = moved
        self.key, body.info = key, moved

    async def _former(self) -> Former | None:
        """The version that is about to be replaced."""
        if self.key is None:
            return None
        try:
            stored = await self.context.replica.read(self.key)
        except (errors.ObjectMissing, errors.Unreachable, errors.Throttled):
            return None  # without it the new version is sealed by itself
        return Former(self.key.rpartition("/")[2], stored.data, stored.info.meta or {})

    # --- its class of trust -------------------------------------------------------------------------------------

    async def xattrs(self) -> Mapping[str, bytes]:
        shown = dict(await super().xattrs())
        if self.key is not None:
            with suppress(errors.ObjectMissing, errors.NotText, errors.Unreachable, errors.Throttled):
                shown[TRUST] = (await trust_of_object(self.context.replica, self.key)).word.encode()
        return shown

    def sets(self, name: str) -> bool:
        return super().sets(name) or name == TRUST

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        if name != TRUST:
            await super().set_xattr(name, value, caller)
            return
        trust = Trust.named((value or b"").decode("utf-8", "replace"))
        if trust is None:
            raise errors.Unusable(f"trust is one of {', '.join(each.word for each in Trust)}", path=self.path)
        if self.key is None or self.busy:
            raise errors.BeingWritten("its trust can be set afterwards", path=self.path)
        info = await self.context.replica.names.stat(self.key)
        by = self.context.agent_of(caller.pid) if caller.pid else ""
        await vouch(self.context.replica, self.context.clock, info, trust, by=by)

    def _free_key(self, sealed: Sealed) -> str:
        """A canonical key that is free, as far as is known. A file with a canonical name keeps that name."""
        form, prefix = self.live.form, self.live.prefix
        if form.uid_of(self.name) and is_public(self.name):
            return prefix + self.name
        orders, now = self.context.replica.order, self.context.clock.now()
        order = orders.next(self.live.space, sealed.at, now) if sealed.at is not None else 0
        return self._first_free(lambda uid: prefix + sealed.named(uid), self.written, order)

    def _first_free(self, key_of: Callable[[str], str], written: str, order: int) -> str:
        if not is_public(written):
            written = token_hex(8)  # digits that follow from a name would let it be guessed
        for uid in self.live.form.uids(self.live.space, written, order):
            key = key_of(uid)
            if self.context.replica.names.now(key) is None:
                return key
        raise errors.AlreadyExists(path=self.path)

    async def rename(self, written: str) -> None:
        """Give a stored note another written name, and the canonical name that follows from it.

        Any mount then finds the note under its written name, from the names of a listing alone.
        """
        async with self._saving:
            assert self.key is not None  # the caller looked
            info = await self.context.replica.names.stat(self.key)
            self.written = written
            moved = self.context.replica.move(info, self._key_for(written), replaces=None)
            meta = {name: value for name, value in inherited(info).items() if name != META_NAME}
            info = self.context.replica.restamp(moved, meta | self.live.form.name_meta(self.written))
            if self.body.info is not None and self.body.info.etag == info.etag:
                self.body.info = info
            self.key, self.name = info.key, info.key.rpartition("/")[2]
        self._report_private(redacted_name(written).found)

    def _key_for(self, written: str) -> str:
        """The key of a stored note that is from now on called `written`."""
        form, prefix = self.live.form, self.live.prefix
        canonical = form.uid_of(self.name)
        if not canonical:
            public_as_it_is(written, self.path)
        if not canonical or (form.uid_of(written) and is_public(written)):
            return prefix + written
        order = order_of(canonical)
        return self._first_free(lambda uid: prefix + form.with_uid(self.name, uid), written, order)

    def meta(self, attrs: Mapping[str, str]) -> dict[str, str]:
        """As of any file, with the written name. The usual mode is left out, as in notes made by tool calls."""
        kept = super().meta(attrs) | self.live.form.name_meta(self.written)
        return {name: value for name, value in kept.items() if (name, value) != USUAL_MODE}
