"""The French and English test set is what its README says: consistent, varied, complete where that can be checked."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from livememfs.recall.index.words import content_words
from livememfs.recall.search.query import Query, parse
from livememfs.records.names import check_space_name
from livememfs.records.note import CATEGORIES
from livememfs.text.times import iso, parse_iso

CORPUS = Path(__file__).parent / "corpus"
NOW = datetime(2026, 4, 1, tzinfo=UTC)
AT_LEAST = {
    "paraphrase": 15,
    "accents": 15,
    "mixed": 15,
    "identifier": 15,
    "date": 15,
    "file": 15,
    "keyword": 8,
    "negation": 8,
    "multi": 8,
}


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of one file."""
    return [json.loads(line) for line in (CORPUS / name).read_text().splitlines()]


NOTES = lines("notes.jsonl")
QUESTIONS = lines("questions.jsonl")
BY_ID = {note["id"]: note for note in NOTES}


def of_kind(*kinds: str) -> list[Any]:
    """The questions of some kinds, as parameters of a test."""
    return [pytest.param(question, id=question["id"]) for question in QUESTIONS if question["kind"] in kinds]


def words(text: str) -> set[str]:
    """Content words of four letters and more, accents folded."""
    return {word for word in content_words(text) if len(word) >= 4}


def admits(query: Query, note: dict[str, Any]) -> bool:
    """Whether a note passes the filters of a query."""
    asked = {"type": note["category"], "space": note["space"], "agent": note["agent"]}
    moment = parse_iso(note["date"])
    return (
        all(not query.wanted(key) or value in query.wanted(key) for key, value in asked.items())
        and (query.after is None or moment >= query.after)
        and (query.before is None or moment < query.before)
        and (not query.wanted("file") or any(name in note["text"] for name in query.wanted("file")))
        and not any(word.casefold() in note["text"].casefold() for word in query.without)
    )


# --- notes -------------------------------------------------------------------------------------------------------


def test_notes_are_many_and_in_both_languages() -> None:
    languages = Counter(note["lang"] for note in NOTES)

    assert len(NOTES) >= 400
    assert set(languages) == {"fr", "en", "mixed"}
    assert min(languages["fr"], languages["en"]) >= 0.4 * len(NOTES)


def test_most_notes_are_of_usual_length_and_some_are_very_short_or_long() -> None:
    lengths = [len(note["text"].split()) for note in NOTES]

    assert sum(40 <= length <= 90 for length in lengths) > 0.8 * len(NOTES)
    assert min(lengths) < 15
    assert max(lengths) > 120


def test_each_note_has_its_own_id_and_text() -> None:
    assert [note["id"] for note in NOTES] == [f"n{number:03}" for number in range(1, len(NOTES) + 1)]
    assert len({note["text"] for note in NOTES}) == len(NOTES)


@pytest.mark.parametrize("note", [pytest.param(note, id=note["id"]) for note in NOTES])
def test_a_note_is_well_formed(note: dict[str, Any]) -> None:
    assert list(note) == ["id", "space", "date", "agent", "category", "lang", "text"]
    assert check_space_name(note["space"])
    assert iso(parse_iso(note["date"])) == note["date"]
    assert note["category"] in {*CATEGORIES, "preference"}
    assert note["agent"].strip()
    assert note["text"] == note["text"].strip()
    assert unicodedata.is_normalized("NFC", note["text"])


def test_notes_are_spread_over_a_year() -> None:
    moments = [parse_iso(note["date"]) for note in NOTES]

    assert moments == sorted(moments)
    assert timedelta(days=350) < moments[-1] - moments[0] < timedelta(days=366)
    assert len({(moment.year, moment.month) for moment in moments}) == 12
    assert moments[-1] < NOW


# --- questions ---------------------------------------------------------------------------------------------------


def test_questions_are_many_of_each_kind_and_in_both_languages() -> None:
    kinds = Counter(question["kind"] for question in QUESTIONS)
    languages = Counter(question["lang"] for question in QUESTIONS)

    assert len(QUESTIONS) >= 120
    assert set(kinds) == set(AT_LEAST)
    assert {kind: kinds[kind] for kind in AT_LEAST if kinds[kind] < AT_LEAST[kind]} == {}
    assert set(languages) == {"fr", "en"}
    assert min(languages.values()) >= 0.4 * len(QUESTIONS)


def test_each_question_has_its_own_id_and_words() -> None:
    assert [question["id"] for question in QUESTIONS] == [f"q{number:03}" for number in range(1, len(QUESTIONS) + 1)]
    assert len({question["query"] for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", of_kind(*AT_LEAST))
def test_a_question_is_well_formed_and_its_notes_pass_its_own_filters(question: dict[str, Any]) -> None:
    query = parse(question["query"], now=NOW)

    assert list(question) == ["id", "kind", "lang", "query", "relevant", "comment"]
    assert question["relevant"] == sorted(set(question["relevant"]))
    assert question["relevant"]
    assert [name for name in question["relevant"] if not admits(query, BY_ID[name])] == []
    assert query.doubts == ()


@pytest.mark.parametrize("question", [item for item in QUESTIONS if parse(item["query"], now=NOW).is_filter_only])
def test_filters_alone_are_answered_by_all_that_pass_them(question: dict[str, Any]) -> None:
    query = parse(question["query"], now=NOW)

    assert question["relevant"] == [note["id"] for note in NOTES if admits(query, note)]


@pytest.mark.parametrize("question", of_kind("paraphrase"))
def test_a_paraphrase_shares_hardly_a_word_with_its_notes(question: dict[str, Any]) -> None:
    shared = {name: words(question["query"]) & words(BY_ID[name]["text"]) for name in question["relevant"]}

    assert {name: both for name, both in shared.items() if len(both) > 2} == {}


@pytest.mark.parametrize("question", of_kind("accents"))
def test_a_question_without_accents_is_about_a_note_that_has_them(question: dict[str, Any]) -> None:
    assert question["query"].isascii()
    assert all(words(question["query"]) & words(BY_ID[name]["text"]) for name in question["relevant"])
    assert not any(BY_ID[name]["text"].isascii() for name in question["relevant"])


@pytest.mark.parametrize("question", of_kind("mixed"))
def test_a_mixed_question_is_in_another_language_than_its_notes(question: dict[str, Any]) -> None:
    assert question["lang"] not in {BY_ID[name]["lang"] for name in question["relevant"]}


@pytest.mark.parametrize("question", of_kind("identifier", "file"))
def test_what_is_asked_by_name_stands_in_its_notes_and_nowhere_else(question: dict[str, Any]) -> None:
    query = parse(question["query"], now=NOW)
    names = [*question["query"].split(), *query.phrases, *query.wanted("file")]
    holders = [[note["id"] for note in NOTES if name in note["text"]] for name in names]

    assert question["relevant"] in holders


@pytest.mark.parametrize("question", of_kind("multi"))
def test_a_question_for_several_notes_has_two_or_three(question: dict[str, Any]) -> None:
    assert len(question["relevant"]) in (2, 3)
