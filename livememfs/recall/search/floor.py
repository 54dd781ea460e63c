"""Whether what was found answers a question at all, or is only what was nearest.

Owns the floor of search and telling: everything is near to something, so without one "found" means nothing. Evidence is
relative: words count by how few of the hits have them, a vector by how far it stands out of the others. Refuses to
rank, and to ask the index for more than the ranking has read. Pure; any thread.

A question's words tell most (measured: docs/recall.md). Of a few words nearly all must stand in one hit; the more words
a question has, the more often its answer is put otherwise, and the smaller a share it takes. A name that stands in no
hit counts against it. Whatever the words, a question is answered by a hit that has an exact identifier of it, by a
vector that stands far out, by what was written in the month it names, and by a conversation of the author it names,
where the words of one answer are spread over several notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from statistics import fmean

from livememfs.recall.index.words import LANGUAGES, content_words, fold, spelt_out, terms
from livememfs.recall.search.hints import dates_in

LEAST = 0.89
"""The share of the words that the best hit has, plus EACH for every word of the question, must reach this."""
LEAST_IN_TALK = 0.47
"""The same in a conversation, whose notes are short and leave out what was said before."""
EACH = 0.15
UNKNOWN_NAME = 0.42
"""What a name costs that stands in no hit."""
ENOUGH_WORDS = math.ceil((LEAST + UNKNOWN_NAME) / EACH)
"""A question of so many words passes with any hits, so that a long message costs nothing."""
BEST = 10
"""The hits one of which must have the words."""
STANDS_OUT = 12.0
"""Standard deviations by which the best vector is nearer than the others."""
STANDS_OUT_OF_FEW = 3.2
"""The same where there are few others: of five notes one may well be the answer by its meaning alone."""
_BACKGROUND = slice(5, 50)
"""The vectors that it is compared with: behind those that may answer too."""
_FEW, _LEAST_SPREAD, _SPREAD_OF_FEW = 30, 0.01, 0.04
"""Of fewer vectors all others are the background, and their spread is known badly."""
_CONVERSATION, _FOREMOST = 3, 3
"""So many hits of one sitting are a conversation, if one of the foremost is among them."""
LOOKED_AT = 8_000
"""Characters of a hit."""
JUDGED_BY = 15
"""Hits whose words are looked at: they say how common a word is here."""
LEAST_HITS = 5
"""Of fewer nothing can be said about what is common, and showing all of them costs nobody anything."""
_STEM = 4
"""From so many letters, a word's stem stands for all words that begin with it."""
_FRAME = frozenset((
    "hello", "hi", "hey", "please", "thanks", "remember", "recall", "know", "tell", "told", "say", "said", "yesterday",
    "today", "salut", "bonjour", "merci", "svp", "stp", "souviens", "souvient", "souvenez", "rappelle", "sais", "savez",
    "dis", "dit", "dites", "hier", "aujourd", "hui",
))  # fmt: skip
"""Words around a question that say nothing of its subject."""
_TYPED = re.compile(r"[^\W_][\w'’./:-]*")
_IDENTIFIER = re.compile(r"(?=.*[^\W\d_])(?:.*[^\W_][_./:]+\w|.*\d)")
_ENDS = "'’.:/-"
_CAMEL = re.compile(r"[a-z][A-Z]")
_OTHER_SCRIPTS = re.compile(r"[^\W\d_\u0000-\u02ff]")


@dataclass(frozen=True, slots=True)
class Seen:
    """A hit as the floor sees it: its text, who wrote it, and the number of the sitting it was written in."""

    text: str
    author: str
    sitting: int


def is_answered(
    question: str,
    hits: Sequence[Seen],
    cosines: Sequence[float],
    *,
    authors: Collection[str] = (),
    in_time: bool = False,
) -> bool:
    """Whether a question is answered by what was found.

    :hits:    those whose text was read, best first
    :cosines: of all that are near by meaning, best first; empty where there is no model
    :authors: all who wrote what could be found, folded
    :in_time: whether one of the best was written when the question says
    """
    words = _words(question, authors)
    enough = STANDS_OUT if len(cosines) >= _FEW else STANDS_OUT_OF_FEW
    if 0 < len(hits) < LEAST_HITS or len(words) >= ENOUGH_WORDS or in_time or stands_out(cosines) >= enough:
        return True
    talk = _is_conversation(hits)
    if not words or _OTHER_SCRIPTS.search(question) or (talk and _names_one(question, authors)):
        return bool(hits)
    hits = hits[:JUDGED_BY]
    texts = [_searchable(hit.text) for hit in hits]
    if _has_identifier(question, texts):
        return True
    has = [[any(_stands_in(stem, text) for stem in stems) for stems in words.values()] for text in texts]
    evidence = coverage(has, [hit.sitting for hit in hits]) + EACH * len(words)
    if talk:
        return evidence >= LEAST_IN_TALK
    unknown = {word for at, word in enumerate(words) if not any(row[at] for row in has)}
    return evidence - (0.0 if unknown.isdisjoint(_names(question)) else UNKNOWN_NAME) >= LEAST


