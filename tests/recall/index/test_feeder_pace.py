"""How many objects are read side by side when many are to be indexed."""

from __future__ import annotations

import pytest

from livememfs.recall.index.feeder import APPLIED_AT_ONCE, MOST_AT_ONCE, READ_AT_ONCE, _Pace


def paced(seconds_of_one: float, seconds_of_all: float, batches: int = 20) -> list[int]:
    """What is chosen where one object takes the thread so long, and waits so long for the bucket."""
    pace, chosen = _Pace(), []
    for _ in range(batches):
        chosen.append(pace.at_once)
        pace.took(APPLIED_AT_ONCE, APPLIED_AT_ONCE * max(seconds_of_one, seconds_of_all / pace.at_once))
    return chosen


def test_where_the_bucket_is_far_more_are_read_at_once() -> None:
    assert paced(0.001, 0.030)[-1] == MOST_AT_ONCE


def test_where_the_bucket_is_near_more_would_only_be_in_the_way_of_files() -> None:
    assert paced(0.001, 0.002)[2:] == [READ_AT_ONCE] * 18


@pytest.mark.parametrize("waits", [0.006, 0.010])
def test_what_is_chosen_stays(waits: float) -> None:
    assert len(set(paced(0.001, waits)[4:])) == 1


def test_few_objects_say_nothing() -> None:
    pace = _Pace()
    pace.took(3, 0.000_1)
    assert pace.at_once == READ_AT_ONCE
