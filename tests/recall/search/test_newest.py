"""Of what says the same of the same the newest comes first; all else keeps its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import index_world
import numpy as np
import pytest
from index_world import read

from livememfs.recall.index.local import Index
from livememfs.recall.search.newest import Dated, asks_for_then, in_time
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import Ranking, search

PRIOR = np.zeros(2, np.float32)
SPRINT, LUNCH = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
NOW_ASKED, THEN_ASKED = "What is the deadline of the sprint?", "What was the deadline of the sprint before?"


def said(text: str, day: int, vector: np.ndarray = SPRINT, author: str = "ann", **link: object) -> Dated:
    return Dated(text, author, day * 86_400, vector, **link)  # type: ignore[arg-type]


LATER = "We talked with the client, who wants the deadline of the sprint to move by 8 days, Bob agreed"
OLD = said("The deadline of the sprint is the 12th", 1)
NEW = said("The deadline of the sprint is the 20th", 2)


@pytest.mark.parametrize(
    ("question", "order"),
    [
        (NOW_ASKED, [1, 0]),
        (THEN_ASKED, [0, 1]),
        ("Quelle est la deadline du sprint ?", [1, 0]),
        ("Quelle était la deadline du sprint avant ?", [0, 1]),
        ("What used to be the deadline of the sprint?", [0, 1]),
    ],
)
def test_the_value_that_holds_now_is_first_and_the_one_that_held_then_where_that_is_asked(
    question: str, order: list[int]
) -> None:
    assert in_time(question, [OLD, NEW], PRIOR) == order
    assert in_time(question, [NEW, OLD], PRIOR) == [1 - place for place in order]


def test_a_filter_by_an_end_turns_it_round() -> None:
    assert in_time(NOW_ASKED, [NEW, OLD], PRIOR, then=True) == [1, 0]


@pytest.mark.parametrize(
    "other",
    [
        said("The deadline of the sprint is the 20th", 2, LUNCH),
        said(LATER, 2, author="bob"),
        said("The deadline of the sprint is unknown to most people here", 2),
        said("Sprint 3 has 12 stories", 2),
    ],
    ids=["another subject by meaning", "another author", "no value", "other words of the question"],
)
def test_what_says_something_else_keeps_its_place_however_new(other: Dated) -> None:
    assert in_time(NOW_ASKED, [OLD, other], PRIOR) == [0, 1]


def test_a_question_about_what_happened_keeps_the_order_of_the_ranking() -> None:
    later = said(LATER, 2)
    assert in_time(NOW_ASKED, [OLD, later], PRIOR) == [1, 0]
    assert in_time("When did the sprint miss the deadline?", [OLD, later], PRIOR) == [0, 1]


def test_hits_between_two_of_one_subject_keep_their_place() -> None:
    between = said("Lunch is at 12", 5, LUNCH)
    assert in_time(NOW_ASKED, [OLD, between, NEW], PRIOR) == [2, 1, 0]


@pytest.mark.parametrize("relation", ["updates", "contradicts"])
def test_a_link_tells_that_one_replaces_the_other_whatever_is_asked(relation: str) -> None:
    old, new = said("tabs", 1, LUNCH, id="a"), said("spaces", 2, id="b", links=((relation, "a"),))
    assert in_time("indentation", [old, new], PRIOR) == [1, 0]
    other = said("spaces", 2, id="b", links=(("related_to", "a"),))
    assert in_time("indentation", [old, other], PRIOR) == [0, 1]


def test_a_correction_is_first_for_any_question() -> None:
    old, new = said("Anna lives in Paris", 1), said("Anna lives in Lyon now", 2)
    assert in_time("Anna lives", [old, new], PRIOR) == [1, 0]


def test_without_vectors_or_words_the_order_stays() -> None:
    assert in_time(NOW_ASKED, [OLD, NEW], None) == [0, 1]
    assert in_time("what is it", [OLD, NEW], PRIOR) == [0, 1]
    assert in_time(NOW_ASKED, [], PRIOR) == []


def test_before_is_no_wish_for_then_inside_a_word() -> None:
    assert asks_for_then("what was it before")
    assert not asks_for_then("avantages of beforehand planning")


def test_a_search_shows_the_newest_first_with_the_scores_of_the_places(tmp_path: Path) -> None:
    """And before a date, the oldest."""
    index = Index(tmp_path, "hashed")
    note, first = partial(index_world.note, space="here", agent="ann"), datetime(2026, 1, 1, tzinfo=UTC)
    old = "sprint deadline, sprint deadline: the 12th"
    texts = {"old": old, "new": "deadline of our sprint, says the client who pays, is the 20th"}
    notes = [note(name, text, first + timedelta(days=day)) for day, (name, text) in enumerate(texts.items())]
    index.apply((), [read(one) for one in notes])
    waiting = index.unembedded(10)
    index.take_vectors([text.meaning for text in waiting], np.tile(SPRINT, (len(waiting), 1)))
    index.expect(np.array([0, -0.1], np.float32))

    def found(typed: str, *, newest: bool = True) -> list[tuple[str, float]]:
        query = parse(typed, now=first + timedelta(days=9))
        hits = search(index, query, SPRINT, ("here",), ranking=Ranking(newest=newest)).hits
        return [(hit.record.title, hit.score) for hit in hits]

    plain = found("what is the sprint deadline", newest=False)
    assert [title for title, _ in plain] == ["old", "new"]
    assert found("what is the sprint deadline") == [("new", plain[0][1]), ("old", plain[1][1])]
    assert [title for title, _ in found("what is the sprint deadline before:2026-02")] == ["old", "new"]
    index.close()
