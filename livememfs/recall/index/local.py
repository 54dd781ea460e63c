"""The index: records, text and meaning in one place, derived from the bucket and rebuilt from it at any time.

Owns the folder `index/` and the order of its three parts. The records come first, and say which pieces the text index
(`fulltext`) and the memory (`loaded`) lack; so a crash anywhere is healed by doing the last steps again, and a part
that is damaged, missing or of another index is made anew from the records. Refuses to read a bucket (`feeder` does) and
to rank (`search` does). Blocking: for worker threads. One may write at a time, any may ask.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from livememfs import private
from livememfs.errors import CacheInUse, LiveMemError
from livememfs.recall.index.changeover import ChangeOver
from livememfs.recall.index.engine import Engine, IndexStatistics, Read
from livememfs.recall.index.exchanged import Damaged, Linked, Repairs, Restriction, Stored, TextQuery
from livememfs.recall.index.fulltext import FullText
from livememfs.recall.index.loaded import Loaded
from livememfs.recall.index.merits import Foremost, UnaskedMemories, Use
from livememfs.recall.index.pieces import PieceText
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.recordfile import is_damage
from livememfs.recall.index.table import RecordTable
from livememfs.recall.index.vectors import Floats, packed, unit


class Index(Engine):
    """The index in one folder. `model`: the model whose vectors are made, and searched when all are there (see
    `ChangeOver`); `place`: the path that it is loaded from, if it has one.

    `table` has the records; callers that only read them call it directly. For the methods see `Engine`.
    """

    change: ChangeOver

    def __init__(self, folder: Path, model: str, place: str = "") -> None:
        self.folder, self.model, self._place = folder, model, place
        self.repairs = Repairs()
        self._writing = threading.RLock()
        self._uses: dict[tuple[str, str], Use] = {}
        private.make(folder)
        self._lock = _locked(folder)
        self.fulltext = FullText(folder, self._writing, self.repairs)
        try:
            try:
                self.table = RecordTable(folder / "records.db")
            except Damaged:
                self._make_table()
            try:
                self._load()
            except (sqlite3.DatabaseError, Damaged) as error:  # damaged further on than where opening looks
                if not is_damage(error):
                    raise
                self._make_table()
                self._load()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Give the folder to the next process. Nobody may be asking any more."""
        with self._writing:
            with suppress(OSError, LiveMemError, sqlite3.Error):  # a full disk, damaged records: nothing is kept
                self.loaded.keep()
            self.fulltext.lexical.close()
            self.table.close()
            os.close(self._lock)

    def _load(self) -> None:
        """Bring the text index and the memory to the step of the records."""
        self.change = ChangeOver(self.table, self.folder, self.model, self._place, self._uses, self._writing)
        self.fulltext.open(self.table)
        self.loaded = Loaded(self.table, self.folder, self.model, self._uses)
        self.fulltext.catch_up()
        self.loaded.load(self.repairs)

    def _make_table(self) -> None:
        self.repairs.rebuilt.append("records")
        for old in self.folder.glob("records.db*"):
            old.unlink()
        self.table = RecordTable(self.folder / "records.db")

    def make_anew(self) -> None:
        """Begin with no records, as those there are damaged. The feeder then compares the bucket with the index."""
        with self._writing:
            self._make_table()  # the old one is not closed, since threads may be reading it
            self.fulltext.lexical.close()
            self._load()

    # --- writing --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        return self.table.objects(prefix)

    def apply(self, gone: Iterable[str], read: Iterable[Read]) -> None:
        with self._writing:
            self.table.apply(gone, read)
            delta = self.fulltext.delta()
            # Before the text index, which may fail: the records have these pieces already, so their vectors can come.
            self.loaded.note_lacking(delta)
            self.fulltext.take(delta)
            self.loaded.take(delta)
            self.change.apply(delta)

    def used(self, uses: Mapping[tuple[str, str], Use]) -> None:
        with self._writing:
            self._uses.update(uses)
            self.loaded.used(uses)

    def unembedded(self, limit: int) -> list[PieceText]:
        with self._writing:
            texts = self.table.texts(self.loaded.lacking(limit)[::-1])
            return list({text.meaning: text for text in texts.values()}.values())

    def take_vectors(self, meanings: Sequence[bytes], vectors: Floats) -> None:
        with self._writing:
            self.table.keep_packed(self.model, meanings, packed(vectors))
            self.loaded.load_vectors(meanings)

    @property
    def prior(self) -> Floats | None:
        return (self.change.loaded or self.loaded).prior

    def expects(self) -> bool:
        return self.loaded.prior is not None

    def expect(self, prior: Floats) -> None:
        with self._writing:
            self.loaded.expect(prior)

    # --- what the bucket has of it (see `sharing`) -----------------------------------------------------------------

    def take_segment(self, space: str, name: str, meanings: Sequence[bytes], eight: NDArray[np.int8]) -> None:
        """Take in the vectors of a segment, for what there is now and what will be. NoSpace, Damaged."""
        with self._writing:
            rows = [(meaning, row.tobytes()) for meaning, row in zip(meanings, eight, strict=True)]
            self.table.keep_segment(self.model, space, name, rows)
            self.loaded.load_vectors(meanings)

    def wrote_segment(self, space: str, name: str, vectors: Mapping[bytes, bytes]) -> None:
        """The bucket has a segment of these vectors, which are here already. NoSpace, Damaged."""
        with self._writing:
            self.table.keep_segment(self.model, space, name, list(vectors.items()))

    def forget_segments(self, space: str, names: Iterable[str]) -> None:
        """The bucket has these no more. NoSpace, Damaged."""
        with self._writing:
            self.table.forget_segments(self.model, space, names)

    # --- asking ---------------------------------------------------------------------------------------------------

    def text(self, asked: TextQuery, where: Restriction, limit: int) -> tuple[list[tuple[int, float]], float]:
        return self.fulltext.search(asked, where, limit, self.loaded.columns)

    def near(self, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
        fields, without = (
            tuple(pair for pair in pairs if pair[0] == "label") for pairs in (where.fields, where.without)
        )
        if fields or without:  # by these alone: the rest is a matter of columns in memory
            labelled = Restriction(fields, without, numbers=where.numbers)
            where = replace(where, numbers=tuple(self.table.numbers(labelled)))
        return (self.change.loaded or self.loaded).near(question, where, limit)

    def strict(self, where: Restriction, limit: int) -> list[Stored]:
        return self.table.select(where, limit)

    def fitting(self, where: Restriction, *, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
        return self.table.numbers(where, files=files, not_files=not_files)

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        return self.loaded.columns.briefs(numbers)

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        return self.table.records(ids)

    def called(self, refs: Sequence[str]) -> dict[str, Stored]:
        return self.table.called(refs)

    def naming(self, space: str, files: Sequence[str], limit: int) -> list[Stored]:
        return self.table.naming(space, files, limit)

    def spelt(self, field: str, spaces: Sequence[str]) -> list[str]:
        return self.loaded.columns.spelt(field, spaces)

    def linked(self, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
        return self.table.linked(ids, where, limit)

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        return self.loaded.foremost(spaces, wanted)

    def vectors_of(self, ids: Sequence[int]) -> dict[int, Floats]:
        eights = self.table.eights_of((self.change.loaded or self.loaded).model, ids)
        return {record: unit(np.frombuffer(eight, np.int8)) for record, eight in eights.items()}

    # --- looking after it -----------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        faults: list[str] = []
        with self._writing:
            self.table.check(faults.append)
            pieces, indexed = set(self.table.piece_numbers()), self.fulltext.lexical.numbers()
            if indexed - pieces:
                faults.append(f"{len(indexed - pieces)} pieces of the text index belong to no record")
            if pieces - indexed:
                faults.append(f"{len(pieces - indexed)} pieces are not in the text index")
            if orphans := self.loaded.with_vector() - pieces:
                faults.append(f"{len(orphans)} vectors belong to no piece")
        return faults

    def statistics(self) -> IndexStatistics:
        counts = self.table.counts()
        counts.pop("gone")
        rebuilt, redone = tuple(self.repairs.rebuilt), self.repairs.redone
        loaded, searched = self.loaded, (self.change.loaded or self.loaded).model
        return IndexStatistics(
            **counts,
            embedded=loaded.embedded(),
            rebuilt=rebuilt,
            redone=redone,
            model=loaded.model,
            searched=searched,
        )


def _locked(folder: Path) -> int:
    """The folder's lock, for this process."""
    import fcntl  # here: Windows has none

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CacheInUse(path=str(folder)) from None
    return lock
