"""How likely two texts state one fact: the same, more precisely, or as it is now.

Owns that judgement, and the words of English and French it uses. The angle between two vectors tells that two texts are
about one thing, but hardly what they say of it; the words tell whether one repeats the other, changes its value, or
speaks of somebody else. A wrong yes hides a fact, a wrong no only keeps it twice: an unclear case is a no. Refuses to
compute vectors and to replace anything. Pure; any thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from livememfs.recall.index.words import STOP_WORDS, fold

THRESHOLD = 0.85
"""Above it, the newer text replaces the older."""
LOOKED_AT = 200  # words of a text; of a longer one, the angle has to tell
# What each piece of evidence weighs, in log-odds; tests/recall/likeness/pairs is what they were measured on.
_ANGLE, _ENOUGH = 6.0, 0.90  # the cosine that is enough alone
_KEPT, _CHANGED, _REPLACED, _TRANSLATED = 3.0, 3.7, 2.5, 1.2
_OTHER_VALUE, _SOMEBODY_ELSE = 2.0, 4.0

_STOP, _ENGLISH = STOP_WORDS["en"] | STOP_WORDS["fr"], STOP_WORDS["en"] - STOP_WORDS["fr"]
_FRENCH = STOP_WORDS["fr"] - STOP_WORDS["en"]
_WORD = re.compile(r"[^\W_]+(?:[.:][0-9]+)*")
_ENDED = re.compile(r"[.!?:][^\w,;]*\Z")
# The same value in two languages, or in letters.
_SAME = """
    january=janvier february=fevrier march=mars april=avril may=mai june=juin july=juillet august=aout
    september=septembre october=octobre november=novembre december=decembre monday=mondays=lundi tuesday=tuesdays=mardi
    wednesday=wednesdays=mercredi thursday=thursdays=jeudi friday=fridays=vendredi saturday=saturdays=samedi
    sunday=sundays=dimanche 2=two=deux 3=three=trois 4=four=quatre 5=five=cinq 6=six 7=seven=sept 8=eight=huit
    9=nine=neuf 10=ten=dix 12=twelve=douze 20=twenty=vingt 30=thirty=trente"""
_SPELT = {word: words.partition("=")[0] for words in _SAME.split() for word in words.split("=")}
_DATES = frozenset(word for word in _SPELT.values() if word.isalpha())
_CHANGE = re.compile(
    r"\b(?:now|no longer|(?:any|not any) ?more|instead|moved?|changed (?:to|from)|switched|became|slipped|postponed"
    r"|rescheduled|delayed|replaced|migrated|stopped|quit|left|back from|promoted|maintenant|desormais|dorenavant"
    r"|finalement|vien(?:s|t|nent) d[e']?|ne?(?= (?:\w+ ){1,3}plus\b)|(?:de|em)menage\w*|installe\w*|passee? (?:de|a)"
    r"|(?:a|ont) changee?s?|remplacee?s?|reportee?s?|repoussee?s?|decalee?s?|quitte\w*|arrete\w*|devenue?s?"
    r"|reecrite?s?|migree?s?|(?:a|ont|est|sont) divorcee?s?)\b"
)
_SO = r"(?:actually|in fact|en fait|en r[ée]alit[ée]|finalement|sorry|pardon|correction)"
_CORRECTS = re.compile(
    rf"\W*(?=\w)(?:(?:non?|oops|oups|wait|attends|ah|oh)(?:\s*[,.!:;]\s*|\s+(?={_SO}\b)))*(?:{_SO}\b[\s,.!:;]*)*",
    re.IGNORECASE,
)
"""How somebody begins who corrects what was said: no word of the fact."""
# What a thing has one of, so that another takes its place; the value follows.
_SINGLE = {
    "home": re.compile(r"\b(?:live[sd]?|living|moved?|settled|habit\w+|vit|(?:de|em)menage\w*|installe\w*)\b"),
    "employer": re.compile(r"\b(?:work(?:s|ed|ing)? (?:at|for)|travaill\w+ (?:chez|pour))\b"),
    "favourite": re.compile(r"\b(?:favou?rite|prefere[es]* d[eu]?)\b"),
    "name": re.compile(r"\b(?:(?:is|was) (?:called|named)|name is|s appelle\w*)\b"),
}
_PURPOSE = re.compile(r"\b(?:uses?|using|utilis\w+)\b.*? (?:for|pour) (.+)")
_ARTICLE = re.compile(r"the|an?|my|our|your|his|her|their|l[ae]?|les|une?|mon|ma|mes|notre|nos|son|sa|ses")
_OF = frozenset(("du", "de", "des", "d", "le", "la", "l", "of", "on", "from", "the"))


class _Word(NamedTuple):
    """`begins`: two letters each, one of which every word has, too, that is alike (see `_alike`)."""

    text: str
    place: int  # among all words
    start: int  # in the folded text
    capital: bool
    number: bool
    value: bool  # what a fact may have another one of: a number, a date, a name
    begins: frozenset[str]


class _Text:
    """What is compared of a text: all words, and those that are neither small nor tell of a change."""

    def __init__(self, text: str) -> None:
        self.all: list[str] = []
        opening = _CORRECTS.match(text)
        corrects = opening is not None and any(character.isalpha() for character in opening[0])
        text = text[opening.end() :] if opening is not None and corrects else text
        words, start, self.language = [], 0, 0  # above 0: English
        left = _WORD.finditer(text)
        for match in islice(left, LOOKED_AT):
            typed = match.group()
            word, language, number, begins = _read(typed)
            self.language += language
            capital = typed[0].isupper()
            name = capital and bool(self.all) and not _ENDED.search(text[max(0, match.start() - 4) : match.start()])
            if number or word not in _STOP:
                words.append(_Word(word, len(self.all), start, capital, number, number or name, begins))
            self.all.append(word)
            start += len(word) + 1
        self.longer, folded = next(left, None) is not None, " ".join(self.all)
        changes = {word for match in _CHANGE.findall(folded) for word in match.split()}
        self.changes = corrects or bool(changes)
        self.words = self.alone = [word for word in words if word.text not in changes]
        self.single = {name: hit.start() for name, form in _SINGLE.items() if (hit := form.search(folded))}
        if purpose := _PURPOSE.search(folded):
            self.single[purpose[1]] = purpose.start()

    def without(self, other: _Text) -> list[_Word]:
        """The words of which the other has none alike."""
        begun: dict[str, list[_Word]] = {}
        for word in other.words:
            for letters in word.begins:
                begun.setdefault(letters, []).append(word)
        return [
            word
            for word in self.words
            if not any(_alike(word, other_word) for letters in word.begins for other_word in begun.get(letters, ()))
        ]

    def values(self) -> list[_Word]:
        """Those the other text has not, one of several words in a row by its first: a date, a name and surname."""
        places = {word.place for word in self.alone if word.value}
        return [word for word in self.alone if word.value and word.place - 1 not in places]

    def which(self) -> _Word | None:
        """What tells its first word from others of its kind: release 1.2, the son of Paul, l'API de facturation."""
        first, second = (*self.words[:2], None, None)[:2]
        between = self.all[first.place + 1 : second.place] if first and second else []
        return second if second and _OF.issuperset(between) and (between or second.number) else None


