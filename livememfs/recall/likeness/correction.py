"""Whether a newer statement corrects an older one: the same attribute of the same subject, with another value.

Owns that judgement, by words: no model is asked. Two statements (see `statement`) are compared by what each has that
the other has not. What both say in the same words but for one value is a correction if a subject has one such value
at a time, and a contradiction where that is not known. A wrong yes hides a fact, so that all that is not understood
is distinct. Refuses to say whether two texts say the same: `estimate` does. Pure; any thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from enum import StrEnum

from livememfs.recall.likeness import vocabulary as words
from livememfs.recall.likeness.statement import BREAKS, LONGEST, Statement, Word, no_more, read

APART = 0.35
"""A cosine below this says that two texts are about different things, whatever words they share."""
ONE_KIND = 0.8
"""A cosine above which two sentences that differ in one value have two of a kind: tea and coffee, not trains."""
MOST_CHARACTERS = 1_000
BESIDE = 3
"""Words between a word and what it tells of, at most."""
MOST_OF_A_VALUE = 4
"""Content words; what differs in more is another statement, not another value."""


_NOW = re.compile(
    r"(?<!until )(?<!by )(?<!for )(?<!up to )\b(?:now|nowadays)\b"
    r"|(?<!pour )(?<!jusqu a )\b(?:maintenant|desormais|dorenavant)\b"
)
"""In a text without accents: from the moment of the statement on."""


class Verdict(StrEnum):
    """What the newer of two statements is to the older."""

    CORRECTS = "corrects"
    CONTRADICTS = "contradicts"
    """Both cannot hold, or one has changed; it is not sure enough to hide the older."""
    DISTINCT = "distinct"


class _Pair:
    """What the older and the newer statement have alone."""

    def __init__(self, older: Statement, newer: Statement, near: float | None) -> None:
        self.older, self.newer, self.near = older, newer, near
        self.gone = [word for word in older.main if not _any(word, newer.content) and not _general(word)]
        self.new = [word for word in newer.main if not _any(word, older.content) and not _general(word)]
        self.kept = [word for word in older.main if _any(word, newer.content)]

    def one_subject(self) -> bool:
        """Whether all that either is about stands in the other too, or is who speaks."""
        for mine, other in ((self.older, self.newer), (self.newer, self.older)):
            speaks = [_says(mine, group) and not _says(other, group) for group in (words.SPEAKER, words.GROUP)]
            if any(speaks) and any(_says(other, group) for group in (words.SPEAKER, words.GROUP)):
                return False
            if any(not _any(word, other.content) for word in _named_in(mine)):
                return False
        if _named_in(self.older) and _named_in(self.newer):
            return any(_any(word, _named_in(self.newer)) for word in _named_in(self.older))
        known = self.older.verb >= 0 and self.newer.verb >= 0
        return len(self.kept) > 1 or (known and (bool(self.kept) or bool(self.older.subject and self.newer.subject)))

    def both_happened(self) -> bool:
        """Whether the older tells what was at a time of its own, which no later statement takes back."""
        return _past(self.older) and bool(_dates(self.older.said))


def _general(word: Word) -> bool:
    return word.text in words.SPEAKER or word.text in words.GROUP


def _named_in(statement: Statement) -> list[Word]:
    """What it is about, without who speaks."""
    return [word for word in statement.subject if not _general(word)]


def _any(word: Word, others: Iterable[Word]) -> bool:
    return any(word.alike(other) for other in others)


def _says(statement: Statement, group: frozenset[str]) -> bool:
    return any(token in group for token in statement.tokens[: max(statement.verb, 0)])


def _dates(said: list[Word]) -> list[str]:
    return [word.text for word in said if word.text in words.DATES or re.fullmatch(r"(?:19|20)\d\d", word.text)]


def _past(statement: Statement) -> bool:
    """Whether its verb tells of what happened, not of what is, or is to be."""
    said = statement.tokens[max(statement.verb, 0) : max(statement.verb, 0) + 3]
    if not said or not words.COMPOUND.isdisjoint(said):
        return False
    if said[0] in words.PASTS or (said[0].endswith("ed") and said[0] not in words.MARKS):
        return True
    if said[0] in ("est", "sont"):
        before = statement.tokens[max(statement.verb - 1, 0)]
        return before == "s" or (said[1:2] != [] and said[1].removesuffix("s") in words.GOING)
    auxiliary = said[0] == "ont" and len(said) > 1
    return auxiliary and re.search(r"(?:ee?s?|ie?s?|ue?s?|is|it)\Z", said[1]) is not None and len(said[1]) > 4


def judged(older: str, newer: str, near: float | None) -> Verdict:
    """What `newer` is to `older`. `near`: the cosine of their vectors, relative to the mean of any texts; or None."""
    if near is not None and math.isfinite(near) and near < APART:
        return Verdict.DISTINCT
    if max(len(older), len(newer)) > MOST_CHARACTERS:  # not worth reading: it tells more than one fact
        return Verdict.DISTINCT
    one, other = read(older), read(newer)
    if not one.content or not other.content or max(len(one.tokens), len(other.tokens)) >= LONGEST:
        return Verdict.DISTINCT
    if one.asks or other.asks or one.plans or other.plans or not words.ADDS.isdisjoint(other.tokens):
        return Verdict.DISTINCT
    pair = _Pair(one, other, near)
    if _another_holder(pair):
        return Verdict.CONTRADICTS
    if not pair.one_subject() or pair.both_happened():
        return Verdict.DISTINCT
    return next((verdict for rule in _RULES if (verdict := rule(pair)) is not None), Verdict.DISTINCT)


def _another_holder(pair: _Pair) -> bool:
    """`A is the owner of X`, `B is the owner of X`: of whom there is one."""
    older, newer = pair.older, pair.newer
    if older.negated or newer.negated or len(pair.gone) != 1 or len(pair.new) != 1 or not older.said:
        return False
    if not all(text.tokens[text.verb] in words.COPULAS and text.verb == 1 for text in (older, newer)):
        return False
    held = older.said[0]
    unique = held.article == newer.said[0].article == "the" and held.text not in words.SEVERAL
    return unique and pair.gone[0].place == pair.new[0].place == 0


def _denied(pair: _Pair) -> Verdict | None:
    """The same, once with a negation and once without."""
    one, other = ((text.negated, no_more(text.tokens)) for text in (pair.older, pair.newer))
    if one == other:
        return None
    few = len(pair.gone) + len(pair.new) <= 1 or not (pair.gone or len(pair.new) > MOST_OF_A_VALUE)
    return Verdict.CORRECTS if few and pair.older.said and len(pair.kept) > len(pair.older.subject) - 1 else None


def _ended(pair: _Pair) -> Verdict | None:
    """The newer says that what the older tells has ended: what ends stands beside the word that ends it."""
    ends = [at for at, token in enumerate(pair.newer.tokens) if token in words.ENDS - {*pair.older.tokens}]
    near = [word for word in pair.newer.content for at in ends if 0 < abs(word.place - at) <= BESIDE]
    subject = pair.older.subject
    whole = (
        near and len(subject) > 1 and len(pair.gone) <= 1 and all(_any(word, pair.newer.content) for word in subject)
    )
    return Verdict.CORRECTS if whole or any(_any(word, pair.older.said) for word in near) else None


def _excluded(pair: _Pair) -> Verdict | None:
    """Each has a state, or a word, that excludes the other's; what else they say is the same, or only in one."""
    found = _classes(pair)
    if found is None:
        return None
    rest, of_state = found
    gone, new = ([w for w in side if w not in rest] for side in (pair.gone, pair.new))
    if of_state:
        at_once = all(0 <= w.place - text.verb <= 2 for w, text in zip(rest, (pair.older, pair.newer), strict=True))
        return Verdict.CORRECTS if not gone or not new or at_once else None
    if _same_thing(pair, *rest):
        gone, new = (
            [w for w in side if w.place != text.verb] for side, text in ((gone, pair.older), (new, pair.newer))
        )
    if gone and new:
        return None
    # `in the editor` limits what one of them says: both may hold.
    return Verdict.CONTRADICTS if any(word.role for word in (*gone, *new)) else Verdict.CORRECTS


