"""What a schedule knows of one space: its notes, what a run has left of them, and so when the next run is due.

Owns which notes count: for consolidations all, for digests those that no digest has read. An hour at which there is
nothing to digest has passed, and a note that comes later waits for the next one. Refuses to start anything. Trio thread
only.
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
"""A space that nobody looks at for a day is watched no more, so it is looked at now and then."""
CATCH_UP_AFTER = timedelta(hours=4)
"""A digest is made up for at the start when the last one is older."""


@dataclass(eq=False)
class Scheduled:
    """One space with a schedule for one kind of run. Notes are (name, etag).

    :begun:  when the mount began
    :left:   notes that were not taken by a run; they start no other
    :held:   what holds a run back that is due, in words
    :passed: hours up to this moment had nothing to digest
    :missed: whether a digest may still be made up for
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
        prefix, asked = keys.live_prefix(self.name), trio.current_time()
        level = replica.names.levels.get(prefix)
        try:
            if level is None or asked - self._listed > WATCHED_ANEW:
                level = await replica.names.listing(prefix)
                self._listed = asked
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
        """Ask anew which notes are there, and which were digested: somebody has made a run."""
        self._serial, self._digested = 0, None

    def _take_in(self, prefix: str, level: Level, now: datetime) -> None:
        digested = self._digested or frozenset()
        found = {
            name: info
            for name, info in level.objects.items()
            if is_note(prefix + name) and digest_mark(prefix + name, info.etag) not in digested
        }
        self.notes = frozenset((name, info.etag) for name, info in found.items())
        self.left &= self.notes
        new = [info.modified_ns for name, info in found.items() if (name, info.etag) not in self.left]
        written = datetime.fromtimestamp(max(new) // 1_000_000_000, UTC) if new else None
        if written is not None and written > now:
            written = self.heard  # a store whose clock is ahead must not put the run off
        self.waiting = Waiting(len(new), written)

    # --- when -----------------------------------------------------------------------------------------------

    def look(self, book: Book, now: datetime, *, spent: bool) -> None:
        """Find out when the next run is due. A digest that would find nothing is not."""
        self.next = self.when(book, now, spent=spent)
        if self.kind == "digest" and not self.held and not self.waiting.notes:
            self.missed = False
            if self.next.is_due(now):
                self.passed = now
            self.next = self.when(book, now, spent=spent)

    def when(self, book: Book, now: datetime, *, spent: bool) -> Next:
        """The next run by what a book remembers. `spent`: the day's tokens are used up."""
        past = book.past(self.name, self.kind)
        served, catch_up = past.served, None
        if self.kind == "digest":
            # A clock that was ahead, here or elsewhere, must not put off what is due until its time has come.
            last, passed = (not_ahead(moment, now) for moment in (self._last, self.passed))
            served = _latest(served, last)
            is_old = served is None or served < self.begun - CATCH_UP_AFTER
            catch_up = self.begun if self.missed and is_old else None
            served = _latest(served, passed)
        # Where the book was lost, the hours since the mount began are served still: else none would ever be due.
        known = replace(past, served=served or self.begun)
        return next_run(self.schedule, self.waiting, known, spent=spent, now=now, zone=self.zone, catch_up=catch_up)

    def past(self, book: Book) -> Past:
        """What a book remembers of it."""
        return book.past(self.name, self.kind)


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)