@lru_cache(512)
def _text(text: str) -> _Text:
    """One text is compared with many: reading it takes longer than comparing two."""
    return _Text(text)


def likeness(one: str, other: str, near: float | None) -> float:
    """From 0 to 1, and above THRESHOLD where the newer of the two is to replace the older; the same either way round.

    `near`: the cosine of their vectors, relative to the mean of any texts (`prior`). Without it, only the same words
    are alike.
    """
    if fold(one).split() == fold(other).split():
        return 1.0
    if near is None or not math.isfinite(near):
        return 0.0
    return 1 / (1 + math.exp(-sum(evidence(one, other, near).values())) * (1 / THRESHOLD - 1))


def evidence(one: str, other: str, near: float) -> dict[str, float]:
    """What speaks for one fact, and against it, in log-odds; 0 all together at the threshold."""
    a, b = copy(_text(one)), copy(_text(other))
    a.alone, b.alone = a.without(b), b.without(a)
    kept = max(0.0 if a.alone else _kept(a, b), 0.0 if b.alone else _kept(b, a))
    owned = _belongs(a, b) or _belongs(b, a)
    telling = not (owned or a.longer or b.longer)
    return {
        "angle": _ANGLE * (min(max(near, -1.0), 1.0) - _ENOUGH),
        "kept": telling * _KEPT * kept,
        "changed": telling * _CHANGED * _changed(a, b),
        "replaced": telling * _REPLACED * _replaced(a, b),
        "translated": _TRANSLATED * (a.language * b.language < 0),
        "other value": -_OTHER_VALUE * max(0.5 * owned, _other_value(a, b)),
        "somebody else": -_SOMEBODY_ELSE * _somebody_else(a, b),
    }


