"""Observations that a newer one corrects are not told unasked; of two that contradict one another both are told, in one
line with their dates.

Owns when such a link counts: as long as the other observation is there, may be told, and has no lower class of trust
than the one it would hide. Refuses to judge words: who observed has. Pure but for lookups in the index, `LOOKED_UP` for
each turn at most; blocking, for a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs.recall.likeness.contradiction import RELATION, told
from livememfs.recall.turn.inject import in_a_line
from livememfs.records import keys
from livememfs.records.observation import CONTRADICTED, SUPERSEDED, Observation

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.exchanged import Stored
    from livememfs.recall.index.record import Record

LOOKED_UP = 40
EACH = 120
"""Characters of either of two that contradict one another: both have to be seen."""


def standing(observations: Sequence[Observation]) -> list[Observation]:
    """Those of some observations, which may all be told, that none of the others corrects."""
    known = {each.link: each for each in observations}
    return [
        each
        for each in observations
        if not any(
            name in known and known[name].trust >= each.trust and name != each.link for name in each.linked(SUPERSEDED)
        )
    ]


def as_they_stand(
    index: Engine, space: str, named: Sequence[Stored], may_be_told: Callable[[Record], bool]
) -> list[Stored]:
    """Records without the observations that are superseded, and with one line in place of two that contradict."""
    others = _others(index, space, named, may_be_told)
    kept: list[Stored] = []
    paired: set[str] = set()
    for stored in named:
        record = stored.record
        newer = [others[name] for name in _linked(record, SUPERSEDED) if name in others]
        if any(each.trust >= record.trust for each in newer):
            continue
        other = next((others[name] for name in _contradicting(record) if name in others), None)
        if other is None:
            kept.append(stored)
            continue
        pair = "\0".join(sorted((record.key, other.key)))
        if pair not in paired:
            paired.add(pair)
            kept.append(replace(stored, record=_joined(record, other)))
    return kept


def _others(
    index: Engine, space: str, named: Iterable[Stored], may_be_told: Callable[[Record], bool]
) -> dict[str, Record]:
    """The observations that these are linked to, by name: those that are there and may be told."""
    names = [
        name
        for stored in named
        for name in (*_linked(stored.record, SUPERSEDED), *_contradicting(stored.record))
        if stored.record.kind == keys.OBSERVATIONS
    ]
    refs = {f"{keys.observations_prefix(space)}{name}.md": name for name in names[:LOOKED_UP]}
    found = index.called(list(refs)) if refs else {}
    return {refs[ref]: stored.record for ref, stored in found.items() if ref in refs and may_be_told(stored.record)}


def _linked(record: Record, field: str) -> list[str]:
    return [value for name, value in record.labels if name == field]


def _contradicting(record: Record) -> list[str]:
    """The names of the observations that this one contradicts, whichever is the newer."""
    if record.kind != keys.OBSERVATIONS:
        return []
    return [*_linked(record, CONTRADICTED), *(name for relation, name in record.links if relation == RELATION)]


def _joined(one: Record, other: Record) -> Record:
    """The newer of two, with the words of both."""
    older, newer = sorted((one, other), key=lambda record: (record.created, record.key))
    texts = f"{in_a_line(older.text, EACH)}{older.marks}", in_a_line(newer.text, EACH)
    return replace(newer, pieces=(told(texts[0], older.created, texts[1], newer.created),))
