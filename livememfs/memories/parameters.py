"""What a tool takes: its parameters as a model is told of them, and the arguments that a model gives.

Owns the JSON schema of both, how much each takes (nothing is without a limit), and the words in which arguments are
refused, which a model can act on. Refuses to know any tool. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

from livememfs.errors import BadRequest

_KINDS: Mapping[str, type | UnionType] = {"string": str, "integer": int, "number": int | float, "boolean": bool}
_ITEMS: Mapping[str, tuple[str, type]] = {"array": ("string", str), "integers": ("integer", int)}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
"""What no text has: all control characters but tabs and ends of lines and pages."""

NAME = 255
"""Characters of a text of which nothing else is said: of names."""
QUESTION = 1_000
"""Characters of a question; who asks more has pasted a page."""
ITEMS = 64
LARGEST_NUMBER = 1 << 20
MOST_FAULTS, SHOWN = 8, 80
"""Faults that are told, and characters of what was given in each."""


@dataclass(frozen=True)
class Parameter:
    """What a tool takes; `kind` is JSON's word for it. An `array` is one of strings, `integers` one of those.

    :longest: characters of a text, and of each text in an array
    :items:   the most that an array has
    :least:   the smallest number; `most`: the largest
    """

    name: str
    says: str = ""
    kind: Literal["string", "integer", "number", "boolean", "array", "integers"] = "string"
    required: bool = False
    one_of: tuple[str, ...] = ()
    least: float = 0
    most: float = LARGEST_NUMBER
    longest: int = NAME
    items: int = ITEMS

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a value."""
        found: dict[str, Any] = {"type": "array" if self.kind == "integers" else self.kind}
        found |= {"description": self.says} if self.says else {}
        values: dict[str, Any] = {"enum": list(self.one_of)} if self.one_of else {}
        if self.kind in ("string", "array") and not self.one_of:
            values = {"maxLength": self.longest}
        if self.kind in ("integer", "number", "integers"):
            values = {"minimum": self.least, "maximum": self.most}
        if self.kind in _ITEMS:
            return found | {"maxItems": self.items, "items": {"type": _ITEMS[self.kind][0], **values}}
        return found | values

    def fault(self, value: Any) -> str:
        """What is wrong with a value; empty when nothing is."""
        if not self._is_kind(value):
            return f"{self.name} is no {f'list of {_ITEMS[self.kind][0]}s' if self.kind in _ITEMS else self.kind}"
        parts = value if self.kind in _ITEMS else [value]
        if len(parts) > self.items:
            return f"{self.name} has {len(parts):,} values, and takes {self.items:,}"
        if self.kind in ("string", "array"):
            return self._fault_of_texts(parts)
        return self._fault_of_numbers(parts) if self.kind != "boolean" else ""

    def _fault_of_texts(self, texts: Sequence[str]) -> str:
        long = max(map(len, texts), default=0)
        if self.one_of:
            other = next((one for one in texts if one not in self.one_of), None)
            some = "some" if self.kind == "array" else "one"
            return "" if other is None else f"{self.name} is {some} of {', '.join(self.one_of)}, not {other[:SHOWN]!a}"
        if long > self.longest:
            return f"{self.name} has {long:,} characters, and takes {self.longest:,}"
        if not all(map(_is_text, texts)):
            return f"{self.name} has half of a character (a lone surrogate), which no file can hold"
        odd = next(filter(None, map(_CONTROL.search, texts)), None)
        return (
            f"{self.name} has the control character U+{ord(odd[0]):04X}, which no text has" if odd is not None else ""
        )

    def _fault_of_numbers(self, numbers: Sequence[float]) -> str:
        odd = next((one for one in numbers if not self.least <= one <= self.most), None)  # what is no number is neither
        return f"{self.name} is {self.least:g} to {self.most:g}, not {_number(odd)}" if odd is not None else ""

    def _is_kind(self, value: Any) -> bool:
        if self.kind in _ITEMS:
            items = _ITEMS[self.kind][1]
            return isinstance(value, list | tuple) and all(type(one) is items for one in value)
        if isinstance(value, bool) != (self.kind == "boolean"):
            return False
        return isinstance(value, _KINDS[self.kind])


def _is_text(value: str) -> bool:
    """Whether a text can be written as UTF-8; JSON can name halves of characters that cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any) -> str:
    """A number as it was given; of one that has thousands of digits, that it has."""
    return str(value) if isinstance(value, float) or abs(value) < 1 << 64 else "one that long"


def schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {one.name: one.schema() for one in parameters},
        "required": [one.name for one in parameters if one.required],
    }


def checked(
    tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, Any], *, path: str, hidden: str = ""
) -> dict[str, Any]:
    """The arguments that a model has given, where null is nothing. BadRequest names everything that is wrong, and all
    parameters but the `hidden` one, of which the model was not told.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    known = {one.name: one for one in parameters}
    wrong = [f"{name[:SHOWN]} is none of its parameters" for name in given if name not in known]
    wrong += [f"{one.name} is missing" for one in parameters if one.required and one.name not in given]
    wrong += [fault for name in given if name in known and (fault := known[name].fault(given[name]))]
    if wrong:
        advice = f"{tool} takes {', '.join(name for name in known if name != hidden) or 'nothing'}"
        raise BadRequest(path=f"{path}: {tool}" if path else tool, detail="; ".join(wrong[:MOST_FAULTS]), advice=advice)
    return given
