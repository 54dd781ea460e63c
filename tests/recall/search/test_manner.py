"""How a text speaks is told by its words: standing instructions are thought of where they may apply, and so on."""

from __future__ import annotations

from pathlib import Path

import index_world
import numpy as np
import pytest
from index_world import read

from livememfs.recall.index.local import Index
from livememfs.recall.index.manner import Manner, manner_of, standing_labels
from livememfs.recall.index.reader import records_in
from livememfs.recall.search.hints import hints_in
from livememfs.recall.search.query import Query
from livememfs.recall.search.ranking import MOST_STANDING, Ranking, fitting_best, search

QUESTION = np.array([1, 0, 0], np.float32)
NEAR, FAR = np.array([0.5, 0.8, 0], np.float32), np.array([0, 0, 1], np.float32)
RULE = "Always give the licence when I ask about libraries"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Always show code with types when I ask how to do something.", "instruction"),
        ("Please never push to main without a review", "instruction"),
        ("From now on, answer in French.", "instruction"),
        ("Give versions whenever I ask about libraries", "instruction"),
        ("Don't ever touch the vendored files", "instruction"),
        ("Désormais, réponds en anglais", "instruction"),
        ("Mets les versions quand je te demande une bibliothèque", "instruction"),
        ("I'm new here, and I'd rather use pnpm", "preference"),
        ("We usually prefer small commits", "preference"),
        ("Je préfère les tabulations", "preference"),
        ("They always cheer me on", ""),
        ("The build never ended before I fixed the cache", ""),
        ("After the incident: no deploy on Fridays, and from now on a canary first", ""),
        ("The preferred port is 8080", ""),
        (f"{'A long report. ' * 60} I prefer tabs.", ""),
        ("", ""),
    ],
)
def test_what_holds_for_questions_to_come_is_told_from_what_was_said_once(text: str, kind: str) -> None:
    assert list(standing_labels(text)) == ([("standing", kind)] if kind else [])


@pytest.mark.parametrize(
    "key", ["s/live/20260101T000000_ann_todo_0123abcd.md", "s/memories/20260101T000000_fact_0123abcd.md"]
)
def test_notes_and_memories_have_the_label(key: str) -> None:
    [record] = records_in(key, b"---\ntype: fact\n---\nI prefer tabs\n", "1", 0)
    assert ("standing", "preference") in record.labels


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Six notes with the question's words, a rule and a preference with none of them, a rule of something else."""
    index = Index(tmp_path, "hashed")
    facts = [index_world.note(f"fact{n}", f"our parser for yaml number {n}", n) for n in range(6)]
    holding = [("rule", RULE), ("taste", "I prefer few dependencies"), ("other", "Always wear a hat")]
    rules = [index_world.note(name, text, 9, labels=tuple(standing_labels(text))) for name, text in holding]
    index.apply((), [read(one) for one in (*facts, *rules)])
    waiting = index.unembedded(20)
    vectors = [FAR if "hat" in text.own else NEAR for text in waiting]
    index.take_vectors([text.meaning for text in waiting], np.array(vectors))
    index.expect(np.zeros(3, np.float32))
    return index


def found(index: Index, asked: str, ranking: Ranking | None = None) -> list[str]:
    ranking = ranking or Ranking(floor=False)
    return [hit.record.title for hit in search(index, Query(text=asked), QUESTION, ("space",), ranking=ranking).hits]


def told(index: Index, message: str) -> list[str]:
    return [record.title for _, record, _ in fitting_best(index, message, QUESTION, ("space",), {"live": 20})]


def test_they_come_behind_a_few_hits_that_fit_better_and_say_why(index: Index) -> None:
    titles = found(index, "a parser for yaml")
    assert not {"rule", "taste"} & set(titles[:3])
    assert {"rule", "taste"} <= set(titles[:7])
    hits = search(index, Query(text="a parser for yaml"), QUESTION, ("space",), ranking=Ranking(floor=False)).hits
    assert {hit.record.title for hit in hits if "standing" in hit.reasons} == {"rule", "taste"}
    assert {"rule", "taste"} <= set(found(index, "a parser for yaml", Ranking(floor=False, standing=0))[-3:])


