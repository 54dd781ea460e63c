"""One memory as a file: its fields are attributes too.

Owns reading and setting them. Setting one is an edit like any other: it makes and seals a new version. Refuses values
that cannot be used (EINVAL) and a file that somebody is writing (EBUSY). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import trio

from livememfs import errors
from livememfs.memories import uses
from livememfs.memories.storing import trust_of_object
from livememfs.records import attributes
from livememfs.records.memory import Memory
from livememfs.records.sealing import says_nothing
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.times import iso
from livememfs.tree.node import NOBODY, UNLISTED, AttrChange, Caller, OpenMode
from livememfs.tree.objectfile import held
from livememfs.tree.space.note import NoteFile

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context
    from livememfs.tree.space.collection import Collection

PREFIX = "user.livememfs."
MISSING = "links_missing"
"""How many of its links lead to missing memories."""


class MemoryFile(NoteFile):
    """A file in `memories/`, `self/` or `goals/`."""

    __slots__ = ("_one_by_one", "collection")

    def __init__(self, collection: Collection, name: str, context: Context, info: ObjectInfo | None) -> None:
        super().__init__(collection, name, context, info)
        self.collection = collection
        self._one_by_one: trio.Lock | None = None

    @property
    def by_caller(self) -> bool:
        """False while a field is being set: the kernel has seen no write, and must ask for the size again."""
        return self._one_by_one is None or not self._one_by_one.locked()

    async def xattrs(self) -> Mapping[str, bytes]:
        attributes_shown = dict(await super().xattrs())
        with suppress(errors.Unreachable, errors.Throttled):
            attributes_shown |= {PREFIX + name: text.encode() for name, text in (await self._shown()).items()}
        return attributes_shown

    async def _shown(self) -> dict[str, str]:
        shelf, name = self.collection.shelf, self.name
        memory = await shelf.one(name) if self.key is not None else None
        if memory is None:
            return {}
        await self.context.uses.known(self.live.space)
        worth = {
            field: iso(value) if isinstance(value, datetime) else str(value)
            for field, value in uses.shown(shelf.worth(name)).items()
            if value is not None and PREFIX + field in UNLISTED
        }
        shown = {**attributes.shown(memory, shelf.score(name, memory)), **worth}
        missing = [link for _, link in memory.links if await self.collection.linked(link) is None]
        return {**shown, MISSING: str(len(missing))} if missing else shown

    def sets(self, name: str) -> bool:
        return super().sets(name) or name.removeprefix(PREFIX) in attributes.SETTABLE

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        field = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or field not in attributes.SETTABLE:
            await super().set_xattr(name, value, caller)
            return
        try:
            text = value.decode() if value is not None else None
        except UnicodeDecodeError:
            raise errors.Unusable(f"what {field} was set to is no text", path=self.path) from None
        now = self.context.clock.now()
        await self.amend(lambda memory: attributes.changed(memory, field, text, now))

    async def amend(self, change: Callable[[Memory], Memory]) -> None:
        """Make a new version of the memory. Unusable with the reason of a ValueError, BeingWritten.

        New links are stored with the ids of the memories that they lead to.
        """
        if self._one_by_one is None:
            self._one_by_one = trio.Lock()
        async with held(self._one_by_one):
            if self.key is None or self.busy:
                raise errors.BeingWritten("its fields can be set afterwards", path=self.path)
            handle = await self.open(OpenMode(write=True), NOBODY)
            try:
                self.given = await trust_of_object(self.context.replica, self.key)  # other fields leave it as it is
                before = Memory.parse(self.body.value(), path=self.path, collection=self.live.form.folder)
                data = await self._amended(before, change)
                if says_nothing(data):  # the close would store nothing, without an error
                    raise errors.Unusable("there is nothing in the memory; write its text first", path=self.path)
                await handle.change(self, AttrChange(size=0), NOBODY)
                await handle.write(0, data)
                await handle.flush()
                self._edited(before, data)
            finally:
                self.given = None
                await handle.release()

    async def _amended(self, before: Memory, change: Callable[[Memory], Memory]) -> bytes:
        try:
            after = change(before)
            links = [link if link in before.links else await self._resolved(*link) for link in after.links]
            return attributes.with_links(after, links).render(whole=True)
        except FrontMatterError as error:
            raise errors.TooLarge(path=self.path, detail=f"its front matter: {error}") from error
        except ValueError as error:
            raise errors.Unusable(str(error), path=self.path) from error

    def _edited(self, before: Memory, data: bytes) -> None:
        """A field of a memory that was told is set, or it is linked to one: both are uses."""
        after = Memory.parse(data, path=self.path, collection=self.live.form.folder)
        linked = [name for link in after.links if link not in before.links for name in link[1:]]
        space, uses = self.live.space, self.context.uses
        uses.count(
            space, [record for record in (self.collection.prefix + self.name, *linked) if uses.of(space, record).told]
        )

    async def _resolved(self, relation: str, name: str) -> tuple[str, str]:
        memory = await self.collection.linked(name)
        if memory is None:
            raise ValueError(f"no memory of this space is called {name!r}")
        if (memory.collection, memory.name) == (self.collection, self.name):
            raise ValueError("a memory is not linked to itself")
        return relation, memory.id
