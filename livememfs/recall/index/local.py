"""The index: records, text and meaning in one place, derived from the bucket and rebuilt from it at any time.

Owns the folder `index/` and the order of its three parts. The records come first, and say which pieces the other two
lack; so a crash anywhere is healed by doing the last steps again, and a part that is damaged, missing or another's is
made anew from the records. Refuses to read a bucket (`feeder` does) and to rank (`search` does). Blocking: for worker
threads. One may write at a time, any may ask.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from livememfs import private
from livememfs.errors import CacheInUse, LiveMemError
from livememfs.recall.index import snapshot
from livememfs.recall.index.columns import Columns
from livememfs.recall.index.engine import IndexStatistics, Read
from livememfs.recall.index.exchanged import Damaged, Linked, Restriction, Stored, TextQuery
from livememfs.recall.index.lexical import Lexical
from livememfs.recall.index.merits import Foremost, Merits, UnaskedMemories, Use
from livememfs.recall.index.pieces import PieceText
from livememfs.recall.index.prior import MEANINGS as PRIOR_MEANINGS
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.recordfile import is_damage
from livememfs.recall.index.snapshot import Snapshot
from livememfs.recall.index.table import Delta, RecordTable
from livememfs.recall.index.vectors import Floats, Vectors, packed, unit

FED_AT_ONCE = 2_000
"""Pieces handed to the text index in one commit when it is made anew."""
MOSTLY, SPARE = 0.5, 1.2
"""Which part of all pieces must fit a filter for it to be applied to what was found; how many more are taken then."""
LOADED_AT_ONCE = 20_000
"""Vectors brought into memory at once."""
KEPT_FROM = 20_000
"""Pieces from which on what is in memory is kept for the next process."""
_MARK, _KEPT = "incarnation", "memory"


class Index:
    """The index in one folder. `model` names the vectors that count; those of others are kept aside."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self.rebuilt: list[str] = []
        self.redone = 0
        self._writing = threading.RLock()
        self._near = threading.Lock()
        private.make(folder)
        self._lock = _locked(folder)
        try:
            self.table = self._open_table()
            self._uses: dict[tuple[str, str], Use] = {}
            try:
                self._load()
            except (sqlite3.DatabaseError, Damaged) as error:  # damaged further on than where opening looks
                if not is_damage(error):
                    raise
                self.table = self._fresh_table()
                self._load()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Give the folder to the next process. Nobody may be asking any more."""
        with self._writing:
            with suppress(OSError, LiveMemError, sqlite3.Error):  # a full disk, damaged records: nothing is kept
                self._keep()
            self._lexical.close()
            self.table.close()
            os.close(self._lock)

    # --- opening and healing --------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Have in memory what the records and the text index have."""
        self._lexical = self._open_lexical()
        with self._near:
            self._columns, self._merits, self._vectors = Columns(), Merits(), dict[str, Vectors]()
        self._lacking: dict[int, None] = {}
        self._catch_up()
        self._kept_at = self._load_kept()
        if not self._kept_at:
            self._load_columns()
            self._load_vectors(None)
            # In the order of their numbers, and so of time: looked for once, since to look for none takes longest.
            self._lacking = dict.fromkeys(self.table.without_vector(self.model))

    def _open_table(self) -> RecordTable:
        try:
            return RecordTable(self.folder / "records.db")
        except Damaged:
            return self._fresh_table()

    def _fresh_table(self) -> RecordTable:
        self.rebuilt.append("records")
        for old in self.folder.glob("records.db*"):
            old.unlink()
        return RecordTable(self.folder / "records.db")

    def make_anew(self) -> None:
        """Go on with nothing, as the records turned out to be damaged: whoever feeds it compares the bucket with it."""
        with self._writing:
            self.table = self._fresh_table()  # the old one is not closed, since threads may be reading it
            self._lexical.close()
            self._load()

    def _open_lexical(self) -> Lexical:
        """The text index that belongs to these records; a fresh one, at step 0, in place of any other."""
        folder, mark = self.folder / "text", self.folder / "text" / _MARK
        known = self.table.state(_MARK)
        try:
            if known is not None and mark.read_text() == known:
                return Lexical(folder)
        except (OSError, ValueError, Damaged):
            pass
        if known is not None:
            self.rebuilt.append("text")
        return self._fresh_lexical()

    def _fresh_lexical(self) -> Lexical:
        folder, mark = self.folder / "text", uuid4().hex
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.unlink(missing_ok=True)
        self.table.remember(_MARK, mark)
        self.table.remember("text", "0")
        found = Lexical(folder)
        private.write_text(folder / _MARK, mark)
        return found

    def _catch_up(self) -> None:
        """Bring the text index to the step of the records."""
        delta = self._delta()
        try:
            if delta.pieces or delta.gone:
                self.redone += 1
                self._feed(delta)
            if len(self._lexical) != self.table.pieces_there():
                self._reconcile()
        except (Damaged, ValueError):
            self._make_text_anew()

    def _reconcile(self) -> None:
        """Put right what the text index has too much and too little, which costs less than to make it anew."""
        there, wanted = self._lexical.numbers(), set(self.table.piece_numbers())
        extra, missing = there - wanted, wanted - there
        if len(missing) > len(there):
            self._make_text_anew()
            return
        self.redone += 1
        self._lexical.apply(extra, self.table.pieces(sorted(missing)))

    def _make_text_anew(self) -> None:
        self.rebuilt.append("text")
        self._lexical.close()
        self._lexical = self._fresh_lexical()
        self._feed(self._delta())

    def _delta(self) -> Delta:
        return self.table.lacking(int(self.table.state("text") or 0))

    def _feed(self, delta: Delta) -> None:
        pieces = delta.pieces
        for start in range(0, max(len(pieces), 1), FED_AT_ONCE):
            self._lexical.apply(delta.gone if not start else (), pieces[start : start + FED_AT_ONCE])
        self.table.settled(delta.step)

    def _keep(self) -> None:
        """Have what is in memory ready for the next process, where reading it from the records would take long."""
        if len(self._columns) < KEPT_FROM or self._kept_at == self.table.state("step"):
            return
        parts = {"columns": self._columns.kept(), "merits": self._merits.kept()}
        parts |= {f"space {space}": vectors.kept() for space, vectors in self._vectors.items()}
        facts = {name: known for name, (known, _) in parts.items()}
        arrays = {f"{name} {part}": array for name, (_, found) in parts.items() for part, array in found.items()}
        arrays["lacking"] = np.fromiter(self._lacking, np.int64, len(self._lacking))
        self.table.remember(_KEPT, uuid4().hex)
        snapshot.write(self.folder / _KEPT, {**facts, "of": self._kept_of()}, arrays)

    def _kept_of(self) -> list[str | None]:
        """What a snapshot must be of: these records and no copy of them, at this step, by this model."""
        return [self.table.state(_KEPT), self.table.state("step"), self.model]

    def _load_kept(self) -> str:
        """Take what the last process had in memory, if it is of these very records; the step it is of, empty if not."""
        try:
            found = Snapshot(self.folder / _KEPT)
            if found.facts.get("of") != self._kept_of():
                return ""

            def of(part: str) -> tuple[Any, Callable[[str], NDArray[Any]]]:
                return found.facts[part], lambda name: found.array(f"{part} {name}")

            columns, merits = Columns.again(*of("columns")), Merits.again(*of("merits"))
            vectors = {
                part.removeprefix("space "): Vectors.again(
                    *of(part), found.rows(f"{part} eight"), self.prior, self.folder
                )
                for part in found.facts
                if part.startswith("space ")
            }
            lacking = dict.fromkeys(found.array("lacking").tolist())
        except FileNotFoundError:
            return ""
        except (Damaged, OSError, ValueError, KeyError, TypeError):
            self.rebuilt.append("snapshot")
            return ""
        self._columns, self._merits, self._vectors, self._lacking = columns, merits, vectors, lacking
        return self.table.state("step") or ""

    # --- writing --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        """Etags of what is indexed below a prefix, by key."""
        return self.table.objects(prefix)

    def apply(self, gone: Iterable[str], read: Iterable[Read]) -> None:
        """Forget objects and take others in; found by their words when this returns. NoSpace, Damaged."""
        with self._writing:
            self.table.apply(gone, read)
            delta = self._delta()
            changed = [piece.number for piece in delta.pieces]
            for number in (*delta.gone, *changed):
                self._lacking.pop(number, None)
            self._lacking.update(dict.fromkeys(self.table.without_vector(self.model, changed)))
            try:
                self._feed(delta)
            except Damaged:  # its files went or changed under us; the records have everything
                self._make_text_anew()
            self._columns.put(self.table.columns(changed))
            self._weigh(delta.gone, changed)
            went: dict[str, list[int]] = {}
            for number in delta.gone:
                went.setdefault(self._columns.space_of(number), []).append(number)
            with self._near:
                for space, numbers in went.items():
                    if space in self._vectors:
                        self._vectors[space].remove(numbers)
            # What has no vector of its new meaning yet keeps the old one until then.
            self._load_vectors(self.table.meanings(changed))

    def _weigh(self, gone: Iterable[int], changed: Sequence[int]) -> None:
        """Have what was used before weigh as much under its new number."""
        with self._near:
            self._merits.remove(gone)
            new = [one for one in self.table.merits(changed) if one.number > self._merits.last]
            self._merits.put(new)
            if new and self._uses:
                self._merits.use({n: self._uses[of] for of, n in self.table.pieces_of(list(self._uses)).items()})

    def used(self, uses: Mapping[tuple[str, str], Use]) -> None:
        """Take note of how often memories were used, by space and id."""
        with self._writing, self._near:
            self._uses.update(uses)
            self._merits.use({number: uses[of] for of, number in self.table.pieces_of(list(uses)).items()})

    def unembedded(self, limit: int) -> list[PieceText]:
        """Texts that have no vector yet, newest first."""
        with self._writing:
            while self._lacking:
                newest = list(islice(reversed(self._lacking), limit))
                still = self.table.without_vector(self.model, newest)
                for number in set(newest).difference(still):
                    del self._lacking[number]
                if still:
                    texts = self.table.texts(still[::-1])
                    return list({text.meaning: text for text in texts.values()}.values())
            return []

    def take_vectors(self, meanings: Sequence[bytes], vectors: Floats) -> None:
        """Take in vectors, of length 1, by the meanings of their texts; found when this returns. NoSpace, Damaged."""
        with self._writing:
            self.table.keep_vectors(self.model, zip(meanings, (row.tobytes() for row in packed(vectors)), strict=True))
            self._load_vectors(meanings)

    # --- what the bucket has of it (see `sharing`) -----------------------------------------------------------------

    def segments(self, space: str) -> dict[str, set[bytes]]:
        """The meanings in each segment of a space that was read or written here, by its name."""
        return {name: set(found) for name, found in self.table.segments(self.model, space).items()}

    def take_segment(self, space: str, name: str, meanings: Sequence[bytes], eight: NDArray[np.int8]) -> None:
        """Take in the vectors of a segment, for what there is now and what will be. NoSpace, Damaged."""
        with self._writing:
            rows = [(meaning, row.tobytes()) for meaning, row in zip(meanings, eight, strict=True)]
            self.table.keep_segment(self.model, space, name, rows)
            self._load_vectors(meanings)

    def wrote_segment(self, space: str, name: str, vectors: Mapping[bytes, bytes]) -> None:
        """The bucket has a segment of these vectors, which are here already. NoSpace, Damaged."""
        with self._writing:
            self.table.keep_segment(self.model, space, name, list(vectors.items()))

    def forget_segments(self, space: str, names: Iterable[str]) -> None:
        """The bucket has these no more. NoSpace, Damaged."""
        with self._writing:
            self.table.forget_segments(self.model, space, names)

    def wanted(self, space: str) -> set[bytes]:
        """The meanings that somebody who mounts a space needs: of its pieces, and of any texts."""
        return self.table.meanings_of(space) | PRIOR_MEANINGS

    def spaces_of(self, meanings: Sequence[bytes]) -> dict[str, set[bytes]]:
        """Meanings by the spaces that have pieces with them."""
        return self.table.spaces_of(meanings)

    def packed_vectors(self, meanings: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors of these meanings as they are kept, of those that there are."""
        return self.table.eights(self.model, list(meanings))

    # --- what any text means --------------------------------------------------------------------------------------

    @property
    def prior(self) -> Floats | None:
        """The mean of any texts by this model, None when it has to be computed."""
        kept = self.table.state(f"prior {self.model}")
        return np.frombuffer(bytes.fromhex(kept), np.float32) if kept is not None else None

    def expect(self, prior: Floats) -> None:
        """Keep the mean of any texts. NoSpace, Damaged."""
        with self._writing:
            self.table.remember(f"prior {self.model}", np.asarray(prior, np.float32).tobytes().hex())
            with self._near:
                for vectors in self._vectors.values():
                    if vectors.dim == len(prior):
                        vectors.expect(prior)

    def _load_columns(self) -> None:
        self._columns.put(self.table.columns())
        self._merits.put(self.table.merits())

    def _load_vectors(self, meanings: Sequence[bytes] | None) -> None:
        """Have vectors in memory: all that are kept, or those of some meanings. By portions: they come as objects of
        their own, which take several times the room.
        """
        by_space: dict[str, tuple[list[int], list[bytes]]] = {}
        expected = self.table.counts()["pieces"] if meanings is None else 0
        for loaded, (space, number, eight) in enumerate(self.table.vectors(self.model, meanings), 1):
            numbers, rows = by_space.setdefault(space, ([], []))
            if not rows or len(rows[0]) == len(eight):
                numbers.append(number)
                rows.append(eight)
            if loaded % LOADED_AT_ONCE == 0:
                self._put_vectors(by_space, expected)
                by_space = {}
        self._put_vectors(by_space, expected)
        if meanings is None:
            for vectors in self._vectors.values():
                vectors.settle()

    def _put_vectors(self, by_space: Mapping[str, tuple[list[int], list[bytes]]], expected: int) -> None:
        prior = self.prior if by_space else None
        with self._near:
            for space, (numbers, rows) in by_space.items():
                dim = len(rows[0])
                known = prior if prior is not None and len(prior) == dim else None
                if space not in self._vectors:
                    room = expected if len(numbers) == LOADED_AT_ONCE else 0  # it is nearly all there is
                    self._vectors[space] = Vectors(dim, known, expected=room, folder=self.folder)
                vectors = self._vectors[space]
                if vectors.dim == dim:
                    vectors.put(numbers, np.frombuffer(b"".join(rows), np.int8).reshape(-1, dim), more=expected > 0)

    # --- asking ---------------------------------------------------------------------------------------------------

    def text(self, asked: TextQuery, where: Restriction, limit: int) -> tuple[list[tuple[int, float]], float]:
        """Pieces that have the words, best first, and what one would score that had them all."""
        lexical = self._lexical
        try:
            return self._best(lexical, asked, where, limit), lexical.ceiling(asked)
        except Damaged:
            with self._writing:
                if self._lexical is lexical:
                    self._make_text_anew()
            return self._best(self._lexical, asked, where, limit), self._lexical.ceiling(asked)

    def _best(self, lexical: Lexical, asked: TextQuery, where: Restriction, limit: int) -> list[tuple[int, float]]:
        """What fits best. Where nearly everything may be found, looking through all and leaving out the rest takes a
        third of the time: a search with a filter cannot skip what scores too low.
        """
        share = self._columns.share(where)
        if share > MOSTLY:
            more = int(limit / share * SPARE)
            hits = lexical.search(asked, Restriction(), more)
            fits = self._columns.fitting([number for number, _ in hits], where)
            found = [hit for hit, is_fitting in zip(hits, fits, strict=True) if is_fitting]
            if len(found) >= limit or len(hits) < more:
                return found[:limit]
        return lexical.search(asked, where, limit)

    def near(self, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
        """Pieces near a question by meaning, with their cosines, best first."""
        wanted = next((values for name, values in where.fields if name == "space"), tuple(self._vectors))
        if any(name == "label" for name, _ in (*where.fields, *where.without)):
            where = replace(where, numbers=tuple(self.table.numbers(where)))
        mask = self._columns.mask(where, but="space")
        found: list[tuple[int, float]] = []
        with self._near:
            for space in wanted:
                if space in self._vectors and self._vectors[space].dim == len(question):
                    found += self._vectors[space].search(question, limit, mask)
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]

    def strict(self, where: Restriction, limit: int) -> list[Stored]:
        """The records that fit a filter, newest first."""
        return self.table.select(where, limit)

    def fitting(self, where: Restriction, *, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
        """The pieces of all records that fit a filter; `files`: parts of names, one of which they must have."""
        return self.table.numbers(where, files=files, not_files=not_files)

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        """What ranking needs of the record of each piece, and which of its pieces it is."""
        return self._columns.briefs(numbers)

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """Records by their numbers."""
        return self.table.records(ids)

    def called(self, refs: Sequence[str]) -> dict[str, Stored]:
        """Records by their `ref`; a memory that ends also by what it would be without its end."""
        return self.table.called(refs)

    def naming(self, space: str, files: Sequence[str], limit: int) -> list[Stored]:
        """The records of a space that name one of these files just so, newest first; of very many, the last ones."""
        return self.table.naming(space, files, limit)

    def spelt(self, field: str, spaces: Sequence[str]) -> list[str]:
        """Every value that `type` or `agent` has had in these spaces."""
        return self._columns.spelt(field, spaces)

    def linked(self, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
        """What records are linked to, either way, as far as it is there and fits a filter; the newest, each way."""
        return self.table.linked(ids, where, limit)

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        """The memories that come without being asked for, by the numbers of their records."""
        with self._near:
            return self._merits.foremost(spaces, wanted)

    def vectors_of(self, ids: Sequence[int]) -> dict[int, Floats]:
        """The vectors of the first pieces of records, of length 1, by the records' numbers; of those that have one."""
        found = self.table.eights_of(self.model, ids)
        return {record: unit(np.frombuffer(eight, np.int8)) for record, eight in found.items()}

    # --- looking after it -----------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """What is wrong with the index as it stands, in words; empty when nothing is."""
        found: list[str] = []
        with self._writing:
            self.table.check(found.append)
            pieces, there = set(self.table.piece_numbers()), self._lexical.numbers()
            if there - pieces:
                found.append(f"{len(there - pieces)} pieces of the text index belong to no record")
            if pieces - there:
                found.append(f"{len(pieces - there)} pieces are not in the text index")
            with self._near:
                near = {number for vectors in self._vectors.values() for number in vectors.numbers()}
            if near - pieces:
                found.append(f"{len(near - pieces)} vectors belong to no piece")
        return found

    def statistics(self) -> IndexStatistics:
        """Counts, by a few queries."""
        counts = self.table.counts()
        counts.pop("gone")
        with self._near:
            embedded = sum(len(vectors) for vectors in self._vectors.values())
        return IndexStatistics(**counts, embedded=embedded, rebuilt=tuple(self.rebuilt), redone=self.redone)


def _locked(folder: Path) -> int:
    """The folder's lock, for this process."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CacheInUse(path=str(folder)) from None
    return lock
