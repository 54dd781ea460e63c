"""The facts in a text: numbers, dates, times, versions, `#123` references, identifiers with digits, paths and URLs.

Owns what counts as one in a text, and the facts that take several words; `forms` has those of one word. Refuses to
understand: `60 s` is the number 60, and a month is only one beside a day or a year. Marks of Markdown (list ordinals,
heading numbers, fences, footnotes) are no facts. Pure, linear in the text; may be called from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from livememfs.records.forms import MAYBE, Fact, date_keys, in_word, number_key, one

_MONTHS = {
    1: "january jan janvier janv",
    2: "february feb février fevrier févr fevr fév",
    3: "march mar mars",
    4: "april apr avril avr",
    5: "may mai",
    6: "june jun juin",
    7: "july jul juillet juil",
    8: "august aug août aout",
    9: "september sept sep septembre",
    10: "october oct octobre",
    11: "november nov novembre",
    12: "december dec décembre decembre déc",
}
_MONTH = {name: number for number, names in _MONTHS.items() for name in names.split()}
_NAMES = "|".join(sorted(_MONTH, key=len, reverse=True))
_GAP = "[ \t\u00a0\u202f]"

# Several words that are one fact: they are found first, and what they take up is no other fact.
_DAY = r"(?P<{0}>[0-9]{{1,2}})(?:st|nd|rd|th|er)?"
_DAY_MONTH = re.compile(
    rf"(?<![\w./:-]){_DAY.format('day')}{_GAP}(?:of{_GAP})?(?P<month>{_NAMES})\b\.?(?:,?{_GAP}(?P<year>[0-9]{{4}})\b)?",
    re.I,
)
_MONTH_DAY = re.compile(
    rf"(?<!\w)(?=[adfjmnosADFJMNOS])(?P<month>{_NAMES})\b\.?{_GAP}"
    rf"(?:{_DAY.format('day')}\b(?:,?{_GAP}(?P<year>[0-9]{{4}})\b)?(?!:)|(?P<alone>[0-9]{{4}})\b)",
    re.I,
)
_CLOCK = re.compile(
    rf"(?<![\w.:-])(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-9]{{2}}))?{_GAP}?(?P<half>[ap])\.?m\b\.?", re.I
)
_THOUSANDS = re.compile(r"(?<![\w.,:/#-])[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![\w:/-]|[.,][0-9]{3})")
_LABELLED = re.compile(
    rf"(?<![\w-])(?P<word>issues?|tickets?|bugs?|pr|mr|request|version){_GAP}(?:n[°o]\.?{_GAP}?)?"
    r"(?P<number>[0-9]+)\b(?![.,][0-9])",
    re.I,
)

# Marks that are no facts.
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~).*$", re.M)
_LEAD = re.compile(
    r"^(?:[ \t>]|[-*+][ \t]|[0-9]{1,2}[.)](?:[ \t]|$)|\[[ xX]\][ \t])*+"
    r"(?:#{1,6}[ \t]+(?:[0-9]{1,2}(?:\.[0-9]{1,2})*[.)]?[ \t]+(?=[A-ZÀ-Þ])|[0-9]{1,2}[.)][ \t]+)?)?",
    re.M,
)
_NOISE = re.compile(
    r"\[\^[^\]\s]{1,40}\]|&#?\w{1,10};|</?[A-Za-z][A-Za-z0-9]*"
    rf"|\b(?:step|part|section|chapter|option|étape|partie|chapitre){_GAP}[0-9]{{1,2}}\b(?![.,:/][0-9])",
    re.I,
)


def find(text: str) -> list[Fact]:
    """The facts of a text, those of several words first, then in order. A fact that is there twice is found twice."""
    found: list[Fact] = []
    rest = _without_marks(text, found)
    return [*found, *(fact for word in rest.split() if MAYBE.search(word) for fact in in_word(word))]


def keys(text: str) -> set[str]:
    """Every key that the text makes known; the same as from `find`, but each word is looked at once."""
    found: list[Fact] = []
    words = {word for word in _without_marks(text, found).split() if MAYBE.search(word)}
    return {key for fact in found for key in fact.says} | {
        key for word in words for fact in in_word(word) for key in fact.says
    }


def _without_marks(text: str, found: list[Fact]) -> str:
    """The text without facts of several words, which are added to `found`, and without what is no fact."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _FENCE.sub("", text)
    for pattern, read in _SEVERAL_WORDS:
        text = pattern.sub(_collect(read, found), text)
    text = _LEAD.sub("", text)
    return _NOISE.sub(" ", text)


def _collect(read: Callable[[re.Match[str]], Fact | None], found: list[Fact]) -> Callable[[re.Match[str]], str]:
    def take(match: re.Match[str]) -> str:
        fact = read(match)
        if fact is None:
            return match[0]
        found.append(fact)
        return " "

    return take


# --- several words ----------------------------------------------------------------------------------------------------


def _read_named_date(match: re.Match[str]) -> Fact | None:
    parts = match.groupdict()
    month, day = _MONTH[parts["month"].lower()], int(parts["day"] or 0)
    year = parts["year"] or parts.get("alone") or ""
    if not day:
        return one(match[0], f"ym:{year}-{month:02}", f"n:{year}")
    if not 1 <= day <= 31:
        return None
    if not year:
        return one(match[0], f"md:{month:02}-{day:02}")
    return one(match[0], *date_keys(int(year), month, day))


def _read_clock(match: re.Match[str]) -> Fact | None:
    hour = int(match["hour"])
    if not 1 <= hour <= 12:
        return None
    hour = hour % 12 + (12 if match["half"] in "pP" else 0)
    return one(match[0], f"t:{hour:02}:{match['minute'] or '00'}")


def _read_thousands(match: re.Match[str]) -> Fact:
    parts = match[0].replace("\u00a0", " ").replace("\u202f", " ").split(" ")
    whole, single = number_key("".join(parts)), tuple(map(number_key, parts))
    return Fact(match[0], ((whole,), single), (whole, *single))


def _read_labelled(match: re.Match[str]) -> Fact:
    """`issue 12` is `#12` to many, and `version 2` is `v2`."""
    number = number_key(match["number"])
    label = "v" if match["word"].lower() == "version" else "r"
    return Fact(match["number"], ((number,),), (number, f"{label}:{match['number']}"))


_SEVERAL_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]], ...] = (
    (_DAY_MONTH, _read_named_date),
    (_MONTH_DAY, _read_named_date),
    (_CLOCK, _read_clock),
    (_THOUSANDS, _read_thousands),
    (_LABELLED, _read_labelled),
)
