"""A text as the numbers that multilingual-e5-small reads.

Owns what XLM-R's tokenizer does: which characters count, and which pieces of the vocabulary a word is made of. Refuses
to look at more of a text than its first tokens need, so the time is bounded whatever comes in. Pure but for a cache of
words; any thread.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache

MAX_TOKENS = 512
"""The model's longest input, with the two tokens that mark beginning and end."""

_BEGIN, _END, _UNKNOWN = 0, 2, 3
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SPACE = "\u2581"  # how the vocabulary writes the space before a word
_LONGEST_PIECE = 16
_LONGEST_WORD = 256  # a longer one is divided: the search below takes time by length, and no such word is language
_WORDS_KEPT = 8192
# No token stands for more characters than the longest piece has, so none of the first 512 comes from further on. The
# first figure leaves room for spaces, which count for nothing.
_LOOKED_AT = 65_536
_MAX_CHARS = MAX_TOKENS * _LONGEST_PIECE
# Beside NFKC: control characters vanish, what separates or has no width is a space.
_REPLACED: dict[int, str] = {
    **dict.fromkeys([*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F], ""),
    **dict.fromkeys([0x09, 0x0A, 0x0C, 0x0D, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029], " "),
    **dict.fromkeys([0x2581, 0xFEFF, 0xFFFD], " "),
}


class Tokenizer:
    """The vocabulary, ready to be searched.

    :pieces: in the order of their numbers
    :scores: the logarithm of how likely each is
    """

    def __init__(self, pieces: Sequence[str], scores: Iterable[float]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        for piece in _SPECIAL:  # a text that happens to spell one must not become one
            self._numbers.pop(piece, None)
        self._scores = array("f", scores)
        self._unknown = min(self._scores) - 10.0
        self._word = lru_cache(_WORDS_KEPT)(self._search)

    def numbers(self, text: str) -> list[int]:
        """The tokens of the beginning of `text`, with those that mark beginning and end: at most `MAX_TOKENS`."""
        tokens = [_BEGIN]
        for word in _words(text):
            tokens += self._word(word)
            if len(tokens) >= MAX_TOKENS:
                break
        return [*tokens[: MAX_TOKENS - 1], _END]

    def _search(self, word: str) -> tuple[int, ...]:
        """The likeliest way to put the word together (Viterbi). What no piece covers becomes one unknown token."""
        best = [0.0, *[float("-inf")] * len(word)]
        came = [(0, _UNKNOWN)] * (len(word) + 1)
        for start in range(len(word)):
            so_far = best[start]
            for end in range(start + 1, min(start + _LONGEST_PIECE, len(word)) + 1):
                number = self._numbers.get(word[start:end])
                if number is not None and so_far + self._scores[number] > best[end]:
                    best[end] = so_far + self._scores[number]
                    came[end] = (start, number)
            if so_far + self._unknown > best[start + 1]:
                best[start + 1] = so_far + self._unknown
                came[start + 1] = (start, _UNKNOWN)
        return tuple(_way_back(came))


def _way_back(came: Sequence[tuple[int, int]]) -> list[int]:
    """The numbers along the best way, in the order of the text."""
    numbers: list[int] = []
    at = len(came) - 1
    while at:
        at, number = came[at]
        if number != _UNKNOWN or numbers[-1:] != [_UNKNOWN]:
            numbers.append(number)
    return numbers[::-1]


def _words(text: str) -> Iterable[str]:
    """The words of the beginning of a text, each with its mark in front, none too long."""
    text = " ".join(text[:_LOOKED_AT].split())[:_MAX_CHARS]
    text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no character
    for word in unicodedata.normalize("NFKC", text).translate(_REPLACED).split():
        marked = _SPACE + word
        for start in range(0, len(marked), _LONGEST_WORD):
            yield marked[start : start + _LONGEST_WORD]
