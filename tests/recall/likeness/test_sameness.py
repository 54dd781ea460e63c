"""Whether a line says what another says: by words that are the same, by an angle beyond doubt, by both between them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from livememfs.recall.likeness.sameness import LOOK, Sameness
from livememfs.recall.turn.inject import Candidate

DIM = 8
ALIKE = 0.85
SHOULDER = "Mickael broke his shoulder"
PRECISE = "Mickael broke his shoulder on the 10th of January"
OTHER = "the deployment of the shop is on Friday"


def at(cosine: float, *, axis: int = 1) -> NDArray[np.float32]:
    """A vector at that angle to the first axis."""
    found = np.zeros(DIM, np.float32)
    found[0], found[axis] = cosine, np.sqrt(1 - cosine**2)
    return found


def one(name: str, text: str, vector: NDArray[np.float32] | None = None) -> Candidate:
    return Candidate(name, "relevant", text, vector=vector)


def same(first: Candidate, *others: Candidate, prior: NDArray[np.float32] | None = None) -> bool:
    found = Sameness(prior, ALIKE)
    found.show(others)
    return found(first)


def test_the_same_words_are_the_same_without_any_vector() -> None:
    assert same(one("a", "Déjà vu"), one("b", "deja  VU"))
    assert not same(one("a", "Déjà vu"), one("b", "something else"))
    assert not same(one("a", "alone"))


def test_above_the_threshold_the_angle_alone_tells() -> None:
    assert same(one("a", SHOULDER, at(1.0)), one("b", OTHER, at(ALIKE + 0.01)))
    assert not same(one("a", SHOULDER, at(1.0)), one("b", OTHER, at(ALIKE - 0.01)))


def test_below_it_the_words_tell_where_the_angle_leaves_it_open() -> None:
    assert same(one("a", SHOULDER, at(1.0)), one("b", PRECISE, at(0.8)))
    assert not same(one("a", "David is 30 years old", at(1.0)), one("b", "Paul is 30 years old", at(0.8)))


def test_what_is_about_something_else_is_not_looked_at() -> None:
    assert not same(one("a", SHOULDER, at(1.0)), one("b", PRECISE, at(LOOK - 0.01)))


def test_one_of_many_is_enough() -> None:
    others = [one(f"n{number}", f"{OTHER} {number}", at(0.1, axis=2)) for number in range(200)]

    assert not same(one("a", SHOULDER, at(1.0)), *others)
    assert same(one("a", SHOULDER, at(1.0)), *others, one("b", PRECISE, at(0.8)))


def test_what_was_shown_later_counts_as_well_and_a_text_is_not_compared_with_itself() -> None:
    found = Sameness(None, ALIKE)
    for number in range(200):
        found.show([one(f"n{number}", f"{OTHER} {number}", at(0.1, axis=2))])
    mine = one("a", SHOULDER, at(1.0))
    found.show([mine])
    assert not found(mine)
    found.show([one("b", PRECISE, at(0.8))])
    assert found(mine)


def test_vectors_of_two_models_are_each_compared_with_their_own() -> None:
    found = Sameness(None, ALIKE)
    found.show([one("old", OTHER, np.ones(3, np.float32)), one("new", OTHER, at(1.0))])
    assert found(one("a", SHOULDER, at(1.0)))
    assert not found(one("b", SHOULDER, np.ones(4, np.float32)))


def test_what_all_texts_have_in_common_does_not_count() -> None:
    common = np.full(DIM, 0.9, np.float32)
    mine, other = one("a", SHOULDER, at(1.0) + common), one("b", OTHER, at(0.0) + common)

    assert same(mine, other, prior=np.zeros(DIM, np.float32))
    assert not same(mine, other, prior=common)


@pytest.mark.parametrize("vector", [None, np.ones(3, np.float32), np.zeros(DIM, np.float32)])
def test_a_vector_that_is_missing_or_of_another_model_leaves_the_words(vector: NDArray[np.float32] | None) -> None:
    prior = np.full(DIM, 0.1, np.float32)

    assert same(one("a", SHOULDER, vector), one("b", SHOULDER, at(1.0)), prior=prior)
    assert not same(one("a", SHOULDER, at(1.0)), one("b", PRECISE, vector), prior=prior)
