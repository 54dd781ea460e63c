"""Which JSON is worth parsing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from livememfs.serve.shape import DEEPEST, MOST_PARTS, WINDOW, fits

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


async def test_a_text_may_be_of_any_length_and_hold_anything() -> None:
    for text in ("x" * (1 << 20), '\n\\"[{' * 200_000, '"' * WINDOW, "\\" * (WINDOW + 1), "[" * 100_000):
        assert await fits(json.dumps({"params": {"arguments": {"content": text}}}).encode())


@pytest.mark.parametrize("size", range(WINDOW - 4, WINDOW + 4))
async def test_a_text_ends_where_it_ends_however_it_is_cut(size: int) -> None:
    """What is looked at in one go may end between a backslash and what it stands before."""
    inside = json.dumps({"a": "x" * size + '\\"' * 3}).encode()

    assert await fits(inside + b"," * (MOST_PARTS - 10))
    assert not await fits(inside + b"," * MOST_PARTS)


@pytest.mark.parametrize("body", [b"[" * (DEEPEST + 1), b'{"a":' * (DEEPEST + 1), b"1," * 6_000, b'"",' * 6_000])
async def test_what_is_deep_or_in_many_parts_is_not(body: bytes) -> None:
    assert not await fits(body)
    assert not await fits(body + b" " * (1 << 20))


@pytest.mark.parametrize("body", [b"", b'"', b'"\\', b"]" * 100, b"\xff\xfe", b'{"a":"' + b"\\" * 99_999])
async def test_what_is_no_json_is_for_the_parser_to_say(body: bytes) -> None:
    assert await fits(body)


@given(VALUES)
def test_what_a_client_sends_fits(value: Any) -> None:
    assert trio.run(fits, json.dumps(value).encode())
