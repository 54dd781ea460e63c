"""How many tokens a text has, about, and how much text fits into a number of tokens.

Owns the one estimate of tokens, and cutting texts by it. It is an estimate, because each model has another tokenizer.
Pure; any thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO

_LOWER, _UPPER, _DIGIT, _SPACE, _LINE, _MARK = b"a", b"A", b"0", b" ", b"\n", b"."
_SCRIPTS = (
    (0xC2, b"e", 1.0),  # Latin letters with accents
    (0xCD, b"g", 0.4),  # Greek
    (0xD0, b"c", 0.3),  # Cyrillic
    (0xD4, b"s", 0.38),  # Armenian, Hebrew, Arabic
    (0xE0, b"i", 0.37),  # India, Thailand, Georgia, Vietnam
    (0xE2, b"u", 0.75),  # typographic marks, arrows, frames
    (0xE3, b"k", 0.65),  # Japanese syllables
    (0xE4, b"h", 0.77),  # Chinese characters
    (0xEA, b"o", 0.66),  # Korean
    (0xEE, b"f", 0.9),  # wide forms and marks
    (0xF0, b"p", 1.8),  # pictures
)
"""The first byte in UTF-8 of a script, the class of its characters, the tokens that each character costs."""
_ASCII: Sequence[tuple[bytes, float]] = (
    # A word costs something for its beginning and a little for each letter; a change of case begins another word.
    *((b" a", 0.6), (b"\na", 0.6), (b".a", 0.55), (b"Aa", 0.55), (b"aA", 0.83), (b"AA", 0.65), (b"a", 0.115)),
    # Three digits are a token, and a space before a number is a token of its own.
    *((b" 0", 1.5), (b".0", 0.45), (b"a0", 0.45), (b"A0", 1.1), (b"0a", 0.95), (b"0A", 1.4), (b"0", 0.33)),
    # The more marks, empty lines or spaces stand together, the less each of them costs.
    *((b".", 0.68), (b"..", -0.6), (b"....", -0.8), (b"\n", 1.2), (b"\n\n", -1.0), (b"  ", 0.35), (b"    ", -0.65)),
)
"""One or several characters of a text, by their classes, and the tokens that each occurrence costs."""
_COSTS = (*((kind, cost) for _, kind, cost in _SCRIPTS), *_ASCII)
_LATER_BYTES = bytes(range(0x80, 0xC0))


def _class(byte: int) -> bytes:
    if byte >= 0x80:
        return next((kind for first, kind, _ in reversed(_SCRIPTS) if byte >= first), _MARK)
    character = chr(byte)
    if character.isalnum():
        return _DIGIT if character.isdigit() else _LOWER if character.islower() else _UPPER
    return _LINE if character == "\n" else _SPACE if character <= " " else _MARK


_CLASSES = b"".join(map(_class, range(256)))


def tokens(text: str) -> int:
    """About how many tokens a text has, rounded up: for prose, code and encoded data it is a quarter off at most.

    The figures are fitted to a published tokenizer (o200k_base); others differ from it by about as much.
    """
    # One byte for each character: its class. Counting pairs of these is much faster than looking at words.
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _LATER_BYTES)
    costs = _ASCII if text.isascii() else _COSTS
    first = 0.5 if classes[:1] in (_LOWER, _DIGIT) else 0.0
    return math.ceil(max(first + sum(cost * classes.count(what) for what, cost in costs), bool(text)))


def at_most(estimated: int) -> int:
    """The most tokens that a text with this estimate can have: the estimate is a quarter off at most.

    A request that is filled up must be counted with this, or an endpoint may refuse it as too long.
    """
    return estimated + -(-estimated // 4)


def fitting(room: int) -> int:
    """How many estimated tokens are `room` tokens at most, whatever the text is: the reverse of `at_most`."""
    return max(room, 0) * 4 // 5


def cut_to(text: str, budget: int, *, end: str = "") -> str:
    """The beginning of a text, `budget` tokens at most, with `end` after it where the text was cut."""
    while (cost := tokens(text)) > budget and len(text) > 1:
        text = text[: max(len(text) * budget // cost - 1, 0)].rstrip() + end
    return text


class Budget:
    """The tokens for the parts of one answer. A part that does not fit leaves the room to smaller parts after it."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def takes(self, *texts: str, at_any_cost: bool = False) -> bool:
        """Whether there is room for a part made of these texts. If so, the room is spent."""
        cost = sum(map(tokens, texts))
        if cost > self.left and not at_any_cost:
            return False
        self.left -= cost
        return True


def lines_of(text: str) -> list[str]:
    """The lines of a text with their line feeds. Other characters at which Python splits lines do not end one here."""
    return StringIO(text, newline="\n").readlines()


def first_lines(lines: Sequence[str], budget: Budget) -> int:
    """How many of the first lines there is room for; at least one."""
    for count, line in enumerate(lines):
        if not budget.takes(line, at_any_cost=not count):
            return count
    return len(lines)
