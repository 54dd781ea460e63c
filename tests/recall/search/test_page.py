"""Results as they are read: never over the budget, always on one line where they must be, and nothing hidden unsaid."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_world import note

from livememfs.recall.index.record import Record
from livememfs.recall.search.found import Hit, RankedHit
from livememfs.recall.search.page import DEFAULT_BUDGET, SNIPPET, explanation, page, slug, snippet
from livememfs.recall.search.query import Query, parse
from livememfs.text.own import END, HEAD
from livememfs.text.size import tokens

NOW = datetime(2026, 3, 31, tzinfo=UTC)
SLACK = 40
"""Tokens by which an estimate may be off."""


def ask(text: str) -> Query:
    return parse(text, now=NOW)


def record(text: str = "text", title: str = "title", **given: Any) -> Record:
    return note("x", text, 1_772_530_000, title=title, **given)


def found(*records: Record, **given: Any) -> RankedHit:
    hits = tuple(Hit(one, 0, 0.5, {"words": rank}) for rank, one in enumerate(records, 1))
    return RankedHit(hits, "semantic", len(hits), **given)


def shown(query: Query, answer: RankedHit, **options: Any) -> str:
    return page(query, answer, [f"../x/{n}.md" for n in range(len(answer.hits))], **options)


# --- the page ----------------------------------------------------------------------------------------------------


def test_a_page_tells_what_was_asked_how_it_was_read_and_where_each_hit_can_be_read() -> None:
    text = shown(ask("why kafka type:todo"), found(record("we keep kafka", "Keep kafka"), record("lunch", "Lunch")))
    assert text.startswith(f"{HEAD}\n# why kafka")
    assert "Read as: words: kafka; type is todo." in text
    assert "1. [Keep kafka](<../x/0.md>)" in text
    assert "2. [Lunch](<../x/1.md>)" in text
    assert "todo · ann · 2026-03-03 · score 0.500" in text
    assert "we keep kafka" in text
    assert "2 records, semantic search" in text
    assert text.endswith(f"\n{END}\n")


def test_a_page_says_what_it_costs() -> None:
    text = shown(ask("kafka"), found(record("word " * 50)))
    (said,) = re.findall(r"~(\d+) tokens", text)
    assert abs(int(said) - tokens(text)) <= 2


@pytest.mark.parametrize("typed", ["what costs ~0 tokens", "~0 tokens"])
def test_a_page_says_what_it_costs_where_the_question_is_about_that(typed: str) -> None:
    text = shown(ask(typed), found(record("x")))
    assert text.startswith(f"{HEAD}\n# {typed}\n")
    assert f"~{tokens(text)} tokens" in text or f"~{tokens(text) - 1} tokens" in text


def test_nothing_found_is_said() -> None:
    assert "Nothing found" in shown(ask("kafka"), found())


def test_remarks_doubts_and_notes_are_on_the_page() -> None:
    text = shown(
        ask("kafka typ:todo limit:9999"), found(record(), remarks=("none of them",)), notes=("still indexing",)
    )
    assert "Note: none of them." in text
    assert "Note: still indexing." in text
    for doubt in ask("kafka typ:todo limit:9999").doubts:
        assert doubt in text


def test_what_is_left_out_for_the_budget_is_counted() -> None:
    records = [record("word " * 100, f"title {n}") for n in range(20)]
    text = shown(ask("word"), found(*records), budget=500)
    (left,) = re.findall(r"(\d+) more", text)
    assert text.count("](<") + int(left) == 20
    assert 0 < text.count("](<") < 20
    assert "left out" in text


def test_what_fits_is_all_shown_and_nothing_is_said_to_be_left_out() -> None:
    text = shown(ask("word"), found(*[record("word") for _ in range(10)]))
    assert text.count("](<") == 10
    assert "left out" not in text


letters = st.text(alphabet=st.sampled_from("abc é[]\n\"'<>#…的"), max_size=400)


@given(
    typed=st.text(max_size=60),
    texts=st.lists(st.tuples(letters, letters.map(lambda text: text[:80])), max_size=12),
    budget=st.integers(600, 4_000),
)
def test_a_page_stays_under_its_budget(typed: str, texts: list[tuple[str, str]], budget: int) -> None:
    text = shown(ask(typed), found(*[record(body, title) for body, title in texts]), budget=budget)
    assert tokens(text) <= budget + SLACK


@given(typed=st.text(alphabet="abc de:-", max_size=40), count=st.integers(0, 20), budget=st.integers(300, 900))
def test_a_page_of_latin_letters_stays_under_a_small_budget(typed: str, count: int, budget: int) -> None:
    text = shown(ask(typed), found(*[record("some words " * 60, "a title " * 10) for _ in range(count)]), budget=budget)
    assert tokens(text) <= budget + SLACK


def test_a_page_about_a_long_question_stays_under_its_budget() -> None:
    """Somebody has pasted a page as a question."""
    text = shown(ask("some pasted words " * 600), found(record("x")))
    assert tokens(text) <= DEFAULT_BUDGET + SLACK


@given(title=st.text(alphabet=st.sampled_from("ab[]()\n\r\t\u2028\u00a0<>#*"), max_size=40), typed=st.text(max_size=40))
def test_no_title_and_no_question_breaks_the_layout(title: str, typed: str) -> None:
    """One heading, one link for each hit, each on one line."""
    for text in (
        shown(ask(typed), found(record("body", title), record("body", "last"))),
        explanation(ask(typed), found(record("body", title), record("body", "last")), ["a", "b"]),
    ):
        lines = text.split("\n")
        assert [line for line in lines if line.startswith("# ")] in ([lines[1]], [])
        links = [line for line in lines if re.search(r"\]\(<", line)]
        assert len(links) == 2
        assert all(re.search(r"\[[^\[\]]*\]\(<[^<>]*>\)", line) for line in links)


@pytest.mark.parametrize("odd", [{"agent": "ann\n# heading"}, {"type": "todo\n# heading"}])
def test_no_agent_and_no_type_breaks_the_layout(odd: dict[str, str]) -> None:
    """Front matter may have a text of several lines for both."""
    assert "\n# heading" not in shown(ask("x"), found(record("body", **odd)))


def test_a_bar_in_a_title_is_no_new_cell_of_the_explanation() -> None:
    table = explanation(ask("x"), found(record("body", "a | b"), record("body", "c")), ["a", "b"]).splitlines()
    rows = [line for line in table if line.startswith("| ")]
    assert len({re.sub(r"\\\|", "", row).count("|") for row in rows}) == 1


def test_many_remarks_of_one_line_each_stay_remarks() -> None:
    text = shown(ask("x"), found(record()), notes=("two\nlines # no heading",))
    assert "Note: two lines # no heading." in text


# --- the part that is shown --------------------------------------------------------------------------------------


def test_a_short_text_is_shown_as_a_whole_on_one_line() -> None:
    assert snippet(record("a\n\n b\tc  "), 0, ask("c")) == "a b c"


@pytest.mark.parametrize("place", [0, 10, 300, 599])
def test_a_long_text_is_shown_where_the_words_are(place: int) -> None:
    words = ["pad"] * 600
    words[place] = "needle"
    text = snippet(record(" ".join(words)), 0, ask("which Needle"))
    assert "needle" in text
    assert len(text) <= SNIPPET + 2
    assert text.startswith("…") == (place > 10)
    assert text.endswith("…") == (place < 550)


def test_a_long_text_is_shown_where_most_of_the_words_are() -> None:
    text = "alpha " + "pad " * 300 + "alpha beta gamma " + "pad " * 300
    assert "beta gamma" in snippet(record(text), 0, ask("alpha beta gamma"))


@pytest.mark.parametrize("typed", ["deployee", "DÉPLOYÉE"])
def test_the_place_is_found_whatever_the_accents(typed: str) -> None:
    assert "déployée" in snippet(record("mot " * 300 + "déployée " + "mot " * 300), 0, ask(typed))


def test_the_place_is_found_in_a_text_with_an_ellipsis() -> None:
    assert "needle" in snippet(record("Well… " + "pad " * 300 + "needle " + "pad " * 300), 0, ask("needle"))


def test_the_piece_that_was_found_is_shown() -> None:
    assert snippet(record(pieces=("whole", "second piece")), 1, ask("x")) == "second piece"


@given(st.text(max_size=900), st.text(max_size=30), st.integers(80, 400))
def test_any_text_can_be_cut(text: str, typed: str, size: int) -> None:
    cut = snippet(record(text), 0, ask(typed), size)
    assert len(cut) <= size + 2
    assert "\n" not in cut


def test_a_text_without_blanks_is_cut_all_the_same() -> None:
    assert 0 < len(snippet(record("x" * 1_000_000), 0, ask("x"))) <= SNIPPET + 2


# --- names of hits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("We keep the queue", "we-keep-the-queue"),
        ("Décision : l'été (2026)", "decision-l-ete-2026"),
        ("../../etc/passwd", "etc-passwd"),
        ("数据库", "record"),
        ("", "record"),
        ("-rf *", "rf"),
        ("x" * 200, "x" * 48),
        ("word " * 40, "-".join(["word"] * 9)),
    ],
)
def test_a_name_is_a_few_words_of_the_title(title: str, name: str) -> None:
    assert slug(record(title=title)) == name


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200), st.integers(1, 60))
def test_a_name_can_be_typed_in_any_shell(title: str, size: int) -> None:
    name = slug(record(title=title), size)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= max(size, len("record"))


# --- why this order ----------------------------------------------------------------------------------------------


def test_an_explanation_shows_the_rank_in_each_list() -> None:
    hits = (
        Hit(record(title="one"), 0, 0.75, {"words": 2, "meaning": 1}),
        Hit(record(title="two"), 0, 0.5, {"words": 1, "hints": 3}),
    )
    text = explanation(ask("kafka type:todo"), RankedHit(hits, "hybrid", 17), ["a.md", "b.md"], notes=("a note",))
    assert "| rank | score | words | meaning | hints | record |" in text
    assert "| 1 | 0.7500 | 2 | 1 |  | [one](<a.md>) |" in text
    assert "| 2 | 0.5000 | 1 |  | 3 | [two](<b.md>) |" in text
    assert "hybrid search, 17 candidates, 2 shown." in text
    assert "type is todo" in text
    assert "Note: a note." in text


def test_an_explanation_of_nothing_says_so() -> None:
    assert "Nothing found." in explanation(ask("kafka"), found(), [])
