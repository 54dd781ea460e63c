"""Objects of the bucket that are not the user's text: JSON that anybody may have written.

Owns what such an object may be at most, and is the only reader of JSON from the bucket: UTF-8 with or without a byte
order mark, of a size, nested to a depth, every number finite, each key of an object once, as in front matter: of a key
that is there twice, two programs would read two things. Refuses all else with one exception, `Unreadable`, whose text
never quotes the object. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from livememfs.text.times import parse_iso

RECORD_BYTES = 4 << 20
"""The largest record that livememfs writes itself, with room: a beacon, the uses of 20,000 memories."""
RUN_BYTES = 64 << 20
"""The largest entry of a ledger, which holds the whole text of bank files."""
DEEPEST = 64
DIGITS = 300
"""Of a whole number: no more than can become a float."""
LARGEST = (1 << 63) - 1
"""Of a field that is counted with: what databases and the kernel take."""
T = TypeVar("T")


class Unreadable(ValueError):
    """An object that is not what its key says. Its text is one short reason."""


def read_json(data: bytes, *, most: int = RECORD_BYTES, deepest: int = DEEPEST) -> Any:
    """The JSON value that is all of an object, or a line of one. Raises Unreadable."""
    if len(data) > most:
        raise Unreadable(f"it has {len(data):,} bytes, and {most:,} are read")
    try:
        text = data.decode("utf-8-sig")
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 at offset {error.start}") from None
    except RecursionError:
        raise Unreadable(f"it is nested over {deepest} deep") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is not JSON at offset {error.pos}") from None
    if text.count("[") + text.count("{") > deepest:
        _check_depth(value, deepest)
    return value


def read_object(data: bytes, *, most: int = RECORD_BYTES) -> dict[str, Any]:
    """The same where it must be an object, with braces. Raises Unreadable."""
    value = read_json(data, most=most)
    if not isinstance(value, dict):
        raise Unreadable("it is not a JSON object")
    return value


def _check_depth(value: object, deepest: int) -> None:
    level = [value]
    for _ in range(deepest):
        parts = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [one for part in parts for one in part if isinstance(one, dict | list)]
        if not level:
            return
    raise Unreadable(f"it is nested over {deepest} deep")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("it has a key twice")
    return found


def _int(digits: str) -> int:
    if len(digits) > DIGITS:
        raise Unreadable(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _infinite(digits)
    return value


def _infinite(_name: str) -> NoReturn:
    raise Unreadable("it has a number that is not finite")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_infinite)


# --- fields ----------------------------------------------------------------------------------------------------


def take(fields: dict[str, Any], name: str, kind: type[T], default: T | None = None) -> T:
    """Remove a field and return it. Null counts as missing. Raises Unreadable where it is missing without a default,
    of another type, or a number of more than 64 bits.
    """
    value = fields.pop(name, None)
    if value is None:
        value = default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Unreadable(f"{name} is not of type {kind.__name__}" if value is not None else f"{name} is missing")
    if isinstance(value, int) and abs(value) >> 64:
        raise Unreadable(f"{name} is too large a number")
    return value


def build(form: type[T], found: object) -> T:
    """The dataclass that a JSON object describes, by the types of its fields; what it does not know is passed over.
    Raises Unreadable where a field is missing, or of another type.
    """
    if not isinstance(found, dict):
        raise Unreadable(f"{form.__name__} is not a JSON object")
    given = {name: typed(hint, found[name], name) for name, hint in _hints(form).items() if name in found}
    try:
        return form(**given)
    except TypeError:
        raise Unreadable(f"{form.__name__} has not all of its fields") from None


def typed(hint: Any, value: Any, name: str = "it") -> Any:
    """A JSON value as a type of Python's says: lists become tuples, objects dataclasses, texts moments. Unreadable."""
    if hint is type(value) and (hint is str or (hint is int and abs(value) <= LARGEST)):
        return value  # nearly all there are
    origin, parts = _shape(hint)
    if hint is Any or (value is None and NoneType in parts):
        return value
    if origin in (Union, UnionType):
        return typed(next(part for part in parts if part is not NoneType), value, name)
    if origin is Literal and isinstance(value, str) and value in parts:
        return value
    if origin in (tuple, frozenset) and isinstance(value, list):
        if origin is frozenset or parts[1:] == (...,):
            return origin(typed(parts[0], one, name) for one in value)
        if len(value) == len(parts):
            return tuple(typed(part, one, name) for part, one in zip(parts, value, strict=True))
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: typed(parts[1], one, name) for key, one in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value)
    return _simple(hint if origin is None else origin, value, name)


def _simple(hint: Any, value: Any, name: str) -> Any:
    if hint is datetime:
        if (found := moment(value)) is not None:
            return found
    elif hint in (str, int, bool, float):
        return take({name: value}, name, hint)
    raise Unreadable(f"{name} is not of the type it should be")


_hints: Callable[[object], dict[str, Any]] = cache(get_type_hints)


@cache
def _shape(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(hint), get_args(hint)


def text(value: object) -> str:
    """A field that is a text, or nothing: then it is as if it were empty."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """A field that counts something; 0 for what cannot be a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else 0


def moment(value: object) -> datetime | None:
    """A field that is a time; None for what is none."""
    try:
        return parse_iso(value) if isinstance(value, str) else None
    except ValueError:
        return None
