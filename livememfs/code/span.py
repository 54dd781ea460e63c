"""The part of a file that a symbol stands for, and its digest.

Owns the rule, which is the same for every language: the blocks that define the symbol, by indentation and brackets;
where nothing does, the lines that name it; without a symbol, the whole file. Blanks at the end of lines, line ends and
empty lines at the end do not count. Refuses to understand a language. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

MOST_LINES = 4_000
"""Lines of one block."""
MOST_PLACES = 400
"""Places of a symbol in a file that are looked at."""
MOST_BLOCKS = 16
LONGEST = 400
"""Characters of a line by which it may define something."""
_OPEN, _CLOSE = "([{", ")]}"
_KEYWORDS = frozenset((
    "actor", "class", "const", "data", "def", "defmodule", "defp", "define", "enum", "extension", "fn", "fun", "func",
    "function", "impl", "interface", "let", "macro", "message", "mod", "module", "namespace", "object", "package",
    "proc", "protocol", "record", "resource", "service", "static", "struct", "sub", "table", "trait", "type", "typedef",
    "union", "val", "var", "view",
))  # fmt: skip
_NOT_A_TYPE = (
    "and", "assert", "await", "case", "del", "delete", "do", "else", "elif", "except", "from", "goto", "if", "import",
    "in", "is", "match", "new", "not", "or", "print", "raise", "return", "switch", "throw", "unless", "until", "when",
    "while", "with", "yield",
)  # fmt: skip
_SET = re.compile(r"[:?+|]?=(?![=>])|:(?!:)")
_WORD = re.compile(r"\w+")
_TYPE = re.compile(r"[\w<>:,*&\[\]?~\s]*")


class SourceText:
    """The text of one file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._is_text = b"\0" not in data
        text = data.decode("utf-8", "replace").removeprefix("\ufeff") if self._is_text else ""
        self._text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self._lines = self._text.split("\n")

    def digest(self, symbol: str) -> str:
        """The digest of a symbol's span, 16 hexadecimal digits; of the whole file for an empty symbol. Empty where the
        file has no such symbol.
        """
        if not self._is_text:
            return "" if symbol else blake2b(self._data, digest_size=8).hexdigest()
        if not symbol:
            return _digest(self._lines)
        numbers = self._span(symbol)
        return _digest(self._lines[number] for number in numbers) if numbers else ""

    def defines(self, symbol: str) -> bool:
        """Whether some line defines the symbol."""
        return any(how for _, how in self._places(symbol))

    def names(self, symbol: str) -> bool:
        """Whether the symbol stands anywhere."""
        return next(self._places(symbol), None) is not None

    def _span(self, symbol: str) -> list[int]:
        """The numbers of the lines."""
        places = list(self._places(symbol))
        best = max((how for _, how in places), default=0)
        if not best:
            return [number for number, _ in places]
        starts = [number for number, how in places if how == best][:MOST_BLOCKS]
        lines: dict[int, None] = {}
        for start in starts:
            lines |= dict.fromkeys(range(self._decorated(start), self._end(start)))
        return sorted(lines)

    def _places(self, symbol: str) -> Iterator[tuple[int, int]]:
        """Each line that has the symbol, and how surely it defines it: 2 by a word for it, 1 by its form, 0 not."""
        before, number, last, count = 0, 0, -1, 0
        for at in self._starts(symbol):
            number += self._text.count("\n", before, at)
            before = at
            if number != last:
                start = at - (self._text.rfind("\n", 0, at) + 1)
                yield number, _how_surely(self._lines[number], start, start + len(symbol))
            last, count = number, count + 1
            if count == MOST_PLACES:
                return

    def _starts(self, symbol: str) -> Iterator[int]:
        """Where the symbol stands as a whole word. No pattern: to make one takes longer than to look for it once."""
        text, size = self._text, len(symbol)
        at = text.find(symbol)
        while at >= 0:
            if not (_goes_on(text[at - 1 : at]) or _goes_on(text[at + size : at + size + 1])):
                yield at
            at = text.find(symbol, at + size)

    def _decorated(self, start: int) -> int:
        """Where the block really begins: a decorator says as much as the line below it."""
        indent = _indent(self._lines[start])
        while start and self._lines[start - 1].lstrip().startswith(("@", "#[")):
            if _indent(self._lines[start - 1]) != indent:
                break
            start -= 1
        return start

    def _end(self, start: int) -> int:
        """The line behind a block. It goes on while brackets are open, and while lines stand further in; a block may
        do both, so the later end counts.
        """
        first = self._lines[start]
        indent, depth, end = _indent(first), 0, start + 1
        is_key = first.rstrip().endswith(":")
        for number in range(start, min(len(self._lines), start + MOST_LINES)):
            line = self._lines[number]
            inside = depth > 0
            depth = max(0, depth + _opened(line))
            if not line.strip():
                continue
            deeper = number == start or inside or _indent(line) > indent
            closes = (_indent(line) == indent and line.lstrip()[0] in ")]}{") or (is_key and line.lstrip()[:2] == "- ")
            if not (deeper or closes):
                break
            end = number + 1
        return end


def _opened(line: str) -> int:
    """How many brackets a line opens and does not close."""
    return sum(map(line.count, _OPEN)) - sum(map(line.count, _CLOSE))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _digest(lines: Iterable[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines).rstrip("\n")
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _how_surely(line: str, start: int, end: int) -> int:
    """How surely a line defines the name at `start` to `end`: 2 by a word for it, 1 by its form, 0 not."""
    if end > LONGEST:
        return 0
    before, behind = line[:start].strip(), line[end:LONGEST].lstrip("\"'").lstrip()
    words = _WORD.findall(before)
    is_open = _opened(before) != 0 or "=" in before
    if not is_open and not _KEYWORDS.isdisjoint(words[-1:] if before.endswith(".") else words[-2:]):
        return 2
    if not is_open and before.endswith(")") and words and words[0] in _KEYWORDS:  # what a method in Go belongs to
        return 2
    is_set = _SET.match(behind) is not None
    if is_set and before.strip("\"'- ") in ("", "export", "self.", "this."):
        return 1
    if is_open or not _TYPE.fullmatch(before) or (words and words[0] in _NOT_A_TYPE):
        return 0
    is_call = behind.startswith("(")
    if words and (is_set or (is_call and not line.rstrip().endswith(";"))):
        return 1
    return int(is_call and line.rstrip().endswith("{"))


def _goes_on(character: str) -> bool:
    """Whether a name goes on with this character; it is empty at the beginning and the end of a text."""
    return character.isalnum() or character in ("_", "$")
