"""Whether a statement corrects another: what the rules hold of, beyond any list of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.likeness.contradiction import told
from livememfs.recall.likeness.correction import Verdict, judged
from livememfs.recall.likeness.statement import read

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "pairs" / "pairs.jsonl").read_text().splitlines()]
any_text = st.text(alphabet=st.characters(exclude_categories=()))
texts = st.one_of(any_text, st.sampled_from(sorted({pair[side] for pair in PAIRS for side in "ab"})))


@given(texts, texts, st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)))
def test_any_two_texts_are_judged(older: str, newer: str, near: float | None) -> None:
    assert judged(older, newer, near) in Verdict


@given(texts)
def test_no_statement_corrects_itself(text: str) -> None:
    assert judged(text, text, None) is Verdict.DISTINCT


def test_of_the_pairs_of_two_facts_that_nothing_here_was_written_for_hardly_one_is_touched() -> None:
    apart = [pair for pair in PAIRS if not pair["same"]]
    touched = [pair for pair in apart if judged(pair["a"], pair["b"], None) is not Verdict.DISTINCT]
    assert len(touched) <= 0.02 * len(apart), touched


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Tom lives in Oslo", "Anna lives in Rome"),  # another subject
        ("Tom lives in Oslo", "Tom works in Rome"),  # another attribute
        ("Tom speaks Danish", "Tom speaks Dutch"),  # one of many
        ("Tom lived in Oslo in 2011", "Tom lives in Rome"),  # a time of its own
        ("Paul worked at Airbus in 2015", "Paul now works at Thales"),
        ("Ann was ill in March", "Ann is cured"),
        ("Claire s'est mariée en 2012", "Claire a divorcé en 2020"),
        ("Tom lives in Oslo", "Does Tom live in Rome?"),  # a question
        ("Tom lives in Oslo", "Tom wants to live in Rome"),  # a plan
        ("The crew travels by train", "The crew also travels by bus"),  # an addition
        ("We use Kafka for events", "We use Kafka for audits"),  # another purpose
        ("We meet with clients", "We meet with three suppliers"),  # not one at a time
        ("The default port is open", "The default port is documented"),  # how it is, not which
    ],
)
def test_what_differs_in_more_than_a_value_is_distinct(older: str, newer: str) -> None:
    assert judged(older, newer, None) is Verdict.DISTINCT


def test_another_value_of_one_attribute_of_one_subject_is_a_correction() -> None:
    assert judged("Tom lives in Oslo", "Tom lives in Rome", None) is Verdict.CORRECTS


def test_what_may_be_one_of_several_is_a_contradiction_and_hides_nothing() -> None:
    assert judged("Nathan is in the platform team", "Nathan is on parental leave", None) is not Verdict.CORRECTS


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The shop indents with tabs", "The shop indents with four spaces"),  # the value has a number with it
        ("The crew travels by train", "The crew travels by bus for now"),  # and later by train again
        ("The crew travels by train now", "The crew travels by bus now"),  # either may be meant as news
        ("The default branch is master", "The default branch is main"),  # a word, of what is called the one there is
        ("La branche principale est develop", "La branche principale est trunk"),
    ],
)
def test_another_value_that_is_no_name_of_what_there_is_one_of_is_a_contradiction(older: str, newer: str) -> None:
    assert judged(older, newer, None) is Verdict.CONTRADICTS


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The shop indents with tabs", "The shop indents with four spaces now"),
        ("The code base indents with tabs", "From now on the code base indents with four spaces"),
        ("We travel by train", "We travel by bus from now on"),
        ("The project indents with tabs", "From now on, the project indents with four spaces"),
        ("Le projet indente avec des tabulations", "Le projet indente désormais avec quatre espaces"),
        ("Le projet indente avec des tabulations", "Dorénavant, le projet indente avec quatre espaces"),
    ],
)
def test_what_says_itself_that_it_holds_from_now_on_replaces_what_it_would_contradict(older: str, newer: str) -> None:
    assert judged(older, newer, None) is Verdict.CORRECTS


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Nathan is in the platform team", "Nathan is on parental leave now"),
        ("Tom is in Paris", "Tom is in a hurry now"),
        ("The team indents with tabs", "The team works with Anna now"),
    ],
)
def test_a_word_for_now_replaces_nothing_of_another_kind(older: str, newer: str) -> None:
    for near in (None, 0.6, 0.9):
        assert judged(older, newer, near) is not Verdict.CORRECTS


def test_a_pair_has_the_days_and_two_of_one_day_their_times() -> None:
    noon, day = 1_771_588_800.0, 86_400.0  # 2026-02-20
    assert told("tabs.", noon, "spaces", noon + day) == "2026-02-20: tabs; 2026-02-21: spaces"
    assert told("tabs.", noon, "spaces", noon + 3_720) == "2026-02-20 12:00: tabs; 2026-02-20 13:02: spaces"


def test_texts_about_two_things_are_distinct_whatever_their_words() -> None:
    assert judged("Tom lives in Oslo", "Tom lives in Rome", 0.1) is Verdict.DISTINCT


def test_the_subject_is_what_stands_before_the_verb() -> None:
    assert [word.text for word in read("The billing service of Acme runs on Debian").subject] == [
        "billing",
        "service",
        "acme",
    ]
    assert [word.text for word in read("La voiture de Jeanne ne roule plus").subject] == ["voiture", "jeanne"]
