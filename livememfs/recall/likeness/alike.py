"""Which memories say what a text says: the candidates by meaning and by words, judged one by one.

Owns the search; `estimate` judges. Without a model only the same words are alike, and a remark says so.
Refuses to change anything. Trio thread only; what takes time runs in a worker thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.likeness.correction import Verdict, judged
from livememfs.recall.likeness.estimate import likeness

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.vectors import Floats
    from livememfs.recall.service import Recall

CANDIDATES = 20
WAITED = 10.0
"""Seconds without a new vector, after which the search is by words alone."""


@dataclass(frozen=True)
class Alike:
    """A memory: its object, its text as it was indexed, how likely it states the same fact, and the cosine of both
    (relative to the mean of any texts; None without a model).

    :older: what the text that was asked for is to this one, if this is the older
    :newer: what this one is to that text, if this is the newer
    """

    key: str
    text: str
    likeness: float
    near: float | None
    older: Verdict
    newer: Verdict


async def alike(recall: Recall, space: str, collection: str, text: str) -> tuple[list[Alike], list[str]]:
    """Memories of one collection, the most alike first, and remarks on what could not be done."""
    index, notes = await recall.ready((space,), WAITED)
    if index is None:
        return [], notes
    done = -1
    while not await recall.understood(WAITED) and recall.embedded != done:  # an import: it goes on
        done = recall.embedded
    look = _Look(index, space, collection, text)
    vector = await trio.to_thread.run_sync(look.by_words)
    if vector is None:
        vector = await recall.passage(text, notes)
    compared = await trio.to_thread.run_sync(look.compared, vector)
    return sorted(compared, key=lambda memory: (-memory.likeness, -(memory.near or 0.0), memory.key)), notes


class _Look:
    """The search for the candidates of one text; each method runs in a worker thread."""

    def __init__(self, index: Engine, space: str, collection: str, text: str) -> None:
        self._index, self._text = index, text
        self._where = Restriction(fields=(("space", (space,)), ("kind", (collection,))))
        self._ids: list[int] = []

    def by_words(self) -> Floats | None:
        """Take the memories that share words with the text; its vector, if a memory with the same text has one."""
        hits, _ = self._index.text(TextQuery(self._text), self._where, CANDIDATES)
        self._take([number for number, _ in hits])
        same = [number for number, record in self._index.records(self._ids).items() if record.text == self._text]
        return next(iter(self._index.vectors_of(same).values()), None)

    def compared(self, vector: Floats | None) -> list[Alike]:
        """All candidates, judged."""
        if vector is not None:
            self._take([number for number, _ in self._index.near(vector, self._where, CANDIDATES)])
        near = self._cosines(vector)
        return [
            self._judged(record.key, record.text, near.get(number))
            for number, record in self._index.records(self._ids).items()
        ]

    def _judged(self, key: str, text: str, near: float | None) -> Alike:
        mine = self._text
        return Alike(
            key, text, likeness(mine, text, near), near, older=judged(text, mine, near), newer=judged(mine, text, near)
        )

    def _take(self, hits: list[int]) -> None:
        self._ids = list(dict.fromkeys((*self._ids, *(brief.id for _, brief in self._index.briefs(hits).values()))))

    def _cosines(self, vector: Floats | None) -> dict[int, float]:
        """The cosines of the candidates' vectors with this one, all relative to the mean of any texts."""
        import numpy as np

        from livememfs.recall.likeness.sameness import centred

        if vector is None:
            return {}
        theirs = {number: row for number, row in self._index.vectors_of(self._ids).items() if len(row) == len(vector)}
        mine, *rows = centred(np.stack([vector, *theirs.values()]), self._index.prior)
        return {number: float(mine @ row) for number, row in zip(theirs, rows, strict=True)}
