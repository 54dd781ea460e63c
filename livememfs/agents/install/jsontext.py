"""Reads JSON with comments, and keeps the place of every value in the text.

Owns the scanner: JSON with `//` and `/* */` comments, trailing commas and a byte order mark. Anything else is a
ValueError that names the line. Offsets count characters of the given text. Pure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_DEEPEST = 200
_BLANKS = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_WORD = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_UTF8 = re.compile(r"[^\ud800-\udfff]*")
BOM = "\ufeff"


@dataclass(frozen=True)
class Item:
    """One element of an array or one member of an object.

    :start: its beginning: of an element the value, of a member the key
    :key:   the member's name; None in an array
    :comma: the place of the comma behind it, if there is one
    """

    start: int
    key: str | None
    value: JsonNode
    comma: int | None


@dataclass(frozen=True)
class JsonNode:
    """One value, written as `text[start:end]`.

    :items:   the items of an array or object, in order; empty for other values
    :scalar:  the value if it is neither array nor object
    :remarks: the end of the last comment behind the last item, or in an empty value; None without one
    """

    start: int
    end: int
    kind: str
    items: tuple[Item, ...] = ()
    scalar: Any = None
    remarks: int | None = None

    @property
    def value(self) -> Any:
        """The value itself; of members with the same name the last counts, as for every JSON reader."""
        if self.kind == "object":
            return {item.key: item.value.value for item in self.items}
        if self.kind == "array":
            return [item.value.value for item in self.items]
        return self.scalar

    def member(self, key: str) -> Item | None:
        """The last member with this name; None without one."""
        return next((item for item in reversed(self.items) if item.key == key), None)

    @property
    def trailing_commas(self) -> int:
        """The number of arrays and objects in it that end with a comma."""
        own = bool(self.items) and self.items[-1].comma is not None
        return own + sum(item.value.trailing_commas for item in self.items)


def scan(text: str) -> JsonNode:
    """The value of a text. ValueError if the text is not exactly one value, besides comments."""
    if not _UTF8.fullmatch(text):
        raise ValueError("it is not JSON: not UTF-8")
    scanner = _Scanner(text)
    scanner.at = len(BOM) if text.startswith(BOM) else 0
    scanner.skip()
    root = scanner.value(0)
    scanner.skip()
    if scanner.at != len(text):
        raise scanner.fault("more than one value")
    return root


def is_strict(text: str) -> bool:
    """Whether a text is JSON without comments and trailing commas."""
    try:
        json.loads(text.removeprefix(BOM))
    except (ValueError, RecursionError):
        return False
    return True


class _Scanner:
    """A text and the current place in it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fault(self, detail: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"it is not JSON, line {line}: {detail}")

    def skip(self) -> int | None:
        """Skip blanks and comments; the end of the last comment, None without one."""
        ended = None
        while True:
            if blanks := _BLANKS.match(self.text, self.at):
                self.at = blanks.end()
            if (comment := _COMMENT.match(self.text, self.at)) is None:
                return ended
            ended = self.at = comment.end()

    def takes(self, character: str) -> bool:
        """Whether this character comes next; if so, skip it."""
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        return True

    def value(self, depth: int) -> JsonNode:
        if depth > _DEEPEST:
            raise self.fault("nested too deep")
        start = self.at
        if self.takes("{"):
            return self.inside(start, "object", "}", depth)
        if self.takes("["):
            return self.inside(start, "array", "]", depth)
        scalar = self.token(_STRING if self.text.startswith('"', start) else _WORD, "a value is missing or wrong")
        return JsonNode(start, self.at, "scalar", scalar=scalar)

    def token(self, pattern: re.Pattern[str], detail: str) -> Any:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.fault(detail)
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.fault("a text that is not well formed") from None
        self.at = match.end()
        return value

    def inside(self, start: int, kind: str, closing: str, depth: int) -> JsonNode:
        """The rest of an array or object."""
        items: list[Item] = []
        remarks = self.skip()
        while not self.takes(closing):
            if items and items[-1].comma is None:
                raise self.fault(f"a comma or {closing} is missing")
            item, remarks = self.item(kind, depth)
            items.append(item)
        return JsonNode(start, self.at, kind, tuple(items), remarks=remarks)

    def item(self, kind: str, depth: int) -> tuple[Item, int | None]:
        """One item with the comma behind it, and the end of the last comment behind it."""
        start, key = self.at, None
        if kind == "object":
            key = self.token(_STRING, "a name in double quotes is missing")
            self.skip()
            if not self.takes(":"):
                raise self.fault("a colon is missing")
            self.skip()
        value = self.value(depth + 1)
        remarks = self.skip()
        comma = self.at - 1 if self.takes(",") else None
        if comma is not None:
            remarks = self.skip() or remarks
        return Item(start, key, value, comma), remarks
