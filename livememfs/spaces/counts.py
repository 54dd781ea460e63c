"""Correcting the count of consolidations in a space's record that the first version of livememfs wrote.

That version wrote the number of the last run in place of the count. Owns how such a record is found and corrected.
Runs that a Live Memory server has counted since are kept. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from livememfs.cache.replica import Replica
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.space import Meta
from livememfs.spaces.entries import digests_in, entries_in, runs


async def put_right(replica: Replica, space: str, meta: Meta, *, before: int | None = None) -> Meta:
    """A record of a space with the count of consolidations that stand.

    :before: the run that was the next one when the record was written; None: the record is today's

    A record with the number of the last run is right; no run is read then.
    """
    if meta.ledger and (before is not None or meta.ledger >= await _last_but_digests(replica, space)):
        return meta
    entries = await runs(replica, space)
    return counted(meta, entries if before is None else [entry for entry in entries if entry.number < before])


async def _last_but_digests(replica: Replica, space: str) -> int:
    """The number of the last run that wrote the record: a run of the first version may have followed one of ours."""
    infos = await replica.names.walk(keys.ledger_prefix(space))
    digests = set(digests_in(infos))
    return max((number for number in entries_in(infos) if number not in digests), default=0)


def counted(meta: Meta, entries: Sequence[Entry]) -> Meta:
    """The same, by all runs that were there when the record was written.

    The count is right without runs, and when this version wrote the record last: a Live Memory server then left out our
    field. The numbers of the first version have a gap for each run of such a server.
    """
    by_number = {entry.number: entry for entry in entries}
    wrote = sorted(entry.number for entry in entries if entry.changes_bank)
    if not wrote or _names_its_run(by_number[wrote[-1]]):
        return meta
    at = max((number for number in wrote if number <= meta.consolidation_count), default=0)
    count = meta.consolidation_count - at
    while at > 0:
        run = by_number.get(at)
        count += run is None or run.kind == "consolidation"
        at = min(at, run.undoes if run is not None and run.kind == "undo" else at) - 1
    return replace(meta, consolidation_count=count)


def _names_its_run(run: Entry) -> bool:
    record = next((write.content for write in run.writes if write.key == keys.META), None)
    try:
        return record is not None and Meta.parse(record.encode()).ledger == run.number
    except ValueError:
        return False
