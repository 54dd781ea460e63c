"""A question that nothing here answers finds nothing: the corpus beside this file, with the built-in model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from corpus_vectors import KeptVectors
from test_recall_corpus import LONG, NOW, indexed, lines, understand

from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.index.local import Index
from livememfs.recall.search.floor import Seen, coverage, is_answered, stands_out
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import UNANSWERED, RankedHit, Ranking, fitting_best, search

SILENT, LOST = 0.8, 0.02
"""At least so many of the questions without an answer give nothing; at most so many of the others lose one."""


@dataclass
class Asked:
    """A question, with and without the floor, and what is told to the same words as a message."""

    question: dict[str, Any]
    answer: RankedHit
    nearest: RankedHit
    told: int
    loses: bool


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    """Every question of the corpus, answered or not."""
    return trio.run(_all_asked, tmp_path_factory.mktemp("floor"))


async def _all_asked(folder: Path) -> list[Asked]:
    builtin = await trio.to_thread.run_sync(Builtin.load)
    model = KeptVectors(builtin, kept=not LONG)
    index = Index(folder, model.name)
    ids = indexed(index)
    await understand(index, model)
    spaces = sorted({key.split("/")[0] for key in ids})
    results = []
    for question in (*lines("questions.jsonl"), *lines("unanswered.jsonl")):
        query, vector = parse(question["query"], now=NOW), await model.question(question["query"])
        answer = search(index, query, vector, spaces)
        nearest = search(index, query, vector, spaces, ranking=Ranking(floor=False))
        told = fitting_best(index, query.text, vector, spaces, {"live": 10})
        found, near = ({ids[hit.record.key] for hit in hits.hits} for hits in (answer, nearest))
        results.append(
            Asked(question, answer, nearest, len(told), bool((near - found) & set(question.get("relevant", ()))))
        )
    index.close()
    await builtin.aclose()
    if not LONG:
        assert not model.asked, "tests/recall/corpus_vectors.py has not kept these texts: run it"
    return results


def test_what_nothing_answers_finds_nothing_and_what_is_answered_loses_nothing(
    asked: list[Asked], figures: Callable[[str], None]
) -> None:
    """The numbers of the floor were chosen with an eye on all of these questions: on others it may give less."""
    answerable = [one for one in asked if "relevant" in one.question]
    others = [one for one in asked if "relevant" not in one.question]
    silent = [not one.answer.hits for one in others]
    untold = [not one.told for one in others]
    kinds = defaultdict(list)
    for one, is_silent in zip(others, silent, strict=True):
        kinds[one.question["kind"]].append(is_silent)
    lost = [one.question["query"] for one in answerable if one.loses]
    shown = ", ".join(f"{kind} {sum(values)} of {len(values)}" for kind, values in kinds.items())
    figures(f"floor: nothing found {_share(silent)} (odd {_share(silent[::2])}, even {_share(silent[1::2])}: {shown})")
    figures(f"floor: nothing told {_share(untold)}; evidence lost {len(lost)} of {len(answerable)}: {lost}")
    assert len(others) == 100
    assert min(_share(silent), _share(untold)) >= SILENT
    assert len(lost) <= LOST * len(answerable)


def test_an_answer_that_is_empty_says_so_and_how_to_see_what_is_nearest(asked: list[Asked]) -> None:
    empty = [one.answer for one in asked if one.nearest.hits and not one.answer.hits]
    assert empty
    assert {answer.remarks for answer in empty} == {(UNANSWERED,)}


def test_an_exact_identifier_and_a_file_name_always_give_their_hits(asked: list[Asked]) -> None:
    exact = [one for one in asked if one.question["kind"] in ("identifier", "file")]
    assert len(exact) == 51
    assert [one.question["query"] for one in exact if one.answer.hits != one.nearest.hits] == []


def test_filters_and_phrases_have_no_floor(asked: list[Asked]) -> None:
    said = [one for one in asked if (query := parse(one.question["query"], now=NOW)).is_filtered or query.phrases]
    assert len(said) > 10
    assert all(one.answer == one.nearest for one in said)


def _share(values: Iterable[bool]) -> float:
    values = list(values)
    return sum(values) / len(values)


# --- the signals -------------------------------------------------------------------------------------------------


def test_a_rare_word_covers_more_than_a_common_one() -> None:
    common, rare = [True, False], [False, True]
    assert coverage([common] * 9 + [rare], [*range(10)]) > coverage([common] * 10, [*range(10)])


def test_hits_of_one_sitting_cover_together() -> None:
    has = [[True, False], [False, True]]
    assert coverage(has, [1, 1]) == 1
    assert coverage(has, [1, 2]) < 1


def test_a_vector_stands_out_by_how_far_the_others_lie_behind() -> None:
    near = [0.3 - n / 1_000 for n in range(200)]
    assert stands_out([0.6, *near]) > 12 > 5 > stands_out([0.32, *near])
    assert stands_out([]) == 0


@pytest.mark.parametrize(("best", "answered"), [(0.33, True), (0.14, False)])
def test_of_five_notes_one_may_answer_by_its_meaning_alone(best: float, answered: bool) -> None:
    hits = [Seen(f"note {n}", "ann", n) for n in range(5)]
    assert is_answered("which database", hits, [best, 0.14, 0.03, -0.05, -0.08]) is answered