@lru_cache(8_192)
def _read(typed: str) -> tuple[str, int, bool, frozenset[str]]:
    """A word folded and as it is spelt in English; its language, above 0 for English; whether it is a number or a date;
    and `begins` of a `_Word`.
    """
    word = fold(typed)
    language = (word in _ENGLISH) - (word in _FRENCH or (typed != word and typed.islower()))
    word = word if word in ("may", "march") and not typed[0].isupper() else _SPELT.get(word, word)
    number = word in _DATES or any(map(str.isdecimal, word))
    bare = word.removesuffix("s")
    return word, language, number, frozenset((bare[:2], bare.removeprefix("re")[:2]))


def _alike(a: _Word, b: _Word) -> bool:
    """One word in two forms, or in two languages that share it: `release`, `released`; `server`, `serveur`."""
    if a.text == b.text or (a.capital and b.capital):
        return a.text.removesuffix("s") == b.text.removesuffix("s")
    one = a.text.removeprefix("re") if len(a.text) > 6 else a.text
    other = b.text.removeprefix("re") if len(b.text) > 6 else b.text
    length = min(len(one), len(other))
    if (a.value and b.value) or length < 3 or not (one.isalpha() and other.isalpha()):
        return False
    return one[:5] == other[:5] if length >= 5 else one[:length] == other[:length] and abs(len(one) - len(other)) <= 3


def _kept(a: _Text, b: _Text) -> float:
    """How much more than two thirds of `a` stands in `b` in the same order, small words and all."""
    return max(0.0, 3 * _in_order(a.all, b.all) / max(1, len(a.all)) - 2)


def _in_order(words: Sequence[str], others: Sequence[str]) -> int:
    """The length of the longest sequence of words that both have in this order, by bits: one step for each word."""
    places: dict[str, int] = {}
    for place, word in enumerate(others):
        places[word] = places.get(word, 0) | 1 << place
    whole = left = (1 << len(others)) - 1
    for word in words:
        here = left & places.get(word, 0)
        left = ((left + here) | (left - here)) & whole
    return len(others) - left.bit_count()


def _changed(a: _Text, b: _Text) -> float:
    """Whether one tells of a change, as far as they share more than whom or what they are about."""
    if not (a.changes or b.changes):
        return 0.0
    both = min(len(a.words) - len(a.alone), len(b.words) - len(b.alone))
    return 1.0 if _single(a, b) else max(0.0, (both - 1) / max(1, max(len(a.words), len(b.words)) - 1))


def _single(a: _Text, b: _Text) -> str | None:
    """What both tell, if a thing has one of it; whatever differs follows it, or they tell it of two things."""
    both = sorted(a.single.keys() & b.single.keys())
    return next((n for n in both if all(w.start >= text.single[n] for text in (a, b) for w in text.alone)), None)


def _replaced(a: _Text, b: _Text) -> bool:
    """Whether they differ in one value, of which there is one at a time."""
    single = _single(a, b)
    plain = min(sum(not w.value and w.start != x.single.get(single or "") for w in x.alone) for x in (a, b))
    values, others = a.values(), b.values()
    if max(len(values), len(others)) > 1 or min(len(values), len(others)) + plain != 1:
        return False
    if single is not None or not (values and others):
        return single is not None
    value, other = *values, *others
    if value.number and other.number:
        return (value.text in _DATES) is (other.text in _DATES)
    return not (value.number or other.number) and _changed(a, b) > 0


def _other_value(a: _Text, b: _Text) -> float:
    """Whether each has a value, or another word in the same sentence, that nothing says is now in the other's place."""
    if not (a.alone and b.alone) or a.changes or b.changes or _replaced(a, b):
        return 0.0
    return 1.0 if a.values() and b.values() else max(_kept(a, b), _kept(b, a))


def _somebody_else(a: _Text, b: _Text) -> bool:
    """Whether they are about two people or things: each begins with what the other does not know."""
    if not (a.words and b.words):
        return False
    first, second = a.words[0], b.words[0]
    if first not in a.alone or second not in b.alone:  # the son of Paul, the son of Marc
        return a.which() in a.alone and b.which() in b.alone
    if a.language * b.language < 0:
        return first.capital and second.capital and first.place == second.place == 0
    # No more than an article stands before what a sentence is about.
    return all(not x.words[0].place or (x.words[0].place == 1 and _ARTICLE.fullmatch(x.all[0])) for x in (a, b))


def _belongs(a: _Text, b: _Text) -> bool:
    """Whether `a` is about what belongs to whom `b` is about: what they say in the same words is of two, then."""
    if len(a.words) < 2 or not b.words:
        return False
    first, second = a.words[:2]
    thing, owner = (second, first) if a.all[first.place + 1] == "s" else (first, a.which())
    return thing in a.alone and owner is not None and owner.capital and owner.text == b.words[0].text
