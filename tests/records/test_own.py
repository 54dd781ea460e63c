"""Our own words: every block of context that we gave is taken out again, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.records.own import CLOSE, HEAD, LEFT_OUT, OPEN, basic, value_without_own, without_own, wrapped

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)))
foreign = texts.filter(lambda text: OPEN not in text and HEAD not in text)
marked = st.lists(st.sampled_from([OPEN, CLOSE, HEAD, "\n", "- x", "What you know:", "text"]) | texts).map("".join)
RECALLED = f"{HEAD}\nWhat you know:\n- fact: we chose PostgreSQL\n- the cat is called Felix\nGoals:\n- learn French\n"


@given(foreign)
@example("")
@example(CLOSE)
@example("<!-- livememfs -->\n- x\nWhat you know:\n")
@example("[Memory: of a machine]\n- x\n")
def test_a_text_without_our_marks_is_not_touched(text: str) -> None:
    assert without_own(text) == text


@given(foreign, marked, foreign)
@example("before\n", f"a\n{CLOSE}\nb", "after")
@example("", f"{OPEN} in itself", "")
@example("", "<!-- /livememfs <!-- /livememfs context -->context -->", "rest")
def test_a_wrapped_block_is_taken_out_whole_whatever_stands_in_it(before: str, inside: str, after: str) -> None:
    assert without_own(before + wrapped(inside) + after) == f"{before}{LEFT_OUT}\n{after}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a\n{OPEN}\nx\n{CLOSE}\nb\n", f"a\n{LEFT_OUT}\nb\n"),
        (f"a {OPEN}x{CLOSE} b", f"a {LEFT_OUT}\n b"),
        (f"a\n{OPEN}\nx\ny", f"a\n{LEFT_OUT}\n"),
        (f"a\n{OPEN}", f"a\n{LEFT_OUT}\n"),
        (f"{OPEN}1{CLOSE}\nb\n{OPEN}2{CLOSE}\nc", f"{LEFT_OUT}\nb\n{LEFT_OUT}\nc"),
        (f"{OPEN}\n{OPEN}\nx\n{CLOSE}\nb", f"{LEFT_OUT}\nb"),
    ],
    ids=["lines", "in a line", "never closed", "the mark alone", "two", "opened twice"],
)
def test_closed_and_unclosed_blocks_are_taken_out(text: str, left: str) -> None:
    assert without_own(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (RECALLED, f"{LEFT_OUT}\n"),
        (f"a\n{RECALLED}\nMy own words.\n", f"a\n{LEFT_OUT}\n\nMy own words.\n"),
        (f"{RECALLED}Then I said: it is so\nand more", f"{LEFT_OUT}\nThen I said: it is so\nand more"),
        (RECALLED.rstrip("\n"), f"{LEFT_OUT}\n"),
        (f"{wrapped(RECALLED)}b", f"{LEFT_OUT}\nb"),
    ],
    ids=["alone", "with a blank line after", "with words after", "without its last line end", "wrapped as well"],
)
def test_what_recall_answered_is_taken_out_and_what_follows_stays(text: str, left: str) -> None:
    assert without_own(text) == left


def test_the_head_of_recall_within_a_line_is_no_block() -> None:
    text = f"grep finds '{HEAD}' in own.py"

    assert without_own(text) == text


@given(marked)
def test_taking_out_leaves_nothing_to_take_out(text: str) -> None:
    once = without_own(text)

    assert OPEN not in once
    assert without_own(once) == once


def test_values_lose_blocks_in_every_text_and_keep_their_shape() -> None:
    block = wrapped("secret")
    value = {"a": [block, {"b": f"x {block}"}], "c": 7, "d": None, "e": "plain"}

    assert value_without_own(value) == {
        "a": [f"{LEFT_OUT}\n", {"b": f"x {LEFT_OUT}\n"}],
        "c": 7,
        "d": None,
        "e": "plain",
    }


@given(st.recursive(st.none() | st.integers() | foreign, lambda one: st.lists(one) | st.dictionaries(foreign, one)))
def test_values_without_our_marks_are_not_touched(value: Any) -> None:
    assert value_without_own(value) == value


@given(st.text(alphabet=st.characters()))
@example("\U0001f41b \ud83d \udc1b x")
def test_only_characters_of_the_basic_plane_are_left(text: str) -> None:
    found = basic(text)

    assert len(found) == len(text)
    for was, now in zip(text, found, strict=True):
        whole = was <= "\uffff" and not "\ud800" <= was <= "\udfff"
        assert now == (was if whole else "\ufffd")
