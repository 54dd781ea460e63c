"""How credentials are looked for in a text: a literal first, and only where that stands a pattern.

Owns the cost: a text without any literal costs a few scans, and no text costs more than its length, since nothing is
read twice. Refuses to know any credential: those are in `credentials`. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Span = tuple[int, int]
"""Where a credential begins and ends."""

EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""A word begins here. After the escapes of JSON and of URLs one does, though a letter or a digit stands before it."""
OWN_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt]))"
"""The same for what may be long and in vain: `-` and `_` belong to it."""
_LONG = 15
"""No token of a form of its own is shorter, with what it begins with."""


class Text:
    """A text as it is searched.

    :whole:   all of it
    :lowered: the same in lower case, character by character
    :words:   what of it stands between blanks and is long enough for a token, for a first look
    """

    __slots__ = ("lowered", "whole", "words", "words_lowered")

    def __init__(self, whole: str) -> None:
        self.whole = whole
        self.lowered = whole.replace("\u0130", "i").lower()  # the one letter that gets longer
        self.words = " ".join([word for word in whole.split() if len(word) >= _LONG])
        self.words_lowered = self.words.lower()


Search = Callable[[Text], Iterator[Span]]
"""Finds credentials in a text."""
Check = Callable[[str], bool]
"""Whether what a pattern fits is one."""


def anything(_: str) -> bool:
    """Whatever the pattern fits."""
    return True


def starting(literal: str, rest: str, is_one: Check = anything, *, edge: str = EDGE) -> Search:
    """One word that begins with a literal, case and all, at the edge of a word."""
    pattern = re.compile(edge + re.escape(literal) + rest)

    def search(text: Text) -> Iterator[Span]:
        at = text.whole.find(literal) if literal in text.words else -1
        while at >= 0:
            match = pattern.match(text.whole, at)
            if match is not None and is_one(match[match.lastindex or 0]):
                yield _secret(match)
            # Also behind what is none: nothing is read twice.
            at = text.whole.find(literal, at + 1 if match is None else match.end())

    return search


def tokens(*literals: str, tail: str) -> tuple[Search, ...]:
    """Words that begin with one of some literals and end alike."""
    return tuple(starting(literal, tail) for literal in literals)


def following(literal: str, rest: str, is_one: Check = anything, *, one_word: bool = False) -> Search:
    """What follows a literal of any case, given here in lower case; `one_word`: with no blank in between."""
    pattern = re.compile(rest, re.IGNORECASE | re.ASCII)

    def search(text: Text) -> Iterator[Span]:
        at = text.lowered.find(literal) if not one_word or literal in text.words_lowered else -1
        while at >= 0:
            match = pattern.match(text.whole, at + len(literal))
            if match is not None and is_one(match[match.lastindex or 0]):
                yield _secret(match)
            at = text.lowered.find(literal, at + len(literal) if match is None else match.end())

    return search


def having(literal: str, expression: str, is_one: Check = anything) -> Search:
    """One word that has a literal of any case somewhere, given in lower case. The expression is bounded in length."""
    pattern = re.compile(expression)

    def search(text: Text) -> Iterator[Span]:
        if literal in text.words_lowered:
            yield from (_secret(match) for match in pattern.finditer(text.whole) if is_one(match[match.lastindex or 0]))

    return search


def _secret(match: re.Match[str]) -> Span:
    """What of a match is secret: the one group that took part, else all of it."""
    return match.span(match.lastindex or 0)
