"""JSON that anybody may have written is read within limits, and refused with one exception."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.text.foreign import DEEPEST, Unreadable, build, count, moment, read_json, read_object, text, typed

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_json_can_say_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value).encode()) == value


@given(st.binary(max_size=60) | st.text('[]{}",:0e9.-NaIn', max_size=60).map(str.encode))
def test_whatever_bytes_there_are_nothing_else_is_raised(data: bytes) -> None:
    for read in (read_json, read_object):
        with suppress(Unreadable):
            read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"{}{}", b"\xff", b"\xed\xa0\x80", "{}".encode("utf-16"), b"NaN", b"-Infinity", b"[1e999]",
        b"1" * 301,
        b"1" * 100_000, b'{"a": 1, "a": 1}', b"[" * 100_000, b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
    ],
)  # fmt: skip
def test_what_would_cost_too_much_or_mean_two_things_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_json(data)


def test_the_limits_themselves_are_taken() -> None:
    assert read_json(b"1" * 300) == int("1" * 300)
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST)
    assert read_json(json.dumps("[" * 1_000).encode()) == "[" * 1_000
    assert read_json(b"\xef\xbb\xbf{}") == {}
    assert read_json(b"[12]", most=4) == [12]
    with pytest.raises(Unreadable, match="5 bytes"):
        read_json(b"[123]", most=4)


def test_a_reason_never_quotes_the_object() -> None:
    for data in (b'{"my secret": 1, "my secret": 2}', b"my secret", b'["my secret', b'{"a": "my secret"}'):
        with pytest.raises(Unreadable) as raised:
            typed(int, read_json(data))
        assert "secret" not in str(raised.value)


@dataclass
class Part:
    """A part of a record."""

    names: tuple[str, ...]


@dataclass
class Record:
    """A record with a field of each kind."""

    number: int
    at: datetime
    kind: Literal["a", "b"]
    pair: tuple[int, str]
    parts: tuple[Part, ...]
    ids: frozenset[str]
    meta: Mapping[str, int]
    anything: Any
    maybe: str | None = None
    share: float = 0.0
    yes: bool = False


GOOD: dict[str, Any] = {
    "number": 1, "at": "2026-02-20", "kind": "b", "pair": [1, "x"], "parts": [{"names": ["n"]}], "ids": ["i"],
    "meta": {"m": 1},
    "anything": [None], "maybe": None, "share": 1.5, "yes": True, "unknown": {},
}  # fmt: skip


def test_a_record_is_built_by_the_types_of_its_fields() -> None:
    made = build(Record, GOOD)
    assert (made.pair, made.parts, made.ids, made.kind, made.at.year) == ((1, "x"), (Part(("n",)),), {"i"}, "b", 2026)


WRONG = (None, True, 2, 1.5, "x", [], {}, [[]], [1], ["x"], [1, 2], {"a": "x"}, 1 << 64, "c", [{"names": [1]}])


@pytest.mark.parametrize("field", [name for name in GOOD if name not in ("anything", "unknown")])
def test_a_field_of_another_type_is_refused(field: str) -> None:
    """Of all these values a field accepts only those of its own type."""
    refused = 0
    for value in WRONG:
        try:
            made = getattr(build(Record, {**GOOD, field: value}), field)
        except Unreadable:
            refused += 1
        else:
            assert made == value or isinstance(made, tuple | frozenset)
    assert refused >= len(WRONG) - 4


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(Unreadable):
        build(Record, {name: value for name, value in GOOD.items() if name != "at"})


def test_a_field_that_may_be_odd_is_as_if_it_were_not_there() -> None:
    assert [count(value) for value in (3, -1, True, 1.5, "3", None, 1 << 63)] == [3, 0, 0, 0, 0, 0, 0]
    assert [text(value) for value in ("x", 1, None)] == ["x", "", ""]
    assert [moment(value) for value in ("9999-99-99", 5, None, "0001-01-01T00:00:00+14:00")] == [None] * 4
