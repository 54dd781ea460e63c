"""Whether a new memory replaces an old one: when it says the same, more precisely or anew, and else never."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.embed.prior import TEXTS
from livememfs.recall.likeness.estimate import LOOKED_AT, THRESHOLD, evidence, likeness

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "pairs" / "pairs.jsonl").read_text().splitlines()]
REPORTED = [pair for pair in PAIRS if pair["use"] == "reported"]
PRECISION_AT_LEAST, RECALL_AT_LEAST = 0.97, 0.72
"""Of the reported pairs; 1.00 and 0.76 were measured."""
TUNING_PRECISION_AT_LEAST, TUNING_RECALL_AT_LEAST = 0.98, 0.71
"""Of the others; 1.00 and 0.74 were measured."""
MOST_AMONG_ANY = 3
"""One was measured, a third wording of one fact."""

Alike = Callable[[str, str], float]
any_text = st.text(alphabet=st.characters(exclude_categories=()))
sentences = st.one_of(any_text, st.sampled_from(sorted({pair[side] for pair in PAIRS for side in "ab"})))
cosines = st.floats(-1, 1)


@pytest.fixture(scope="module")
def near() -> Alike:
    """The cosine of two texts, relative to the mean of any texts."""
    model = OnnxModel()
    prior = np.mean([model.vector("passage: " + text) for text in TEXTS], axis=0)
    known: dict[str, NDArray[np.float32]] = {}

    def unit(text: str) -> NDArray[np.float32]:
        if text not in known:
            centred = model.vector("passage: " + text) - prior
            known[text] = centred / np.linalg.norm(centred)
        return known[text]

    return lambda one, other: float(unit(one) @ unit(other))


@pytest.fixture(scope="module")
def alike(near: Alike) -> Alike:
    return lambda one, other: likeness(one, other, near(one, other))


def measured(pairs: list[dict[str, Any]], alike: Alike) -> tuple[float, float]:
    """Precision and recall, printed with what they are made of."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for pair in pairs:
        merged = alike(pair["a"], pair["b"]) > THRESHOLD
        for group in ("all", pair["lang"], pair["kind"]):
            counts[group][2 * (not pair["same"]) + (not merged)] += 1
        if merged != pair["same"]:
            print("wrongly" if merged else "missed ", pair["a"], "|", pair["b"])
    for group, (right, missed, wrong, apart) in counts.items():
        precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
        print(
            f"{group:28} precision {precision:.3f} ({right} of {right + wrong})"
            f"  recall {recall:.3f} (of {right + missed})  kept apart {apart} of {wrong + apart}"
        )
    right, missed, wrong, _ = counts["all"]
    return right / (right + wrong), right / (right + missed)


# --- by the pairs ------------------------------------------------------------------------------------------------


def test_pairs_that_nothing_was_tuned_on_are_told_apart(alike: Alike) -> None:
    precision, recall = measured(REPORTED, alike)
    assert precision >= PRECISION_AT_LEAST
    assert recall >= RECALL_AT_LEAST


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="those that it was not tuned on say more")
def test_pairs_that_it_was_tuned_on_are_still_told_apart(alike: Alike) -> None:
    precision, recall = measured([pair for pair in PAIRS if pair["use"] == "tuning"], alike)
    assert precision >= TUNING_PRECISION_AT_LEAST
    assert recall >= TUNING_RECALL_AT_LEAST


def test_texts_that_nobody_paired_are_hardly_ever_taken_for_one_another(alike: Alike) -> None:
    """Nearly 20,000 pairs: what a new memory is compared with is mostly about something else."""
    texts = sorted({pair[side] for pair in REPORTED for side in "ab"})
    paired = {frozenset((pair["a"], pair["b"])) for pair in REPORTED}
    merged = [
        (one, other)
        for number, one in enumerate(texts)
        for other in texts[:number]
        if frozenset((one, other)) not in paired and alike(one, other) > THRESHOLD
    ]
    print(*merged, sep="\n")
    assert len(merged) <= MOST_AMONG_ANY


def test_there_are_enough_pairs_of_each_language_and_answer_and_none_is_both_tuned_on_and_reported() -> None:
    for lang in ("fr", "en"):
        for same in (True, False):
            assert sum(pair["lang"] == lang and pair["same"] is same for pair in REPORTED) >= 20
    kept = [frozenset((pair["a"], pair["b"])) for pair in PAIRS]
    assert len(set(kept)) == len(kept)


