"""Whether a space lets words from the web be told to an agent that did not ask for them.

Owns that the answer costs no request while the space's record is known here, and that it is no where it cannot be had:
what strangers wrote is told only when somebody said so. Trio thread only.
"""

from __future__ import annotations

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.space import Meta

PATIENCE = 0.3
"""Seconds that a message waits for the record of a space that was never read here."""


class WebAllowed:
    """What the spaces of one bucket allow."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._known: dict[str, tuple[str, bool]] = {}

    async def of(self, space: str) -> bool:
        """Whether `space` allows it. Raises nothing."""
        key = keys.meta_key(space)
        now, known = self._replica.names.now(key), self._known.get(space)
        if now is not None and known is not None and known[0] == now.etag:
            return known[1]
        try:
            with trio.fail_after(PATIENCE):
                stored = await self._replica.read(key)
            allowed = Meta.parse(stored.data).allow_web
        except (LiveMemError, ValueError, trio.TooSlowError):
            return False
        self._known[space] = stored.info.etag, allowed
        return allowed