def _same_thing(pair: _Pair, one: Word, other: Word) -> bool:
    """Whether both words tell of the same one beside them: `dark mode`, `light mode`."""
    beside = [w for w in pair.older.said if abs(w.place - one.place) == 1 and w.place != pair.older.verb]
    return any(w.alike(v) for w in beside for v in pair.newer.said if abs(v.place - other.place) == 1)


def _classes(pair: _Pair) -> tuple[tuple[Word, Word], bool] | None:
    """The two words that exclude each other, and whether they are states."""
    for one in pair.gone:
        for other in pair.new:
            a, b = words.OPPOSITE_OF.get(one.text), words.OPPOSITE_OF.get(other.text)
            denied = pair.older.negated != pair.newer.negated
            if (a and b and a[0] == b[0] and (a[1] != b[1]) != denied) or (
                not denied and _prefixed(one.text, other.text)
            ):
                return (one, other), False
    if pair.newer.negated or pair.older.negated:
        return None
    for one in pair.older.main:
        states = dict(words.STATES_OF.get(one.text, ()))
        for other in pair.newer.main:
            if any(states.get(number, place) != place for number, place in words.STATES_OF.get(other.text, ())):
                return (one, other), True
    return None


def _prefixed(a: str, b: str) -> bool:
    """`paid`, `unpaid`; `activé`, `désactivé`."""
    short, long = sorted((a, b), key=len)
    return len(short) > 3 and any(
        long == prefix + short for prefix in ("un", "in", "im", "ir", "non", "dis", "de", "des")
    )


