"""What somebody typed as a search, read: free words, phrases, what to leave out, filters.

Owns the language of `search/<query>/` and `livememfs search`, and how much of a text is a search: so many characters,
words, phrases and values, since each may be looked up for itself. Refuses nothing: whatever is not understood is text,
what is too much is left out, and a remark says so. Time is linear in the text: what was read once, as a filter or as
text, is not read again. Pure: the time is passed in. May be called from any thread.

    why "exactly once" -kafka type:decision,insight -agent:cline file:"my file.py" in:bank,live after:2026-02 limit:20

Several values of one key, by commas or by repeating it, mean any of them; different keys must all hold. `after:` counts
from the first moment of the day, month or year it names, that moment included; `before:` ends at the first moment of
the one it names, that moment excluded; `date:` is the whole of it. All days are UTC days.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from livememfs.errors import InvalidName
from livememfs.recall.index.words import content_words, fold
from livememfs.recall.search import dates
from livememfs.records.names import check_space_name
from livememfs.text.times import iso

LISTS = ("type", "agent", "concept", "subject", "file", "tag", "in", "space")
KINDS = ("bank", "live", "memories", "self", "goals", "observations", "sessions", "agents", "all")
MAX_LIMIT = 100
MOST_CHARACTERS = 1 << 16
MOST_WORDS = 64
"""Different words that are looked up, and values of one filter."""
MOST_PHRASES = 16
"""Phrases that a hit must have, and words and phrases that it must not: each is a search of its own."""
_DATES = ("after", "before", "date")
_KEYS = frozenset({*LISTS, *_DATES, "limit"})
_LOWER_CASE = frozenset({"type", "concept", "in", "space"})  # these vocabularies are; names of people and files are not

_CLOSING = {'"': '"', "“": "”", "«": "»"}
_QUOTES = re.compile('["“”«»]')
_BLANK_OR_QUOTE = re.compile('[ "“«]')
_KEY = re.compile(r"(-?)([A-Za-z]{1,12}):")
_BARE_VALUE = re.compile(r"[^ ,]*")
_UNQUOTED = re.compile(r"\w(?:[\w./@+#-]*[\w+#])?")
_AFTER_MINUS = frozenset("_.#@/")  # besides letters and digits; `->`, `-=` and `--force` are text
_ENDS_OF_SENTENCES = "?!;."
_BEFORE_A_WORD = "-,;:!?…()[]{}<>|*`'’‘\"“”«»¿¡"
_AFTER_A_WORD = "-.,;:!?…()[]{}<>|*`'’‘\"“”«»"
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ELISION = re.compile(r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.IGNORECASE)

_MAX_DOUBTS = 12
_MAX_SHOWN = 60
_MAX_LINE = 200


@dataclass(frozen=True)
class Filter:
    """One condition on one property of a hit; a query has at most one for each field and sign.

    :field:    one of LISTS
    :values:   sorted, without repetition, never empty; type, concept, in and space in lower case, the others as typed
    :negative: the hit must have none of the values, instead of at least one
    """

    field: str
    values: tuple[str, ...]
    negative: bool = False

    def __str__(self) -> str:
        """As it is typed."""
        values = ",".join(value if _UNQUOTED.fullmatch(value) else f'"{value}"' for value in self.values)
        return f"{'-' * self.negative}{self.field}:{values}"

    def describe(self) -> str:
        """In plain words: `type is decision or insight`."""
        values = " or ".join(self.values)
        if self.field == "in":
            return f"not in {values}" if self.negative else f"in {values}"
        return f"{self.field} is not {values}" if self.negative else f"{self.field} is {values}"


@dataclass(frozen=True)
class Query:
    """A search as it was understood.

    :text:    the free text without filters and quotes, for embedding
    :typed:   the free text as it was typed, phrases in their quotes
    :words:   the free words worth looking up: no punctuation around them, no elided article, no stop words
    :phrases: what stood in quotes
    :without: words and phrases a hit must not have, sorted
    :filters: what must hold, in the order of LISTS
    :after:   the first moment that counts, included
    :before:  the first moment that no longer counts
    :limit:   how many hits were asked for, 1 to MAX_LIMIT
    :doubts:  one remark on each thing that was not taken as it may have been meant; no part of equality
    """

    text: str = ""
    typed: str = ""
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    limit: int | None = None
    doubts: tuple[str, ...] = field(default=(), compare=False)

    def wanted(self, key: str) -> tuple[str, ...]:
        """The values of which a hit must have one; empty when the key was not used."""
        return next((item.values for item in self.filters if item.field == key and not item.negative), ())

    def unwanted(self, key: str) -> tuple[str, ...]:
        """The values of which a hit must have none."""
        return next((item.values for item in self.filters if item.field == key and item.negative), ())

    @property
    def is_filter_only(self) -> bool:
        """Whether the free text has no letter and no digit, so that there is nothing to rank by."""
        return not _has_word(self.text)

    @property
    def is_wordless(self) -> bool:
        """Whether something was typed that has no word in it, and nothing beside it that a hit must fulfil."""
        return bool(self.text) and self.is_filter_only and not (self.is_filtered or self.without)

    @property
    def is_filtered(self) -> bool:
        """Whether it says which records may be found, by what they are or when they were written."""
        return bool(self.filters) or self.after is not None or self.before is not None

    @property
    def read_as(self) -> tuple[str, ...]:
        """The doubts, then how each filter was understood."""
        return self.doubts + self._conditions()

    def narrowed(self, key: str, *values: str) -> Query:
        """The same query for what has one of these values, whatever it says of that key itself."""
        others = (item for item in self.filters if item.field != key)
        filters = sorted((*others, Filter(key, tuple(sorted(values)))), key=lambda item: LISTS.index(item.field))
        return replace(self, filters=tuple(filters))

    def canonical(self) -> str:
        """One spelling for all queries equal to this one; parsing it gives this query again, whatever the time is."""
        parts = [str(condition) for condition in self.filters]
        parts += [f"after:{iso(self.after, exact=True)}"] if self.after else []
        parts += [f"before:{iso(self.before, exact=True)}"] if self.before else []
        parts += [f"limit:{self.limit}"] if self.limit else []
        parts += [f"-{item}" if _UNQUOTED.fullmatch(item) else f'-"{item}"' for item in self.without]
        # The free text stands last: a quote in it that was never closed must not find a partner in a filter.
        return " ".join([*parts, self.typed] if self.typed else parts)

    def describe(self) -> str:
        """One line for people: `words: retry, upload; type is decision; after 2026-02-01 00:00 UTC (included)`."""
        parts = [f"words: {_shown(', '.join(self.words), _MAX_LINE)}"] if self.words else []
        parts += [f"phrases: {_shown(', '.join(self.phrases), _MAX_LINE)}"] if self.phrases else []
        if self.text and not (self.words or self.phrases):
            parts.append(f"text: {_shown(self.text, _MAX_LINE)}")
        return "; ".join([*parts, *self._conditions()]) or "everything"

    def _conditions(self) -> tuple[str, ...]:
        """Each thing a hit must fulfil, in plain words."""
        parts = [f"without {', '.join(self.without)}"] if self.without else []
        parts += [condition.describe() for condition in self.filters]
        parts += [f"after {dates.shown(self.after)} (included)"] if self.after else []
        parts += [f"before {dates.shown(self.before)} (not included)"] if self.before else []
        parts += [f"at most {self.limit}"] if self.limit else []
        return tuple(_shown(part, _MAX_LINE) for part in parts)


def parse(text: str, *, now: datetime) -> Query:
    """The query in a text; never raises. `now` is what relative dates count from, in UTC when it has no offset."""
    reading = _Reading(_cleaned(text[:MOST_CHARACTERS]), now if now.tzinfo else now.replace(tzinfo=UTC))
    if len(text) > MOST_CHARACTERS:
        reading.left_out(f"after the first {MOST_CHARACTERS:,} characters")
    at = 0
    while at < len(reading.source):
        at = at + 1 if reading.source[at] == " " else reading.take(at)
    return reading.query()


class _Reading:
    """The state while a text is read from left to right."""

    def __init__(self, source: str, now: datetime) -> None:
        self.source = source
        self._now = now
        self._last = {quote: source.rfind(closing) for quote, closing in _CLOSING.items()}
        self._texts: list[str] = []
        self._typed: list[str] = []
        self._typed_end = 0
        # Dictionaries as ordered sets.
        self._words: dict[str, str] = {}
        self._phrases: dict[str, None] = {}
        self._doubts: dict[str, None] = {}
        self._without: set[str] = set()
        self._lists: dict[tuple[str, bool], set[str]] = {}
        self._after: list[datetime] = []
        self._before: list[datetime] = []
        self._limits: list[int] = []

    def left_out(self, what: str) -> None:
        """Remark that there was too much of something."""
        self._doubt(f"what comes {what} is left out")

    def take(self, start: int) -> int:
        """Reads what begins at `start` and returns where it ends."""
        return self._filter(start) or self._minus(start) or self._phrase(start) or self._plain(start)

    def query(self) -> Query:
        """What was read."""
        self._doubt_contradictions()
        filters = (
            Filter(key, tuple(sorted(self._lists[key, negative])), negative)
            for key in LISTS
            for negative in (False, True)
            if (key, negative) in self._lists
        )
        return Query(
            text=" ".join(self._texts),
            typed="".join(self._typed),
            words=tuple(self._words.values()),
            phrases=tuple(self._phrases),
            without=tuple(sorted(self._without)),
            filters=tuple(filters),
            after=max(self._after, default=None),
            before=min(self._before, default=None),
            limit=self._limits[-1] if self._limits else None,
            doubts=_some(self._doubts),
        )

    # --- the four things a text is made of. Each returns where it ended, or 0 when there is no such thing -----------

    def _filter(self, start: int) -> int:
        match = _KEY.match(self.source, start)
        if match is None or self.source.startswith("//", match.end()):  # file:///etc is an address
            return 0
        key = match[2]
        if key not in _KEYS:
            if key.lower() in _KEYS:
                self._doubt(f"{key}: is no filter: keys are in lower case")
            return 0
        values, fault, end = self._read_values(match.end())
        fault = fault or self._apply(key, values, negative=bool(match[1]))
        if fault:
            typed = self.source[start:end]
            self._doubt(f"{_shown(typed)} {fault}: read as text")
            self._add_text(start, end)
        return end

    def _minus(self, start: int) -> int:
        if self.source[start] != "-":
            return 0
        end = self._closed(start + 1)
        if not end:
            following = self.source[start + 1 : start + 2]
            if not following.isalnum() and following not in _AFTER_MINUS:
                return 0
            end = self._end_of_word(start)
        item = _trimmed(_unquoted(self.source[start + 1 : end]))
        if _has_word(item):
            if len(self._without) < MOST_PHRASES:
                self._without.add(item)
            elif item not in self._without:
                self.left_out(f"after the first {MOST_PHRASES} words and phrases to leave out")
        else:
            self._add_text(start, end)
        return end

    def _phrase(self, start: int) -> int:
        end = self._closed(start)
        if not end:
            return 0
        phrase = _unquoted(self.source[start:end])
        if _has_word(phrase):
            if len(self._phrases) == MOST_PHRASES and phrase not in self._phrases:
                self.left_out(f"after the first {MOST_PHRASES} phrases")
                return end
            self._phrases.setdefault(phrase)
            self._type(start, end)
            self._texts.append(phrase)
        else:
            self._add_text(start, end)
        return end

    def _plain(self, start: int) -> int:
        end = self._end_of_word(start)
        self._add_text(start, end)
        return end

    # --- where things end -------------------------------------------------------------------------------------------

    def _closed(self, at: int) -> int:
        """Where the quote that opens at `at` has closed; 0 when none opens here or it never closes."""
        quote = self.source[at : at + 1]
        # Asking for the last one first keeps many quotes that never close from being a search each.
        if quote not in _CLOSING or self._last[quote] <= at:
            return 0
        return self.source.index(_CLOSING[quote], at + 1) + 1

    def _end_of_word(self, start: int) -> int:
        for match in _BLANK_OR_QUOTE.finditer(self.source, start + 1):
            if match[0] == " " or self._opens(match.start()):
                return match.start()
        return len(self.source)

    def _opens(self, at: int) -> bool:
        """Whether a quote inside a word begins a phrase, as in `error:"no such file"` but not in `a 5" disk`."""
        quote = self.source[at]
        return self._last[quote] > at and (quote != '"' or not self.source[at - 1].isalnum())

    def _read_values(self, at: int) -> tuple[list[str], str, int]:
        """The values after a key, what is wrong with them or an empty string, and where they end."""
        values, fault = [], ""
        while True:
            end = self._closed(at)
            if end:
                values.append(_unquoted(self.source[at:end]))
            else:
                match = _BARE_VALUE.match(self.source, at)
                end = match.end() if match else at
                if self.source[at : at + 1] in _CLOSING:
                    fault = "has a quote that is not closed"
                values.append(_unquoted(self.source[at:end]).rstrip(_ENDS_OF_SENTENCES))
            if self.source[end : end + 1] != ",":
                return [value for value in values if value], fault, end
            at = end + 1

    # --- what is remembered -----------------------------------------------------------------------------------------

    def _apply(self, key: str, values: list[str], *, negative: bool) -> str:
        """Remembers a filter; returns why it cannot be one, or an empty string."""
        if not values:
            return "has no value"
        if key in LISTS:
            return self._apply_list(key, values, negative)
        if negative:
            return "cannot be left out"
        if len(values) > 1:
            return "takes one value"
        return self._apply_limit(values[0]) if key == "limit" else self._apply_date(key, values[0])

    def _apply_list(self, key: str, values: list[str], negative: bool) -> str:
        if key in _LOWER_CASE:
            values = [unicodedata.normalize("NFC", value.lower()) for value in values]
        if negative and key == "in" and "all" in values:
            return "would leave nothing"
        good = [value for value in values if _may_be(key, value)]
        fault = f"is none of {', '.join(KINDS)}" if key == "in" else "is no name of a space"
        if not good:
            return fault
        for value in values:
            if value not in good:
                self._doubt(f"{key}:{_shown(value)} {fault}: left out")
        known = self._lists.setdefault((key, negative), set())
        for value in good:
            if len(known) < MOST_WORDS:
                known.add(value)
            elif value not in known:
                self.left_out(f"after the first {MOST_WORDS} values of {key}")
        if key == "in" and "all" in known:
            known.intersection_update({"all"})
        return ""

    def _apply_date(self, key: str, value: str) -> str:
        period = dates.period(value, self._now)
        if period is None:
            return "is no date"
        start, end = period
        if key == "before":
            self._before.append(start)
            return ""
        self._after.append(start)
        if key == "date" and end is not None:
            self._before.append(end)
        return ""

    def _apply_limit(self, value: str) -> str:
        if not (value.isascii() and value.isdigit()):
            return "is no number"
        # Python refuses to convert thousands of digits; five are more than enough to be too many.
        typed = int(value.lstrip("0")[:5] or "0")
        limit = min(max(typed, 1), MAX_LIMIT)
        if limit != typed:
            self._doubt(f"limit:{_shown(value)} is not from 1 to {MAX_LIMIT}: taken as {limit}")
        self._limits.append(limit)
        return ""

    def _add_text(self, start: int, end: int) -> None:
        text = self.source[start:end]
        self._type(start, end)
        self._texts.append(text)
        for part in text.split(" "):
            word = _searched(part)
            if _has_word(word) and not _is_stop_word(word):
                if len(self._words) == MOST_WORDS and fold(word) not in self._words:
                    self.left_out(f"after the first {MOST_WORDS} words")
                    return
                self._words.setdefault(fold(word), word)

    def _type(self, start: int, end: int) -> None:
        if self._typed and start > self._typed_end:
            self._typed.append(" ")
        self._typed.append(self.source[start:end])
        self._typed_end = end

    def _doubt(self, remark: str) -> None:
        self._doubts.setdefault(remark)

    def _doubt_contradictions(self) -> None:
        for name, moments in (("after", self._after), ("before", self._before)):
            if len(set(moments)) > 1:
                self._doubt(f"{name} is said more than once: the narrowest counts")
        if len(set(self._limits)) > 1:
            self._doubt("limit is said more than once: the last counts")
        if self._after and self._before and max(self._after) >= min(self._before):
            self._doubt("nothing is both after and before these dates")
        for key in LISTS:
            both = self._lists.get((key, False), set()) & self._lists.get((key, True), set())
            if both:
                self._doubt(f"{key}:{_shown(min(both))} is both asked for and left out")


# --- texts -------------------------------------------------------------------------------------------------------


def _cleaned(text: str) -> str:
    """NFC, single blanks, and nothing that cannot be seen."""
    # Dropping comes first: what stood on both sides of a dropped character may compose.
    seen = (" " if c.isspace() else c for c in text if c.isprintable() or c.isspace())
    return " ".join(unicodedata.normalize("NFC", "".join(seen)).split())


def _unquoted(text: str) -> str:
    """Without any quotes, also inside: no index keeps them, and so every value can be written in quotes again."""
    return " ".join(_QUOTES.sub(" ", text).split())


def _trimmed(word: str) -> str:
    """Without the punctuation around it; `.env`, `C++` and `#12` stay."""
    return word.lstrip(_BEFORE_A_WORD + " ").rstrip(_AFTER_A_WORD + " ")


def _searched(part: str) -> str:
    """The word in a piece of text between blanks: no punctuation, no elided article."""
    word = _trimmed(part)
    elided = _ELISION.match(word)
    return _trimmed(word[elided.end() :]) if elided else word


def _is_stop_word(word: str) -> bool:
    """Whether it says nothing, in any of the languages: `what`, `est-ce`; but `C++` is not the French letter."""
    return _LETTERS.fullmatch(word) is not None and not any(content_words(word))


def _has_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _may_be(key: str, value: str) -> bool:
    """Whether a key can have this value at all."""
    if key == "in":
        return value in KINDS
    if key != "space":
        return True
    try:
        return bool(check_space_name(value))
    except InvalidName:
        return False


def _shown(text: str, most: int = _MAX_SHOWN) -> str:
    """Short enough for a remark."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _some(doubts: Iterable[str]) -> tuple[str, ...]:
    """The first ones, and how many more there are."""
    remarks = list(doubts)
    if len(remarks) <= _MAX_DOUBTS:
        return tuple(remarks)
    kept = remarks[: _MAX_DOUBTS - 1]
    return (*kept, f"and {len(remarks) - len(kept)} more such remarks")
