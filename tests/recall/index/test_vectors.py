"""Meaning: the same neighbours that comparing with every vector would find, whatever came and went before."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from livememfs.recall.embed.prior import WEIGHT
from livememfs.recall.index.vectors import EXACT_UP_TO, Vectors, packed

Floats = NDArray[np.float32]
DIM = 48


def unit(rows: NDArray[np.float64]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def some(count: int, dim: int = DIM, seed: int = 1) -> Floats:
    """Vectors of length 1 in any direction."""
    return unit(np.random.default_rng(seed).normal(size=(count, dim)))


def clustered(count: int, dim: int, seed: int = 2) -> Floats:
    """Vectors as models make them: about subjects, and all of them much alike."""
    chance = np.random.default_rng(seed)
    subjects = chance.normal(size=(200, dim))
    common = 3 * chance.normal(size=dim)
    return unit(common + subjects[chance.integers(0, 200, count)] + 0.7 * chance.normal(size=(count, dim)))


def stored(rows: Floats, prior: Floats | None = None) -> Vectors:
    """A store of these, numbered from 1."""
    store = Vectors(rows.shape[1], prior)
    store.put(range(1, len(rows) + 1), packed(rows))
    return store


def expected(
    numbers: Sequence[int], vectors: Floats, question: Floats, limit: int, prior: Floats | None = None
) -> list[tuple[int, float]]:
    """What comparing with every vector finds, all of them relative to their mean."""
    kept = packed(vectors).astype(np.float64) / 127
    total, weight = kept.sum(axis=0), float(len(kept))
    if prior is not None:
        total, weight = total + WEIGHT * prior, weight + WEIGHT
    mean = total / weight
    rows, asked = kept - mean, question - mean
    cosines = rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))
    order = np.lexsort((np.asarray(numbers), -cosines))[:limit]
    return [(numbers[i], float(cosines[i])) for i in order]


def assert_same(found: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> None:
    """The same but for what lies within the error of a float."""
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in wanted], abs=2e-5)
    last = wanted[-1][1] if wanted else 0.0
    assert {number for number, cosine in found if cosine > last + 1e-4} == {
        number for number, cosine in wanted if cosine > last + 1e-4
    }


@given(
    count=st.integers(2, 200),
    seed=st.integers(0, 1_000),
    dim=st.sampled_from([2, 48, 63, 64, 65, 384]),
    limit=st.integers(1, 250),
    drawn=st.booleans(),
)
def test_few_vectors_are_compared_exactly(count: int, seed: int, dim: int, limit: int, drawn: bool) -> None:
    rows = some(count + 2, dim, seed)
    prior, question, rows = (rows[0] if drawn else None), rows[1], rows[2:]
    numbers = list(range(1, count + 1))
    assert_same(stored(rows, prior).search(question, limit), expected(numbers, rows, question, limit, prior))


def test_what_is_kept_in_eight_bits_is_as_good_as_what_was_given() -> None:
    rows = clustered(2_000, 384)
    store, question = stored(rows), rows[7]
    mean = rows.mean(axis=0)
    cosines = (rows - mean) @ (question - mean)
    cosines /= np.linalg.norm(rows - mean, axis=1) * np.linalg.norm(question - mean)
    for number, cosine in store.search(question, 50):
        assert cosine == pytest.approx(cosines[number - 1], abs=0.03)


def test_of_many_vectors_nine_tenths_of_the_nearest_twenty_are_found() -> None:
    rows = clustered(20_015, 384)
    questions, rows = rows[:15], rows[15:]
    numbers = list(range(1, 20_001))
    store, hit = stored(rows), 0
    for question in questions:
        wanted = {number for number, _ in expected(numbers, rows, question, 20)}
        hit += len(wanted & {number for number, _ in store.search(question, 20)})
    assert hit >= 0.9 * 20 * len(questions)


def test_a_vector_that_is_among_many_is_its_own_nearest_with_a_cosine_of_one() -> None:
    rows = clustered(EXACT_UP_TO + 500, 384)
    store = stored(rows)
    for at in (0, 1_234, len(rows) - 1):
        number, cosine = store.search(rows[at], 1)[0]
        assert number == at + 1
        assert cosine == pytest.approx(1.0, abs=0.01)


def test_an_empty_store_finds_nothing() -> None:
    store = Vectors(DIM)
    assert (store.search(some(1)[0], 10), len(store), store.numbers()) == ([], 0, [])
    store.put([], np.zeros((0, DIM), np.int8))
    store.remove([1, 2])
    assert (store.search(some(1)[0], 10), len(store)) == ([], 0)


def test_a_store_that_was_emptied_finds_nothing_and_can_be_filled_again() -> None:
    rows = some(20)
    store = stored(rows)
    store.remove(range(1, 21))
    assert (store.search(rows[0], 10), len(store), store.numbers()) == ([], 0, [])
    store.put([30, 31, 32], packed(rows[:3]))
    assert sorted(number for number, _ in store.search(rows[0], 10)) == [30, 31, 32]


def test_a_question_that_is_the_mean_itself_and_vectors_that_are_all_the_same_are_no_error() -> None:
    same = np.tile(some(1), (5, 1))
    store = stored(same)
    for question in (same[0], np.zeros(DIM, np.float32), some(1, seed=9)[0]):
        for _, cosine in store.search(question, 10):
            assert np.isfinite(cosine)


def test_a_number_that_is_put_again_has_its_new_vector_only() -> None:
    rows = some(40)
    store = stored(rows[:30])
    store.put([5, 6], packed(rows[30:32]))
    assert len(store) == 30
    hits = store.search(rows[30], 40)
    assert hits[0][0] == 5
    assert sorted(number for number, _ in hits) == list(range(1, 31))
    assert [number for number, _ in store.search(rows[4], 30)].count(5) == 1


def test_what_was_removed_is_not_found_and_removing_what_is_not_there_does_nothing() -> None:
    rows = some(30)
    store = stored(rows)
    store.remove([3, 99])
    assert (set(range(1, 31)).difference(store.numbers()), len(store)) == ({3}, 29)
    assert 3 not in {number for number, _ in store.search(rows[2], 30)}


def test_after_many_went_the_rest_is_found_as_in_a_store_made_anew() -> None:
    rows = some(5_000)
    store = stored(rows)
    store.remove(range(1, 4_901))
    left = list(range(4_901, 5_001))
    assert sorted(store.numbers()) == left
    assert_same(store.search(rows[4_950], 20), expected(left, rows[4_900:], rows[4_950], 20))
    assert store._used < 1_024


def test_a_store_grows_beyond_what_it_had_room_for() -> None:
    rows, store = some(5_000), Vectors(DIM)
    for start in range(0, 5_000, 700):
        chunk = rows[start : start + 700]
        store.put(range(start + 1, start + len(chunk) + 1), packed(chunk))
    assert len(store) == 5_000
    for at in (0, 1_023, 1_024, 2_100, 4_999):
        assert store.search(rows[at], 1)[0][0] == at + 1


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 30)), max_size=25))
def test_after_any_changes_what_is_there_is_found_and_nothing_else(steps: list[tuple[bool, int, int]]) -> None:
    rows, store, there = some(100), Vectors(DIM), dict[int, int]()
    for puts, first, count in steps:
        numbers = list(range(first + 1, first + count + 1))
        if puts:
            chosen = [(number * 7 + len(there)) % 100 for number in numbers]
            store.put(numbers, packed(rows[chosen]))
            there.update(zip(numbers, chosen, strict=True))
        else:
            store.remove(numbers)
            for number in numbers:
                there.pop(number, None)
        assert len(store) == len(there)
        assert sorted(number for number, _ in store.search(some(1, seed=8)[0], 1_000)) == sorted(there)
    store.expect(rows[0])  # takes the mean again
    if there:
        kept = rows[[there[number] for number in sorted(there)]]
        assert_same(store.search(rows[1], 10), expected(sorted(there), kept, rows[1], 10, rows[0]))


# --- what may be found -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [500, 8_000])
@pytest.mark.parametrize("one_of", [7, 50])
def test_a_mask_and_a_list_let_through_the_same_numbers(count: int, one_of: int) -> None:
    rows, numbers = clustered(count, DIM), list(range(1, count + 1))
    store = stored(rows)
    allowed = [number for number in numbers if number % one_of == 3]
    mask = np.zeros(count + 1, np.bool_)
    mask[allowed] = True

    by_list = store.search(rows[0], 10, allowed)
    assert store.search(rows[0], 10, mask) == by_list
    assert {number for number, _ in by_list} <= set(allowed)
    every = dict(expected(numbers, rows, rows[0], count))
    best = sorted(allowed, key=lambda number: -every[number])[:10]
    assert {number for number, _ in by_list} == set(best)


@pytest.mark.parametrize("looked_up", ["before", "after"])
def test_where_most_are_let_through_nothing_else_is_found(looked_up: str) -> None:
    count = 8_000
    rows = clustered(count, 384)
    store = stored(rows)
    store.remove([50])
    mask = np.ones(count + 1, np.bool_)
    mask[1 : count + 1 : 3] = False
    mask[0] = False  # what was removed has no number
    hits = store.search(rows[1], 50, mask if looked_up == "before" else mask.__getitem__)
    assert len(hits) == 50
    assert all(mask[number] for number, _ in hits)
    assert hits[0][0] == 2
    every = dict(store.search(rows[1], count))
    nearest = sorted((number for number in every if mask[number]), key=lambda number: -every[number])[:20]
    assert len({number for number, _ in hits[:20]}.intersection(nearest)) >= 18


@pytest.mark.parametrize("count", [10, 5_000])
def test_where_nothing_is_let_through_nothing_is_found(count: int) -> None:
    rows = some(count)
    store = stored(rows)
    assert store.search(rows[0], 10, []) == []
    assert store.search(rows[0], 10, [count + 50]) == []
    assert store.search(rows[0], 10, np.zeros(count + 1, np.bool_)) == []


def test_a_limit_above_all_there_is_gives_all() -> None:
    rows = some(5_000)
    store = stored(rows)
    assert len({number for number, _ in store.search(rows[0], 100_000)}) == 5_000
    assert len(store.search(rows[0], 4_000)) == 4_000


def test_of_equals_the_lower_number_comes_first() -> None:
    rows, store = some(3), Vectors(DIM)
    store.put([9, 2, 5, 7], packed(rows[[0, 0, 0, 1]]))
    assert [number for number, _ in store.search(rows[0], 3)] == [2, 5, 9]


# --- the mean ----------------------------------------------------------------------------------------------------


def test_the_mean_of_few_is_drawn_to_that_of_any_texts() -> None:
    """Two texts of a small space, which are much like any other: what they share is then no likeness."""
    rows = clustered(300, 384)
    usual, here = rows[:280].mean(axis=0), rows[290:292]
    drawn = stored(here, usual)
    unrelated = rows[295]
    assert_same(drawn.search(unrelated, 2), expected([1, 2], here, unrelated, 2, usual))
    assert max(abs(cosine) for _, cosine in drawn.search(unrelated, 2)) < 0.3
    assert drawn.search(here[0], 1)[0][1] == pytest.approx(1.0, abs=0.01)


def test_a_single_vector_is_found_when_there_is_a_mean_of_any_texts() -> None:
    rows = clustered(300, 384)
    store = stored(rows[290:291], rows[:280].mean(axis=0))
    assert store.search(rows[290], 5)[0] == (1, pytest.approx(1.0, abs=0.01))


def test_a_mean_that_comes_later_counts_as_if_it_had_been_there() -> None:
    rows = some(30)
    early, late = stored(rows[2:], rows[0]), stored(rows[2:])
    late.expect(rows[0])
    assert dict(late.search(rows[1], 10)) == pytest.approx(dict(early.search(rows[1], 10)), abs=1e-5)


def test_a_search_may_run_beside_changes() -> None:
    """Whatever it finds has been put in, and none of it twice."""
    rows = some(2_900, 64)
    store = stored(rows[:100])
    failed: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = [number for number, _ in store.search(rows[3], 20)]
                assert len(set(found)) == len(found)
                assert all(0 < number <= 2_900 for number in found)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    for start in range(100, 2_900, 100):
        store.put(range(start + 1, start + 101), packed(rows[start : start + 100]))
    done.set()
    thread.join()
    assert failed == []


class _Growing(Vectors):
    """Gets another vector while somebody searches: just before its size is looked at for the `at`-th time."""

    at = 0
    more: Floats

    @property
    def _used(self) -> int:
        self.at -= 1
        if self.at == 0:
            self.put([9_999], packed(self.more))
        return self._size

    @_used.setter
    def _used(self, size: int) -> None:
        self._size = size


def test_a_scan_sees_the_rows_there_were_when_it_began() -> None:
    """The thread that changes the store may come in anywhere; here it does so at each place in turn."""
    rows = some(EXACT_UP_TO + 500, 64)
    for at in range(1, 8):
        store = _Growing(64)
        for first, last in ((0, EXACT_UP_TO), (EXACT_UP_TO, len(rows) - 1)):  # leaves room for more
            store.put(range(first + 1, last + 1), packed(rows[first:last]))
        store.at, store.more = at, rows[-1:]
        assert store.search(rows[3], 20)[0][0] == 4


def test_what_was_asked_last_is_asked_again_of_what_there_is_by_then() -> None:
    """One scan serves several filters, and no longer than nothing changes."""
    vectors = clustered(2 * EXACT_UP_TO, DIM)
    store, question = stored(vectors), vectors[7]
    even = np.arange(len(vectors) + 1) % 2 == 0
    both = store.search(question, 30)
    assert [hit for hit in store.search(question, 60, even) if hit in both] == [hit for hit in both if even[hit[0]]]
    best = both[0][0]
    store.remove([best])
    assert best not in dict(store.search(question, 30))
    store.put([best], packed(vectors[100][None, :]))
    store.put([len(vectors) + 1], packed(question[None, :]))
    assert store.search(question, 1)[0][0] == len(vectors) + 1
    store.expect(vectors.mean(axis=0))
    there = np.concatenate([vectors, question[None, :]])
    there[best - 1] = vectors[100]
    fresh = stored(there, vectors.mean(axis=0))
    assert_same(store.search(question, 30), fresh.search(question, 30))
