"""Who opened the file of a record: that is a use of it, unless all files are opened, as by `grep -r`, a backup or an
indexer.

Owns telling the two apart: a use is counted when a reader has opened a few and then rests. Refuses to know processes:
the caller says who belongs together, and is not asked for each file of many. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

RESTS = 5.0
"""Seconds without another file after which a reader has read what it wanted."""
FEW = 5
"""Records that somebody reads who means them."""
MOST_READERS = 256


@dataclass(eq=False)
class _Reader:
    """What one reader has opened since it last rested."""

    records: set[tuple[str, str]] = field(default_factory=set)
    last: float = 0.0


class Opened:
    """The readers of one mount."""

    def __init__(self) -> None:
        self._readers: dict[int, _Reader] = {}
        self._asked: dict[int, tuple[int, float]] = {}

    def reader(self, pid: int, now: float, find: Callable[[int], int]) -> int:
        """The reader that a process is, or belongs to; 0 for none. What `find` says counts for a moment."""
        known, at = self._asked.get(pid, (0, float("-inf")))
        if now - at >= RESTS:
            self._asked.pop(pid, None)
            self._asked[pid] = known, _ = find(pid), now
            while len(self._asked) > MOST_READERS:
                del self._asked[next(iter(self._asked))]
        return known

    def note(self, reader: int, space: str, key: str, now: float) -> None:
        """A reader opened a record at `now`, in seconds of any clock. Ask `rested` first."""
        known = self._readers.setdefault(reader, _Reader())
        known.last = now
        if len(known.records) <= FEW:  # one more than a few says enough
            known.records.add((space, key))
        while len(self._readers) > MOST_READERS:
            del self._readers[next(iter(self._readers))]

    def rested(self, now: float) -> list[tuple[str, str]]:
        """The space and key of each record that was used, once each reader rests."""
        done = [reader for reader, known in self._readers.items() if now - known.last >= RESTS]
        few = (known.records for known in map(self._readers.pop, done) if len(known.records) <= FEW)
        return sorted(record for records in few for record in records)
