"""`scripts/bench scale`: what it calls a look, and the arithmetic of its table. Nothing is mounted here."""

from __future__ import annotations

from collections import Counter

import pytest
from benchlib.scaling import Used, is_look, row


@pytest.mark.parametrize(
    ("verb", "target", "look"),
    [
        ("list", "/b?list-type=2&prefix=s%2F_&max-keys=1000", True),
        ("list", "/b?list-type=2&prefix=s%2Flive%2F&start-after=s%2Flive%2F2026", True),
        ("list", "/b?list-type=2&prefix=s%2Flive%2F&delimiter=%2F", False),
        ("list", "/b?list-type=2&prefix=s%2F_index%2F", False),
        ("get", "/b/s/_meta.json", False),
    ],
)
def test_looks_are_told_from_listings(verb: str, target: str, look: bool) -> None:
    assert is_look(verb, target) is look


def test_a_line_is_the_mean_of_its_hosts_for_one_operation() -> None:
    first = Used(4, Counter(put=2, get=4), 400, 800, 0.04)
    second = Used(0, Counter(get=4), 0, 400, 0.0)

    cells = row("x", "each of 2", [first, second], 2)
    assert cells == ("x", "each of 2", "1", "get 2, put 0.5", "100", "300", "10", "")
    assert row("x", "h", [Used()], 1)[3] == "none"
