"""A segment reads back as it was written, has one name wherever it is written, and nothing else is taken for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.index.segments import BadSegment, name_of, parse, render

MODEL = "a model/with any name, même ça"
VECTORS = {bytes([number] * 16): bytes(range(number, number + 8)) for number in range(1, 6)}


def test_the_same_vectors_are_the_same_object_in_whatever_order_they_come() -> None:
    backwards = dict(sorted(VECTORS.items(), reverse=True))

    assert render(MODEL, backwards) == render(MODEL, VECTORS)


@given(st.dictionaries(st.binary(min_size=16, max_size=16), st.binary(min_size=3, max_size=3), min_size=1, max_size=20))
def test_it_reads_back(vectors: dict[bytes, bytes]) -> None:
    data = render(MODEL, vectors)

    meanings, rows = parse(name_of(data), data, MODEL)

    assert {meaning: row.tobytes() for meaning, row in zip(meanings, rows, strict=True)} == vectors
    assert rows.dtype == np.int8


DATA = render(MODEL, VECTORS)


@pytest.mark.parametrize(
    "data",
    [
        b"", DATA[:-1], DATA[:40], DATA + b"x", DATA[:-1] + b"\xff", b"\n" + DATA, b"{}\n" + DATA, b"[]\n", b"1\n",
        b"\xff\xfe",
    ],
)  # fmt: skip
def test_bytes_that_were_cut_off_or_changed_are_told_from_the_name(data: bytes) -> None:
    with pytest.raises(BadSegment):
        parse(name_of(DATA), data, MODEL)


def changed(**fields: object) -> bytes:
    """The same segment with another header, rightly named."""
    head, _, body = DATA.partition(b"\n")
    return json.dumps({**json.loads(head), **fields}).encode() + b"\n" + body


@pytest.mark.parametrize(
    "data",
    [
        changed(model="another"), changed(format=2), changed(dim=0), changed(dim=-8), changed(dim=4),
        changed(dim=10**9), changed(count=0), changed(count=4), changed(count="many"), changed(count=None),
        b"not JSON\n", b"[1, 2]\n" + DATA, DATA.replace(b"\n", b" ", 1), b"",
    ],
)  # fmt: skip
def test_what_is_rightly_named_and_still_no_segment_of_this_model_is_refused(data: bytes) -> None:
    with pytest.raises(BadSegment):
        parse(name_of(data), data, MODEL)
