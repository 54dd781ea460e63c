"""What a tool takes: its parameters as a model is told of them, and the arguments that a model gives.

Owns the JSON schema of both and the words in which arguments are refused, which a model can act on. Refuses to know any
tool. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

from livememfs.errors import BadRequest

_KINDS: Mapping[str, type | UnionType] = {"string": str, "integer": int, "number": int | float, "boolean": bool}
_ITEMS: Mapping[str, tuple[str, type]] = {"array": ("string", str), "integers": ("integer", int)}


@dataclass(frozen=True)
class Parameter:
    """What a tool takes; `kind` is JSON's word for it. An `array` is one of strings, `integers` one of those."""

    name: str
    says: str = ""
    kind: Literal["string", "integer", "number", "boolean", "array", "integers"] = "string"
    required: bool = False
    one_of: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a value."""
        found: dict[str, Any] = {"type": "array" if self.kind == "integers" else self.kind}
        found |= {"description": self.says} if self.says else {}
        values = {"enum": list(self.one_of)} if self.one_of else {}
        if self.kind in _ITEMS:
            found |= {"items": {"type": _ITEMS[self.kind][0], **values}}
        else:
            found |= values
        found |= {"minimum": self.least} if self.least is not None else {}
        return found | ({"maximum": self.most} if self.most is not None else {})

    def fault(self, value: Any) -> str:
        """What is wrong with a value; empty when nothing is."""
        if not self._is_kind(value):
            return f"{self.name} is no {self.kind}"
        if not all(_is_text(one) for one in (value if self.kind == "array" else [value])):
            return f"{self.name} has half of a character (a lone surrogate), which no file can hold"
        if self.one_of and not set(value if self.kind == "array" else [value]) <= set(self.one_of):
            return (
                f"{self.name} is {'some' if self.kind == 'array' else 'one'} of {', '.join(self.one_of)}, not {value!r}"
            )
        too_little = self.least is not None and not value >= self.least  # what is no number is neither
        too_much = self.most is not None and not value <= self.most
        if not too_little and not too_much:
            return ""
        if self.least is not None and self.most is not None:
            return f"{self.name} is {self.least:g} to {self.most:g}, not {value}"
        return f"{self.name} is at {f'least {self.least:g}' if too_little else f'most {self.most:g}'}, not {value}"

    def _is_kind(self, value: Any) -> bool:
        if self.kind in _ITEMS:
            items = _ITEMS[self.kind][1]
            return isinstance(value, list | tuple) and all(type(one) is items for one in value)
        if isinstance(value, bool) != (self.kind == "boolean"):
            return False
        return isinstance(value, _KINDS[self.kind])


def _is_text(value: Any) -> bool:
    """Whether a text can be written as UTF-8; JSON can name halves of characters that cannot."""
    try:
        return not isinstance(value, str) or value.encode() is not None
    except UnicodeEncodeError:
        return False


def schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {one.name: one.schema() for one in parameters},
        "required": [one.name for one in parameters if one.required],
    }


def checked(tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, Any], *, path: str) -> dict[str, Any]:
    """The arguments that a model has given, where null is nothing. BadRequest names everything that is wrong."""
    given = {name: value for name, value in arguments.items() if value is not None}
    known = {one.name: one for one in parameters}
    wrong = [f"{name} is none of its parameters" for name in given if name not in known]
    wrong += [f"{one.name} is missing" for one in parameters if one.required and one.name not in given]
    wrong += [fault for name in given if name in known and (fault := known[name].fault(given[name]))]
    if wrong:
        advice = f"{tool} takes {', '.join(known) or 'nothing'}"
        raise BadRequest(path=f"{path}: {tool}" if path else tool, detail="; ".join(wrong), advice=advice)
    return given
