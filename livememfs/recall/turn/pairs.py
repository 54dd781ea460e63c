"""Memories that contradict one another are told together: a pair in one line, with dates, in place of either.

Owns which candidates become a pair. Refuses to judge: a link of the newer memory says what it contradicts, and the
words of both say whether that still holds. Blocking: for a worker thread, one turn each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.likeness.contradiction import RELATION, stands, told
from livememfs.recall.turn.bycode import ByCode
from livememfs.recall.turn.inject import SHOWN_CHARACTERS, in_a_line
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.record import Record

MOST_LINKS = 200
EACH = SHOWN_CHARACTERS // 2 - 20
"""Characters of either text: both have to be seen."""


class Pairs:
    """The contradictions of the memories that one turn may tell. `is_there`: whether a record's version still is;
    `code`: whether what it says of the code still does.
    """

    def __init__(
        self, index: Engine | None, space: str, numbers: Iterable[int], is_there: Callable[[Record], bool],
        code: ByCode | None = None,
    ) -> None:  # fmt: skip
        self._of: dict[str, tuple[Record, str]] = {}
        ids = sorted(set(numbers) - {0})
        if index is None or not ids:
            return
        where = Restriction(fields=(("space", (space,)), ("kind", keys.COLLECTIONS)))
        links = [link for link in index.linked(ids, where, MOST_LINKS) if link.relation == RELATION]
        records = index.records(list({number for link in links for number in (link.of, link.to)})) if links else {}
        by = code or ByCode()
        by.judge(records.values())
        for link in links:
            newer, older = (records.get(n) for n in ((link.of, link.to) if link.forward else (link.to, link.of)))
            if (
                newer is not None
                and older is not None
                and all(is_there(each) and by.told(each) for each in (newer, older))
            ):
                self._add(older, newer)

    def _add(self, older: Record, newer: Record) -> None:
        if stands(older.text, newer.text):
            texts = f"{in_a_line(older.text, EACH)}{older.marks}", in_a_line(newer.text, EACH)
            line = told(texts[0], older.updated or older.created, texts[1], newer.updated or newer.created)
            self._of[newer.key] = self._of[older.key] = newer, line

    def instead(self, record: Record) -> tuple[Record, str]:
        """What is told in place of a memory: the newer of its pair, with the line of both; or itself, with its text."""
        return self._of.get(record.key, (record, record.text))
