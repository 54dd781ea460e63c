"""`observations/`: what was observed of agents at work, one file each.

Owns looking up an observation by its id alone, as timelines name it; `rm`, which forgets it; and `.stale/`, which is
found but not listed, since whoever looks there has code read. Everything else is read-only: the observer writes it.
Trio thread only.
"""

from __future__ import annotations

import re

from livememfs import errors
from livememfs.records import keys
from livememfs.tree.context import Context
from livememfs.tree.node import Directory, Node
from livememfs.tree.space.bank import StoredDirectory
from livememfs.tree.space.stale import NAME as STALE
from livememfs.tree.space.stale import OfObservations, StaleRecords

WHY = "the observer writes it; `rm` forgets an observation"
_BY_ID = re.compile(r"#?([0-9a-f]{8})\.md")


class ObservationsDirectory(StoredDirectory):
    """The observations of one space."""

    __slots__ = ("_stale",)

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, keys.OBSERVATIONS, context, keys.observations_prefix(space), WHY)
        self._stale = StaleRecords(self, context, space, OfObservations(context, space))

    def met(self, name: str) -> Node | None:
        return self._stale if name == STALE else super().met(name)

    async def child(self, name: str) -> Node:
        if name == STALE:
            return self._stale
        match = _BY_ID.fullmatch(name)
        return await super().child(await self._named(match[1]) or name if match is not None else name)

    async def _named(self, uid: str) -> str | None:
        """The whole name of the observation with an id; the newest if there are several."""
        listing = await self.context.replica.names.listing(self.prefix)
        return max(listing.ending(uid), default=None)

    async def unlink(self, name: str) -> None:
        node = await self.child(name)
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(node.name)
        if info is None:
            raise errors.NotFound(path=self.path_of(name))
        self.context.replica.remove(info.key, base=info)
