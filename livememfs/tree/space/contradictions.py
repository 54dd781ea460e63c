"""`.contradictions/` of a folder of memories: pairs that cannot both hold, each in a file.

Owns which pairs there are: memories that are linked by `contradicts`, as long as both are there and still say so. It
is computed at each look from the memories alone, so that every host shows the same. Refuses every change (EROFS): who
edits or removes one of the two ends the pair. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs.errors import NotText, ObjectMissing
from livememfs.memories.merging import contradicts
from livememfs.memories.storing import id_of
from livememfs.recall.likeness.contradiction import RELATION, told
from livememfs.records.attributes import linked
from livememfs.records.memory import Memory
from livememfs.tree.computed import ComputedFile, ReadOnlyDirectory
from livememfs.tree.node import Node

if TYPE_CHECKING:
    from livememfs.tree.space.collection import Collection

NAME = ".contradictions"
WHY = "livememfs computes it; edit or remove one of the two memories"


@dataclass(frozen=True)
class _Pair:
    """Two memories by the names of their objects; `link`: by what name the newer one is linked to the older."""

    older: str
    newer: str
    link: str


class Contradictions(ReadOnlyDirectory):
    """The directory; `collection` is the folder that it is in."""

    __slots__ = ("collection",)

    def __init__(self, collection: Collection) -> None:
        super().__init__(collection, NAME, WHY)
        self.collection = collection

    async def children(self) -> Sequence[tuple[str, Node]]:
        shelf = self.collection.shelf
        found: dict[str, Node] = {}
        for name in (await shelf.contents()).names:
            memory = shelf.known(name)
            for target in linked(memory, RELATION) if memory is not None else ():
                other = await self.collection.find(target)
                pair = _Pair(other, name, target) if other is not None and other != name else None
                if pair is not None and await self._text(pair):
                    shown = f"{id_of(name)}_{RELATION}_{id_of(pair.older)}.md"
                    found[shown] = self._file(shown, pair)
        return sorted(found.items())

    def _file(self, shown: str, pair: _Pair) -> Node:
        async def content() -> bytes:
            return await self._text(pair)

        return self.held(shown, lambda name: ComputedFile(self, name, self.collection.context, content))

    async def _text(self, pair: _Pair) -> bytes:
        """What the file of a pair says; nothing when it is none any more."""
        older, newer = await self._memory(pair.older), await self._memory(pair.newer)
        if older is None or newer is None or not contradicts(newer, older, pair.link):
            return b""
        line = told(older.content, older.updated_at.timestamp(), newer.content, newer.updated_at.timestamp())
        return f"{line}\n\n- ../{pair.older}\n- ../{pair.newer}\n".encode()

    async def _memory(self, name: str) -> Memory | None:
        """With its text, which a shelf does not keep."""
        if await self.collection.shelf.one(name) is None:
            return None
        key = self.collection.prefix + name
        try:
            data = (await self.collection.context.replica.read(key)).data
            return Memory.parse(data, path=key, collection=self.collection.form.folder, name=name)
        except (ObjectMissing, NotText):
            return None
