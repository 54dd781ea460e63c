"""What one may filter and rank by, of every piece, in memory: a filter is a mask, whatever it lets through.

Owns arrays that are indexed by a piece's number. Refuses labels, of which a piece has many (`RecordTable.numbers` knows
them), and to know which pieces have gone: callers ask only about pieces that a search has just found. Callers serialise
changes; any thread may ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.index.manner import Manner
from livememfs.recall.index.record import Brief

Column = tuple[int, int, int, str, str, str, str, int, int]
"""Of a piece: its number and its place in its record; the record's number, kind, space, type, agent and time, and how
its text speaks.
"""
FIELDS = ("space", "kind", "type", "agent")
MOST_PARTS = 32_767
_ARRAYS = ("fields", "created", "part", "manner", "record")
"""In the order in which they grow: any thread may ask for a piece that `record` has room for."""
TAKEN_AT_ONCE = 10_000
MOSTLY = 0.5
"""Which part of all pieces must fit a filter for it to be applied to the hits, and not to all pieces before."""
_MANNERS = [Manner(flags) for flags in range(8)]


class Columns:
    """Record, place in it, space, kind, type, agent and time of every piece."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._words: list[str] = [""]
        self._spelt: dict[tuple[str, str], dict[str, None]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._fields = np.zeros((len(FIELDS), 1_024), np.int32)
        self._created = np.zeros(1_024, np.int64)
        self._record = np.zeros(1_024, np.int32)
        self._part = np.zeros(1_024, np.int16)
        self._manner = np.zeros(1_024, np.int8)

    def __len__(self) -> int:
        """Pieces that are or were there."""
        return self._counts.total()

    def put(self, pieces: Iterable[Column]) -> None:
        """Take note of pieces. Numbers are never given twice, so nothing has to be taken out."""
        rows = iter(pieces)
        while portion := list(islice(rows, TAKEN_AT_ONCE)):
            self._take(portion)

    def _take(self, pieces: Sequence[Column]) -> None:
        number, part, record, kind, space, type_, agent, created, manner = zip(*pieces, strict=True)
        self._make_room(max(number) + 1)
        numbers = np.array(number, np.int64)
        known = self._record[numbers] > 0
        self._counts.update(
            pair for pair, is_known in zip(zip(space, kind, strict=True), known, strict=True) if not is_known
        )
        for row, values in enumerate((space, kind, type_, agent)):
            codes = {value: self._code(FIELDS[row], value) for value in dict.fromkeys(values)}
            self._fields[row, numbers] = [codes[value] for value in values]
        self._created[numbers], self._manner[numbers] = created, manner
        self._part[numbers] = [min(place, MOST_PARTS) for place in part]
        self._record[numbers] = record  # last: from now on they are there for whoever asks
        for name, values in (("type", type_), ("agent", agent)):
            for where, value in dict.fromkeys(zip(space, values, strict=True)):
                self._spelt.setdefault((where, name), {})[value] = None

    def _make_room(self, end: int) -> None:
        if end <= len(self._created):
            return
        room = max(end, 2 * len(self._created)) - len(self._created)
        for name in _ARRAYS:
            array = getattr(self, f"_{name}")
            setattr(self, f"_{name}", np.pad(array, [*[(0, 0)] * (array.ndim - 1), (0, room)]))

    def _code(self, field: str, value: str) -> int:
        code = self._codes.get((field, value))
        if code is None:
            self._words.append(value)  # before the code is known: another thread may ask for what it means
            code = self._codes[(field, value)] = len(self._words) - 1
        return code

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        """The record of each piece, and which of its pieces it is; pieces that are not known are left out."""
        known = np.array([number for number in numbers if number < len(self._record)], np.int64)
        known = known[self._record[known] > 0]
        space, kind, type_, agent = ([self._words[code] for code in row] for row in self._fields[:, known].tolist())
        record, created, manner = (array[known].tolist() for array in (self._record, self._created, self._manner))
        briefs = map(Brief, record, kind, space, type_, agent, created, map(_MANNERS.__getitem__, manner))
        parts = self._part[known].tolist()
        return {number: (part, brief) for number, part, brief in zip(known.tolist(), parts, briefs, strict=True)}

    def space_of(self, number: int) -> str:
        """The space of a piece; empty for one that nobody knows."""
        return self._words[self._fields[0, number]] if number < len(self._record) else ""

    def kept(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything there is, as facts and arrays, for `Columns.again`."""
        facts = {
            "words": self._words,
            "codes": [[*pair, code] for pair, code in self._codes.items()],
            "spelt": [[*pair, list(values)] for pair, values in self._spelt.items()],
            "counts": [[*pair, count] for pair, count in self._counts.items()],
        }
        end = int(np.max(np.flatnonzero(self._record), initial=0)) + 1
        return facts, {name: getattr(self, f"_{name}")[..., :end] for name in _ARRAYS}

    @classmethod
    def again(cls, facts: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Columns:
        """What was kept. Raises ValueError, KeyError or TypeError for what was not."""
        columns = cls()
        columns._words = list(facts["words"])
        columns._codes = {(name, value): code for name, value, code in facts["codes"]}
        columns._spelt = {(space, name): dict.fromkeys(values) for space, name, values in facts["spelt"]}
        columns._counts = Counter({(space, kind): count for space, kind, count in facts["counts"]})
        for name in _ARRAYS:
            setattr(columns, f"_{name}", array(name))
        return columns

    def share(self, where: Restriction, of: str | None = None) -> float:
        """About which part of all pieces, or of those of one space, fits, from 0 to 1; 0 for a filter by more than
        space and kind.
        """
        fields = {name: set(values) for name, values in where.fields}
        plain = len(fields) == len(where.fields) and fields.keys() <= {"space", "kind"}
        if not plain or where.without or (where.after, where.before, where.numbers) != (None, None, None):
            return 0.0
        counts = {pair: count for pair, count in self._counts.items() if of in (None, pair[0])}
        fitting = (
            count
            for (space, kind), count in counts.items()
            if space in fields.get("space", {space}) and kind in fields.get("kind", {kind})
        )
        return sum(fitting) / max(sum(counts.values()), 1)

    def fitting(self, numbers: Sequence[int] | NDArray[np.int64], where: Restriction) -> NDArray[np.bool_]:
        """Which of some pieces fit a filter. Labels and numbers are not looked at."""
        known = np.asarray(numbers, np.int64)
        known = np.where(known < len(self._record), known, 0)
        mask = self._mask(where, known)
        fits = self._record[known] > 0
        return fits if mask is None else fits & mask

    def spelt(self, field: str, spaces: Iterable[str]) -> list[str]:
        """Every value that `type` or `agent` has had in these spaces, as it is written."""
        return list(dict.fromkeys(value for space in spaces for value in self._spelt.get((space, field), ())))

    def allowed(self, where: Restriction, *, but: str = "") -> NDArray[np.bool_] | list[int] | None:
        """The pieces that fit: a mask of numbers, the numbers themselves where the filter lists some, or None for all.
        The field `but` and labels are not looked at.
        """
        if where.numbers is None:
            return self._mask(where, slice(None), but)
        fitting: list[int] = np.asarray(where.numbers, np.int64)[self.fitting(where.numbers, where)].tolist()
        return fitting

    def _mask(self, where: Restriction, at: slice | NDArray[np.int64], but: str = "") -> NDArray[np.bool_] | None:
        """Which of some pieces fit; None when all do."""
        masks: list[NDArray[np.bool_]] = []
        for wanted, pairs in ((True, where.fields), (False, where.without)):
            for name, values in pairs:
                if name in FIELDS and name != but:
                    mask = _is_one_of(self._fields[FIELDS.index(name), at], self._known(name, values))
                    masks.append(mask if wanted else ~mask)
        if where.after is not None:
            masks.append(self._created[at] >= where.after)
        if where.before is not None:
            masks.append(self._created[at] < where.before)
        fitting = masks[0] if masks else None
        for mask in masks[1:]:
            masks[0] &= mask
        return fitting

    def _known(self, name: str, values: Iterable[str]) -> list[int]:
        return [code for value in values if (code := self._codes.get((name, value))) is not None]


def _is_one_of(column: NDArray[np.int32], codes: Sequence[int]) -> NDArray[np.bool_]:
    """Compares once for each of the few codes, which takes a fiftieth of the time of `np.isin`."""
    mask = np.zeros(len(column), np.bool_)
    for code in codes:
        mask |= column == code
    return mask
