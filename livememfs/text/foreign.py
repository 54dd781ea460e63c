"""JSON from the bucket, which anybody may have written.

Is the only reader of JSON from the bucket, and owns its limits: UTF-8 with or without a byte order mark, a greatest
size and depth, finite numbers, and each key once (of a key that stands twice, two programs would read two values).
Refuses all else with one exception, `Unreadable`, whose text never quotes the object. Pure; may be called from any
thread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from livememfs.text.times import parse_iso

RECORD_BYTES = 4 << 20
"""More than the largest record that livememfs writes itself: a beacon, the uses of 20,000 memories."""
RUN_BYTES = 64 << 20
"""The largest entry of a ledger, which holds the whole text of bank files."""
DEEPEST = 64
DIGITS = 300
"""Digits that a whole number may have: a longer one cannot become a float."""
LARGEST = (1 << 63) - 1
"""The largest number in a field: databases and the kernel take no larger one."""
T = TypeVar("T")


class Unreadable(ValueError):
    """An object that does not have the form its key promises. Its text is one short reason."""


def read_json(data: bytes, *, most: int = RECORD_BYTES, deepest: int = DEEPEST) -> Any:
    """The JSON value that a whole object is, or one line of an object. Raises Unreadable."""
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
        line = f", line {error.lineno}" if error.lineno > 1 else ""
        raise Unreadable(f"it is not JSON at offset {error.pos}{line}") from None
    if text.count("[") + text.count("{") > deepest:
        _check_depth(value, deepest)
    return value


def read_object(data: bytes, *, most: int = RECORD_BYTES) -> dict[str, Any]:
    """As `read_json`, where the value must be a JSON object. Raises Unreadable."""
    value = read_json(data, most=most)
    if not isinstance(value, dict):
        raise Unreadable("it is not a JSON object")
    return value


def _check_depth(value: Any, deepest: int) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(deepest):
        values = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [each for each in values if isinstance(each, dict | list)]
        if not level:
            return
    raise Unreadable(f"it is nested over {deepest} deep")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Unreadable("it has a key twice")
    return fields


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
    """Remove a field and return it. Null counts as missing. Raises Unreadable for a field that is missing and has no
    default, that has another type, or that is a number of more than 64 bits.
    """
    value = fields.pop(name, None)
    if value is None:
        value = default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Unreadable(f"{name} is not of type {kind.__name__}" if value is not None else f"{name} is missing")
    if isinstance(value, int) and abs(value) >> 64:
        raise Unreadable(f"{name} is too large a number")
    return value


def build(form: type[T], value: object) -> T:
    """A dataclass from a JSON object, by the types of its fields. Keys that the dataclass does not have are ignored.
    Raises Unreadable for a field that is missing or has another type.
    """
    if not isinstance(value, dict):
        raise Unreadable(f"{form.__name__} is not a JSON object")
    given = {name: typed(hint, value[name], name) for name, hint in _hints(form).items() if name in value}
    try:
        return form(**given)
    except TypeError:
        raise Unreadable(f"{form.__name__} has not all of its fields") from None


def typed(hint: Any, value: Any, name: str = "it") -> Any:
    """A JSON value as a Python type: lists become tuples, objects dataclasses, texts moments. Raises Unreadable."""
    if hint is type(value) and (hint is str or (hint is int and abs(value) <= LARGEST)):
        return value  # nearly all values: the rest is slow
    origin, parts = _shape(hint)
    if hint is Any or (value is None and NoneType in parts):
        return value
    if origin in (Union, UnionType):
        return typed(next(part for part in parts if part is not NoneType), value, name)
    if origin is Literal and isinstance(value, str) and value in parts:
        return value
    if origin in (tuple, frozenset) and isinstance(value, list):
        if origin is frozenset or parts[1:] == (...,):
            return origin(typed(parts[0], each, name) for each in value)
        if len(value) == len(parts):
            return tuple(typed(part, each, name) for part, each in zip(parts, value, strict=True))
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: typed(parts[1], each, name) for key, each in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value)
    return _simple(hint if origin is None else origin, value, name)


def _simple(hint: Any, value: Any, name: str) -> Any:
    if hint is datetime:
        if (time := moment(value)) is not None:
            return time
    elif hint in (str, int, bool, float):
        return take({name: value}, name, hint)
    raise Unreadable(f"{name} is not of the type it should be")


_hints: Callable[[object], dict[str, Any]] = cache(get_type_hints)


@cache
def _shape(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(hint), get_args(hint)


def text(value: object) -> str:
    """A field that should be a text; empty for anything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """A field that should be a count; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else 0


def moment(value: object) -> datetime | None:
    """A field that should be a time; None for anything else."""
    try:
        return parse_iso(value) if isinstance(value, str) else None
    except ValueError:
        return None
