"""Reading and changing `_system/schedule.json`: what all hosts of a bucket remember of scheduled runs.

Owns that two hosts change it one after the other, and that a run counts once, however often its end is written. Refuses
to fail: while the store is away, ends of runs are remembered here and written later. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import ConflictRetry, LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.schedule_book import Book, Past
from livememfs.runs.options import RunKind
from livememfs.spaces.objects import put_version
from livememfs.text.foreign import read_object

log = structlog.get_logger("livememfs.runs")

TRIES = 5


@dataclass(frozen=True)
class _Owed:
    """The end of a run that the object does not have yet."""

    space: str
    past: Past
    tokens: int
    kind: RunKind


class ScheduleMemory:
    """`book` is what was last read or written, with the runs of this process that have ended since."""

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self.book = Book()
        self._replica = replica
        self._clock = clock
        self._owed: list[_Owed] = []

    async def update(self, change: Callable[[Book], Book | None]) -> bool | None:
        """Write what `change` makes of the newest book. False when `change` returns None: nothing is to be changed.

        None when the store failed, or others were faster each time: it is not known whether it was written.
        """
        try:
            for _ in range(TRIES):
                book, etag = await self._read()
                settled = self._settled(book)
                wanted = change(settled)
                if await self._write(wanted or settled, book, etag):
                    self.book = wanted or settled
                    self._owed.clear()
                    return wanted is not None
        except LiveMemError as error:
            log.info("what is remembered of the schedule cannot be reached", reason=str(error))
        return None

    def owe(self, space: str, past: Past, tokens: int, kind: RunKind = "consolidation") -> None:
        """Remember the end of a run, here for now; `settle` brings it to the bucket."""
        self._owed.append(_Owed(space, past, tokens, kind))
        self.book = self._settled(self.book)

    async def settle(self) -> None:
        """Write the ends of runs that are owed. While the store is away they stay owed."""
        if self._owed:
            await self.update(lambda _: None)

    def _settled(self, book: Book) -> Book:
        """The book with the runs that are owed. One that was written, although the answer was lost, counts once."""
        for owed in self._owed:
            known = book.past(owed.space, owed.kind)
            if (known.host, known.ended) != (owed.past.host, owed.past.ended):
                book = book.with_past(owed.space, owed.past, owed.kind).with_tokens(owed.tokens, self._clock.now())
        return book

    async def _read(self) -> tuple[Book, str | None]:
        try:
            stored = await self._replica.read(keys.schedule_key(), fresh=True)
        except ObjectMissing:
            return Book(), None
        await self._replica.unread.read(stored, read_object)
        return Book.parse(stored.data, self._clock.now()), stored.info.etag

    async def _write(self, book: Book, before: Book, etag: str | None) -> bool:
        """Whether the object has this book now; False when it was changed meanwhile."""
        if book is before:
            return True
        try:
            await put_version(self._replica, keys.schedule_key(), book.render(), etag)
        except (PreconditionFailed, ConflictRetry):
            return False
        return True
