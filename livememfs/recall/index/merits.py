"""Which memories come with any message: who somebody is, what matters, what is new.

Owns a few numbers of each memory, in RAM, so that the foremost of a million are found in milliseconds. A memory's
weight now follows from its importance, its age and its use (`Memory.effective`), and is never kept. Refuses to know
what a memory says. Callers serialise changes; any thread may ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livememfs.records.memory import FRESH, HALF_LIFE, USE_WEIGHT

IDENTITY = "identity"
TAKEN_AT_ONCE = 10_000
CLOSE = 1_000
"""So few rows are sorted whole, without choosing the best of them first."""
IMPORTANCES = 64
"""Of so many different importances at most, the foremost of each are looked for."""
KEPT = 64
"""Answers that are kept until a memory changes."""
ROUNDING = 1e-6
"""Of importances that are kept in 32 bits."""
_COLUMNS = (
    ("number", np.int64), ("record", np.int64), ("space", np.int32), ("identity", np.bool_), ("channel", np.int32),
    ("importance", np.float32), ("created", np.int64), ("updated", np.int64), ("uses", np.float32),
    ("used", np.int64),
)  # fmt: skip


class Merit(NamedTuple):
    """What a memory is weighed by; times in seconds since 1970.

    :number: of its first piece
    :record: its number in the table
    """

    number: int
    record: int
    space: str
    type: str
    importance: float
    created: int
    updated: int
    channel: str


class Use(NamedTuple):
    """How often a memory was used, on all machines, and when last."""

    times: int
    last: int


@dataclass(frozen=True)
class UnaskedMemories:
    """Which memories come with any message (spacebot-memory-v2 2.3).

    :now:     seconds since 1970
    :least:   a memory of at least this importance matters; its weight, which age lowers, decides the order alone
    :since:   a memory created from this second on is new
    :channel: only new memories of this channel; empty: of any
    :most:    how many of each of the three
    """

    now: int
    since: int
    least: float = 0.8
    channel: str = ""
    most: int = 10


class Foremost(NamedTuple):
    """Numbers of records, the foremost first: who somebody is, what matters, what is new. One may be in several."""

    identity: tuple[int, ...] = ()
    important: tuple[int, ...] = ()
    recent: tuple[int, ...] = ()


class Merits:
    """The memories of all spaces, by the numbers of their first pieces, which only grow."""

    def __init__(self) -> None:
        self._used = 0
        self._codes: dict[str, int] = {"": 0}
        self._rows: dict[str, NDArray[Any]] = {name: np.zeros(1_024, kind) for name, kind in _COLUMNS}
        self._contenders: dict[tuple[Any, ...], _Contenders] = {}

    @property
    def last(self) -> int:
        """The highest number there is; 0 when there is none."""
        return int(self._rows["number"][self._used - 1]) if self._used else 0

    def put(self, merits: Iterable[Merit]) -> None:
        """Take in memories, by ascending numbers that were never there. `use` says how often they were used."""
        rows = iter(merits)
        while portion := list(islice(rows, TAKEN_AT_ONCE)):
            self._take(portion)

    def _take(self, merits: Sequence[Merit]) -> None:
        at, end = self._used, self._used + len(merits)
        while end > len(self._rows["number"]):
            self._rows = {name: np.pad(column, (0, max(len(column), 1_024))) for name, column in self._rows.items()}
        number, record, space, kind, importance, created, updated, channel = zip(*merits, strict=True)
        columns = (
            number, record, list(map(self._code, space)), [type_ == IDENTITY for type_ in kind],
            list(map(self._code, channel)), importance, created, updated, 0, 0,
        )  # fmt: skip
        for column, values in zip(self._rows.values(), columns, strict=True):
            column[at:end] = values
        self._used = end
        self._contenders.clear()

    def kept(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything there is, as facts and arrays, for `Merits.again`."""
        return {"codes": self._codes}, {name: column[: self._used] for name, column in self._rows.items()}

    @classmethod
    def again(cls, facts: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Merits:
        """What was kept. Raises KeyError or TypeError for what was not."""
        merits = cls()
        merits._codes = dict(facts["codes"])
        merits._rows = {name: array(name) for name in merits._rows}
        merits._used = len(merits._rows["number"])
        return merits

    def remove(self, numbers: Iterable[int]) -> None:
        """Take out some of them; the others need not be there."""
        for at in self._places(numbers).values():
            self._rows["record"][at] = 0
            self._contenders.clear()

    def use(self, uses: Mapping[int, Use]) -> None:
        """Take note of how often memories were used."""
        for number, at in self._places(uses).items():
            self._rows["uses"][at], self._rows["used"][at] = uses[number]
            self._contenders.clear()

    def _places(self, numbers: Iterable[int]) -> dict[int, int]:
        wanted = np.fromiter(numbers, np.int64)
        known = self._rows["number"][: self._used]
        at = np.searchsorted(known, wanted)
        return {int(n): int(i) for n, i in zip(wanted, at, strict=True) if i < len(known) and known[i] == n}

    def _code(self, word: str) -> int:
        return self._codes.setdefault(word, len(self._codes))

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        """The foremost memories of some spaces."""
        asked = *spaces, wanted.least, wanted.channel, wanted.most
        known = self._contenders.get(asked)
        if known is None:
            if len(self._contenders) >= KEPT:
                self._contenders.clear()
            known = self._contenders[asked] = self._contending(spaces, wanted)
        important, rows = known.important, self._rows
        importance, updated, uses, used = (rows[name][important] for name in ("importance", "updated", "uses", "used"))
        weights = weigh(importance, updated, uses, used, wanted.now)
        order = _best(wanted.most, important, weights, updated, rows["number"][important])
        new = known.recent[rows["created"][known.recent] >= wanted.since]
        return Foremost(*(tuple(rows["record"][at].tolist()) for at in (known.identity, order, new)))

    def _contending(self, spaces: Sequence[str], wanted: UnaskedMemories) -> _Contenders:
        rows = {name: column[: self._used] for name, column in self._rows.items()}
        codes = [self._codes[space] for space in spaces if space in self._codes]
        fitting = rows["record"] > 0
        fitting &= rows["space"] == codes[0] if len(codes) == 1 else np.isin(rows["space"], codes)
        identity = np.flatnonzero(fitting & rows["identity"])
        matters = fitting & ~rows["identity"] & (rows["importance"] >= wanted.least - ROUNDING)
        new = fitting & (rows["channel"] == self._codes.get(wanted.channel, -1)) if wanted.channel else fitting

        def best(at: NDArray[np.intp], *keys: str) -> NDArray[np.intp]:
            return _best(wanted.most, at, *(rows[key][at] for key in (*keys, "number")))

        unused = np.flatnonzero(matters & (rows["uses"] == 0))
        important = [unused]
        importances = np.unique(rows["importance"][unused])
        if len(importances) <= IMPORTANCES:
            important = [best(unused[rows["importance"][unused] == each], "updated") for each in importances]
        important.append(np.flatnonzero(matters & (rows["uses"] != 0)))
        recent = best(np.flatnonzero(new), "created")
        return _Contenders(best(identity, "importance", "updated"), np.concatenate(important), recent)


class _Contenders(NamedTuple):
    """Rows of the memories that may be foremost at any time, until a memory comes, goes or is used: who somebody is, in
    their order; what matters, of which time changes the order; what was created last, the last one first.

    Of memories that were never used and are as important as one another, those changed last weigh most at all times.
    """

    identity: NDArray[np.intp]
    important: NDArray[np.intp]
    recent: NDArray[np.intp]


def weigh(
    importance: NDArray[Any], updated: NDArray[Any], uses: NDArray[Any], used: NDArray[Any], now: int
) -> NDArray[np.float64]:
    """What memories weigh now that are not who somebody is: `Memory.effective`, of many."""
    age = now - np.maximum(updated, used) - FRESH.total_seconds()
    kept = 0.5 + 0.5 * np.power(0.5, np.maximum(age / HALF_LIFE.total_seconds(), 0.0))
    weights: NDArray[np.float64] = np.minimum(1.0, importance * kept * (1 + USE_WEIGHT * np.log2(1 + uses)))
    return weights


def _best(most: int, rows: NDArray[np.intp], *keys: NDArray[Any]) -> NDArray[np.intp]:
    """Those of some rows with the greatest keys, in this order, the first key before the others."""
    if not most:
        return rows[:0]
    if len(rows) > CLOSE:  # most are no match for the best by the first key
        kept = keys[0] >= np.partition(keys[0], -most)[-most]
        rows, keys = rows[kept], tuple(key[kept] for key in keys)
    if len(rows) > CLOSE:  # of those that are equal there, by the second
        kept = (keys[1] >= np.partition(keys[1], -most)[-most]) | (keys[0] > keys[0].min())
        rows, keys = rows[kept], tuple(key[kept] for key in keys)
    return rows[np.lexsort([-key for key in reversed(keys)])[:most]]
