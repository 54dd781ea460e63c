"""A short text, read as a statement: its subject, its verb, and what it says.

Owns that reading in English and French, and of simple sentences in Spanish and German, by words and forms alone: no
model is asked, and what is not understood has no verb. Refuses to compare: `correction` does. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from livememfs.recall.index.words import fold, language_of
from livememfs.recall.likeness import vocabulary as words

LONGEST = 60
"""Words; a longer text tells more than one fact, and is replaced by none."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W_]+(?:[._-][^\W_]+)*|[,;.!?:]")
_OPENING = re.compile(
    r"\W*(?:(?:no|non|nope|oops|oups|wait|attends|actually|in fact|en fait|en realite|sorry|pardon|correction"
    r"|finalement|update|mise a jour)\b[\s,.!:;]+)+"
)
_ASKS = re.compile(r"\?|\A\s*(?:should|does|do|is there|shall|can|could|faut il|est ce que|doit on|peut on)\b")
_WANTS = re.compile(
    r"\b(?:(?:wants?|would like|hopes?|plans?|intends?|is going) to|(?:veut|veulent|compte|pense|aimerait|voudrait) "
    r"(?:\w+er|\w+ir|\w+re|s \w+)\b|next (?:year|month|week)|l an prochain|l annee prochaine|prochainement)"
)
_ASIDE = re.compile(
    r"(?i)\b(?:from now on|after all|for now|these days|as of (?:now|today)|at the moment|by the way|last (?:week|month"
    r"|year)|yesterday|this (?:week|month|year)|every day|hier|cette (?:semaine|annee)|ce mois ci|le mois dernier"
    r"|la semaine derniere|l annee derniere|pour l instant|en ce moment|any ?more|a partir de maintenant"
    r"|tous les jours)\b"
)
_FORMS = "s es e ed d ing er ent ee ees ait ant ons en ten ning ting t r ren"
_ENDINGS = frozenset(("", *_FORMS.split()))
"""How forms of one word differ at their ends, in English and French."""
BREAKS = frozenset(",;.:!") | {
    "and",
    "et",
    "but",
    "mais",
    "because",
    "since",
    "depuis",
    "car",
    "parce",
    "while",
    "when",
    "if",
    "quand",
    "si",
}


@dataclass(frozen=True)
class Word:
    """`role`: the preposition before it, by its group; "" for none."""

    text: str
    capital: bool
    place: int
    role: str
    article: str

    @property
    def number(self) -> bool:
        return self.text[0].isdecimal() or self.text in words.NUMBERS or self.text in words.INDEFINITE

    @property
    def name(self) -> bool:
        """Of one thing: written with a capital, or of parts, as `example.org` and `new_checkout`."""
        return self.capital or any(mark in self.text for mark in "._-")

    def alike(self, other: Word) -> bool:
        """One word in two forms: `store`, `stored`. Names and numbers have one form."""
        a, b = self.text, other.text
        if a in words.SPEAKER or b in words.SPEAKER:  # the user, and the users of what is made
            return a == b
        if a.removesuffix("s") == b.removesuffix("s"):
            return True
        if self.number or other.number or (self.name and other.name):
            return False
        group = words.SINGLE.get(a)
        if group is not None and group == words.SINGLE.get(b):
            return True
        shared = _shared(a, b)
        return shared >= 3 and a[shared:] in _ENDINGS and b[shared:] in _ENDINGS


