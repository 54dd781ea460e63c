"""How much a text tells: words and names are counted in both languages, up to what is enough, and never at length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.search.telling import LOOKED_AT, MOST_NAMES, MOST_WORDS, share_of_names, share_of_words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("we moved to Lyon", 1),
        ("on a déménagé à Lyon, près d'Élodie", 1),
        ("on a déménagé à Lyon avec Élodie", 2),
        ("we read `UserRepository` again", 1),
        ("it was “Dune”, and then 'Emma'", 2),
        ("Lyon is far. Yes it is. Why not? No!", 0),
        ("Oui. Mais non ! Alors ? Bien", 0),
        ("so I said I'm tired, I've had enough", 0),
        ("the API and the S3 of ALL", 0),
        ("to Lyon, from Lyon, by Lyon's train", 1),
        ("", 0),
    ],
)
def test_a_name_has_a_capital_that_no_sentence_starts_with_and_counts_once(text: str, names: int) -> None:
    assert share_of_names(text) == names / MOST_NAMES


def test_more_names_than_enough_count_no_more() -> None:
    assert share_of_names("from Lyon to Paris by Dijon and Sens") == 1


@pytest.mark.parametrize(
    ("little", "much"),
    [
        ("Thanks, you too!", "The broker drops messages"),
        ("Merci, à toi aussi !", "Le courtier perd des messages"),
        ("queue queue queue queue", "queue broker"),
    ],
)
def test_what_says_more_has_more_words_that_are_not_small_and_not_the_same(little: str, much: str) -> None:
    assert 0 < share_of_words(little) < share_of_words(much)


def test_a_page_tells_no_more_than_a_long_note() -> None:
    note = " ".join(f"word{n}" for n in range(MOST_WORDS))
    assert share_of_words(note) == share_of_words(note * 1_000) == 1


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_whatever_is_written_tells_something_between_nothing_and_all(text: str) -> None:
    assert 0 < share_of_words(text) <= 1
    assert 0 <= share_of_names(text) <= 1


@pytest.mark.parametrize("page", [" " * 1_000_000, "a " * 500_000, "a, A" + "A" * 1_000_000, "x " + "É'" * 500_000])
def test_a_page_is_looked_at_in_no_time(page: str) -> None:
    assert share_of_names(page) == share_of_names(page[:LOOKED_AT])
    assert share_of_words(page) == share_of_words(page[:LOOKED_AT])


def test_what_stands_far_behind_in_a_page_is_not_looked_at() -> None:
    page = "a " * (LOOKED_AT // 2)

    assert share_of_names(f"{page}we moved to Lyon") == 0
    assert share_of_words(f"{page}broker queue") == share_of_words(page)
