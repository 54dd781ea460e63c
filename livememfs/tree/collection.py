"""`memories/`, `self/` and `goals/`: write a file, and it is remembered; remove it, and it is forgotten.

Owns what is shown of one such folder: memories that are there at this second, and `.history/` with what they were and
what was forgotten. Names, drafts and editors' litter are those of `live/`. Refuses directories (EPERM). Trio thread
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from livememfs.pipelines.memories import forget
from livememfs.records import keys
from livememfs.tree.bank import ReadOnlyDirectory
from livememfs.tree.form import MemoryForm
from livememfs.tree.live import Live
from livememfs.tree.node import Directory, Node

if TYPE_CHECKING:
    from livememfs.cache.replica import Listing
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context

HISTORY = ".history"
WHY = "it is what a memory was; `livememfs memories restore` brings one back"


class Collection(Live):
    """The memories of one kind in one space."""

    __slots__ = ("_history", "_noted")

    def __init__(self, parent: Directory, context: Context, space: str, folder: str) -> None:
        super().__init__(parent, context, space, MemoryForm(folder))
        self._noted: object = None
        self._history = ReadOnlyDirectory(self, HISTORY, context, keys.memory_history_prefix(space, folder), WHY)

    def shows(self, name: str) -> bool:
        parsed = keys.MemoryName.parse(name)
        ends = parsed.expires_at if parsed is not None else None
        return super().shows(name) and (ends is None or self.context.clock.now() < ends)

    async def _listing(self) -> Listing:
        listing = await super()._listing()
        if self.context.expiry is not None and listing.serial != self._noted:
            self._noted = listing.serial
            self.context.expiry.note(self.prefix + name for name in listing.objects if "_until_" in name)
        return listing

    async def child(self, name: str) -> Node:
        return self._history if name == HISTORY else await super().child(name)

    async def children(self) -> Sequence[tuple[str, Node]]:
        return [(HISTORY, self._history), *await super().children()]

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        return [(HISTORY, self._history), *await super().entries()]

    def met(self, name: str) -> Node | None:
        return self._history if name == HISTORY else super().met(name)

    async def discard(self, key: str, info: ObjectInfo) -> None:
        await forget(self.context.replica, self.context.clock, info)
