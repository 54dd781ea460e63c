"""What a text costs, and what of an answer there is room for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records.size import Budget, first_lines, lines_of, tokens


@pytest.mark.parametrize(("text", "cost"), [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("été", 1), ("東京", 2)])
def test_letters_that_are_not_latin_cost_a_token_each(text: str, cost: int) -> None:
    assert tokens(text) == cost


@given(st.text(alphabet=st.sampled_from("ab\n\r\f\x85\u2028")))
def test_lines_are_the_text_and_end_with_a_line_feed_alone(text: str) -> None:
    lines = lines_of(text)

    assert "".join(lines) == text
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines[:-1])
    assert all(lines)


@given(st.lists(st.text(min_size=1, max_size=40), max_size=20), st.integers(-5, 60))
def test_the_first_lines_keep_to_a_budget_and_one_is_always_shown(lines: list[str], room: int) -> None:
    count = first_lines(lines, Budget(room))
    cost = sum(map(tokens, lines[:count]))

    assert count >= min(1, len(lines))
    assert cost <= room or count == 1
    assert count == len(lines) or cost + tokens(lines[count]) > room


def test_what_does_not_fit_leaves_room_for_what_does() -> None:
    budget = Budget(3)

    assert [budget.takes("x" * 20), budget.takes("four", "four"), budget.takes("four"), budget.takes("a")] == [
        False, True, True, False,
    ]  # fmt: skip
