"""Carrying out what is committed, whoever committed it: all hosts finish the runs of all kinds.

Owns the order: what the kind of run writes, then the notes go, then the entry says that it is done. Every step looks
whether it was made already. Refuses to take a note away before everything else is written. Trio thread only; the caller
holds the lease of the space.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.kinds import WORKS
from livememfs.runs.ledger import Applied, newest, remove_notes, write_objects

log = structlog.get_logger("livememfs.runs")


async def carry_out(
    replica: Replica, clock: Clock, entry: Entry, report: Callable[[str], None], *, again: bool = False
) -> Applied:
    """Make everything so that a committed entry says; the notes go last. Whoever does it again changes nothing more.

    :report: told `removing` before the first note goes
    :again:  somebody may have carried out a part of it

    Raises what the store fails with, before any note is gone.
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
    """Carry out the last run of a space if nobody has; the caller holds the lease. Returns the last run."""
    entry = await newest(replica, space)
    if entry is None or entry.state == "applied":
        return entry
    log.info("a committed run is carried out", space=space, number=entry.number, host=entry.host)
    applied = await carry_out(replica, clock, entry, lambda _: None, again=True)
    if applied.failure is not None:
        raise applied.failure
    return entry


async def _mark(replica: Replica, entry: Entry) -> None:
    """Note that it was carried out. Not worth a failure: whoever looks again finds everything done."""
    with suppress(LiveMemError):
        await replica.put(keys.ledger_key(entry.space, entry.number), entry.render())
