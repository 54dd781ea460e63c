"""Searching: nothing that does not fit is ever let through, and the same question has the same answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import index_world
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_world import read

from livememfs.recall.index.local import Index
from livememfs.recall.index.record import Record
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import DEFAULT_LIMIT, READ, RankedHit, Ranking, search
from livememfs.testing.embed import hashed

NOW = datetime(2026, 6, 15, tzinfo=UTC)
DIM = 128
SPACES = ("here", "there")


note = partial(index_world.note, space="here")


def fill(index: Index, *records: Record) -> None:
    """Takes in records, each an object of its own, and embeds them by what they say themselves."""
    index.apply((), [read(record) for record in records])
    while texts := index.unembedded(500):
        rows = np.array([hashed(text.own.partition("): ")[2] or text.own, DIM) for text in texts])
        index.take_vectors([text.meaning for text in texts], rows)


def ask(index: Index, typed: str, *, meaning: bool = True, **options: Any) -> RankedHit:
    """The answer to what somebody typed."""
    query = parse(typed, now=NOW)
    question = hashed(query.text, DIM) if meaning else None
    return search(index, query, question, options.pop("spaces", SPACES), **options)


def titles(found: RankedHit) -> list[str]:
    return [hit.record.title for hit in found.hits]


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


# One index for all that only asks. Notes are days apart, so that none is the context of another.
AGENTS = ("Ann", "bob", "Zoë d'Arc")
TYPES = ("decision", "todo", "issue")
TAGS = ("db", "École", "x:y")
FILES = ("src/auth.py", "docs/README.md", "src/Étude.py")
WORDS = ("queue", "broker", "retry", "upload", "cache", "token")


def _corpus() -> list[Record]:
    """Sixty records that go through every combination of a few properties, in steps that share no factor."""
    found = []
    for n in range(60):
        kind = ("live", "live", "live", "bank", "synthesis")[n % 5]
        live = kind == "live"
        labels = [("tag", TAGS[n % 3])] if n % 4 else []
        labels += [("file", FILES[n % 7 % 3])] if n % 3 == 0 else []
        text = f"{WORDS[n % 6]} and {WORDS[n * 5 % 7 % 6]} number{n}"
        found.append(
            note(
                f"n{n}",
                text,
                day(n),
                kind=kind,
                space=SPACES[n % 11 % 2],
                type=TYPES[n % 7 % 3] if live else "",
                agent=AGENTS[n % 13 % 3] if live else "",
                labels=tuple(labels),
            )
        )
    return found


CORPUS = _corpus()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    index = Index(tmp_path_factory.mktemp("shelf"), "hashed")
    fill(index, *CORPUS)
    yield index
    index.close()


# --- which way is taken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meaning", "strategy"),
    [
        ("queue", True, "semantic"),
        ("queue", False, "words"),
        ("queue type:todo", True, "hybrid"),
        ("queue after:2026-01-03", True, "hybrid"),
        ("queue type:todo", False, "words"),
        ("type:todo", True, "strict"),
        ("type:todo", False, "strict"),
        ("", True, "strict"),
        ("?!", True, "strict"),
        ("after:2026-02", True, "strict"),
        ('"queue and"', True, "semantic"),
        ("what is it", True, "semantic"),
    ],
)
def test_the_strategy_follows_from_the_query(shelf: Index, typed: str, meaning: bool, strategy: str) -> None:
    assert ask(shelf, typed, meaning=meaning).strategy == strategy


@pytest.mark.parametrize("typed", ["???", "🚀", "...", '"?!"'])
def test_a_question_without_a_word_or_a_filter_is_not_answered_by_the_newest(shelf: Index, typed: str) -> None:
    found = ask(shelf, typed)
    assert (found.hits, found.remarks) == ((), ("there is no word in the question",))


def test_signs_beside_a_filter_leave_what_fits_the_filter(shelf: Index) -> None:
    assert titles(ask(shelf, "??? type:decision")) == titles(ask(shelf, "type:decision"))
    assert len(ask(shelf, "").hits) == DEFAULT_LIMIT


def test_filters_alone_are_answered_by_date_the_newest_first(shelf: Index) -> None:
    found = ask(shelf, "type:decision", limit=100)
    expected = [one for one in reversed(CORPUS) if one.type == "decision"]
    assert titles(found) == [one.title for one in expected]
    assert [dict(hit.reasons) for hit in found.hits] == [{"date": rank} for rank in range(1, len(expected) + 1)]


def test_words_are_found_without_a_question_vector(shelf: Index) -> None:
    assert titles(ask(shelf, "number17", meaning=False)) == ["n17"]
    assert dict(ask(shelf, "number17", meaning=False).hits[0].reasons) == {"words": 1}


def test_meaning_finds_what_has_no_word_in_common(index: Index) -> None:
    fill(index, note("one", "queue", day(1)), note("two", "lunch", day(2)), note("three", "garden", day(3)))
    found = search(index, parse("enqueuing", now=NOW), hashed("queue", DIM), SPACES)
    assert found.hits[0].record.title == "one"
    assert dict(found.hits[0].reasons) == {"meaning": 1}


# --- filters -----------------------------------------------------------------------------------------------------

KINDS = {"live": {"live"}, "bank": {"bank", "synthesis"}}


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, Any]:
    """Filters as they are typed, and what they mean in plain Python."""
    typed: list[str] = []
    tests: list[Any] = []

    def add(field: str, values: tuple[str, ...], has: Any) -> None:
        chosen = draw(st.sets(st.sampled_from(values), max_size=2))
        if chosen:
            negative = draw(st.booleans())
            typed.append(f"{'-' * negative}{field}:" + ",".join(f'"{value}"' for value in sorted(chosen)))
            tests.append(lambda record: has(record, chosen) != negative)

    add("type", TYPES, lambda record, values: record.type in values)
    add("agent", ("ANN", "bob", "zoe d'arc"), lambda record, values: _folded(record.agent) in {*map(_folded, values)})
    add(
        "tag",
        ("db", "x:y"),
        lambda record, values: any(label in {("tag", v) for v in values} for label in record.labels),
    )
    add("file", ("auth", "README"), lambda record, values: _has_file(record, values))
    add("in", ("live", "bank"), lambda record, values: record.kind in set().union(*(KINDS[value] for value in values)))
    add("space", SPACES, lambda record, values: record.space in values)
    if draw(st.booleans()):
        first = draw(st.integers(0, 60))
        typed.append(f"after:{day(first):%Y-%m-%d}")
        tests.append(lambda record: record.created >= day(first).timestamp())
    if draw(st.booleans()):
        last = draw(st.integers(0, 60))
        typed.append(f"before:{day(last):%Y-%m-%d}")
        tests.append(lambda record: record.created < day(last).timestamp())
    return " ".join(typed), lambda record: all(test(record) for test in tests)


def _folded(text: str) -> str:
    return text.lower().replace("ë", "e")


def _has_file(record: Record, names: set[str]) -> bool:
    return any(name == "file" and part.lower() in value.lower() for name, value in record.labels for part in names)


@given(filters())
def test_filters_alone_let_through_exactly_what_fits(shelf: Index, chosen: tuple[str, Any]) -> None:
    typed, fits = chosen
    found = titles(ask(shelf, typed, limit=100))
    assert found == [one.title for one in reversed(CORPUS) if fits(one)]


def _asked_of_filters(shelf: Index, typed: str, fits: Any, words: str, meaning: bool) -> None:
    found = ask(shelf, f"{words} {typed}", meaning=meaning, limit=100)
    assert [hit.record.title for hit in found.hits if not fits(hit.record)] == []
    having = {one.title for one in CORPUS if fits(one) and words in one.text}
    assert having <= set(titles(found))
    assert len(set(titles(found))) == len(found.hits)


@given(filters(), st.sampled_from(WORDS))
def test_words_with_filters_find_all_that_has_them_and_nothing_that_does_not_fit(
    shelf: Index, chosen: tuple[str, Any], words: str
) -> None:
    _asked_of_filters(shelf, *chosen, words, meaning=False)


@given(filters().filter(lambda chosen: "tag:" not in chosen[0]), st.sampled_from(WORDS))
def test_meaning_with_filters_finds_nothing_that_does_not_fit(
    shelf: Index, chosen: tuple[str, Any], words: str
) -> None:
    _asked_of_filters(shelf, *chosen, words, meaning=True)


@pytest.mark.parametrize("typed", ["tag:db", "-tag:db", "tag:db,x:y"])
def test_meaning_with_a_tag_finds_nothing_that_does_not_fit(shelf: Index, typed: str) -> None:
    wanted = {"db", "x:y"} if "," in typed else {"db"}
    found = ask(shelf, f"queue {typed}", limit=100)
    fit = [any(("tag", tag) in hit.record.labels for tag in wanted) for hit in found.hits]
    assert not any(fit) if typed.startswith("-") else all(fit)


@pytest.mark.parametrize("typed", ["tag:école", "tag:ÉCOLE", "tag:École"])
@pytest.mark.parametrize("words", ["", "number1 "])
def test_a_tag_is_found_whatever_its_capitals(shelf: Index, typed: str, words: str) -> None:
    found = ask(shelf, words + typed, meaning=False, limit=100)
    assert "n1" in titles(found)


@pytest.mark.parametrize("typed", ["file:AUTH", "file:src/auth.py", "file:uth.p", 'file:"auth.py"'])
def test_a_part_of_a_file_name_is_enough(shelf: Index, typed: str) -> None:
    found = ask(shelf, typed, limit=100)
    assert found.hits
    assert all(("file", "src/auth.py") in hit.record.labels for hit in found.hits)
    assert set(titles(ask(shelf, f"queue {typed}", limit=100))) == set(titles(found))


def test_a_file_name_with_an_accent_is_found_whatever_its_capitals(shelf: Index) -> None:
    assert ask(shelf, "file:étude").hits


@pytest.mark.parametrize("typed", ["agent:zoe\\ d'arc", 'agent:"zoë d\'arc"', 'agent:"ZOE D\'ARC"'])
def test_the_agent_is_found_whatever_capitals_and_accents(shelf: Index, typed: str) -> None:
    if "\\" in typed:
        typed = 'agent:"zoe d\'arc"'
    found = ask(shelf, typed, limit=100)
    assert found.hits
    assert {hit.record.agent for hit in found.hits} == {"Zoë d'Arc"}


@pytest.mark.parametrize(
    "typed",
    ["agent:nobody", "queue agent:nobody", "type:decision space:elsewhere", "queue file:nothing.rs", "type:nope"],
)
def test_a_filter_that_nobody_fits_finds_nothing_and_says_so(shelf: Index, typed: str) -> None:
    found = ask(shelf, typed)
    assert found.hits == ()
    assert found.remarks


def test_an_agent_who_is_unwanted_and_unknown_changes_nothing(shelf: Index) -> None:
    assert titles(ask(shelf, "-agent:nobody", limit=100)) == titles(ask(shelf, "", limit=100))


def test_spaces_that_were_not_given_are_not_searched_even_when_asked_for(shelf: Index) -> None:
    for typed in ("queue", "", "queue space:there", "space:there", "space:here,there queue"):
        found = ask(shelf, typed, spaces=("here",), limit=100)
        assert {hit.record.space for hit in found.hits} <= {"here"}
    assert ask(shelf, "space:there", spaces=("here",)).hits == ()
    assert ask(shelf, "queue", spaces=()).hits == ()


def test_what_fits_the_filter_completes_the_answer_by_date(index: Index) -> None:
    fill(
        index,
        *[note(f"n{n}", "lunch" if n != 3 else "queue", day(n), type="decision") for n in range(6)],
        note("other", "queue", day(9), type="todo"),
    )
    found = ask(index, "queue type:decision", meaning=False)
    assert titles(found) == ["n3", "n5", "n4", "n2", "n1", "n0"]
    assert [list(hit.reasons) for hit in found.hits] == [["words"]] + [["date"]] * 5
    assert titles(ask(index, "queue type:decision", meaning=False, limit=3)) == ["n3", "n5", "n4"]


# --- phrases and what to leave out -------------------------------------------------------------------------------


@pytest.fixture
def phrases(index: Index) -> Index:
    fill(
        index,
        note("exact", "exactly twice delivered", day(1)),
        note("both", "delivered twice, not exactly", day(2)),
        note("kafka", "delivered by kafka", day(3)),
        note("redis", "delivered by redis", day(4)),
        note("lunch", "lunch", day(5)),
    )
    return index


def test_a_phrase_with_free_words_comes_first_and_the_rest_follows(phrases: Index) -> None:
    found = ask(phrases, '"exactly twice" delivered')
    assert titles(found)[0] == "exact"
    assert {"both", "kafka", "redis"} <= set(titles(found))
    assert found.remarks


def test_a_phrase_alone_finds_nothing_else(phrases: Index) -> None:
    assert titles(ask(phrases, '"exactly twice"')) == ["exact"]
    assert titles(ask(phrases, '"exactly twice" type:todo')) == ["exact"]


def test_a_phrase_that_nobody_wrote_is_taken_for_words_and_that_is_said(phrases: Index) -> None:
    found = ask(phrases, '"delivered exactly"')
    assert {"exact", "both"} <= set(titles(found))
    assert "none" in found.remarks[0]


@pytest.mark.parametrize("meaning", [False, True])
@pytest.mark.parametrize("typed", ["delivered -kafka", 'delivered -"by kafka"', "delivered -KAFKA type:todo"])
def test_what_is_unwanted_is_found_neither_by_words_nor_by_meaning(phrases: Index, typed: str, meaning: bool) -> None:
    found = titles(ask(phrases, typed, meaning=meaning))
    assert "kafka" not in found
    assert "redis" in found


def test_each_of_several_unwanted_words_excludes_from_the_words(phrases: Index) -> None:
    assert set(titles(ask(phrases, "delivered -kafka -redis", meaning=False))) == {"exact", "both"}


def test_each_of_several_unwanted_words_excludes_from_the_meaning(phrases: Index) -> None:
    assert {"kafka", "redis"}.isdisjoint(titles(ask(phrases, "delivered -kafka -redis")))


@pytest.mark.parametrize("typed", ["-kafka", "type:todo -kafka"])
def test_unwanted_words_exclude_where_nothing_but_filters_is_asked(phrases: Index, typed: str) -> None:
    assert "kafka" not in titles(ask(phrases, typed))


# --- order -------------------------------------------------------------------------------------------------------


def test_a_record_with_several_pieces_is_found_once_by_the_best_of_them(index: Index) -> None:
    pieces = ("queue lunch and much else that was said", "garden", "queue broker")
    fill(index, note("many", pieces, day(1)), note("pad", "lunch", day(2)), note("pads", "garden", day(3)))
    for meaning in (False, True):
        found = ask(index, "queue broker", meaning=meaning)
        assert titles(found).count("many") == 1
        assert titles(found)[0] == "many"
        assert found.hits[0].piece == 2


def test_of_equals_the_newest_comes_first_and_then_the_name_decides(index: Index) -> None:
    same = [note(name, "queue", day(at), kind="bank") for name, at in (("b", 9), ("old", 1), ("a", 9), ("new", 20))]
    fill(index, *same)
    for meaning in (False, True):
        assert titles(ask(index, "queue", meaning=meaning)) == ["new", "a", "b", "old"]


@pytest.mark.parametrize("meaning", [False, True])
def test_the_same_question_has_the_same_answer_whatever_the_order_of_arrival(tmp_path: Path, meaning: bool) -> None:
    answers = []
    for turn, records in enumerate((CORPUS, CORPUS[::-1])):
        index = Index(tmp_path / str(turn), "hashed")
        fill(index, *records)
        answers.append([titles(ask(index, word, meaning=meaning, limit=5)) for word in WORDS])
        answers.append([titles(ask(index, word, meaning=meaning, limit=5)) for word in WORDS])
        index.close()
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]
    assert not meaning or [sorted(answer[:1]) for answer in answers[0]] == [sorted(answer[:1]) for answer in answers[2]]


def test_scores_fall_and_ranks_of_each_list_are_counted_from_one(shelf: Index) -> None:
    found = ask(shelf, "queue broker retry", limit=100)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    for name in ("words", "meaning"):
        ranks = sorted(hit.reasons[name] for hit in found.hits if name in hit.reasons)
        assert ranks[0] == 1
        assert len(set(ranks)) == len(ranks)


def test_who_is_named_in_a_question_comes_before_others_who_said_the_same(index: Index) -> None:
    fill(index, note("ann", "queue broker", day(9)), note("bob", "queue broker", day(1), agent="Bob"))
    assert titles(ask(index, "queue broker", meaning=False)) == ["ann", "bob"]
    assert titles(ask(index, "what did Bob say of the queue broker", meaning=False))[0] == "bob"


def test_who_is_named_comes_before_who_is_talked_about(index: Index) -> None:
    fill(
        index, note("by", "the queue broker", day(1), agent="Bob"), note("about", "Bob: queue broker, said Bob", day(9))
    )
    typed = "what did Bob say of the queue broker"
    assert titles(ask(index, typed, meaning=False)) == ["by", "about"]
    assert titles(ask(index, typed, meaning=False, ranking=Ranking(author=1.0))) == ["about", "by"]


def test_what_fits_a_hint_comes_before_what_does_not(index: Index) -> None:
    fill(index, note("todo", "queue broker", day(9)), note("decided", "queue broker", day(1), type="decision"))
    found = ask(index, "which queue broker was decided", meaning=False)
    assert titles(found)[0] == "decided"
    assert found.hits[0].reasons["hints"] == 1


def test_an_answer_comes_before_a_question(index: Index) -> None:
    fill(index, note("question", "which queue broker?", day(9)), note("answer", "that queue broker.", day(1)))
    assert titles(ask(index, "queue broker", meaning=False)) == ["answer", "question"]


ONE, SEVERAL = "which queue broker did fail", ("which queue brokers did fail", "quels queue broker ?")
LONG = "queue broker stopped because the disk of the second machine had no room left after the nightly copy"


@pytest.mark.parametrize("typed", SEVERAL)
def test_of_what_fits_what_says_more_comes_first_when_several_things_are_asked_for(index: Index, typed: str) -> None:
    fill(index, note("short", "queue broker", day(1)), note("long", LONG, day(9)))
    assert titles(ask(index, typed, meaning=False)) == ["long", "short"]
    assert titles(ask(index, typed, meaning=False, ranking=Ranking(length=0.0))) == ["short", "long"]
    assert titles(ask(index, typed, meaning=False, ranking=Ranking(several=False))) == ["short", "long"]
    assert titles(ask(index, "queue broker", meaning=False)) == ["short", "long"]


@pytest.mark.parametrize("typed", SEVERAL)
def test_when_several_things_are_asked_for_one_sitting_does_not_fill_the_answer(index: Index, typed: str) -> None:
    talk = [note(f"talk{n}", "queue broker", day(9) + timedelta(minutes=n)) for n in range(4)]
    fill(index, *talk, note("elsewhere", "queue broker or some such", day(1)))
    ranking = Ranking(further=0.4, floor=False)
    assert titles(ask(index, ONE, meaning=False, ranking=ranking)).index("elsewhere") == 4
    assert titles(ask(index, typed, meaning=False, ranking=ranking)).index("elsewhere") == 1


def scores(found: RankedHit) -> dict[str, float]:
    return {hit.record.title: hit.score for hit in found.hits}


def test_where_several_things_are_asked_for_the_best_of_a_sitting_loses_nothing_and_the_others_ever_more(
    index: Index,
) -> None:
    talk = [note(f"t{n}", "queue broker" + " lunch" * (3 - n), day(9) + timedelta(minutes=n)) for n in range(4)]
    fill(index, *talk, note("elsewhere", "queue broker", day(1)))
    plain = scores(ask(index, SEVERAL[0], meaning=False, ranking=Ranking(further=0.0, floor=False)))
    found = scores(ask(index, SEVERAL[0], meaning=False, ranking=Ranking(floor=False)))
    by_score = sorted((name for name in plain if name != "elsewhere"), key=lambda name: -plain[name])
    assert by_score[0] != "t0"  # or the order of time would be as good
    assert found["elsewhere"] == plain["elsewhere"]
    assert [found[name] for name in by_score] == pytest.approx(
        [plain[name] * 0.95**n for n, name in enumerate(by_score)]
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_hit_gains_a_quarter_of_the_best_three_of_its_sitting_shared_by_three(index: Index, size: int) -> None:
    talk = [note(f"t{n}", "queue broker" + " lunch" * n, day(9) + timedelta(minutes=n)) for n in range(size)]
    fill(index, *talk, note("pad", "lunch", day(1)))
    plain = scores(ask(index, "queue broker", meaning=False, ranking=Ranking(sitting=0.0)))
    found = scores(ask(index, "queue broker", meaning=False))
    gain = 0.25 * sum(sorted(plain.values())[-3:]) / 3
    assert len(plain) == size
    assert found == pytest.approx({name: score + gain for name, score in plain.items()})


@pytest.mark.parametrize(
    ("apart", "between", "gains"),
    [((1_800, "here"), (), True), ((1_801, "here"), (), False), ((60, "there"), (), False),
     ((60, "here"), ("there",), True)],
)  # fmt: skip
def test_a_sitting_is_what_one_space_wrote_with_no_more_than_half_an_hour_between(
    index: Index, apart: tuple[int, str], between: tuple[str, ...], gains: bool
) -> None:
    seconds, space = apart
    pair = [
        note("first", "queue broker", day(1)),
        note("second", "queue broker", day(1) + timedelta(seconds=seconds), space=space),
    ]
    others = [note("other", "queue", day(1) + timedelta(seconds=30), space=other) for other in between]
    fill(index, *pair, *others, note("alone", "queue broker", day(9)))
    found = scores(ask(index, "queue broker", meaning=False, limit=100))
    plain = scores(ask(index, "queue broker", meaning=False, limit=100, ranking=Ranking(sitting=0.0)))
    share = {name: found[name] / plain[name] for name in found}
    assert share["alone"] == pytest.approx(1 + 0.25 / 3)
    assert (share["first"] > share["alone"] * 1.01) == gains
    assert (share["second"] > share["alone"] * 1.01) == gains


def test_of_what_fits_what_names_something_comes_first(index: Index) -> None:
    fill(index, note("plain", "the queue broker is at rest", day(9)), note("named", "queue broker at Rest", day(1)))
    for typed in ("queue broker", *SEVERAL):
        assert titles(ask(index, typed, meaning=False)) == ["named", "plain"]
    assert titles(ask(index, "queue broker", meaning=False, ranking=Ranking(names=0.0))) == ["plain", "named"]


def test_what_is_not_read_stays_behind_what_is(shelf: Index) -> None:
    typed = "which queue brokers did fail"
    plain = titles(ask(shelf, typed, limit=100, ranking=Ranking(names=0.0, length=0.0, further=0.0, floor=False)))
    found = titles(ask(shelf, typed, limit=100, ranking=Ranking(further=0.0, read=3, floor=False)))
    assert set(found[:3]) == set(plain[:3])
    assert found[3:] == plain[3:]


@pytest.mark.parametrize("typed", ["queue broker", *SEVERAL])
def test_records_are_read_once_for_ranking_and_answer(
    shelf: Index, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    """Each reading is a way to a server and back where the index is a database."""
    read: list[int] = []
    records = shelf.records

    def counted(ids: Sequence[int]) -> dict[int, Record]:
        read.append(len(ids))
        return records(ids)

    monkeypatch.setattr(shelf, "records", counted)
    assert ask(shelf, typed, limit=10, ranking=Ranking(floor=False)).hits
    assert len(read) == 1
    assert read[0] <= READ


# --- how many ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["queue", "type:todo,decision,issue", "queue type:todo,decision,issue"])
def test_the_limit_that_is_typed_counts_before_the_one_that_is_given(shelf: Index, typed: str) -> None:
    assert len(ask(shelf, typed).hits) == DEFAULT_LIMIT
    assert len(ask(shelf, typed, limit=4).hits) == 4
    assert len(ask(shelf, f"{typed} limit:3", limit=4).hits) == 3


def test_an_empty_index_answers_with_nothing(index: Index) -> None:
    for typed in ("queue", "", "type:todo", '"a phrase"', "-no"):
        assert ask(index, typed).hits == ()


@settings(max_examples=40)
@given(st.text(max_size=60), st.booleans())
def test_whatever_is_typed_is_answered(shelf: Index, typed: str, meaning: bool) -> None:
    found = ask(shelf, typed, meaning=meaning)
    assert len(found.hits) <= 100
