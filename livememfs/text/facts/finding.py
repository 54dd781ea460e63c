"""The facts in a text: numbers, dates, times, versions, `#123` references, identifiers with digits, paths and URLs.

Owns what counts as a fact, and the marks of Markdown (list ordinals, heading numbers, fences, footnotes) that do not.
Does not interpret: a month counts only beside a day or a year, and `yesterday` is no fact. Pure, linear in the text;
may be called from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from livememfs.text.facts import dates, quantities
from livememfs.text.facts.dates import GAP
from livememfs.text.facts.fact import Fact, bare_key, either, number_key, one
from livememfs.text.facts.forms import MAYBE, identifier_key, in_word, prefixes
from livememfs.text.facts.paths import word_keys

# Facts of several words: they are found first, and their words are not read again.
_THOUSANDS = re.compile(r"(?<![\w.,:/#-])[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![\w:/-]|[.,][0-9]{3})")
_LABELLED = re.compile(
    rf"(?<![\w-])(?P<word>issues?|tickets?|bugs?|pr|mr|request|version){GAP}(?:n[°o]\.?{GAP}?)?"
    r"(?P<number>[0-9]+)\b(?![.,][0-9])",
    re.I,
)
_NOTES = re.compile(rf"(?<![\w.,:/#-])(?P<number>[0-9]+)(?:{GAP}[^\W\d]+)?{GAP}notes?\b", re.I)
_NUMBERED = re.compile(
    rf"(?<!\w)notes?{GAP}(?:n[°o]\.?{GAP}?)?[0-9]{{1,4}}(?:{GAP}?(?:-|–|,|&|and|et|to|à){GAP}?[0-9]{{1,4}})*(?![\w.]?[0-9])",
    re.I,
)
_RUN_NAMES = r"(?:consolidation|synth[eè]s[ei]s?|run)"
_RUN = re.compile(
    rf"(?<![\w-])(?:{_RUN_NAMES}[ \t\u00a0:*|_]{{1,5}}(?:(?:n[°ºo]|number|numéro)\.?[ \t\u00a0:*|_]{{0,5}})?"
    rf"(?P<number>[0-9]{{1,9}})|(?P<nth>[0-9]{{1,9}})(?:st|nd|rd|th|re|ère|e|è?me){GAP}{_RUN_NAMES})(?!\w|[.,:/][0-9])",
    re.I,
)
_NAMED = re.compile(
    rf"(?<![\w./@-])(?P<name>[A-ZÀ-Þ][^\W\d_]+){GAP}(?P<number>[0-9]{{1,9}}(?:\.[0-9]+){{0,4}})(?![\w:/-]|[.,][0-9])"
)
_ANY_NAMED = re.compile(r"\b([^\W\d_]{2,})[ \u00a0:@=-]+v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,4})(?![0-9])")

# Marks that are no facts.
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~).*$", re.M)
_LEAD = re.compile(
    r"^(?:[ \t>]|[-*+][ \t]|[0-9]{1,2}[.)](?:[ \t]|$)|\[[ xX]\][ \t])*+"
    r"(?:#{1,6}[ \t]+(?:[*_]{1,3})?(?:[0-9]{1,2}(?:\.[0-9]{1,2})*[.)]?[ \t]+(?=[A-ZÀ-Þ])|[0-9]{1,2}[.)][ \t]+)?)?"
    r"(?:(?:\*\*|__)[0-9]{1,2}[.)](?=[ \t*_]|$))?",
    re.M,
)
_NOISE = re.compile(
    r"\[\^[^\]\s]{1,40}\]|&#?\w{1,10};|</?[A-Za-z][A-Za-z0-9]*+(?!:)|[0-9]\ufe0f?\u20e3"
    rf"|\b(?:step|part|section|chapter|option|étape|partie|chapitre){GAP}[0-9]{{1,2}}\b(?![.,:/][0-9])",
    re.I,
)


def find(text: str) -> list[Fact]:
    """The facts of a text, those of several words first, then in order. A fact that stands twice is returned twice."""
    facts: list[Fact] = []
    rest = _without_marks(text, facts)
    return [*facts, *(fact for word in rest.split() if MAYBE.search(word) for fact in in_word(word))]


def keys(text: str) -> set[str]:
    """Every key of the facts of a text, as from `find`, but each word is read once."""
    facts: list[Fact] = []
    words = {word for word in _without_marks(text, facts).split() if MAYBE.search(word)}
    return (
        {key for fact in facts for key in fact.says}
        | {key for word in words for fact in in_word(word) for key in fact.says}
        | {key for name, number in set(_ANY_NAMED.findall(text)) for key in _named_keys(name, number)}
        | {key for match in quantities.ONE.finditer(text) for key in quantities.one_keys(match)}
    )


_HYPHENS = dict.fromkeys((0x2010, 0x2011), "-")
"""Hyphens that some models write in place of the common one."""


def _without_marks(text: str, facts: list[Fact]) -> str:
    """The text without facts of several words, which are added to `facts`, and without marks that are no facts."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_HYPHENS)
    text = _FENCE.sub("", text)
    for pattern, read in _DAYS:
        text = pattern.sub(_collect(read, facts), text)
    text = _LEAD.sub("", text)
    text = _NOISE.sub(" ", text)
    for pattern, read in _NUMBERS:
        text = pattern.sub(_collect(read, facts), text)
    return text


