"""Words of a text: the same whether accents were typed or not, and no text that breaks them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.index.words import (
    LANGUAGES,
    LONGEST_WORD,
    STOP_WORDS,
    Language,
    content_words,
    fold,
    language_of,
    spelt_out,
    terms,
)

ODD = {
    "a lone surrogate": "before \ud800 after",
    "a NUL": "before\0after",
    "emoji": "👩‍👩‍👧‍👦 🇫🇷 ok",
    "nothing": "",
    "blanks": " \t\r\n\u00a0\u2028",
    "a mebibyte without a space": "a" * 1_048_576,
    "a mebibyte of accents": "é" * 1_048_576,
    "a mebibyte of marks": "e" + "\u0301" * 1_048_576,
    "a mebibyte of CamelCase": "aB" * 524_288,
    "right to left": "שלום עולם مرحبا",
    "Chinese": "我们决定使用数据库",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("typed", "bare"),
    [
        ("déployé à l'été", "deploye a l'ete"),
        ("MODÈLE Élodie", "modele elodie"),
        ("Ça reçoit", "ca recoit"),
        ("naïve café", "naive cafe"),
        ("Größe Ångström", "große angstrom"),
    ],
)
def test_accents_and_capitals_make_no_difference(language: Language, typed: str, bare: str) -> None:
    assert terms(typed, language) == terms(bare, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_accent_that_is_a_character_of_its_own_makes_no_difference_to_folding(language: Language) -> None:
    assert fold("e\u0301te\u0301") == fold("été") == "ete"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("We decided to use the queue because it was simple.", "en"),
        ("On a décidé de prendre la file parce que c'était simple.", "fr"),
        ("ON A DECIDE DE PRENDRE LA FILE PARCE QUE C'ETAIT SIMPLE", "fr"),
        ("Le bug dans retry_upload() est corrigé, les tests passent.", "fr"),
        ("Fixed retry_upload(): the café endpoint now answers.", "en"),
        ("retry_upload", "en"),
        ("", "en"),
        ("数据库 👍", "en"),
    ],
)
def test_french_and_english_are_told_apart_and_the_rest_counts_as_english(text: str, language: Language) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_words_are_no_terms_of_their_language(language: Language) -> None:
    assert terms(" ".join(STOP_WORDS[language]), language) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_words_are_written_as_they_are_looked_up(language: Language) -> None:
    """The list is compared with folded words: one with an accent would never be met."""
    assert {fold(word) for word in STOP_WORDS[language]} == STOP_WORDS[language]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [("en", "deployments", "deployment"), ("en", "decided", "decide"), ("fr", "décisions", "décision")],
)
def test_forms_of_a_word_are_one_term(language: Language, one: str, other: str) -> None:
    assert terms(one, language) == terms(other, language)


def test_an_identifier_with_underscores_is_found_by_its_parts() -> None:
    assert terms("MAX_RETRY_count", "en") == terms("max retry count", "en")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("UserRepository", ["User", "Repository"]),
        ("parseHTTPResponse", ["parse", "HTTP", "Response"]),
        ("utf8", ["utf"]),
        ("sha256sum", ["sha", "256", "sum"]),
        ("plain words only", []),
        ("HTTP", []),
    ],
)
def test_a_name_in_camel_case_is_spelt_out_and_other_words_are_not(name: str, parts: list[str]) -> None:
    assert spelt_out(name).split() == parts


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_too_long_for_a_word_is_no_term(language: Language) -> None:
    assert terms("x" * LONGEST_WORD, language) == []
    assert terms("x" * (LONGEST_WORD - 1), language) == ["x" * (LONGEST_WORD - 1)]


def test_content_words_are_stop_words_of_neither_language() -> None:
    assert list(content_words("Why was l'authentification moved dans le Cache?")) == [
        "authentification",
        "moved",
        "cache",
    ]


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_no_odd_text_is_refused(text: str) -> None:
    language_of(text)
    for language in LANGUAGES:
        assert all(term.encode() for term in terms(text, language))
    fold(text).encode()
    list(content_words(text))
    spelt_out(text[:500])


def test_the_time_to_spell_out_grows_with_the_text_and_not_with_its_square() -> None:
    """A note may be a mebibyte of letters without a space; each thousand of them takes far below a millisecond."""
    started = time.thread_time()
    assert spelt_out("a" * 8_000) == ""
    assert time.thread_time() - started < 0.1


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_text_is_refused(text: str) -> None:
    fold(text).encode()
    assert language_of(text) in LANGUAGES
    spelt_out(text)
    for language in LANGUAGES:
        terms(text, language)
        assert not set(content_words(text)) & STOP_WORDS[language]