def coverage(has: Sequence[Sequence[bool]], sittings: Sequence[int]) -> float:
    """The largest share of the words that one of the best hits has, with the best others of its sitting: 0 to 1.

    :has: whether each hit, best first, has each word; a word that fewer of them have weighs more, up to about 5 times
    """
    if not has:
        return 0.0
    weight = weights(has)
    together: dict[int, list[bool]] = {}
    for row, sitting in islice(zip(has, sittings, strict=True), BEST):
        known = together.get(sitting)
        together[sitting] = [a or b for a, b in zip(row, known, strict=True)] if known else list(row)
    best = max(sum(w for w, there in zip(weight, row, strict=True) if there) for row in together.values())
    return best / sum(weight)


def weights(has: Sequence[Sequence[bool]]) -> list[float]:
    """What each word counts, from 1: the fewer of the hits have it, the more."""
    counts = [sum(column) for column in zip(*has, strict=True)]
    return [1 + math.log(1 + (len(has) - count + 0.5) / (count + 0.5)) for count in counts]


def stood_in(question: str, texts: Sequence[str], authors: Collection[str] = ()) -> list[list[bool]]:
    """Whether each text has each of the question's words, by their stems."""
    words = _words(question, authors)
    searchable = [_searchable(text) for text in texts]
    return [[any(_stands_in(stem, text) for stem in stems) for stems in words.values()] for text in searchable]


def stands_out(cosines: Sequence[float]) -> float:
    """How many standard deviations the best cosine is above the others; 0 without any."""
    if not cosines:
        return 0.0
    few = len(cosines) < _FEW
    others = cosines[1:] if few else cosines[_BACKGROUND]
    mean = fmean(others) if others else 0.0
    spread = math.sqrt(sum((cosine - mean) ** 2 for cosine in others) / max(len(others), 1))
    return (cosines[0] - mean) / max(spread, _SPREAD_OF_FEW if few else _LEAST_SPREAD)


def _words(question: str, authors: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The words that an answer should have, and how each may stand in a searchable text: as it is, or by its stems."""
    left_out = (
        {part for author in authors for part in content_words(author)} | set(content_words(dates_in(question))) | _FRAME
    )
    words = dict.fromkeys(word for word in content_words(question) if word not in left_out)
    return {word: _stems(word) for word in islice(words, ENOUGH_WORDS)}


@lru_cache(4_096)
def _stems(word: str) -> tuple[str, ...]:
    return tuple({word, *(stem for language in LANGUAGES for stem in terms(word, language))})


def _searchable(text: str) -> str:
    """Folded, with the parts of names like `UserRepository` as words of their own."""
    text = text[:LOOKED_AT]
    return fold(f"{text} {spelt_out(text)}" if _CAMEL.search(text) else text)


def _stands_in(stem: str, text: str) -> bool:
    """Whether a word of the text begins with a stem, or is one that is too short for that."""
    at = text.find(stem)
    while at >= 0:
        end = at + len(stem)
        if not text[at - 1 : at].isalnum() and (len(stem) >= _STEM or not text[end : end + 1].isalnum()):
            return True
        at = text.find(stem, end)
    return False


def _names(question: str) -> set[str]:
    """The folded words with a capital that no sentence starts with; none where most words have one, as in a title."""
    typed = _TYPED.findall(question)
    named = [word for at, word in enumerate(typed) if word[1:] != word[1:].lower() or (at and word[0].isupper())]
    named += [word for word in typed if any(map(str.isdigit, word)) and word not in named]
    return set() if len(named) > len(typed) / 2 else {part for word in named for part in content_words(word)}


def _has_identifier(question: str, texts: Sequence[str]) -> bool:
    """Whether a hit has an error code, a file, a variable or the like just as the question has it."""
    wanted = [fold(word) for typed in _TYPED.findall(question) if _IDENTIFIER.match(word := typed.rstrip(_ENDS))]
    return bool(wanted) and any(word in text for text in texts for word in wanted)


def _names_one(question: str, authors: Iterable[str]) -> bool:
    return not {part for author in authors for part in content_words(author)}.isdisjoint(content_words(question))


def _is_conversation(hits: Sequence[Seen]) -> bool:
    """Whether one of the foremost hits stands among several that several authors wrote in one sitting."""
    for foremost in hits[:_FOREMOST]:
        together = [hit.author for hit in hits if hit.sitting == foremost.sitting]
        if len(together) >= _CONVERSATION and len(set(together)) > 1:
            return True
    return False
