"""The text index that belongs to a table of records: opened, brought to the step of the records, repaired.

Owns the folder `text/`. A mark that is both in the folder and among the records says that they belong together; a
folder with another mark, or a damaged one, is made anew from the records. Blocking. Writing is for one thread at a time
(the lock of the index, which is given); any thread may search.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from uuid import uuid4

from livememfs import private
from livememfs.recall.index.columns import MOSTLY, Columns
from livememfs.recall.index.exchanged import Damaged, Repairs, Restriction, TextQuery
from livememfs.recall.index.lexical import Lexical
from livememfs.recall.index.table import Delta, RecordTable

FED_AT_ONCE = 2_000
"""Pieces handed to the text index in one commit when it is made anew."""
SPARE = 1.2
"""How many more hits are taken where the filter is applied to them."""
_MARK = "incarnation"


class FullText:
    """The text index of one folder. `open` comes first, and again with every new table."""

    def __init__(self, folder: Path, writing: threading.RLock, repairs: Repairs) -> None:
        self._folder, self._writing, self._repairs = folder / "text", writing, repairs

    def open(self, table: RecordTable) -> None:
        """Open the text index of this table; a fresh one, at step 0, in place of any other."""
        self._table = table
        known = table.state(_MARK)
        try:
            if known is not None and (self._folder / _MARK).read_text() == known:
                self.lexical = Lexical(self._folder)
                return
        except (OSError, ValueError, Damaged):
            pass
        if known is not None:
            self._repairs.rebuilt.append("text")
        self._begin()

    def _begin(self) -> None:
        mark = uuid4().hex
        if self._folder.is_dir():
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            self._folder.unlink(missing_ok=True)
        # The mark is written to the folder last: after a crash before that, the folder is made anew once more.
        self._table.remember(_MARK, mark)
        self._table.remember("text", "0")
        self.lexical = Lexical(self._folder)
        private.write_text(self._folder / _MARK, mark)

    def catch_up(self) -> None:
        """Bring the text index to the step of the records."""
        delta = self.delta()
        try:
            if delta.pieces or delta.gone:
                self._repairs.redone += 1
                self._feed(delta)
            if len(self.lexical) != self._table.pieces_there():
                self._reconcile()
        except (Damaged, ValueError):
            self._make_anew()

    def _reconcile(self) -> None:
        """Take out pieces that have no record and put in those that are missing: cheaper than to make it anew."""
        indexed, wanted = self.lexical.numbers(), set(self._table.piece_numbers())
        extra, missing = indexed - wanted, wanted - indexed
        if len(missing) > len(indexed):
            self._make_anew()
            return
        self._repairs.redone += 1
        self.lexical.apply(extra, self._table.pieces(sorted(missing)))

    def _make_anew(self) -> None:
        self._repairs.rebuilt.append("text")
        self.lexical.close()
        self._begin()
        self._feed(self.delta())

    def delta(self) -> Delta:
        """What the text index has to take out and put in."""
        return self._table.lacking(int(self._table.state("text") or 0))

    def take(self, delta: Delta) -> None:
        """Take a delta in, by a new text index if need be. NoSpace."""
        try:
            self._feed(delta)
        except Damaged:  # its files were removed or changed while it was open; the records have everything
            self._make_anew()

    def _feed(self, delta: Delta) -> None:
        pieces = delta.pieces
        for start in range(0, max(len(pieces), 1), FED_AT_ONCE):
            self.lexical.apply(delta.gone if not start else (), pieces[start : start + FED_AT_ONCE])
        self._table.settled(delta.step)

    def search(
        self, query: TextQuery, where: Restriction, limit: int, columns: Columns
    ) -> tuple[list[tuple[int, float]], float]:
        """See `Engine.text`."""
        lexical = self.lexical
        try:
            return _best(lexical, query, where, limit, columns), lexical.ceiling(query)
        except Damaged:
            with self._writing:
                if self.lexical is lexical:  # otherwise another thread has made it anew meanwhile
                    self._make_anew()
            return _best(self.lexical, query, where, limit, columns), self.lexical.ceiling(query)


def _best(
    lexical: Lexical, query: TextQuery, where: Restriction, limit: int, columns: Columns
) -> list[tuple[int, float]]:
    """The best hits. Where nearly every piece fits, it takes a third of the time to search all and leave out the rest:
    a search with a filter cannot skip what scores too low.
    """
    share = columns.share(where)
    if share > MOSTLY:
        more = int(limit / share * SPARE)
        hits = lexical.search(query, Restriction(), more)
        fits = columns.fitting([number for number, _ in hits], where)
        fitting = [hit for hit, is_fitting in zip(hits, fits, strict=True) if is_fitting]
        if len(fitting) >= limit or len(hits) < more:
            return fitting[:limit]
    return lexical.search(query, where, limit)
