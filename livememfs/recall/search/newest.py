"""What holds now before what held then, among hits that say the same of the same.

Owns which hits those are, and which questions want them the other way round. Two hits are of one subject if the same of
the question's words stand in both and their vectors are near; a value has changed between them if both have a number
and the question asks for a value that holds now, or if their words or a link say that one corrects the other. All else
keeps the order of the ranking: what was written last is not better for that. Refuses to drop a hit. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from livememfs.recall.index.vectors import Floats
from livememfs.recall.index.words import fold
from livememfs.recall.search.floor import stood_in, weights

FOREMOST = 10
"""Hits that are compared with one another."""
NEAR = 0.6
"""The cosine, relative to the mean of any texts, from which two hits may be of one subject."""
SHARED, COVERED = 0.6, 0.45
"""The share of the words of the first that the other must have too, and of the question's words that the first must."""
_CHANGES = frozenset(("updates", "contradicts"))
_THEN = re.compile(
    r"\bused to\b|\bprevious(?:ly)?\b|\bformer(?:ly)?\b|\boriginal(?:ly)?\b|\bat first\b|\bin the past\b|\bhistory\b"
    r"|\bbefore\b|\bavant\b|\bauparavant\b|\bautrefois\b|\bjadis\b|\ba l'origine\b|\bau debut\b|\banciens?\b"
    r"|\banciennes?\b|\bprecedent\w*|\bhistorique\b|\bevolue\b"
)
_PAST = re.compile(
    r"\b(?:did|was|were|had|would|ago|first|both|ever|last|recently|since|after|during)\b"
    r"|\b(?:etait|etaient|avait|avaient|fut|premiere?)\b|\b(?:a|ont|est)(?:-t)?-(?:il|elle|on)s?\b"
)
_VALUE = re.compile(
    r"^\W*(?:how (?:many|much|long|often|old|far|high|big)|what (?:time|day|date|is|are|'s|\w+ (?:is|are|rate|does|do))"
    r"|when (?:is|are|does|do|should|will)|where (?:is|are|does|do)|who is|which \w+ (?:is|are|does|do)"
    r"|combien|(?:a )?quelle heure|quel(?:le)?s? (?:est|sont)|quand (?:est|sont|a)|ou (?:est|sont|habite)|qui est)\b"
)
_HOLDS = re.compile(r"\b(?:is|are|am|do|does|has|have|can|should|will)\b|'s\b|\b(?:est|sont|y a|doit|faut|combien)\b")
_NUMBER = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Dated:
    """A hit: its text, who wrote it when (seconds), its vector of length 1, and its id and links as a memory."""

    text: str
    author: str
    created: int
    vector: Floats | None
    id: str = ""
    links: tuple[tuple[str, str], ...] = ()


def asks_for_then(question: str) -> bool:
    """Whether somebody wants what held before, and not what holds now."""
    return _THEN.search(fold(question)) is not None


def in_time(question: str, hits: Sequence[Dated], prior: Floats | None, *, then: bool = False) -> list[int]:
    """The places of some hits (best first) in the order in which they are shown: hits of one subject change places
    among themselves, the newest first, or the oldest for a question about then.

    :prior: the mean of any texts' vectors; without it or without vectors only links tell
    """
    then = then or asks_for_then(question)
    rows, cosines = stood_in(question, [hit.text for hit in hits]), _cosines(hits, prior)
    weight, asks = weights(rows), then or _asks_for_a_value(question)

    def changed(one: int, other: int) -> bool:
        if _linked(hits[one], hits[other]):
            return True
        near = float(cosines[one, other])
        of_one_subject = near >= NEAR and _same_words(rows[one], rows[other], weight)
        return of_one_subject and _has_changed(hits[one], hits[other], near, asks=asks)

    order, left = list(range(len(hits))), list(range(len(hits)))
    while left:
        group = [left[0], *(other for other in left[1:] if changed(left[0], other))]
        left = [at for at in left if at not in group]
        by_time = sorted(group, key=lambda at: hits[at].created, reverse=not then)
        for place, at in zip(group, by_time, strict=True):
            order[place] = at
    return order


def _asks_for_a_value(question: str) -> bool:
    asked = fold(question)
    return _VALUE.search(asked) is not None and _HOLDS.search(asked) is not None and _PAST.search(asked) is None


def _cosines(hits: Sequence[Dated], prior: Floats | None) -> Floats:
    length = len(prior) if prior is not None else 0
    if prior is None or not hits:
        return np.zeros((len(hits), len(hits)), np.float32)
    nothing = np.zeros(length, np.float32)
    vectors = [hit.vector - prior if hit.vector is not None and len(hit.vector) == length else nothing for hit in hits]
    matrix = np.stack(vectors)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-6)
    return np.asarray(matrix @ matrix.T, np.float32)


def _same_words(first: Sequence[bool], other: Sequence[bool], weight: Sequence[float]) -> bool:
    mine = sum(w for w, there in zip(weight, first, strict=True) if there)
    both = sum(w for w, one, two in zip(weight, first, other, strict=True) if one and two)
    return mine >= COVERED * sum(weight) and both >= SHARED * mine > 0


def _linked(one: Dated, other: Dated) -> bool:
    return any(
        relation in _CHANGES and to == there.id and bool(to)
        for here, there in ((one, other), (other, one))
        for relation, to in here.links
    )


def _has_changed(one: Dated, other: Dated, near: float, *, asks: bool) -> bool:
    if asks and one.author == other.author and _NUMBER.search(one.text) and _NUMBER.search(other.text):
        return True
    from livememfs.recall.likeness.correction import Verdict, judged  # with the first hits that are near one another

    older, newer = sorted((one, other), key=lambda hit: hit.created)
    return judged(older.text, newer.text, near) is not Verdict.DISTINCT
