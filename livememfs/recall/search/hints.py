"""What a question says in passing about its answer: who wrote it, what kind of note it is, when, one thing or several.

Owns the words and forms that hint, in English and French. A hint is never a filter: what does not fit it may be found
all the same. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from livememfs.recall.index.manner import is_of_writer
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.words import fold

_TYPES = {
    "decision": r"deci(?:de|ded|sion|sions|dons|dait)\b|chose|chosen|choisi\w*|choix|trancher?",
    "todo": r"todos?\b|to do\b|remaining|a faire\b|reste a\b",
    "issue": r"bugs?\b|issues?\b|incidents?\b|outage|crash\w*|pannes?\b|plant(?:e|ait|age)\b|regressions?\b",
    "question": r"open question\w*|questions? ouvertes?",
    "progress": r"progress\w*|avancement|avance\b",
    "insight": r"learn(?:ed|t)|insights?|appris|lecons?\b",
}
_TYPE = {name: re.compile(rf"\b(?:{words})") for name, words in _TYPES.items()}
_MONTHS = (
    ("january", "janvier"), ("february", "fevrier"), ("march", "mars"), ("april", "avril"), ("may", "mai"),
    ("june", "juin"), ("july", "juillet"), ("august", "aout"), ("september", "septembre"), ("october", "octobre"),
    ("november", "novembre"), ("december", "decembre"),
)  # fmt: skip
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_WHEN = re.compile(
    rf"(?:\b(?P<day>[0-3]?[0-9])(?:st|nd|rd|th|er)? (?:of )?)?\b(?P<month>{'|'.join(_MONTH)})\b"
    r"(?:,? (?P<other>[0-3]?[0-9])(?:st|nd|rd|th)?\b(?![0-9]))?(?:,? (?P<year>(?:19|20)[0-9]{2}))?"
)
_VERB = "is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must"
_NOUN = rf"(?!(?:{_VERB}|of|the|to)\b)[^\W\d_][\w'’+-]*"
_PLURAL = rf"(?!(?:{_VERB})\b|\w*(?:us|is|ss)\b)[^\W\d_][\w+/-]+s|people|children"
_GATHERS = r"\b(?:summar\w+|recap\w*|overview|resume\w*)\b"
# By grammar alone. After "what", a word in s may be a verb ("what breaks the build"): a noun has its own verb later.
_SEVERAL = re.compile(
    rf"\b(?:what|which) (?:(?:kind|type|sort)s? of )?(?:{_NOUN} ){{0,3}}(?:{_PLURAL}) (?:\S+ ){{0,5}}?(?:{_VERB})\b"
    r"|\b(?:what|which|who) (?:are|were)\b|\bhow (?:many|often)\b|\bboth\b|\bin common\b"
    r"|\b(?:quels|quelles|lesquels|lesquelles|combien)\b|\b(?:tous|toutes) (?:les )?deux\b|\ben commun\b"
    # What gathers, in an order or not, has its parts in several places by its nature.
    rf"|{_GATHERS}|\border in which\b|\b(?:throughout|so far|over time|across (?:all|my|our|the)|all (?:that|my|our))\b"
    r"|\bdans quel ordre\b|\bau fil d\w+\b|\bjusqu'ici\b|\btout ce qu\w*\b"
)
# By grammar alone, too: such a question asks for what was, and not for something to be done.
_LOOKS_BACK = re.compile(
    r"\b(?:did|was|were)\b|(?:^|since |until )when\b (?!i\b|we\b|you\b)|\bhow (?:many|long|much|often|far)\b"
    r"|\b(?:have|has|had) (?:i|we|you|he|she|they|the|my|our)\b|\b(?:summar\w+|recap\w*|overview|order in which)\b"
    r"|\b(?:combien|depuis quand|dans quel ordre)\b|^quand (?!je |j'|on |nous |tu )"
    r"|\b(?:ai-je|a-t-\w+|avons-nous|avez-vous|as-tu)\b"
    r"|\b(?:etai\w*|avai\w*|resume\w*|recapitul\w*)\b"
)
_ASKS_WHEN = re.compile(
    r"^(?:\S+ ){0,2}(?:when\b (?!i\b|we\b|you\b)|(?:what|which) (?:date|day|time)\b)"
    r"|^(?:\S+ )?quand\b (?!je |j'|on |nous |tu )|\bquelle? (?:date|jour|heure)\b"
)
OF_DATES = "date dates day days deadline deadlines schedule scheduling time times échéance délai jour heure horaire"
"""What a text is about that says how to answer when something is."""
_SUMMARY = re.compile(_GATHERS)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a question hints at.

    :author:  folded; empty unless exactly one of those who wrote here is named
    :several: whether the question asks for several things, which stand in several places then
    :looks_back: whether it asks for what was said or done
    :when:       whether it asks for a date or a time
    :of_writer: whether it is about whoever asks it; a summary has what was answered, too
    """

    author: str = ""
    types: frozenset[str] = frozenset()
    months: frozenset[tuple[int | None, int, int | None]] = frozenset()
    several: bool = False
    looks_back: bool = False
    when: bool = False
    of_writer: bool = False

    def fit(self, record: Record | Brief) -> int:
        """How many hints a record fits."""
        return (record.type in self.types) + self.in_time(record.created)

    def in_time(self, created: int) -> bool:
        """Whether something was written when the question says; False where it does not say when."""
        if not self.months:
            return False
        moment = datetime.fromtimestamp(created, UTC)
        return any(
            month == moment.month and year in (None, moment.year) and day in (None, moment.day)
            for year, month, day in self.months
        )


def hints_in(text: str, agents: Iterable[str]) -> Hints:
    """The hints in a question. `agents`: the names of all who wrote what may be found."""
    folded = fold(text)
    named = [agent for agent in map(fold, agents) if agent and _stands_in(agent, folded)]
    months = frozenset(
        (int(match["year"]) if match["year"] else None, _MONTH[match["month"]], _day(match["day"] or match["other"]))
        for match in _WHEN.finditer(folded)
        if match["month"] not in ("may", "mars", "mai") or match["year"] or match["day"] or _after_in(folded, match)
    )
    types = frozenset(name for name, pattern in _TYPE.items() if pattern.search(folded))
    return Hints(
        named[0] if len(set(named)) == 1 else "",
        types,
        months,
        _SEVERAL.search(folded) is not None,
        _LOOKS_BACK.search(folded) is not None,
        _ASKS_WHEN.search(folded) is not None,
        is_of_writer(text) and _SUMMARY.search(folded) is None,
    )


def dates_in(text: str) -> str:
    """The days and months in a question, as it words them."""
    return " ".join(match[0] for match in _WHEN.finditer(fold(text)))


def _stands_in(name: str, text: str) -> bool:
    """Whether a name is in a text as a whole; many agents' names have a hyphen or a dot in them."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _day(text: str | None) -> int | None:
    return int(text) if text and 1 <= int(text) <= 31 else None


def _after_in(text: str, match: re.Match[str]) -> bool:
    """Whether a word that may be a month (`may`, `mars`) stands behind a word such as `in`, as a month does."""
    return text[: match.start()].rstrip().rpartition(" ")[2] in ("in", "en", "since", "depuis", "last", "until", "de")
