"""What one may filter and rank by, of every piece, in memory: a filter is a mask, whatever it lets through.

Owns arrays that are indexed by a piece's number. Refuses labels, of which a piece has many (`Table.numbers` knows
them), and to know what has gone: whoever asks for a piece has just found it. Callers serialise changes; any thread may
ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.lexical import Restriction
from livememfs.recall.record import Brief

FIELDS = ("space", "kind", "type", "agent")
MOST_PARTS = 32_767
TAKEN_AT_ONCE = 10_000


class Columns:
    """Record, place in it, space, kind, type, agent and time of every piece."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._words: list[str] = [""]
        self._spelt: dict[tuple[str, str], dict[str, None]] = {}
        self._fields = np.zeros((len(FIELDS), 1_024), np.int32)
        self._created = np.zeros(1_024, np.int64)
        self._record = np.zeros(1_024, np.int32)
        self._part = np.zeros(1_024, np.int16)
        self._asks = np.zeros(1_024, np.bool_)

    def put(self, pieces: Iterable[tuple[int, int, Brief]]) -> None:
        """Take note of pieces: number, place in the record, and that. Numbers are never given twice, so nothing has to
        be taken out.
        """
        rows = iter(pieces)
        while portion := list(islice(rows, TAKEN_AT_ONCE)):
            self._take(portion)

    def _take(self, pieces: Sequence[tuple[int, int, Brief]]) -> None:
        numbers = np.array([number for number, _, _ in pieces], np.int64)
        briefs = [brief for _, _, brief in pieces]
        self._make_room(int(numbers.max()) + 1)
        told = [(brief.space, brief.kind, brief.type, brief.agent) for brief in briefs]
        for row, values in enumerate(zip(*told, strict=True)):
            self._fields[row, numbers] = [self._code(FIELDS[row], value) for value in values]
        self._created[numbers] = [brief.created for brief in briefs]
        self._part[numbers] = [min(part, MOST_PARTS) for _, part, _ in pieces]
        self._asks[numbers] = [brief.asks for brief in briefs]
        self._record[numbers] = [brief.id for brief in briefs]  # last: from now on they are there for whoever asks
        for space, _, kind, agent in dict.fromkeys(told):
            for name, value in (("type", kind), ("agent", agent)):
                self._spelt.setdefault((space, name), {})[value] = None

    def _make_room(self, end: int) -> None:
        if end <= len(self._created):
            return
        room = max(end, 2 * len(self._created)) - len(self._created)
        self._fields = np.pad(self._fields, ((0, 0), (0, room)))
        self._created = np.pad(self._created, (0, room))
        self._part = np.pad(self._part, (0, room))
        self._asks = np.pad(self._asks, (0, room))
        self._record = np.pad(self._record, (0, room))

    def _code(self, field: str, value: str) -> int:
        found = self._codes.get((field, value))
        if found is None:
            self._words.append(value)  # before the code is known: another thread may ask for what it means
            found = self._codes[(field, value)] = len(self._words) - 1
        return found

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        """The record of each piece, and which of its pieces it is; those that nobody knows are left out."""
        there = np.array([number for number in numbers if number < len(self._record)], np.int64)
        there = there[self._record[there] > 0]
        spaces, kinds, types, agents = ([self._words[code] for code in row] for row in self._fields[:, there].tolist())
        rows = zip(
            self._record[there].tolist(),
            kinds,
            spaces,
            types,
            agents,
            self._created[there].tolist(),
            self._asks[there].tolist(),
            strict=True,
        )
        parts = self._part[there].tolist()
        return {number: (part, Brief(*row)) for number, part, row in zip(there.tolist(), parts, rows, strict=True)}

    def space_of(self, number: int) -> str:
        """The space of a piece; empty for one that nobody knows."""
        return self._words[self._fields[0, number]] if number < len(self._record) else ""

    def spelt(self, field: str, spaces: Iterable[str]) -> list[str]:
        """Every value that `type` or `agent` has had in these spaces, as it is written."""
        return list(dict.fromkeys(value for space in spaces for value in self._spelt.get((space, field), ())))

    def mask(self, where: Restriction, *, but: str = "") -> NDArray[np.bool_] | None:
        """The pieces that fit, by number; None when all do. The field `but` and labels are not looked at."""
        masks: list[NDArray[np.bool_]] = []
        for wanted, pairs in ((True, where.fields), (False, where.without)):
            for name, values in pairs:
                if name in FIELDS and name != but:
                    masks.append(self._is_one_of(name, values) == wanted)
        if where.after is not None:
            masks.append(self._created >= where.after)
        if where.before is not None:
            masks.append(self._created < where.before)
        if where.numbers is not None:
            listed = np.zeros(len(self._created), np.bool_)
            listed[[number for number in where.numbers if number < len(listed)]] = True
            masks.append(listed)
        return np.logical_and.reduce(masks) if masks else None

    def _is_one_of(self, name: str, values: Iterable[str]) -> NDArray[np.bool_]:
        codes = [code for value in values if (code := self._codes.get((name, value))) is not None]
        column = self._fields[FIELDS.index(name)]
        return column == codes[0] if len(codes) == 1 else np.isin(column, codes)