def test_they_come_first_with_a_message_even_if_nothing_else_fits(index: Index) -> None:
    assert set(told(index, "add a parser for yaml")[:2]) == {"rule", "taste"}
    assert set(told(index, "draw me a sheep")) == {"rule", "taste"}


@pytest.mark.parametrize("message", ["when did we add a parser?", "combien de bibliothèques", "what has ann said"])
def test_a_question_about_what_was_is_in_no_scope(index: Index, message: str) -> None:
    assert "standing" not in {
        reason
        for hit in search(index, Query(text=message), QUESTION, ("space",), ranking=Ranking(floor=False)).hits
        for reason in hit.reasons
    }


@pytest.mark.parametrize(
    ("message", "back"),
    [
        ("write the orders service", False),
        ("sort them in order to compare", False),
        ("when I deploy, what should I check?", False),
        ("quand je déploie, que vérifier ?", False),
        ("when is the deadline?", True),
        ("list the order in which I asked", True),
        ("depuis quand est-ce ainsi", True),
    ],
)
def test_what_looks_back_is_told_from_what_is_to_be_done(message: str, back: bool) -> None:
    assert hints_in(message, ()).looks_back is back


def test_many_rules_take_no_more_than_their_share_of_a_message(index: Index) -> None:
    texts = [f"Always check number {n}" for n in range(30)]
    many = [index_world.note(f"many{n}", text, 9, labels=tuple(standing_labels(text))) for n, text in enumerate(texts)]
    index.apply((), [read(one) for one in many])
    waiting = index.unembedded(50)
    index.take_vectors([text.meaning for text in waiting], np.tile(NEAR, (len(waiting), 1)))
    assert len(told(index, "draw me a sheep")) == MOST_STANDING


def test_who_asks_when_something_is_or_was_hears_how_dates_are_to_be_written(index: Index) -> None:
    text = "Always write dates as 2026-11-29 when I ask about deadlines"
    index.apply((), [read(index_world.note("dates", text, 9, labels=tuple(standing_labels(text))))])

    def standing(question: str) -> set[str]:
        hits = search(index, Query(text=question), QUESTION, ("space",), ranking=Ranking(floor=False)).hits
        return {hit.record.title for hit in hits if "standing" in hit.reasons}

    for question in ("When was the parser added?", "quand sort la version"):
        assert standing(question) == {"dates"}, question
    assert "dates" in standing("what date is the release")
    assert not standing("what was the first version of the parser")


WISH, ANSWER, FACT = (
    "I want the parser to have a cache",
    "You want the parser to have a cache",
    "The parser has a cache",
)


def test_a_question_about_whoever_asks_finds_what_was_told_of_oneself_before_what_was_answered(tmp_path: Path) -> None:
    index = Index(tmp_path, "")
    index.apply(
        (),
        [
            read(index_world.note(text.partition(" ")[0], text, n * 9_999))
            for n, text in enumerate((WISH, FACT, ANSWER))
        ],
    )
    plain = Ranking(floor=False, writer=1.0, reader=1.0)

    def titles(question: str, ranking: Ranking | None = None) -> list[str]:
        asked = Query(text=question)
        return [hit.record.title for hit in search(index, asked, None, ("space",), ranking=ranking).hits]

    asked = "which cache did I want for the parser"
    assert titles(asked).index("I") < titles(asked).index("You")
    assert titles(asked, plain).index("You") < titles(asked, plain).index("I")
    for asked in ("give me a summary of what I want of the parser's cache", "remind me which cache the parser has"):
        assert titles(asked) == titles(asked, plain)


@pytest.mark.parametrize(
    ("text", "manner"),
    [
        ("I chose tabs, as you said", Manner.OF_WRITER),
        ("You can use your own key; I would", Manner.TO_READER),
        ("We chose S3", Manner(0)),
        ("Can you fix my test?", Manner.OF_WRITER | Manner.ASKS),
        ("Je préfère vos outils", Manner.OF_WRITER),
        ("Voici votre plan", Manner.TO_READER),
    ],
)
def test_how_a_text_speaks_is_told_by_its_pronouns(text: str, manner: Manner) -> None:
    assert manner_of(text) == manner