def _collect(read: Callable[[re.Match[str]], Fact | None], facts: list[Fact]) -> Callable[[re.Match[str]], str]:
    def take(match: re.Match[str]) -> str:
        fact = read(match)
        if fact is None:
            return match[0]
        facts.append(fact)
        return " "

    return take


# --- several words ----------------------------------------------------------------------------------------------------


def _read_thousands(match: re.Match[str]) -> Fact:
    parts = match[0].replace("\u00a0", " ").replace("\u202f", " ").split(" ")
    whole, single = "".join(parts), tuple(map(number_key, parts))
    return Fact(match[0], ((number_key(whole),), single), (number_key(whole), bare_key(whole), *single))


def _read_labelled(match: re.Match[str]) -> Fact:
    """`issue 12` is often `#12`, and `version 2` is `v2`."""
    digits = match["number"]
    if match["word"].lower() == "version":
        return either(digits, number_key(digits), f"v:{digits}")
    return one(digits, number_key(digits), f"r:{digits}")


def _read_notes(match: re.Match[str]) -> Fact:
    """A count of notes: `notes_keys` gives the key of the right count."""
    number = number_key(match["number"])
    return Fact(match[0], ((number,), (f"notes:{int(match['number'][:9])}",)), (number, bare_key(match["number"])))


def _read_run(match: re.Match[str]) -> Fact:
    """The number of a consolidation: `run_keys` gives the key of the right number."""
    digits = match["number"] or match["nth"]
    return Fact(match[0], ((number_key(digits),), (run_keys(int(digits))[0],)), (number_key(digits),))


def run_keys(number: int) -> tuple[str, str]:
    """The keys that the run of this number has as a source, for `consolidation 4` and for `#4`."""
    return f"run:{number}", f"r:{number}"


def _read_numbered(match: re.Match[str]) -> Fact:
    """`notes 1, 2 and 4`, by the numbers that the notes have in a prompt: see `notes_keys`."""
    digits = re.findall("[0-9]+", match[0])
    numbers = tuple(map(number_key, digits))
    return Fact(match[0], (numbers, tuple(f"note:{int(each)}" for each in digits)), numbers)


def notes_keys(count: int) -> list[str]:
    """The keys that `count` notes, numbered from 1, have as a source."""
    return [f"notes:{count}", *(f"note:{number}" for number in range(1, count + 1))]


def _read_named(match: re.Match[str]) -> Fact:
    """`Python 3`; a source may say 3.11."""
    digits = match["number"]
    [fact] = in_word(digits)
    named = identifier_key(f"{match['name']}{digits}")
    return Fact(digits, (*fact.readings, (named,), (f"v:{digits}", *word_keys(match["name"]))), fact.says)


def _named_keys(name: str, number: str) -> list[str]:
    versions = [*prefixes(number), number.partition(".")[0]]
    return [identifier_key(f"{name}{version}") for version in dict.fromkeys(versions)]


_Reader = tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]]
_DAYS: tuple[_Reader, ...] = (
    (dates.DAY_MONTH, dates.read_named),
    (dates.MONTH_DAY, dates.read_named),
    (dates.CLOCK, dates.read_clock),
    (dates.HOURS, dates.read_hours),
    (quantities.QUANTITY, quantities.read_quantity),
    (dates.WEEK, dates.read_week),  # after quantities, because of `cette semaine 42 heures`
    (quantities.MONEY, quantities.read_money),
    (quantities.MANY, quantities.read_many),
    (_THOUSANDS, _read_thousands),
    (_NOTES, _read_notes),
    (_NUMBERED, _read_numbered),
    (_RUN, _read_run),
    (_LABELLED, _read_labelled),
)
"""Read before list marks and heading numbers are removed: `## 20 February` begins with a day."""
_NUMBERS: tuple[_Reader, ...] = (
    (dates.DAY, dates.read_day),
    (_NAMED, _read_named),
)
