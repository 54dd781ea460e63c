"""Meaning: which pieces lie near a question, by the angle between vectors.

Owns the vectors of one space while it is open: one bit for each number to scan, eight bits to score (see `rows`). Both
are relative to the mean of the space, without which every text of these models looks like every other; the mean of few
texts is drawn to that of any texts (see `prior`). Refuses to compute vectors and to keep them over a restart. Callers
serialise changes; a search may run beside them, and sees the rows that were complete when it began. Any thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.embed.prior import WEIGHT
from livememfs.recall.index.rows import Rows

Floats = NDArray[np.float32]
RESCORED, LEAST_RESCORED = 5, 500
"""How many rows the scan by bits hands on for each that is wanted, and at least."""
SAMPLED = 64
"""One of so many rows is sampled to estimate how near the nearest are."""
EXACT_UP_TO = 3_000
"""Rows that are all scored where a filter leaves no more than these."""
GROWN = 1.2
"""By how much a space grows before its mean is taken again."""
ONE = 127.0
"""What a number of 1 is in eight bits."""
FEW = 8
"""Pieces are looked up one by one if they are less than this part of all."""
Fits = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
Allowed = Fits | NDArray[np.bool_] | Sequence[int] | None
"""The numbers that may be found: one by one; by a mask of them; or, where most may be, by what says it of some."""


def packed(vectors: Floats) -> NDArray[np.int8]:
    """Unit vectors in eight bits a number, as they are kept."""
    eight: NDArray[np.int8] = np.rint(np.clip(vectors, -1.0, 1.0) * ONE).astype(np.int8)
    return eight


def unit(eight: NDArray[np.int8]) -> Floats:
    """A vector of length 1 from how it is kept."""
    vector = eight.astype(np.float32)
    return np.asarray(vector / max(math.sqrt(vector @ vector), 1e-6), np.float32)  # a third of the time of `norm`


class Vectors:
    """The vectors of one space, by the numbers of their pieces. `folder`: where many of them may be put."""

    def __init__(self, dim: int, prior: Floats | None = None, *, expected: int = 0, folder: Path | None = None) -> None:
        self.dim = dim
        self._eight = Rows(dim, folder)
        self._prior = prior
        self._count = self._used = self._measured = 0
        self._bits = np.zeros((-(-dim // 64), 0), np.uint64)
        self._length = np.zeros(0, np.float32)
        self._numbers = np.zeros(0, np.int64)
        self._rows = np.zeros(1_024, np.int32)
        self._sum = np.zeros(dim, np.float64)
        self._mean = np.zeros(dim, np.float32)
        self._encodings = 0
        self._scanned: tuple[tuple[bytes, int], NDArray[np.uint16]] = (b"", 0), np.zeros(0, np.uint16)
        self._allocate(max(1_024, expected))

    def _allocate(self, rows: int) -> None:
        def grown(old: NDArray[Any]) -> NDArray[Any]:
            new = np.zeros((*old.shape[:-1], rows), old.dtype)
            new[..., : self._used] = old[..., : self._used]
            return new

        self._bits, self._length = grown(self._bits), grown(self._length)
        self._eight.reserve(rows, self._used)
        self._numbers = grown(self._numbers)

    def __len__(self) -> int:
        return self._count

    def numbers(self) -> list[int]:
        """The pieces that have a vector here."""
        numbers = self._numbers[: self._used]
        pieces: list[int] = numbers[numbers > 0].tolist()
        return pieces

    def _rows_of(self, wanted: Sequence[int] | NDArray[np.intp], used: int) -> NDArray[np.intp]:
        """The rows of some pieces, of those that have a vector among the first `used` rows."""
        pieces = np.unique(np.asarray(wanted, np.int64))
        pieces = pieces[(pieces > 0) & (pieces < len(self._rows))]
        rows = self._rows[pieces].astype(np.intp)
        there: NDArray[np.intp] = rows[(rows < used) & (self._numbers[rows] == pieces)]
        return there

    def _place(self, start: int, end: int) -> None:
        """Take note of where the pieces of some rows are."""
        numbers = self._numbers[start:end]
        highest = int(np.max(numbers, initial=0))
        if highest >= len(self._rows):
            self._rows = np.pad(self._rows, (0, max(highest + 1, 2 * len(self._rows)) - len(self._rows)))
        self._rows[numbers] = np.arange(start, end, dtype=np.int32)

    def put(self, numbers: Sequence[int], eight: NDArray[np.int8], *, more: bool = False) -> None:
        """Put in vectors as `packed` made them; a number that is there gets the new one. `more`: none of these is
        there, others follow, and nobody looks for any before `settle`.
        """
        if not more:
            self.remove(numbers)
        start, end = self._used, self._used + len(numbers)
        if end > len(self._numbers):
            self._allocate(max(end, 2 * len(self._numbers)))
        self._eight.array[start:end] = eight
        self._numbers[start:end] = numbers
        self._place(start, end)
        self._sum += eight.sum(axis=0, dtype=np.float64) / ONE
        self._used = end
        self._count += len(numbers)
        if not more:
            self._encode(start, end)
        if not more and self._count > self._measured * GROWN:
            self.settle()

    def kept(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything there is, as facts and arrays, for `Vectors.again`."""
        used = self._used
        arrays: dict[str, NDArray[Any]] = {
            "numbers": self._numbers[:used], "length": self._length[:used], "bits": self._bits[:, :used],
            "sum": self._sum, "mean": self._mean, "eight": self._eight.array[:used],
        }  # fmt: skip
        return {"dim": self.dim, "count": self._count, "used": used, "measured": self._measured}, arrays

    @classmethod
    def again(
        cls,
        facts: Mapping[str, Any],
        array: Callable[[str], NDArray[Any]],
        eight: Iterable[NDArray[np.int8]],
        prior: Floats | None,
        folder: Path | None,
    ) -> Vectors:
        """What was kept; `eight`: the rows, by portions. Raises KeyError, TypeError or ValueError for what was not."""
        used = int(facts["used"])
        vectors = cls(int(facts["dim"]), prior, expected=used, folder=folder)
        vectors._count, vectors._used, vectors._measured = int(facts["count"]), used, int(facts["measured"])
        vectors._sum, vectors._mean = array("sum"), array("mean")
        vectors._numbers[:used], vectors._length[:used] = array("numbers"), array("length")
        vectors._bits[:, :used] = array("bits")
        vectors._place(0, used)
        start = 0
        for rows in eight:
            vectors._eight.array[start : start + len(rows)] = rows
            vectors._eight.let_go()
            start += len(rows)
        return vectors

    def remove(self, numbers: Iterable[int]) -> None:
        """Take out some of them; the others need not be there."""
        rows = self._rows_of(list(numbers), self._used)
        if len(rows):
            self._sum -= self._eight.take(rows).sum(axis=0, dtype=np.float64) / ONE
            self._numbers[rows] = 0  # no piece has this number
            self._count -= len(rows)
        if self._used > 1_024 and self._count < self._used // 2:
            self._compact()

    def search(self, question: Floats, limit: int, allowed: Allowed = None) -> list[tuple[int, float]]:
        """Numbers and cosines, best first."""
        numbers, asked = self._numbers[: self._used], question - self._mean
        length = float(np.linalg.norm(asked))
        if not len(numbers) or not length:
            return []
        asked = (asked / length).astype(np.float32)
        rows = None if callable(allowed) else self._allowed(allowed, numbers)
        if rows is None or len(rows) > max(EXACT_UP_TO, limit):
            rows = self._near(asked, numbers, rows, allowed, max(RESCORED * limit, LEAST_RESCORED))
        if not len(rows):
            return []
        cosines = self._cosines(asked, rows)
        best = np.argpartition(-cosines, limit - 1)[:limit] if len(rows) > limit else np.arange(len(rows))
        best = best[np.lexsort((numbers[rows[best]], -cosines[best]))]
        return [(int(numbers[rows[i]]), float(cosines[i])) for i in best]

    def _allowed(
        self, allowed: NDArray[np.bool_] | Sequence[int] | None, numbers: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        if allowed is None:
            return np.flatnonzero(numbers)
        if not isinstance(allowed, np.ndarray):
            return self._rows_of(allowed, len(numbers))
        if np.count_nonzero(allowed) * FEW < len(numbers):
            return self._rows_of(np.flatnonzero(allowed), len(numbers))
        return np.flatnonzero(_among(numbers, allowed))

    def _near(
        self, asked: Floats, numbers: NDArray[np.int64], rows: NDArray[np.intp] | None, allowed: Allowed, limit: int
    ) -> NDArray[np.intp]:
        """At least so many of the rows, if there are, whose signs agree with the question's most often. Without `rows`,
        of those that `allowed` says.
        """
        different = self._scan(asked, len(numbers))
        if rows is not None and len(rows) < len(numbers):
            different = different[rows]
        sample = different[::SAMPLED]
        for wanted in (limit * 3 // 2, limit * 4, len(different)):
            place = min(wanted // SAMPLED + 1, len(sample) - 1)
            last = np.partition(sample, place)[place] if wanted < len(different) else different.max()
            near = np.flatnonzero(different <= last)
            if callable(allowed):
                near = near[allowed(numbers[near])]
            if len(near) >= limit:
                break
        if len(near) > 2 * limit:  # many are as near
            near = near[np.argpartition(different[near], limit)[:limit]]
        return rows[near] if rows is not None else near

    def _scan(self, asked: Floats, used: int) -> NDArray[np.uint16]:
        """How many signs of every row differ. The last result is kept: the same question is asked about memories, and
        then about notes.
        """
        code = _bits_of(asked[None, :])[:, 0]
        wanted = code.tobytes(), self._encodings
        scanned, different = self._scanned
        if scanned != wanted or len(different) != used:
            different = np.zeros(used, np.uint16)
            for word, bits in zip(code, self._bits[:, :used], strict=True):
                different += np.bitwise_count(bits ^ word)
            self._scanned = wanted, different
        return different

    def _cosines(self, asked: Floats, rows: NDArray[np.intp]) -> Floats:
        dots = self._eight.take(rows).astype(np.float32) @ asked / np.float32(ONE) - np.float32(self._mean @ asked)
        return np.asarray(dots / np.maximum(self._length[rows], 1e-6), np.float32)

    def expect(self, prior: Floats) -> None:
        """Take note of the mean of any texts, to which that of few texts is drawn."""
        self._prior = prior
        self.settle()

    def settle(self) -> None:
        """Take the mean again, and have everything found that was put in with more to come."""
        self._measured = max(self._count, 1)
        total, weight = self._sum, self._count
        if self._prior is not None:
            total, weight = total + WEIGHT * self._prior, weight + WEIGHT
        self._mean = (total / max(weight, 1)).astype(np.float32)
        self._encode(0, self._used)

    def _encode(self, start: int, end: int, step: int = 65_536) -> None:
        self._encodings += 1
        for first in range(start, end, step):
            last = min(first + step, end)
            centred = self._eight.array[first:last].astype(np.float32) / np.float32(ONE) - self._mean
            self._length[first:last] = np.linalg.norm(centred, axis=1)
            self._bits[:, first:last] = _bits_of(centred)
            self._eight.let_go()

    def _compact(self) -> None:
        rows = np.flatnonzero(self._numbers[: self._used] > 0)
        self._eight.array[: len(rows)] = self._eight.array[rows]
        self._numbers[: len(rows)] = self._numbers[rows]
        self._used = len(rows)
        self._place(0, self._used)
        self.settle()


def _among(numbers: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which numbers a mask has. A vector may be here before what one may filter its piece by."""
    among: NDArray[np.bool_] = mask.take(numbers, mode="clip")
    return among & (numbers > 0) & (numbers < len(mask))


def _bits_of(vectors: Floats) -> NDArray[np.uint64]:
    """The signs of the numbers, 64 a word; words first, so that a scan reads memory in order."""
    rows, dim = vectors.shape
    padded = np.zeros((rows, -(-dim // 64) * 64), np.bool_)
    padded[:, :dim] = vectors > 0
    words: NDArray[np.uint64] = np.packbits(padded, axis=1).view(np.uint64).T.copy()
    return words
