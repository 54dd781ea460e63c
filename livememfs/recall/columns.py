"""What one may filter by, of every piece, in memory: a filter is a mask, whatever it lets through.

Owns arrays that are indexed by a piece's number. Refuses labels, of which a piece has many (`Table.numbers` knows
them). Callers serialise changes; any thread may ask.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.lexical import Restriction

FIELDS = ("space", "kind", "type", "agent")


class Columns:
    """Space, kind, type, agent and time of every piece."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._spelt: dict[tuple[str, str], dict[str, None]] = {}
        self._fields = np.zeros((len(FIELDS), 1_024), np.int32)
        self._created = np.zeros(1_024, np.int64)

    def put(self, number: int, space: str, kind: str, type_: str, agent: str, created: int) -> None:
        """Take note of a piece. Numbers are never given twice, so nothing has to be taken out."""
        if number >= len(self._created):
            room = max(number + 1, 2 * len(self._created)) - len(self._created)
            self._fields = np.pad(self._fields, ((0, 0), (0, room)))
            self._created = np.pad(self._created, (0, room))
        for row, value in enumerate((space, kind, type_, agent)):
            self._fields[row, number] = self._codes.setdefault((FIELDS[row], value), len(self._codes) + 1)
        self._created[number] = created
        for name, value in (("type", type_), ("agent", agent)):
            self._spelt.setdefault((space, name), {})[value] = None

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