def _changed(pair: _Pair) -> Verdict | None:
    """The newer tells of a change, of what the older tells."""
    older, newer = pair.older, pair.newer
    if not newer.changes or older.changes or newer.negated or older.verb < 0:
        return None
    said = [word for word in pair.kept if word.place > older.verb and word.role != "for" and not word.number]
    values = [word for word in pair.new if word.text not in words.MARKS]
    gone = [word for word in pair.gone if word.place != older.verb]
    if not values or not gone or len(gone) > MOST_OF_A_VALUE:
        return None
    if "for" in {w.role for w in gone} & {w.role for w in values}:
        return None
    if said:
        return Verdict.CORRECTS
    if _another(pair, values):
        return Verdict.CORRECTS
    kinds = {words.KINDS.get(w.text) for w in pair.gone} & {words.KINDS.get(w.text) for w in values}
    if kinds - {None}:
        return Verdict.CORRECTS
    if older.tokens[older.verb] in words.COPULAS and not words.BECOMING.isdisjoint(newer.tokens) and not gone[0].role:
        return Verdict.CONTRADICTS
    return None


def _another(pair: _Pair, values: list[Word]) -> bool:
    """Whether the newer tells of a change to another number, date or name of what the older has one of."""
    said = pair.newer.tokens[max(pair.newer.verb, 0) : pair.newer.verb + 3]
    numbers = any(a.number and b.number for a in pair.gone for b in values)
    names = any(a.capital and b.capital for a in pair.gone for b in values)
    if not numbers and not names:
        return False
    passive = not words.CHANGING.isdisjoint(said) or not words.COPULAS.isdisjoint(said)
    is_one = pair.older.tokens[pair.older.verb] in words.COPULAS and len(pair.gone) <= 2
    return _same_verb(pair) or (passive and (is_one or numbers))


def _same_verb(pair: _Pair) -> bool:
    """Whether the verbs are one, in two forms or of one meaning, or one helps the other: `stored`, `are stored`."""
    older, newer = (
        [w for w in text.content if text.verb <= w.place <= text.verb + 3] for text in (pair.older, pair.newer)
    )
    one, other = (text.tokens[text.verb] if text.verb >= 0 else "" for text in (pair.older, pair.newer))
    if (one in words.COPULAS and other in words.COPULAS) or (one in words.HAVING and other in words.HAVING):
        done = any(w.place == pair.older.verb + 1 and not w.article and not w.number for w in pair.gone)
        return not (one in words.HAVING and done)  # two deeds, with one auxiliary
    return any(_any(word, newer) for word in older)


def _run(these: list[Word], statement: Statement) -> bool:
    """Whether these words stand together, so that they are one value."""
    places = [word.place for word in these]
    if all(word.number for word in these):
        return True
    between = [w for w in statement.content if min(places) < w.place < max(places) and w.place not in places]
    inner = [t for t in statement.tokens[min(places) : max(places)] if t in words.PREPOSITIONS or t in BREAKS]
    return not between and not inner and len(these) <= MOST_OF_A_VALUE


