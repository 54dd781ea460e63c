"""`observations/`: what was observed of agents at work, one file each.

Owns looking up an observation by its id alone, as timelines name it, and `rm`, which forgets it. Everything else is
read-only: the observer writes it. Trio thread only.
"""

from __future__ import annotations

import re

from livememfs import errors
from livememfs.records import keys
from livememfs.tree.context import Context
from livememfs.tree.node import Directory, Node
from livememfs.tree.space.bank import StoredDirectory

WHY = "the observer writes it; `rm` forgets an observation"
_BY_ID = re.compile(r"#?([0-9a-f]{8})\.md")


class ObservationsDirectory(StoredDirectory):
    """The observations of one space."""

    __slots__ = ()

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, keys.OBSERVATIONS, context, keys.observations_prefix(space), WHY)

    async def child(self, name: str) -> Node:
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
