"""Which memories say the same, or cannot both hold, among those that matter most: the ones told, and the newest.

Owns the comparison of some two thousand with one another, in a moment; of a larger space the rest is not looked at.
Refuses to merge and to link: whoever writes a memory has it compared with all others (`memories/merging.py`). Blocking:
for a worker thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.index.words import fold
from livememfs.recall.likeness.contradiction import RELATION, stands
from livememfs.recall.likeness.estimate import THRESHOLD, likeness
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.exchanged import Stored
    from livememfs.recall.index.record import Record

EACH = 1_000
"""Memories that were told, and of the newest."""
MOST_JUDGED = 2_000
"""Pairs whose words are compared, the nearest ones."""
MOST_LINKS = 5_000


class Twins(NamedTuple):
    """Two memories, the older first."""

    older: Record
    newer: Record


def looked_at(index: Engine, space: str, told: Sequence[str]) -> list[Stored]:
    """The memories that are compared: of those told, by their keys, the first; and the newest."""
    newest = index.strict(Restriction(fields=(("space", (space,)), ("kind", keys.COLLECTIONS))), EACH)
    found = {stored.id: stored for stored in (*index.called(told[:EACH]).values(), *newest)}
    return [found[number] for number in sorted(found) if found[number].record.kind in keys.COLLECTIONS]


def alike(index: Engine, among: Sequence[Stored]) -> list[Twins]:
    """Pairs that say the same, as two lines of a telling do."""
    by_words: dict[str, Record] = {}
    found: dict[frozenset[str], Twins] = {}
    for stored in among:
        words = " ".join(fold(stored.record.text).split())
        if words and (same := by_words.setdefault(words, stored.record)) is not stored.record:
            found[frozenset((same.ref, stored.record.ref))] = _in_order(same, stored.record)
    for one, other, near in _near(index, among):
        pair = frozenset((one.ref, other.ref))
        if pair not in found and (near > THRESHOLD or likeness(one.text, other.text, near) > THRESHOLD):
            found[pair] = _in_order(one, other)
    return sorted(found.values(), key=lambda twins: (twins.newer.ref, twins.older.ref))


def _near(index: Engine, among: Sequence[Stored]) -> list[tuple[Record, Record, float]]:
    """The nearest pairs by meaning, as many as can be judged; none without vectors."""
    import numpy as np

    from livememfs.recall.likeness.sameness import LOOK, centred

    records = {stored.id: stored.record for stored in among}
    vectors = index.vectors_of(list(records))
    length = max((len(vector) for vector in vectors.values()), default=0)
    numbers = [number for number in records if number in vectors and len(vectors[number]) == length]
    if len(numbers) < 2:
        return []
    rows = centred(np.stack([vectors[number] for number in numbers]), index.prior)
    near = np.triu(rows @ rows.T, 1)
    one, other = np.nonzero(near > LOOK)
    best = np.argsort(-near[one, other], kind="stable")[:MOST_JUDGED]
    return [
        (records[numbers[a]], records[numbers[b]], float(near[a, b]))
        for a, b in zip(one[best], other[best], strict=True)
    ]


def contradicting(index: Engine, space: str, among: Sequence[Stored]) -> list[Twins]:
    """Pairs that are linked as such, and whose words still say so."""
    where = Restriction(fields=(("space", (space,)), ("kind", keys.COLLECTIONS)))
    links = index.linked([stored.id for stored in among], where, MOST_LINKS) if among else []
    ends = {
        (link.of, link.to) if link.forward else (link.to, link.of): None for link in links if link.relation == RELATION
    }
    records = index.records(list({number for pair in ends for number in pair})) if ends else {}
    pairs = (Twins(records[older], records[newer]) for newer, older in ends if newer in records and older in records)
    standing = islice((twins for twins in pairs if stands(twins.older.text, twins.newer.text)), MOST_JUDGED)
    return sorted(standing, key=lambda twins: (twins.newer.ref, twins.older.ref))


def _in_order(one: Record, other: Record) -> Twins:
    older, newer = sorted((one, other), key=lambda record: (record.updated or record.created, record.ref))
    return Twins(older, newer)
