"""What a question says in passing: heard where it is meant, and never a reason to fail."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.index.record import Record
from livememfs.recall.search.hints import Hints, hints_in

AGENTS = ("Ann", "bob", "Zoë", "Jean Paul", "May")


def record(created: datetime = datetime(2026, 3, 3, 12, tzinfo=UTC), kind: str = "todo") -> Record:
    """A note of the third of March."""
    return Record("r", "r", "1", "live", "s", kind, "ann", "t", int(created.timestamp()), 0.5, (), ("x",))


# --- who ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("what did Ann say", "ann"),
        ("what did ANN's note say", "ann"),
        ("qu'a dit zoe", "zoe"),
        ("ce que Zoë a fait", "zoe"),
        ("Jean Paul on caches", "jean paul"),
        ("what did Ann tell Bob", ""),
        ("what did Ann tell ann", "ann"),
        ("the planning meeting", ""),
        ("bobsled", ""),
        ("", ""),
    ],
)
def test_an_author_is_heard_when_exactly_one_of_those_who_wrote_is_named(text: str, author: str) -> None:
    assert hints_in(text, AGENTS).author == author


def test_one_author_in_two_spellings_is_one() -> None:
    assert hints_in("what did zoe do", ["Zoë", "zoe", "ZOE"]).author == "zoe"


def test_somebody_without_a_name_is_not_heard_everywhere() -> None:
    assert hints_in("what happened here", ["", ""]).author == ""


@pytest.mark.parametrize("agent", ["claude-code", "gpt-5.1", "ann@example"])
def test_an_author_whose_name_has_a_hyphen_or_a_dot_is_heard(agent: str) -> None:
    """Most agents are called like that."""
    assert hints_in(f"what did {agent} decide?", [agent, "bob"]).author == agent


# --- what kind ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("why did we decide on kafka", {"decision"}),
        ("which database was chosen", {"decision"}),
        ("pourquoi a-t-on choisi kafka", {"decision"}),
        ("quelle décision sur la file", {"decision"}),
        ("what is still to do", {"todo"}),
        ("open todos", {"todo"}),
        ("ce qui reste à faire", {"todo"}),
        ("the bug in upload", {"issue"}),
        ("régressions de la semaine", {"issue"}),
        ("une panne du serveur", {"issue"}),
        ("questions ouvertes", {"question"}),
        ("any open questions", {"question"}),
        ("progress on the parser", {"progress"}),
        ("état d'avancement", {"progress"}),
        ("what have we learned", {"insight"}),
        ("les leçons du mois", {"insight"}),
        ("decisions about the bug", {"decision", "issue"}),
        ("a decided bugger", {"decision"}),
        ("the weather", set()),
        ("undecided", set()),
    ],
)
def test_kinds_of_notes_are_heard_in_both_languages(text: str, types: set[str]) -> None:
    assert hints_in(text, ()).types == types


# --- when --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("in March 2026", {(2026, 3, None)}),
        ("en mars 2026", {(2026, 3, None)}),
        ("le 3 mars", {(None, 3, 3)}),
        ("le 3 mars 2026", {(2026, 3, 3)}),
        ("le 1er août", {(None, 8, 1)}),
        ("on the 3rd of march", {(None, 3, 3)}),
        ("January 7, 2026", {(2026, 1, 7)}),
        ("January 7th", {(None, 1, 7)}),
        ("in january and in Feb", {(None, 1, None)}),
        ("décembre ou février", {(None, 12, None), (None, 2, None)}),
        ("in may", {(None, 5, None)}),
        ("depuis mai", {(None, 5, None)}),
        ("since mars", {(None, 3, None)}),
        ("may 2025", {(2025, 5, None)}),
        ("what may go wrong", set()),
        ("may we use it", set()),
        ("the mars probe", set()),
        ("mai tai", set()),
        ("marching on", set()),
        ("in 2026", set()),
        ("january 45", {(None, 1, None)}),
    ],
)
def test_times_are_heard_in_both_languages_and_verbs_are_no_months(
    text: str, months: set[tuple[int | None, int, int | None]]
) -> None:
    assert hints_in(text, ()).months == months


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("in march", 1),
        ("in march 2026", 1),
        ("3 march 2026", 1),
        ("4 march 2026", 0),
        ("march 2025", 0),
        ("in april", 0),
        ("todo of march 2026", 2),
        ("decision of april", 0),
        ("", 0),
    ],
)
def test_a_record_fits_a_hint_by_its_kind_and_by_its_time(text: str, fits: int) -> None:
    assert hints_in(text, ()).fit(record()) == fits


def test_a_day_is_a_day_in_universal_time() -> None:
    hints = hints_in("3 march", ())
    assert hints.fit(record(datetime(2026, 3, 3, 0, 0, tzinfo=UTC)))
    assert hints.fit(record(datetime(2026, 3, 3, 23, 59, 59, tzinfo=UTC)))
    assert not hints.fit(record(datetime(2026, 3, 4, 0, 0, tzinfo=UTC)))


# --- one thing or several ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "What cities has Ann been to?",
        "which two backup drills did we run",
        "What kind of errors does the parser report?",
        "In what ways is Ann helping?",
        "what people has Ann met",
        "What are the open risks",
        "who were the reviewers",
        "How many times did the build fail?",
        "how often does it run",
        "what do Ann and Bob have in common",
        "Did Ann and Bob both agree?",
        "Quelles villes Ann a-t-elle visitées ?",
        "quels sont les risques",
        "lesquels ont échoué",
        "combien de fois la compilation a-t-elle échoué",
        "ce qu'Ann et Bob ont en commun",
        "ont-ils tous les deux accepté",
        "Summarise how the parser grew",
        "list the order in which I asked about tests",
        "what have I said so far of the parser",
        "tout ce que Bob a dit du parseur",
    ],
)
def test_a_question_for_several_things_is_heard_by_its_form_in_both_languages(text: str) -> None:
    assert hints_in(text, ()).several


@pytest.mark.parametrize(
    "text",
    [
        "What city has Ann been to?",
        "what breaks the build",
        "what causes the timeout when it restarts",
        "What status did the server return?",
        "which class was removed",
        "what is this",
        "What does Ann do on Mondays?",
        "what's Ann's address",
        "when did the tests pass",
        "the cities of France",
        "Quelle ville Ann a-t-elle visitée ?",
        "quel est le risque",
        "tous les tests passent",
        "pourquoi les tests échouent",
        "do all the tests pass",
        "",
    ],
)
def test_a_question_for_one_thing_is_not_taken_for_one_for_several(text: str) -> None:
    assert not hints_in(text, ()).several


# --- anything ----------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        "march", "mai", "may", "3", "31st", "99", "2026", "1e", "²", "٣", "in", ",", "of", "Ann", "decid", "\ud800",
        "\0", "  ",
    ]
)  # fmt: skip


@given(
    st.one_of(st.text(alphabet=st.characters(exclude_categories=())), st.lists(PARTS, max_size=12).map(" ".join)),
    st.lists(st.text(max_size=5), max_size=4),
)
def test_nothing_typed_is_refused_and_what_is_heard_makes_sense(text: str, agents: list[str]) -> None:
    hints = hints_in(text, agents)
    for year, month, day in hints.months:
        assert 1 <= month <= 12
        assert day is None or 1 <= day <= 31
        assert year is None or 1900 <= year <= 2099
    assert hints.fit(record()) in {0, 1, 2}


@pytest.mark.timeout(10)  # of milliseconds, while a search that went back would take hours
def test_a_page_that_was_pasted_is_heard_in_no_time() -> None:
    dates = hints_in("june 3 " * 20_000 + "a" * 100_000 + "1 " * 50_000, ["ann"] * 100)
    nouns = hints_in("what kinds of " * 10_000 + "which " + "ss" * 50_000 + " what" * 20_000, ["ann"])
    assert dates == Hints(months=frozenset({(None, 6, 3)}))
    assert nouns == Hints()


def test_no_question_no_hint() -> None:
    assert hints_in("", AGENTS) == Hints()
