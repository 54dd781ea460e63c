"""Joining two versions of an index: each line that a side added is there once, none that a side removed is."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.text.mergelines import merge_lines

line = st.sampled_from([b"- a\n", b"- b\n", b"- c\n", b"- d\r\n", b"\n", b"# x\n", b"\xff\n"])
texts = st.builds(lambda body, end: b"".join(body) + end, st.lists(line, max_size=10), st.sampled_from([b"", b"- z"]))


def counted(text: bytes) -> Counter[bytes]:
    return Counter(line.rstrip(b"\r\n") for line in text.splitlines(keepends=True))


@given(base=texts, ours=texts, theirs=texts)
def test_each_line_is_there_as_often_as_both_sides_want(base: bytes, ours: bytes, theirs: bytes) -> None:
    """What both add or both remove counts once; what one leaves alone is the other's to change."""
    merged, old, mine, other = counted(merge_lines(base, ours, theirs)), *map(counted, (base, ours, theirs))
    for text in old.keys() | mine.keys() | other.keys():
        by_us, by_them = mine[text] - old[text], other[text] - old[text]
        expected = {by_us, by_them} if 0 in (by_us, by_them) else {by_us + by_them}
        if by_us > 0 and by_them > 0:
            expected = {max(by_us, by_them)}
        elif by_us < 0 and by_them < 0:
            expected = {min(by_us, by_them)}
        assert merged[text] - old[text] in expected
        if by_us and not by_them:
            assert merged[text] == mine[text]


@given(base=texts, changed=texts)
def test_a_side_that_changed_nothing_takes_the_other_to_the_byte(base: bytes, changed: bytes) -> None:
    assert merge_lines(base, changed, base) == changed
    assert merge_lines(base, base, changed) == changed
    assert merge_lines(base, changed, changed) == changed


@given(ours=texts, theirs=texts)
def test_without_a_base_no_line_is_lost(ours: bytes, theirs: bytes) -> None:
    merged = counted(merge_lines(None, ours, theirs))
    assert merged == counted(ours) | counted(theirs)


@given(base=texts, ours=texts, theirs=texts)
def test_no_two_lines_become_one(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge_lines(base, ours, theirs)
    assert counted(merged).keys() <= counted(base + b"\n" + ours + b"\n" + theirs).keys()


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("# M\n- a\n", "# M\n- a\n- us\n", "# M\n- a\n- them\n", "# M\n- a\n- them\n- us\n"),
        ("# M\n- a", "# M\n- a\n- us", "# M\n- a\n- them", "# M\n- a\n- them\n- us"),
        ("- a\n- b\n", "- a\n", "- a\n- b\n- c\n", "- a\n- c\n"),
        ("- a\n- b\n", "- a\n- b2\n", "- a\n- b\n- c\n", "- a\n- c\n- b2\n"),
        ("- a\n- b\n- c\n", "- a\n- us\n- b\n- c\n", "- a\n- b\n- c\n- them\n", "- a\n- us\n- b\n- c\n- them\n"),
        ("- a\n", "- a\n- same\n", "- a\n- same\n- more\n", "- a\n- same\n- more\n"),
        ("", "- us\n", "- them\n", "- them\n- us\n"),
        ("- a\n", "", "- a\n- them\n", "- them\n"),
    ],
)
def test_examples(base: str, ours: str, theirs: str, merged: str) -> None:
    assert merge_lines(base.encode(), ours.encode(), theirs.encode()).decode() == merged
