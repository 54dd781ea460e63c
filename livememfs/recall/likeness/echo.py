"""Whether what an agent wrote has in it what it was told.

Owns that judgement: by the values, names and words of a record that could come from nowhere else, because neither the
question nor anything else that the agent has seen has them. A wrong yes makes something weigh more that helped nobody,
a wrong no only leaves it as it was: an unclear case is a no. Refuses to understand: who says the same in other words is
not seen. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from livememfs.recall.index.words import STOP_WORDS, fold

ENOUGH = 3.5
"""What the words that came back must weigh together, of two different ones at least."""
SHARE = 0.4
"""Or the share of all that could come back; what came back must weigh HALF at least."""
HALF = 2.0
PASSAGE = 30
"""Words that stand near enough to one another to say one thing."""
LOOKED_AT = 8_000
"""Characters of a text."""
MOST_MARKS = 200
"""Marks of one record: a long one is known by its beginning."""
_STEM = 5
"""Letters by which a word is known in all its forms."""
_SHORTEST = 4
_VALUE, _NUMBER, _DIGIT, _NAME, _WORD = 3.0, 1.5, 0.5, 2.0, 1.0
_TYPED = re.compile(r"[^\W_][\w./:@+-]*[^\W_]|[^\W_]")
_INNER = re.compile(r"[^\W\d_][\w]*[_./:@+]\w|[a-z][A-Z]|\d[^\W\d_]|[^\W\d_]\d|\d[.:/]\d")
_PARTS = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[.!?:\n][\s\"'»)]*\Z")
_STOPS = STOP_WORDS["en"] | STOP_WORDS["fr"]
Marks = Mapping[str, float]
"""What a text is known by, and what each of it weighs."""


def marks(text: str, most: int = MOST_MARKS) -> dict[str, float]:
    """What a text is known by: numbers, identifiers, names, and words by their stems."""
    found: dict[str, float] = {}
    for mark, weight in islice(_marks(text[:LOOKED_AT]), most):
        found[mark] = max(weight, found.get(mark, 0.0))
    return found


def words(text: str) -> set[str]:
    """Everything of a text that may be a mark."""
    return {mark for mark, _ in _marks(text[:LOOKED_AT])}


def _marks(text: str) -> Iterator[tuple[str, float]]:
    for match in _TYPED.finditer(text):
        typed = match[0]
        if _INNER.search(typed):
            yield fold(typed), _VALUE
        for part in _PARTS.findall(typed):
            word = fold(part)
            if word.isdecimal():
                yield word, _VALUE if len(word) > 2 else _NUMBER if len(word) == 2 else _DIGIT
            elif word not in _STOPS and len(word) >= _SHORTEST:
                is_name = (
                    part[0].isupper()
                    and match.start() > 0
                    and not _SENTENCE.search(text[max(match.start() - 4, 0) : match.start()])
                )
                yield word[:_STEM], _NAME if is_name else _WORD


class Words:
    """The words of a text that an agent wrote: all of them, and those of its passages, which overlap. In a long text,
    three words that stand far apart are chance.
    """

    def __init__(self, text: str) -> None:
        every = [mark for mark, _ in _marks(text[:LOOKED_AT])]
        starts = range(0, max(len(every) - PASSAGE // 2, 1), PASSAGE // 2)
        self.all, self.passages = {*every}, [{*every[start : start + PASSAGE]} for start in starts]


def came_back(said: Words, told: Marks, known: Collection[str], shared: Mapping[str, int]) -> bool:
    """Whether a text has what a record says.

    :told:   the marks of the record
    :known:  words that the agent has from elsewhere, such as those of the question
    :shared: how many records have a mark that were told: what several have is the less a sign of each
    """
    own = {mark: weight / max(shared.get(mark, 1), 1) for mark, weight in told.items() if mark not in known}
    least = min(ENOUGH, max(HALF, SHARE * sum(own.values())))
    back = {mark: own[mark] for mark in own.keys() & said.all}
    if len(back) < 2 or sum(back.values()) < least:
        return False
    near = ([weight for mark, weight in back.items() if mark in passage] for passage in said.passages)
    return any(len(weights) > 1 and sum(weights) >= least for weights in near)
