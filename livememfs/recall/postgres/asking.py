"""Words in PostgreSQL: which pieces have the words of a question, and how well (BM25). Words, phrases and what must not
be there mean the same as in `Lexical`.

Owns nothing: reads what `postings` keeps. A phrase is looked for among the pieces that have all its words. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.index.exchanged import MAX_TERMS, TEXT_WEIGHT, Restriction, TextQuery
from livememfs.recall.index.words import LANGUAGES, STOP_WORDS, Language, placed, terms
from livememfs.recall.postgres.connection import Db
from livememfs.recall.postgres.postings import BLOCK, K1, LENGTHS, Counts, Postings, Term, counts, postings
from livememfs.recall.postgres.records import clauses, fitting, space_ids

FILTERED_FIRST = 2_000
"""So many of the best are tested against a filter first; only if too few fit, all pieces that fit are looked up."""
_SMALL = STOP_WORDS["en"] | STOP_WORDS["fr"]
_WILD = re.compile(r"([%_\\])")
_SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")
Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]
Scored = tuple[Numbers, Scores]
"""Pieces in the order of their numbers, each once, and their scores."""
NOTHING: Scored = (np.zeros(0, np.int64), np.zeros(0))


@dataclass(slots=True)
class _Question:
    """A question in terms. `phrases`, `without`: for each language that has them, places and terms."""

    words: dict[Language, list[str]]
    phrases: list[dict[Language, list[tuple[int, str]]]] = field(default_factory=list)
    without: list[dict[Language, list[tuple[int, str]]]] = field(default_factory=list)

    def terms(self) -> set[Term]:
        terms = {(language, word) for language, words in self.words.items() for word in words}
        for phrase in (*self.phrases, *self.without):
            terms |= {(language, word) for language, words in phrase.items() for _, word in words}
        return terms


def search(db: Db, asked: TextQuery, where: Restriction, limit: int) -> tuple[list[tuple[int, float]], float]:
    """Pieces that have the words, with their scores, best first; and the score of a piece that had all of them."""
    question = _read(asked)
    figures, ids = counts(db, question.terms())
    ceiling = max(
        sum((K1 + 1) * figures.rarity((language, word)) for word in words) for language, words in question.words.items()
    )
    named = [values for name, values in where.fields if name == "space"]
    spaces = list(space_ids(db, named[0]).values()) if named else None
    if not (any(question.words.values()) or question.phrases) or spaces == []:
        return [], ceiling
    matching = _matching(db, question, figures, postings(db, ids, spaces))
    rest = replace(where, fields=tuple(pair for pair in where.fields if pair[0] != "space" or pair[1] is not named[0]))
    return _best(db, matching, where, rest, limit), ceiling


def _read(asked: TextQuery) -> _Question:
    words = {language: [term for term in terms(asked.words, language) if term not in _SMALL] for language in LANGUAGES}
    question = _Question({language: list(dict.fromkeys(listed))[:MAX_TERMS] for language, listed in words.items()})
    for texts, into in ((asked.phrases, question.phrases), (asked.without, question.without)):
        for text in texts:
            phrase = {language: terms_at for language in LANGUAGES if (terms_at := placed(text, language)[:MAX_TERMS])}
            if phrase:
                into.append(phrase)
    return question


def _matching(db: Db, question: _Question, figures: Counts, lists: dict[Term, Postings]) -> Scored:
    """All pieces that match the words and phrases, before the filters."""
    matching: Scored | None = None
    wanted = [(language, word) for language, words in question.words.items() for word in words]
    if wanted:
        matching = _summed(_scored(term, figures, lists) for term in wanted if term in lists)
    for phrase in question.phrases:
        scored = _phrase(db, phrase, figures, lists, matching)
        if matching is None:
            matching = scored
        else:
            both, first, second = np.intersect1d(matching[0], scored[0], assume_unique=True, return_indices=True)
            matching = both, matching[1][first] + scored[1][second]
    matching = matching or NOTHING
    for phrase in question.without:
        unwanted = _phrase(db, phrase, figures, lists, matching)[0]
        kept = ~np.isin(matching[0], unwanted, assume_unique=True)
        matching = matching[0][kept], matching[1][kept]
    return matching


def _scored(term: Term, figures: Counts, lists: dict[Term, Postings]) -> Scored:
    posting = lists[term]
    return posting.numbers, figures.scores(figures.rarity(term), term[0], posting.tf, posting.norms)


def _summed(parts: Iterable[Scored]) -> Scored:
    """Lists added up, a piece in several of them once."""
    listed = list(parts)
    if not listed:
        return NOTHING
    numbers, scores = (np.concatenate(column) for column in zip(*listed, strict=True))
    if not len(numbers):
        return NOTHING
    # Rows only for blocks that have a piece: numbers are never used twice, so many blocks may be empty.
    block, at = np.divmod(numbers, BLOCK)
    used = np.zeros(int(block.max()) + 1, np.bool_)
    used[block] = True
    row = (np.cumsum(used) - 1)[block] * BLOCK + at
    rows = np.flatnonzero(np.bincount(row))
    total = np.bincount(row, scores)[rows]
    pieces: Numbers = np.flatnonzero(used)[rows // BLOCK].astype(np.int64) * BLOCK + rows % BLOCK
    return pieces, total.astype(np.float64)


# --- phrases ------------------------------------------------------------------------------------------------------


def _phrase(
    db: Db,
    phrase: dict[Language, list[tuple[int, str]]],
    figures: Counts,
    lists: dict[Term, Postings],
    among: Scored | None,
) -> Scored:
    """The pieces that have a phrase in their language. A piece has one language, so no piece comes twice."""
    parts = []
    for language, words in phrase.items():
        keys = [(language, word) for _, word in words]
        if any(key not in lists for key in keys):
            continue
        if len(words) == 1:
            parts.append(_scored(keys[0], figures, lists))
            continue
        candidates = among[0] if among is not None else lists[keys[0]].numbers
        for key in set(keys):
            candidates = np.intersect1d(candidates, lists[key].numbers)
        weight = sum(figures.rarity(key) for key in keys)
        parts.append(_in_a_row(db, language, words, candidates, figures, weight))
    return _summed(parts)


def _in_a_row(
    db: Db, language: Language, words: Sequence[tuple[int, str]], candidates: Numbers, figures: Counts, weight: float
) -> Scored:
    pattern, like = _pattern(words), _like(words)
    rows = db.execute(
        "SELECT p.number, %s * regexp_count(s.words, %s) + regexp_count(s.beside, %s), p.length FROM said s"
        " JOIN piece p ON p.number = s.number WHERE s.number = ANY(%s) AND p.language = %s"
        " AND (s.words LIKE %s OR s.beside LIKE %s) ORDER BY p.number",
        (TEXT_WEIGHT, pattern, pattern, candidates.tolist(), language, like, like),
    ).fetchall()
    rows = [row for row in rows if row[1]]
    if not rows:
        return NOTHING
    numbers, tf, lengths = np.array(rows, np.int64).T
    norms = np.searchsorted(LENGTHS, lengths, side="right") - 1
    return numbers, figures.scores(weight, language, tf, norms)


def _pattern(words: Sequence[tuple[int, str]]) -> str:
    """A phrase as a regular expression over the terms of a text; a gap is any term. Matches may touch each other."""
    first, parts = words[0][0], list[str]()
    for place, word in words:
        parts += ["[^ ]+"] * (place - first - len(parts))
        parts.append(_SPECIAL.sub(r"\\\1", word))
    return f" {' '.join(parts)}(?= )"


def _like(words: Sequence[tuple[int, str]]) -> str:
    """A LIKE pattern that every text with the phrase matches, and that the database tests much faster."""
    parts = [_WILD.sub(r"\\\1", words[0][1])]
    for (last, _), (place, word) in pairwise(words):
        parts.append((" " if place == last + 1 else " % ") + _WILD.sub(r"\\\1", word))
    return f"% {''.join(parts)} %"


# --- filters ------------------------------------------------------------------------------------------------------


def _best(db: Db, matching: Scored, where: Restriction, rest: Restriction, limit: int) -> list[tuple[int, float]]:
    """The best of those that fit. `rest`: the filter without its spaces, which all of `matching` fit already."""
    if rest.numbers is not None:
        matching = _only(matching, np.asarray(rest.numbers, np.int64))
        rest = replace(rest, numbers=None)
    if rest == Restriction():
        return _pairs(_top(matching, limit))
    first = _top(matching, max(FILTERED_FIRST, 2 * limit))
    condition, values = clauses(rest, "p")
    rows = db.execute(
        f"SELECT p.number FROM piece p WHERE p.number = ANY(%s) AND {condition}", (first[0].tolist(), *values)
    )
    fit = _only(first, np.array([row[0] for row in rows], np.int64))
    if len(fit[0]) < limit and len(first[0]) < len(matching[0]):
        fit = _only(matching, np.array(fitting(db, where), np.int64))
    return _pairs(_top(fit, limit))


def _only(scored: Scored, numbers: Numbers) -> Scored:
    kept = np.isin(scored[0], numbers)
    return scored[0][kept], scored[1][kept]


def _top(scored: Scored, limit: int) -> Scored:
    """The best, best first; of equals the oldest."""
    numbers, scores = scored
    if len(numbers) > limit:
        kept = np.argpartition(-scores, limit - 1)[:limit]
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))
    return numbers[order], scores[order]


def _pairs(scored: Scored) -> list[tuple[int, float]]:
    return list(zip(scored[0].tolist(), scored[1].tolist(), strict=True))
