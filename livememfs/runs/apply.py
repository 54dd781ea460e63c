"""Carrying out a committed run of any kind: by the run itself, or for a process that died.

Owns the order: first the objects are written, then the notes are removed, then the entry is marked as applied. A crash
between two steps loses nothing: every step checks whether it was made before. Owns when open runs are looked for, too.
Refuses to do anything without the lease of the space: while its holder lives, there is nothing to recover. Trio thread
only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.kinds import WORKS
from livememfs.runs.ledger import Applied, newest, remove_notes, write_objects
from livememfs.spaces.lease import Leases

log = structlog.get_logger("livememfs.runs")

TRIED_EVERY = 30.0


async def carry_out(
    replica: Replica, clock: Clock, entry: Entry, report: Callable[[str], None], *, again: bool = False
) -> Applied:
    """Write all that a committed entry says, then remove its notes. To do it again changes nothing more.

    :report: called with `removing` before the first note is removed
    :again:  a part of it may have been carried out before

    Raises the store's failures, but only before a note is removed; a failure after that is in the result.
    """
    work = WORKS.get(entry.kind)
    if work is not None:
        await work.write(replica, clock, entry, again=again)
    else:
        await write_objects(replica, entry)
    report("removing")
    applied = await remove_notes(replica, entry.removes)
    if applied.failure is None:
        await _mark(replica, entry.applied(clock.now()))
    return applied


async def finish_open(replica: Replica, clock: Clock, space: str) -> Entry | None:
    """Carry out the last run of a space if it is open; the caller holds the lease. Returns the last run."""
    entry = await newest(replica, space)
    if entry is None or entry.state == "applied":
        return entry
    log.info("a committed run is carried out", space=space, number=entry.number, host=entry.host)
    applied = await carry_out(replica, clock, entry, lambda _: None, again=True)
    if applied.failure is not None:
        raise applied.failure
    return entry


async def _mark(replica: Replica, entry: Entry) -> None:
    """Mark the entry as applied. A failure does no harm: the next attempt finds everything done."""
    with suppress(LiveMemError):
        await replica.put(keys.ledger_key(entry.space, entry.number), entry.render())


class Recovery:
    """Finishes runs that were committed and left open."""

    def __init__(self, replica: Replica, clock: Clock, leases: Leases) -> None:
        self._replica = replica
        self._clock = clock
        self._leases = leases
        self._insisting: set[str] = set()

    async def finish(self, space: str) -> bool:
        """Carry out the last run of a space if it is open; whether all is done. A failure of the store is logged."""
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
        """Try again until it is done. A second call for the same space returns at once."""
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