def _shared(a: str, b: str) -> int:
    """Letters with which both begin."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass
class Statement:
    """A text, read. `main`: the content words of its first clause; `subject`: those of them before the verb."""

    tokens: list[str] = field(default_factory=list)
    content: list[Word] = field(default_factory=list)
    main: list[Word] = field(default_factory=list)
    verb: int = -1
    """Its place among the tokens; -1 where none is known."""
    end: int = 0
    """Where the main clause ends."""
    asks: bool = False
    plans: bool = False
    negated: bool = False
    changes: bool = False
    folded: str = ""

    @property
    def subject(self) -> list[Word]:
        return [word for word in self.main if word.place < self.verb]

    @property
    def said(self) -> list[Word]:
        return [word for word in self.main if word.place >= self.verb]


_PREDICATES = (
    words.COPULAS
    | words.HAVING
    | words.ADDITIVE
    | words.OWN
    | words.VERBS
    | words.SINGLE.keys()
    | words.CHANGING
    | words.ENDS
    | (words.OPPOSITE_OF.keys() - {"on", "off", "before", "after"})
)
_NOUNS = (words.ARTICLES - {"s"}) | words.PREPOSITIONS.keys() | words.INDEFINITE | words.DEFINITE


def _tokens(text: str, french: bool) -> list[tuple[str, bool]]:
    """Folded words and stops, each with whether it was written with a capital. `à` stays apart from `a`."""
    text = re.sub(r"\b(M|Mr|Mrs|Ms|Dr|Mme|Mlle|Prof|St)\. ", r"\1 ", text)
    text = re.sub(r"n['’]t\b", " not", re.sub(r"(?i)\bcan['’]t\b", "can not", text))
    found: list[tuple[str, bool]] = []
    verb = False
    french = french or re.match(r"[A-Z]\w+ a\b", text) is not None  # no English sentence begins so
    for match in _TOKEN.finditer(text):
        typed = match.group()
        word = typed.lower() if typed.lower() in ("à", "né") else fold(typed)
        if french and word == "a":  # typed without accents, one word is two
            word = "ont" if not verb else "à"
        elif french and word == "on" and (not found or found[-1][0] in ("si", "quand", "que", "qu", "et", ",", ".")):
            word = "nous"
        elif french and word == "as":
            word = "ai"
        verb = verb or word in words.COPULAS or word in words.HAVING or word in words.SINGLE or word in words.ADDITIVE
        found.append((word, typed[0].isupper()))
    return found


@lru_cache(512)
def read(text: str) -> Statement:
    """One text is compared with many."""
    statement = Statement(folded=" ".join(fold(text).replace("'", " ").replace("’", " ").replace("-", " ").split()))
    opening = _OPENING.match(fold(text))
    text = text[opening.end() :] if opening and len(fold(text)) == len(text) else text
    statement.changes = opening is not None
    statement.asks = _ASKS.search(statement.folded) is not None
    tokens = _tokens(_ASIDE.sub(" ", text), language_of(text) == "fr")[:LONGEST]
    statement.tokens = [word for word, _ in tokens]
    statement.plans = not words.PLANS.isdisjoint(statement.tokens) or _WANTS.search(statement.folded) is not None
    statement.verb = _verb(tokens)
    statement.end = _end(statement)
    statement.negated = any(_negates(statement.tokens, at) for at in range(statement.end))
    statement.changes |= not words.MARKS.isdisjoint(statement.tokens) or no_more(statement.tokens)
    statement.content = list(_content(tokens))
    statement.main = [word for word in statement.content if word.place < statement.end]
    return statement


def _negates(tokens: list[str], at: int) -> bool:
    return tokens[at] in words.NEGATIONS and tokens[at + 1 : at + 2] != ["only"]


def no_more(tokens: list[str]) -> bool:
    """`no longer`, `not any more`, `ne ... plus`."""
    return (
        ("plus" in tokens and ("ne" in tokens or "n" in tokens))
        or "longer" in tokens
        or ("more" in tokens and "not" in tokens)
    )


_FOLLOW = words.DEFINITE | words.INDEFINITE | words.PREPOSITIONS.keys() | words.STATES_OF.keys() | words.NUMBERS


def _verb(tokens: list[tuple[str, bool]]) -> int:
    """The place of the first verb: a known one that no article or preposition makes a noun of, or one by its form."""
    started = False
    for at, (word, _) in enumerate(tokens):
        before = tokens[at - 1][0] if at else ""
        follows = before in ("ne", "n") or (
            at == 1 and before in words.PRONOUNS and word not in words.SMALL | {"ne", "n"}
        )
        if started and (follows or (word in _PREDICATES and before not in _NOUNS)):
            return at
        started = started or (word not in words.ARTICLES and word not in words.PREPOSITIONS)
    started = False
    for at, (word, capital) in enumerate(tokens[:-1]):
        after = next((token for token in tokens[at + 1 :] if token[0] not in words.NOW), tokens[at])
        before = tokens[at - 1][0] if at else ""
        object_follows = after[0] in _FOLLOW or after[0][0].isdecimal()
        form = re.search(r"(?:[^s]s|ed|e|ent|it|t)\Z", word)
        if (
            started
            and form
            and not capital
            and object_follows
            and before not in _NOUNS
            and len(word) > 3
            and word not in words.NOW
        ):
            return at
        started = started or (word not in words.ARTICLES and word not in words.PREPOSITIONS)
    last = max((at for at, (word, _) in enumerate(tokens) if word[0].isalnum()), default=0)
    return last if last > 1 and tokens[last][0] in words.STATES_OF and tokens[last - 1][0] not in _NOUNS else -1


def _end(statement: Statement) -> int:
    """Where the first clause that says something ends."""
    for at, word in enumerate(statement.tokens):
        if word in BREAKS and at > max(statement.verb + 1, 2) and statement.verb >= 0:
            return at
    return len(statement.tokens)


_LITTLE = (
    words.ARTICLES
    | words.SMALL
    | words.PREPOSITIONS.keys()
    | words.NEGATIONS
    | words.COPULAS
    | words.HAVING
    | {
        "plus",
        "longer",
        "anymore",
        "instead",
        "now",
        "more",
    }
    | words.DEFINITE
    | words.INDEFINITE
)


def _content(tokens: list[tuple[str, bool]]) -> Iterable[Word]:
    role = article = ""
    for place, (word, capital) in enumerate(tokens):
        if word in words.PREPOSITIONS and not (place and word in ("on", "up") and place + 1 >= len(tokens)):
            role, article = words.PREPOSITIONS[word], ""
        elif word in words.DEFINITE or word in words.INDEFINITE:
            article = "the" if word in words.DEFINITE else "a"
        following = tokens[place + 1][0] if place + 1 < len(tokens) else ""
        counts = word in words.INDEFINITE and following in words.MEASURES
        if (word in _LITTLE and word not in words.NUMBERS and not counts and not _is_state(tokens, place)) or not word[
            0
        ].isalnum():
            continue
        yield Word(word, capital and place > 0, place, role, article)
        article = ""


def _is_state(tokens: list[tuple[str, bool]], at: int) -> bool:
    """`the flag is on`: a small word that is what is said."""
    word = tokens[at][0]
    after = tokens[at + 1][0] if at + 1 < len(tokens) else "."
    return word in ("on", "off", "up", "down") and (not after[0].isalnum() or after in words.PREPOSITIONS)