# --- by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("David habite à Ordizan", "David a déménagé à Toulouse"),
        ("Mickael s'est cassé l'épaule", "Mickael s'est cassé l'épaule le 10 janvier 2026"),
        ("We use PostgreSQL for the orders service", "We use MySQL for the orders service"),
        ("David est mon frère", "David is my brother"),
    ],
)
def test_a_fact_that_changed_or_became_more_precise_replaces_the_old_one(old: str, new: str, alike: Alike) -> None:
    assert alike(old, new) > THRESHOLD


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("David habite à Paris", "David a un fils"),
        ("David est mon frère", "David habite à Ordizan"),
        ("The API uses OAuth2", "The API is rate limited"),
        ("David lives in Paris", "Julie lives in Paris"),
        ("Release 1.2 shipped in March", "Release 1.3 shipped in May"),
    ],
)
def test_different_facts_stay_two(one: str, other: str, alike: Alike) -> None:
    assert alike(one, other) < THRESHOLD


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Claire ne fume plus", "Marc ne fume plus"),
        ("Julie ne fume plus", "Julien ne fume plus"),
        ("Paul lives in Leeds", "Paul's sister lives in Leeds"),
        ("Paul habite à Pau", "La sœur de Paul habite à Pau"),
        ("Release 1.2 is out", "Release 1.3 is out"),
        ("L'API de facturation est lente", "L'API de livraison est lente"),
    ],
)
def test_what_is_said_of_somebody_else_or_something_else_replaces_nothing_however_near(one: str, other: str) -> None:
    assert likeness(one, other, 0.9) < THRESHOLD


# --- whatever is written -----------------------------------------------------------------------------------------


@given(sentences, sentences, cosines)
@example("", "", 0.0)
@example("", "a", 1.0)
@example("2", "\u2028", -1.0)
def test_it_is_the_same_either_way_round_and_from_0_to_1(one: str, other: str, near: float) -> None:
    assert 0 <= likeness(one, other, near) == likeness(other, one, near) <= 1


@given(sentences, st.one_of(st.none(), st.floats()))
def test_the_same_text_is_as_like_as_can_be_in_capitals_or_with_other_space(text: str, near: float | None) -> None:
    assert likeness(text, text, near) == 1
    assert likeness(text, f" {text}\n", near) == 1


@given(sentences, sentences)
def test_without_vectors_only_the_same_words_are_alike(one: str, other: str) -> None:
    assert likeness(one, other, None) == likeness(one, other, float("nan")) in (0, 1)


def test_without_vectors_case_accents_and_space_make_no_difference() -> None:
    assert likeness("Élodie  est LÀ", "elodie est la ", None) == 1
    assert likeness("Élodie est là", "Élodie est là-bas", None) == 0


@given(sentences, sentences, cosines, cosines)
def test_what_is_nearer_is_no_less_alike(one: str, other: str, near: float, nearer: float) -> None:
    near, nearer = sorted((near, nearer))
    assert likeness(one, other, near) <= likeness(one, other, nearer)


@given(sentences, sentences, cosines)
def test_the_evidence_together_is_what_the_threshold_is_held_against(one: str, other: str, near: float) -> None:
    together = sum(evidence(one, other, near).values())
    if abs(together) > 1e-9 and likeness(one, other, None) == 0:
        assert (likeness(one, other, near) > THRESHOLD) is (together > 0)


def test_of_a_long_text_whose_end_is_not_looked_at_the_vectors_have_to_tell() -> None:
    start = "The importer reads one row after another. " * (LOOKED_AT // 7 + 1)
    assert likeness(start + "It fails on tabs.", start + "It is written in Perl.", 0.85) < THRESHOLD
    assert likeness(start + "It fails on tabs.", start + "It fails on every tab.", 0.95) > THRESHOLD


@pytest.mark.parametrize("page", ["A " * 200_000, "x" * 400_000, "a: B " * 80_000, " " * 400_000, "Été 2 " * 80_000])
def test_a_page_is_compared_in_no_time(page: str) -> None:
    assert 0 <= likeness(page, page + " y", 0.5) <= 1
    assert 0 <= likeness(page, "Paul lives in Pau", 0.5) <= 1