def _valued(pair: _Pair) -> Verdict | None:
    """Both say the same but for one value; the newer may say itself that its value holds from now on."""
    verdict = _of_values(pair)
    return Verdict.CORRECTS if verdict is Verdict.CONTRADICTS and _from_now(pair) else verdict


def _from_now(pair: _Pair) -> bool:
    """`indents with tabs`, `indents with four spaces now`. What somebody is, or where, may both hold: `in a hurry`."""
    older, newer = pair.older, pair.newer
    if min(older.verb, newer.verb) < 0 or _NOW.search(older.folded) or not _NOW.search(newer.folded):
        return False
    one, other = pair.gone[0], pair.new[0]
    same_place = one.role == other.role and _before(one, older) == _before(other, newer)
    return same_place and not (one.role and older.tokens[older.verb] in words.COPULAS)


def _of_values(pair: _Pair) -> Verdict | None:
    """Both say the same but for one value, at the same place of the sentence."""
    gone, new = pair.gone, pair.new
    older, newer = pair.older, pair.newer
    if len(new) == 1 and not gone and new[0].number and _counted(older, newer, new[0]):
        return Verdict.CORRECTS
    if len(gone) == 1 and not new and gone[0].number and _counted(newer, older, gone[0]):
        return Verdict.CORRECTS
    if gone and new and older.negated == newer.negated and _is_another(pair):
        return Verdict.CORRECTS
    if not gone or not new or older.negated != newer.negated or not _run(gone, older) or not _run(new, newer):
        return None
    if any(w.place <= older.verb for w in gone) or any(w.place <= newer.verb for w in new):
        return None
    if older.verb < 0 and newer.verb < 0:
        same = gone[0].role == new[0].role not in ("", "for") and len(pair.kept) > 1
        return Verdict.CONTRADICTS if same else None
    if older.verb < 0 or newer.verb < 0 or not _same_verb(pair):
        return None
    numbers = [w for w in gone if w.number], [w for w in new if w.number]
    if all(numbers) or all(w.number or words.MEASURES.get(w.text) == "second" for w in (*gone, *new)):
        return _numbered(pair, gone, new)
    named = all(any(w.name and not w.number for w in side) for side in (gone, new))
    if any(numbers) and not named:
        return _how_many(pair, gone, new)
    return _named(pair, gone[0], new[0])


def _how_many(pair: _Pair, gone: list[Word], new: list[Word]) -> Verdict | None:
    """`tabs`, `four spaces`: a value that one of them counts; by itself not sure enough to hide the older."""
    one, other = ([w for w in side if not w.number] for side in (gone, new))
    alone = len(one) == len(other) == 1 and one[0].role == other[0].role != ""
    return Verdict.CONTRADICTS if alone and _named(pair, one[0], other[0]) is not None else None


def _is_another(pair: _Pair) -> bool:
    """`the laptop is an X running Y`, `the laptop is a Z`: what it is, by name, whatever is said of that."""
    one, other = pair.gone[0], pair.new[0]
    sides = (one, pair.older), (other, pair.newer)
    named = all(w.name and not w.role and 0 < w.place - text.verb <= 2 for w, text in sides)
    return named and _is_thing(pair.older) and all(text.tokens[text.verb] in words.COPULAS for _, text in sides)


def _counted(older: Statement, newer: Statement, number: Word) -> bool:
    """`a child`, `two children`: an article that counts."""
    following = next((w for w in newer.content if w.place > number.place), None)
    return following is not None and any(w.alike(following) and w.article == "a" for w in older.said)


def _numbered(pair: _Pair, gone: list[Word], new: list[Word]) -> Verdict | None:
    if _past(pair.older) and _past(pair.newer) and (_dates(pair.older.said) or _dates(pair.newer.said)):
        return None
    weekly = any(w.text in words.WEEKDAYS for w in gone) and any(w.place > pair.older.verb for w in pair.kept)
    if weekly:
        return Verdict.CONTRADICTS
    rest = [[w for w in side if not w.number] for side in (gone, new)]
    units = [{words.MEASURES.get(w.text, w.text) for w in side} for side in rest]
    return Verdict.CORRECTS if units[0] == units[1] or not all(units) else None


