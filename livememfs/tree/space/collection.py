"""`memories/`, `self/` and `goals/`: write a file, and it is remembered; remove it, and it is forgotten.

Owns what one such folder shows: memories that have not ended, `.history/` with former versions and forgotten
memories, views of them (`.by/`, `.recent/`, `.contradictions/`, `.stale/`), and `<memory>.links/`, which is found
but not listed; and by which names a memory is found. Drafts and editors' litter are as in `live/`. Refuses directories
(EPERM). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.cache.replica import Listing
from livememfs.memories.storing import forget, id_of
from livememfs.records import keys
from livememfs.records.sealing import MemoryForm
from livememfs.store.base import ObjectInfo
from livememfs.tree.context import Context
from livememfs.tree.node import Directory, Node
from livememfs.tree.space.bank import StoredDirectory
from livememfs.tree.space.contradictions import Contradictions
from livememfs.tree.space.links import SUFFIX as LINKS
from livememfs.tree.space.links import LinksDirectory
from livememfs.tree.space.live import Live
from livememfs.tree.space.memoryfile import MemoryFile
from livememfs.tree.space.shelf import Shelf
from livememfs.tree.space.stale import OfMemories, StaleRecords
from livememfs.tree.space.views import By, Recent

HISTORY = ".history"
WHY = "it is what a memory was; `livememfs memories restore` brings one back"
SUFFIX = ".md"


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory: its folder, and the name of its object."""

    collection: Collection
    name: str

    @property
    def id(self) -> str:
        """The name by which other memories link to it."""
        return id_of(self.name)

    @property
    def created(self) -> datetime:
        """When it was made, from its name; 1970 when the name has no time."""
        parsed = keys.MemoryName.parse(self.name)
        return parsed.timestamp if parsed is not None else datetime(1970, 1, 1, tzinfo=UTC)


class Collection(Live):
    """The memories of one kind in one space. `family` has all of the space's, by name, once the space is made."""

    __slots__ = ("_family", "_fixed", "_linked", "_noted", "shelf")

    def __init__(
        self, parent: Directory, context: Context, space: str, folder: str, family: Mapping[str, Collection]
    ) -> None:
        super().__init__(parent, context, space, MemoryForm(folder))
        self._family = family
        self._noted: object = None
        self.shelf = Shelf(context, space, folder)
        history = StoredDirectory(self, HISTORY, context, keys.memory_history_prefix(space, folder), WHY)
        stale = StaleRecords(self, context, space, OfMemories(self.shelf))
        fixed: tuple[Node, ...] = (By(self), Contradictions(self), history, Recent(self), stale)
        self._fixed = {node.name: node for node in fixed}
        self._linked: WeakValueDictionary[str, LinksDirectory] = WeakValueDictionary()

    def shows(self, name: str) -> bool:
        parsed = keys.MemoryName.parse(name)
        ends = parsed.expires_at if parsed is not None else None
        return super().shows(name) and (ends is None or self.context.clock.now() < ends)

    def make(self, name: str, info: ObjectInfo | None) -> MemoryFile:
        return MemoryFile(self, name, self.context, info)

    async def _listing(self) -> Listing:
        listing = await super()._listing()
        if listing.serial != self._noted:
            self._noted = listing.serial
            self.context.expiry.note(self.prefix + name for name in listing.objects if "_until_" in name)
        return listing

    # --- what a folder shows ----------------------------------------------------------------------------------

    async def file(self, name: str) -> MemoryFile:
        file = await super().file(name)
        assert isinstance(file, MemoryFile)  # `make` makes nothing else
        return file

    async def child(self, name: str) -> Node:
        if name in self._fixed:
            return self._fixed[name]
        try:
            return await super().child(name)
        except errors.NotFound:
            if not name.endswith(LINKS) or await self.find(name.removesuffix(LINKS)) is None:
                raise
        known = self._linked.get(name)
        if known is None:
            known = self._linked[name] = LinksDirectory(self, name)
        return known

    async def children(self) -> Sequence[tuple[str, Node]]:
        return [*self._fixed.items(), *await super().children()]

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        return [*self._fixed.items(), *await super().entries()]

    def met(self, name: str) -> Node | None:
        return self._fixed.get(name) or super().met(name)

    async def discard(self, key: str, info: ObjectInfo) -> None:
        await forget(self.context.replica, self.context.clock, info)

    # --- by which names a memory is found ---------------------------------------------------------------------

    async def _canonical(self, name: str, listing: Listing) -> str | None:
        """As in `live/`, and by the id, which stays the same when the object gets a name with another end time."""
        canonical = await super()._canonical(name, listing)
        if canonical is not None or name in self.known.parked or not self.form.uid_of(name):
            return canonical
        same = (
            other
            for other in listing.ending(self.form.uid_of(name))
            if id_of(other) == id_of(name) and self.shows(other)
        )
        return max(same, default=None)

    async def find(self, name: str) -> str | None:
        """The object of the memory with a name: its own or the written one, with or without `.md`."""
        listing = await self._listing()
        for candidate in dict.fromkeys((name.removesuffix(SUFFIX) + SUFFIX, name, name.removesuffix(SUFFIX))):
            canonical = candidate if candidate in listing.objects else await self._canonical(candidate, listing)
            if canonical is not None and self._is_memory(canonical):
                return canonical
        return None

    def _is_memory(self, name: str) -> bool:
        return keys.parse(self.prefix + name).kind == "memory" and self.shows(name)

    async def linked(self, name: str, folder: str = "") -> FoundMemory | None:
        """The memory of the space with a name: in the named folder, else here, else in another."""
        first = [self._family[folder]] if folder in self._family else []
        for collection in dict.fromkeys((*first, self, *self._family.values())):
            canonical = await collection.find(name)
            if canonical is not None:
                return FoundMemory(collection, canonical)
        return None
