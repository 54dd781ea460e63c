"""The vectors of an index in SQLite, and which of them the bucket has.

Owns the tables `vector` and `segment`. Vectors are kept by the digest of their text, since a text that comes back need
not be computed again. Threads: as `RecordFile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.index.record import divided
from livememfs.recall.index.recordfile import RecordFile

FORGOTTEN_AT_ONCE = 20_000
"""Vectors that are deleted in one step."""


class KeptVectors(RecordFile):
    """The part of the table that is about vectors."""

    def without_vector(self, model: str, numbers: Sequence[int] | None = None) -> list[int]:
        """The pieces, of all or of some, that have no vector of this model, ascending."""
        select = (
            "SELECT p.number FROM piece p WHERE NOT EXISTS"
            " (SELECT 1 FROM vector v WHERE v.model = ? AND v.meaning = p.meaning)"
        )
        if numbers is None:
            return [row[0] for row in self._db.execute(f"{select} ORDER BY p.number", (model,))]
        return sorted(row[0] for row in self._among(f"{select} AND p.number IN ({{}})", numbers, model))

    def keep_vectors(self, model: str, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors by digest. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?)",
                [(meaning, model, eight) for meaning, eight in vectors],
            )

    def keep_packed(self, model: str, meanings: Sequence[bytes], eight: NDArray[np.int8]) -> None:
        """Keep rows of eight bits by digest. NoSpace, Damaged."""
        self.keep_vectors(model, zip(meanings, (row.tobytes() for row in eight), strict=True))

    def model_before(self, model: str, last: str | None) -> str:
        """Another model that has vectors here: `last`, or where that is not known, one that has been used here.
        Empty if there is none.
        """
        used = "SELECT substr(name, 7) FROM state WHERE name LIKE 'prior %'"
        names = [last] if last is not None else [row[0] for row in self._db.execute(used)]
        has = "SELECT 1 FROM vector WHERE model = ? LIMIT 1"
        return next((name for name in names if name != model and self._db.execute(has, (name,)).fetchone()), "")

    def forget_others(self, model: str) -> bool:
        """Forget vectors and segments of all models but one; whether there may be more. NoSpace, Damaged."""
        there = "SELECT model, meaning FROM vector WHERE model {} ? LIMIT ?"
        for side in "<>":  # two ranges: to look for what is unequal reads the whole table
            some = there.format(side)
            if self._db.execute(some, (model, 1)).fetchone():
                with self._step():
                    self._db.execute(
                        f"DELETE FROM vector WHERE (model, meaning) IN ({some})", (model, FORGOTTEN_AT_ONCE)
                    )
                    self._db.execute("DELETE FROM segment WHERE model <> ?", (model,))
                    self._db.execute("DELETE FROM state WHERE name LIKE 'prior %' AND name <> ?", (f"prior {model}",))
                return True
        return False

    def vectors(self, model: str, meanings: Sequence[bytes] | None = None) -> Iterator[tuple[str, int, bytes]]:
        """Space, number and vector of every piece that has one; or of the pieces with one of these digests."""
        select = (
            "SELECT r.space, p.number, v.eight FROM piece p JOIN vector v ON v.model = ? AND v.meaning = p.meaning"
            " JOIN record r ON r.id = p.record"
        )
        if meanings is None:
            yield from self._db.execute(select, (model,))
        else:
            yield from self._among(f"{select} WHERE p.meaning IN ({{}})", meanings, model)

    def meanings(self, numbers: Sequence[int]) -> list[bytes]:
        """The digests of pieces."""
        return list({row[0] for row in self._among("SELECT meaning FROM piece WHERE number IN ({})", numbers)})

    def eights(self, model: str, meanings: Sequence[bytes]) -> dict[bytes, bytes]:
        """Vectors by digest, of those that there are."""
        return dict(
            self._among("SELECT meaning, eight FROM vector WHERE model = ? AND meaning IN ({})", meanings, model)
        )

    def eights_of(self, model: str, ids: Sequence[int]) -> dict[int, bytes]:
        """The vectors of the first pieces of records, by the records' numbers."""
        select = (  # in this order: left to itself, SQLite reads all vectors of the model first
            "SELECT p.record, v.eight FROM piece p INDEXED BY piece_record CROSS JOIN vector v"
            " WHERE p.part = 0 AND v.model = ? AND v.meaning = p.meaning AND p.record IN ({})"
        )
        return dict(self._among(select, ids, model))

    # --- segments of the bucket -----------------------------------------------------------------------------------

    def segments(self, model: str, space: str) -> dict[str, set[bytes]]:
        """The digests in each segment of a space that was read or written here, by its name."""
        select = "SELECT name, meanings FROM segment WHERE model = ? AND space = ?"
        return {name: set(divided(blob)) for name, blob in self._db.execute(select, (model, space)).fetchall()}

    def keep_segment(self, model: str, space: str, name: str, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Take note of a segment and keep its vectors, those that are new here. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "INSERT OR IGNORE INTO vector VALUES (?, ?, ?)", [(meaning, model, eight) for meaning, eight in vectors]
            )
            joined = b"".join(meaning for meaning, _ in vectors)
            self._db.execute("INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?)", (model, space, name, joined))

    def forget_segments(self, model: str, space: str, names: Iterable[str]) -> None:
        """The bucket has them no more. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "DELETE FROM segment WHERE model = ? AND space = ? AND name = ?",
                [(model, space, name) for name in names],
            )

    def meanings_of(self, space: str) -> set[bytes]:
        """The digests of all pieces of a space."""
        select = "SELECT p.meaning FROM piece p JOIN record r ON r.id = p.record WHERE r.space = ?"
        return {row[0] for row in self._db.execute(select, (space,))}

    def spaces_of(self, meanings: Sequence[bytes]) -> dict[str, set[bytes]]:
        """Digests by the spaces that have pieces with them."""
        select = "SELECT r.space, p.meaning FROM piece p JOIN record r ON r.id = p.record WHERE p.meaning IN ({})"
        by_space: dict[str, set[bytes]] = {}
        for space, meaning in self._among(select, meanings):
            by_space.setdefault(space, set()).add(meaning)
        return by_space
