"""What a replica tells of itself: one record for all that it is made of.

Owns the form alone. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from livememfs.cache.blobs import BlobStatistics
from livememfs.cache.journal.steps import JournalStatistics
from livememfs.cache.readahead import ReadaheadStatistics
from livememfs.cache.uploader import UploaderStatistics
from livememfs.cache.watcher import WatcherStatistics


@dataclass(frozen=True)
class ReplicaStatistics:
    """Counters since the start, and what each part holds. `failing_s`: seconds since the store began to fail;
    `unkept`: names that the next mount does not know of yet.
    """

    levels: int
    known: int
    unkept: int
    listings: int
    listing_hits: int
    writes: int
    deletes: int
    last_error: str
    failing_s: float | None
    contents: BlobStatistics
    journal: JournalStatistics
    uploader: UploaderStatistics
    watcher: WatcherStatistics
    readahead: ReadaheadStatistics
