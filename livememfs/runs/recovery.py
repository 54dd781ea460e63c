"""Runs that were committed by a process that is no more, or by us while the store was failing: carried out by us.

Owns when to look and how long to insist. Refuses to do anything without the lease of the space: while its holder lives,
there is nothing to recover. Trio thread only.
"""

from __future__ import annotations

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.runs.apply import finish_open
from livememfs.runs.ledger import newest
from livememfs.spaces.lease import Leases

log = structlog.get_logger("livememfs.runs")

TRIED_EVERY = 30.0


class Recovery:
    """Finishes what is committed."""

    def __init__(self, replica: Replica, clock: Clock, leases: Leases) -> None:
        self._replica = replica
        self._clock = clock
        self._leases = leases
        self._insisting: set[str] = set()

    async def finish(self, space: str) -> bool:
        """Carry out the last run of a space if it is open; whether all is done. Raises nothing of the store's."""
        try:
            entry = await newest(self._replica, space)
            if entry is None or entry.state == "applied":
                return True
            async with self._leases.hold(space):
                await finish_open(self._replica, self._clock, space)
        except LiveMemError as error:
            log.info("a committed run could not be carried out yet", space=space, reason=str(error))
            return False
        return True

    async def insist(self, space: str) -> None:
        """Try until it is done; once for each space at a time."""
        if space in self._insisting:
            return
        self._insisting.add(space)
        try:
            while True:
                await trio.sleep(TRIED_EVERY)
                if await self.finish(space):
                    return
        finally:
            self._insisting.discard(space)
