"""Joining two versions of a text: no added line is lost, and no removed line comes back."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.text import merge as module
from livememfs.text.merge import merge

TEN = "".join(f"line {number}\n" for number in range(10)).encode()

lines = st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n", b"e\r\n", "é\n".encode()])
endings = st.sampled_from([b"", b"", b"z", b"a"])
texts = st.builds(lambda body, end: b"".join(body) + end, st.lists(lines, max_size=12), endings)
anything = st.one_of(texts, st.binary(max_size=20))
new_lines = st.lists(lines, min_size=1, max_size=4).map(b"".join)


def lines_of(data: bytes) -> list[bytes]:
    """The lines without their ends, so that a last line is equal to the same line further up."""
    return [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")] if data else []


def edited(base: Sequence[bytes], edits: dict[int, bytes | None], inserted: dict[int, bytes]) -> bytes:
    """`base` with lines replaced (None: removed) and others inserted before them."""
    result = []
    for number, line in enumerate(base):
        result += [inserted[number]] if number in inserted else []
        result += [line] if number not in edits else [edits[number] or b""]
    return b"".join(result)


@pytest.mark.parametrize(
    ("ours", "theirs", "merged", "repeated"),
    [
        (b"x\nsent\nmore\n", b"x\nsent\ntheirs\n", b"x\nsent\ntheirs\nmore\n", True),
        (b"x\nsent\n", b"x\nsent\ntheirs\n", b"x\nsent\ntheirs\n", True),
        (b"x\nours\n", b"x\nother\nours\n", b"x\nother\nours\nours\n", True),
        (b"x\nstart\n", b"x\nstart\n.\n", b"x\nstart\n.\nstart\n", False),
    ],
)
def test_what_was_sent_already_is_not_there_twice(ours: bytes, theirs: bytes, merged: bytes, repeated: bool) -> None:
    """Two writers who append the same line by themselves have it twice."""
    assert merge(b"x\n", ours, theirs, repeated=repeated) == merged


# --- what needs no comparison ----------------------------------------------------------------------------------------


@given(base=st.one_of(st.none(), anything), text=anything)
def test_equal_versions_are_the_result(base: bytes | None, text: bytes) -> None:
    assert merge(base, text, text) == text


@given(base=anything, changed=anything)
def test_a_side_that_changed_nothing_takes_the_other(base: bytes, changed: bytes) -> None:
    """Of any bytes, text or not, the empty file included."""
    assert merge(base, changed, base) == changed
    assert merge(base, base, changed) == changed


@given(ours=anything, theirs=anything)
def test_without_a_base_nothing_is_guessed(ours: bytes, theirs: bytes) -> None:
    assert merge(None, ours, theirs) == (ours if ours == theirs else None)


@pytest.mark.parametrize("foreign", [b"\xff", b"\0", "é".encode()[:1]], ids=["no text", "NUL", "half a letter"])
def test_what_is_no_text_is_kept_apart(foreign: bytes) -> None:
    text = TEN.splitlines(keepends=True)
    ours, theirs = edited(text, {1: b"ours\n"}, {}), edited(text, {8: b"theirs " + foreign + b"\n"}, {})

    assert merge(TEN, ours, theirs) is None
    assert merge(TEN, theirs, ours) is None
    assert merge(TEN, TEN + b"ours\n", TEN + foreign) is None
    assert merge(b"", foreign + b"1", foreign + b"2") is None


# --- both appended ---------------------------------------------------------------------------------------------------


@given(base=st.lists(lines, max_size=5).map(b"".join), ours=new_lines, theirs=new_lines, last=st.booleans())
def test_what_both_append_is_kept_from_both_theirs_first(base: bytes, ours: bytes, theirs: bytes, last: bool) -> None:
    if last:
        theirs = theirs + b"unfinished"
    merged = merge(base, base + ours, base + theirs)

    assert merged is not None
    if ours != theirs:
        assert merged.startswith(base + theirs)
        assert merged.endswith(ours)
        assert lines_of(merged) == lines_of(base) + lines_of(theirs) + lines_of(ours)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (b"", b"ours\n", b"theirs\n", b"theirs\nours\n"),
        (b"", b"ours", b"theirs", b"theirs\nours"),
        (b"a\n", b"a\nsame\n", b"a\nsame\n", b"a\nsame\n"),
        (b"a", b"a\nours", b"a\ntheirs", b"a\ntheirs\nours"),
        (b"a", b"a\nours", b"a\n", b"a\nours"),
        (b"a\r\n", b"a\r\nours\r\n", b"a\r\ntheirs", b"a\r\ntheirs\r\nours\r\n"),
        (b"a\r\nb", b"a\r\nb\r\nours", b"a\r\nb\r\ntheirs", b"a\r\nb\r\ntheirs\r\nours"),
    ],
)
def test_appended_lines_are_never_glued(base: bytes, ours: bytes, theirs: bytes, merged: bytes) -> None:
    assert merge(base, ours, theirs) == merged


def test_a_last_line_that_both_went_on_with_is_kept_apart() -> None:
    """`version=1` that became `version=12` and `version=13` is a changed line, not an appended one."""
    assert merge(b"version=1", b"version=12", b"version=13") is None
    assert merge(b"version=1", b"version=12", b"version=1\nnew\n") is None


# --- line by line ----------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_edits_far_from_each_other_are_all_made(data: st.DataObject) -> None:
    """Both sides edit every third line at most: the result has all edits, whichever side is ours."""
    base = [f"line {number}\n".encode() for number in range(data.draw(st.integers(6, 30)))]
    places = st.lists(st.integers(0, len(base) // 3 - 1), min_size=1, max_size=6, unique=True)
    free = set(data.draw(places))
    mine = set(data.draw(st.sets(st.sampled_from(sorted(free)))))
    sides = []
    for side, chosen in (("ours", mine), ("theirs", free - mine)):
        kinds = {3 * place: data.draw(st.sampled_from(["replace", "remove", "insert"])) for place in chosen}
        new = {place: f"{side} {place}\n".encode() for place in kinds}
        edits = {place: new[place] if kind == "replace" else None for place, kind in kinds.items() if kind != "insert"}
        sides.append((edits, {place: new[place] for place, kind in kinds.items() if kind == "insert"}))
    (our_edits, our_lines), (their_edits, their_lines) = sides
    ours, theirs = (edited(base, *side) for side in sides)

    expected = edited(base, our_edits | their_edits, our_lines | their_lines)

    assert merge(b"".join(base), ours, theirs) == expected
    assert merge(b"".join(base), theirs, ours) == expected


@given(base=texts, ours=texts, theirs=texts)
def test_no_added_line_is_lost_and_no_removed_line_comes_back(base: bytes, ours: bytes, theirs: bytes) -> None:
    """For any three texts, also with few lines that repeat often, where it is hard to match the lines."""
    merged = merge(base, ours, theirs)
    if merged is None:
        return
    old, result = lines_of(base), lines_of(merged)
    for side, other in ((lines_of(ours), lines_of(theirs)), (lines_of(theirs), lines_of(ours))):
        assert {line for line in side if line not in old} <= set(result)
        left = {line for line in old if line.strip() and other.count(line) <= old.count(line)}
        assert not {line for line in left if line not in side} & set(result)
    assert set(result) <= {*old, *lines_of(ours), *lines_of(theirs)}


@given(base=texts, ours=texts, theirs=texts)
def test_the_sides_are_treated_alike_and_the_result_is_always_the_same(base: bytes, ours: bytes, theirs: bytes) -> None:
    """Only the order of appended lines depends on which side is ours."""
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)

    assert one == merge(base, ours, theirs)
    assert sorted(lines_of(one or b"")) == sorted(lines_of(other or b""))
    assert (one is None) == (other is None)


def test_a_change_that_both_made_is_taken_once() -> None:
    theirs = b"both\n" + TEN.replace(b"line 8", b"eight")

    assert merge(TEN, b"both\n" + TEN, theirs) == theirs


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (TEN.replace(b"line 4", b"four"), TEN.replace(b"line 4", b"vier")),
        (TEN.replace(b"line 4", b"four"), TEN.replace(b"line 5", b"five")),
        (TEN.replace(b"line 4\n", b""), TEN.replace(b"line 4", b"four")),
        (TEN.replace(b"line 4\n", b"line 4\nours\n"), TEN.replace(b"line 4\n", b"line 4\ntheirs\n")),
        (TEN.replace(b"line 4\n", b"line 4\nours\n"), TEN.replace(b"line 5\n", b"")),
        (TEN.replace(b"line 4\n", b""), TEN.replace(b"line 4\n", b"") + b"line 4\n"),
        (b"", TEN + b"more\n"),
        (TEN.replace(b"\n", b"\r\n"), TEN.replace(b"line 4", b"four")),
    ],
    ids=[
        "one line", "neighbours", "removed and changed", "inserted at one place", "inserted before what was removed",
        "moved and removed", "emptied and appended to", "other line ends and a change",
    ],
)  # fmt: skip
def test_changes_that_touch_are_kept_apart(ours: bytes, theirs: bytes) -> None:
    assert merge(TEN, ours, theirs) is None
    assert merge(TEN, theirs, ours) is None


def test_line_ends_are_left_as_they_are() -> None:
    base = TEN.replace(b"\n", b"\r\n")

    merged = merge(base, base.replace(b"line 1", b"one"), base.replace(b"line 8", b"eight"))

    assert merged == base.replace(b"line 1", b"one").replace(b"line 8", b"eight")


def test_a_last_line_without_an_end_stays_the_last_line() -> None:
    base = TEN.removesuffix(b"\n")

    assert merge(base, b"first\n" + base, base + b" and more") == b"first\n" + base + b" and more"
    assert merge(base, b"first\n" + base, base + b"\nlast") == b"first\n" + base + b"\nlast"


# --- what it may cost ------------------------------------------------------------------------------------------------


def test_a_long_text_with_small_changes_is_merged() -> None:
    base = [f"{number}\n\n".encode() for number in range(module.MAX_LINES // 2 - 10)]

    ours = edited(base, {5000: b"ours\n\n"}, {4800: b"new\n\n"})
    theirs = edited(base, {5400: None}, {})

    assert merge(b"".join(base), ours, theirs) == edited(base, {5000: b"ours\n\n", 5400: None}, {4800: b"new\n\n"})


@pytest.mark.parametrize("size", [{"MAX_BYTES": 40}, {"MAX_LINES": 9}, {"MAX_MIDDLE_LINES": 5}, {"MAX_STEPS": 3}])
def test_over_each_limit_both_are_kept(size: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    versions = TEN.replace(b"line 1", b"one").replace(b"line 6", b"six"), TEN.replace(b"line 8", b"eight")
    assert merge(TEN, *versions) is not None

    for name, limit in size.items():
        monkeypatch.setattr(module, name, limit)

    assert merge(TEN, *versions) is None


def test_one_line_repeated_for_ever_is_given_up_soon() -> None:
    """difflib would take minutes for such a text."""
    base = b"x\n" * 2000
    ours = b"".join(b"x\n" if number % 2 else f"{number}\n".encode() for number in range(2000))

    started = time.process_time()

    assert merge(base, ours, b"y\n" + base) is None
    assert time.process_time() - started < 10
