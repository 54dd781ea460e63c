"""What a schedule knows of one space: its notes, those that a run has left, and when the next run is due.

Owns which notes count: for consolidations all, for digests those that no digest has read. An hour without notes to
digest is over; a note that comes later waits for the next hour. Refuses to start anything. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

import trio

from livememfs.cache.levels import Level
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.ledger import digest_mark
from livememfs.records.schedule import SpaceSchedule
from livememfs.records.schedule_book import Book, Past, not_ahead
from livememfs.runs.ledger import newest_digest
from livememfs.runs.notes import is_note
from livememfs.runs.options import RunKind
from livememfs.runs.schedule.triggers import Next, Waiting, next_run

WATCHED_ANEW = 21_600.0
"""Seconds between two listings of a space: one that nobody lists for a day is not watched any more."""
CATCH_UP_AFTER = timedelta(hours=4)
"""When the last digest is older, the next one is made when the mount begins."""


@dataclass(eq=False)
class Scheduled:
    """One space with a schedule for one kind of run. Notes are (name, etag).

    :begun:  when the mount began
    :left:   notes that a run has left; they start no other run
    :held:   what holds back a run that is due, in words
    :passed: up to this moment no hour had anything to digest
    :missed: whether a digest may still be caught up on
    """

    kind: RunKind
    name: str
    schedule: SpaceSchedule
    zone: tzinfo | None
    begun: datetime
    heard: datetime
    waiting: Waiting = field(default_factory=Waiting)
    notes: frozenset[tuple[str, str]] = frozenset()
    left: frozenset[tuple[str, str]] = frozenset()
    next: Next = field(default_factory=Next)
    held: str = ""
    running: bool = False
    passed: datetime | None = None
    missed: bool = True
    _serial: int = 0
    _listed: float = float("-inf")
    _digested: frozenset[str] | None = None
    _last: datetime | None = None

    # --- the notes ------------------------------------------------------------------------------------------

    async def count(self, replica: Replica, clock: Clock) -> None:
        """Count the notes again if any came, changed or went."""
        prefix, now = keys.live_prefix(self.name), trio.current_time()
        level = replica.names.levels.get(prefix)
        try:
            if level is None or now - self._listed > WATCHED_ANEW:
                level = await replica.names.listing(prefix)
                self._listed = now
            if self.kind == "digest" and self._digested is None:
                last = await newest_digest(replica, self.name)
                self._digested = frozenset(last.digested if last is not None else ())
                self._last = last.committed_at if last is not None else None
                self._serial = 0
        except LiveMemError as error:
            self.held = f"its notes cannot be listed: {error}"
            return
        if level.serial != self._serial:
            self._serial = level.serial
            self._take_in(prefix, level, clock.now())

    def forget(self) -> None:
        """Have notes and marks of digests read again by the next `count`: a run was made."""
        self._serial, self._digested = 0, None

    def _take_in(self, prefix: str, level: Level, now: datetime) -> None:
        digested = self._digested or frozenset()
        counted = {
            name: info
            for name, info in level.objects.items()
            if is_note(prefix + name) and digest_mark(prefix + name, info.etag) not in digested
        }
        self.notes = frozenset((name, info.etag) for name, info in counted.items())
        self.left &= self.notes
        new = [info.modified_ns for name, info in counted.items() if (name, info.etag) not in self.left]
        written = datetime.fromtimestamp(max(new) // 1_000_000_000, UTC) if new else None
        if written is not None and written > now:
            written = self.heard  # a store whose clock is ahead must not put the run off
        self.waiting = Waiting(len(new), written)

    # --- when -----------------------------------------------------------------------------------------------

    def look(self, book: Book, now: datetime, *, spent: bool) -> None:
        """Find out when the next run is due. A digest without notes is not due."""
        self.next = self.when(book, now, spent=spent)
        if self.kind == "digest" and not self.held and not self.waiting.notes:
            self.missed = False
            if self.next.is_due(now):
                self.passed = now
            self.next = self.when(book, now, spent=spent)

    def when(self, book: Book, now: datetime, *, spent: bool) -> Next:
        """The next run by a book. `spent`: the day's tokens are used up."""
        past = book.past(self.name, self.kind)
        served, catch_up = past.served, None
        if self.kind == "digest":
            # A moment in the future comes from a clock that was ahead: it must not put a digest off until then.
            last, passed = (not_ahead(moment, now) for moment in (self._last, self.passed))
            served = _latest(served, last)
            is_old = served is None or served < self.begun - CATCH_UP_AFTER
            catch_up = self.begun if self.missed and is_old else None
            served = _latest(served, passed)
        # Without a book the hours before the mount began count as served; those after it become due.
        known = replace(past, served=served or self.begun)
        return next_run(self.schedule, self.waiting, known, spent=spent, now=now, zone=self.zone, catch_up=catch_up)

    def past(self, book: Book) -> Past:
        """What a book has about this space."""
        return book.past(self.name, self.kind)


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)
