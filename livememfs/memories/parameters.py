"""The parameters of a tool, as a model sees them, and the check of the arguments that a model gives.

Owns the JSON schema of parameters, the limit that each has, and the messages about wrong arguments, which a model can
act on. Refuses to know any tool. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

from livememfs.errors import BadRequest

_KINDS: Mapping[str, type | UnionType] = {"string": str, "integer": int, "number": int | float, "boolean": bool}
_ITEMS: Mapping[str, tuple[str, type]] = {
    "array": ("string", str),
    "texts": ("string", str),
    "integers": ("integer", int),
}
_TRUTH = {"true": True, "false": False}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
"""Control characters that no text may have: all except tabs, line ends and page breaks."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: JSON can have one, UTF-8 cannot."""

NAME = 255
"""Most characters of a text, unless the parameter says otherwise: enough for names."""
QUESTION = 1_000
"""Most characters of a question: a longer one is a page that was pasted."""
ITEMS = 64
LARGEST_NUMBER = 1 << 20
MOST_FAULTS, SHOWN = 8, 80
"""Most faults in one message, and most characters of an argument in each."""


@dataclass(frozen=True)
class Parameter:
    """One parameter. `kind` is its JSON type; an `array` has strings, and `integers` is an array of integers; `texts`
    is an array of strings, or one string with commas.

    :says:    the description for a model
    :longest: most characters of a text, and of each text in an array
    :items:   most values in an array
    :least:   the smallest number; `most`: the largest
    :blank:   whether an empty text is a value; otherwise it means that nothing is said
    :also:    another name for it, which clients of Live Memory or older ones of ours use
    """

    name: str
    says: str = ""
    kind: Literal["string", "integer", "number", "boolean", "array", "texts", "integers"] = "string"
    required: bool = False
    one_of: tuple[str, ...] = ()
    least: float = 0
    most: float = LARGEST_NUMBER
    longest: int = NAME
    items: int = ITEMS
    blank: bool = False
    also: str = ""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a value."""
        described: dict[str, Any] = {"type": "array" if self.kind == "integers" else self.kind}
        if self.kind == "texts":
            described = {"type": ["array", "string"], "maxLength": self.longest * self.items}
        described |= {"description": self.says} if self.says else {}
        values: dict[str, Any] = {"enum": list(self.one_of)} if self.one_of else {}
        if self.kind in ("string", "array", "texts") and not self.one_of:
            values = {"maxLength": self.longest}
        if self.kind in ("integer", "number", "integers"):
            values = {"minimum": self.least, "maximum": self.most}
        if self.kind in _ITEMS:
            return described | {"maxItems": self.items, "items": {"type": _ITEMS[self.kind][0], **values}}
        return described | values

    def fault(self, value: Any) -> str:
        """What is wrong with a value; empty when nothing is."""
        if not self._is_kind(value):
            return f"{self.name} is no {f'list of {_ITEMS[self.kind][0]}s' if self.kind in _ITEMS else self.kind}"
        parts = value if self.kind in _ITEMS else [value]
        if len(parts) > self.items:
            return f"{self.name} has {len(parts):,} values, and takes {self.items:,}"
        if self.kind in ("string", "array", "texts"):
            return self._fault_of_texts(parts)
        return self._fault_of_numbers(parts) if self.kind != "boolean" else ""

    def read(self, value: Any) -> Any:
        """The value that a client means. Many clients write each value as a text: a number, a truth value; an
        empty one says nothing. Whatever cannot be read so stays as it is, for `fault` to name.
        """
        if isinstance(value, float) and self.kind == "integer" and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        text = value.strip()
        if not text and not self.blank and not (self.required and self.kind == "string"):
            return None
        if self.kind == "texts":
            return [part.strip() for part in text.split(",") if part.strip()]
        if self.kind == "boolean":
            return _TRUTH.get(text.lower(), value)
        return _as_number(text, value) if self.kind in ("integer", "number") else value

    def _fault_of_texts(self, texts: Sequence[str]) -> str:
        long = max(map(len, texts), default=0)
        if self.one_of:
            other = next((text for text in texts if text not in self.one_of), None)
            some = "one" if self.kind == "string" else "some"
            return "" if other is None else f"{self.name} is {some} of {', '.join(self.one_of)}, not {other[:SHOWN]!a}"
        if long > self.longest:
            return f"{self.name} has {long:,} characters, and takes {self.longest:,}"
        if any(map(_HALF.search, texts)):
            return f"{self.name} has half of a character (a lone surrogate), which no file can hold"
        odd = next(filter(None, map(_CONTROL.search, texts)), None)
        return (
            f"{self.name} has the control character U+{ord(odd[0]):04X}, which no text has" if odd is not None else ""
        )

    def _fault_of_numbers(self, numbers: Sequence[float]) -> str:
        odd = next((number for number in numbers if not self.least <= number <= self.most), None)  # also finds NaN
        return f"{self.name} is {self.least:g} to {self.most:g}, not {_number(odd)}" if odd is not None else ""

    def _is_kind(self, value: Any) -> bool:
        if self.kind in _ITEMS:
            items = _ITEMS[self.kind][1]
            return isinstance(value, list | tuple) and all(type(item) is items for item in value)
        if isinstance(value, bool) != (self.kind == "boolean"):
            return False
        return isinstance(value, _KINDS[self.kind])


def _as_number(text: str, otherwise: Any) -> Any:
    """The number that a text has; `otherwise` without one. The length is bounded: reading digits is slow for many."""
    try:
        number = float(text) if len(text) <= SHOWN else otherwise
    except ValueError:
        return otherwise
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _number(value: Any) -> str:
    """A number for a message. One with thousands of digits is not repeated."""
    return str(value) if isinstance(value, float) or abs(value) < 1 << 64 else "one that long"


def schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
    }


def _meant(known: Mapping[str, Parameter], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under the names of the parameters, with the values that are meant."""
    names = {parameter.also: name for name, parameter in known.items() if parameter.also}
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        own = names.get(name, name)
        meant = known[own].read(value) if own in known else value
        if meant is not None:
            given[own] = meant
    return given


def checked(
    tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, Any], *, path: str, hidden: str = ""
) -> dict[str, Any]:
    """The arguments that a model gave; null counts as not given, and so does an empty text in most places. BadRequest
    says what is wrong, and names all parameters except `hidden`, which the model does not know.
    """
    known = {parameter.name: parameter for parameter in parameters}
    given = _meant(known, arguments)
    wrong = [f"{name[:SHOWN]} is none of its parameters" for name in given if name not in known]
    wrong += [f"{name} is missing" for name in known if known[name].required and name not in given]
    wrong += [fault for name in given if name in known and (fault := known[name].fault(given[name]))]
    if wrong:
        advice = f"{tool} takes {', '.join(name for name in known if name != hidden) or 'nothing'}"
        raise BadRequest(path=f"{path}: {tool}" if path else tool, detail="; ".join(wrong[:MOST_FAULTS]), advice=advice)
    return given