def _named(pair: _Pair, one: Word, other: Word) -> Verdict | None:
    older, newer = pair.older, pair.newer
    if not words.MAY.isdisjoint(older.tokens):
        return None
    if one.role != other.role or "for" in (one.role, other.role):  # what it is for is no value, but another thing
        return None
    said = {t for text in (older, newer) for t in text.tokens[text.verb : text.verb + 3]}
    if one.role:
        if not said.isdisjoint(words.ONE_OF_MANY):
            return None
        if _kind(one, other):
            return Verdict.CORRECTS
        if not said.isdisjoint(words.HAVING | words.ADDITIVE):
            return None
        return _placed(pair, one, other)
    if not said.isdisjoint(words.OWN):
        return Verdict.CORRECTS if one.name and other.name else Verdict.CONTRADICTS
    if "prefer" in {words.SINGLE.get(token) for token in said}:
        return Verdict.CONTRADICTS if (pair.near or 0.0) > ONE_KIND else None
    after = any(w.place > one.place for w in pair.kept)
    if not said.isdisjoint(words.ADDITIVE | words.HAVING):
        return None
    thing = _is_thing(older)
    if words.SINGLE.get(older.tokens[older.verb]) == "use":
        return Verdict.CORRECTS if after else Verdict.CONTRADICTS if thing else None
    return _is(pair, one, other, thing) if older.tokens[older.verb] in words.COPULAS else None


def _is_thing(statement: Statement) -> bool:
    """Whether it is about `the linter`, of which there is one, and not about somebody."""
    return statement.tokens[0] in words.DEFINITE and bool(_named_in(statement))


def _placed(pair: _Pair, one: Word, other: Word) -> Verdict | None:
    """`lives in X`, `is in X`: of names there is one at a time; of other words, both may hold (in town, in a hurry)."""
    names, alone = one.name and other.name, pair.older.verb + 4 > one.place
    is_in = alone and pair.older.tokens[pair.older.verb] in words.COPULAS
    if (
        is_in
        and not names
        and (_before(one, pair.older) != _before(other, pair.newer) or (pair.near or 0.0) < ONE_KIND)
    ):
        return None
    verbs = {t for text in (pair.older, pair.newer) for t in text.tokens[text.verb : text.verb + 3]}
    one_place = not verbs.isdisjoint(words.SINGLE.keys()) or (
        _is_thing(pair.older) and not verbs.isdisjoint(words.COPULAS)
    )
    return Verdict.CORRECTS if names and one_place else Verdict.CONTRADICTS


def _before(word: Word, statement: Statement) -> str:
    """The preposition that a word follows."""
    return next((t for t in reversed(statement.tokens[: word.place]) if t in words.PREPOSITIONS), "")


def _kind(one: Word, other: Word) -> bool:
    kind = words.KINDS.get(one.text)
    return kind is not None and kind == words.KINDS.get(other.text)


def _is(pair: _Pair, one: Word, other: Word, thing: bool) -> Verdict | None:
    """`the linter is X`, `X is the head of Y`. What somebody or something is like, it is in many ways."""
    if _kind(one, other) or (thing and one.name and other.name):
        return Verdict.CORRECTS
    foremost = thing and any(w.text in words.FOREMOST for w in _named_in(pair.older))
    one_at_a_time = foremost and not any(w.text.endswith("ed") for w in (one, other))  # `documented` is no value
    shared = any(w.place > pair.older.verb for w in pair.kept) or (thing and (one.name or other.name)) or one_at_a_time
    return Verdict.CONTRADICTS if shared or one.article == other.article == "the" else None


def _rather(pair: _Pair) -> Verdict | None:
    """The same words the other way round: `tabs over spaces`, `spaces over tabs`."""
    if pair.gone or pair.new or any(words.RATHER.isdisjoint(text.tokens) for text in (pair.older, pair.newer)):
        return None
    one, other = ([w for w in text.main if w.place > text.verb] for text in (pair.older, pair.newer))
    return Verdict.CORRECTS if one and other and not one[0].alike(other[0]) else None


_RULES: tuple[Callable[[_Pair], Verdict | None], ...] = (_rather, _denied, _ended, _excluded, _changed, _valued)
