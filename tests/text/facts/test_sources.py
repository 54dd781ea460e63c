"""Facts without a source: a source counts in whatever form it is written, but never by a part of another fact."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.text.facts.sources import DatedText, Sources, UnsourcedFact, facts, is_hard, unsourced

# --- what is a fact --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The limit is 60 s.", ["60 s"]),
        ("On 2026-02-20 we fixed #12 in `src/auth.py:42`.", ["2026-02-20", "#12", "src/auth.py", "42"]),
        ("Released v2.1, then 1.2.3-rc1", ["v2.1", "1.2.3-rc1"]),
        ("20 February 2026 and Feb 21, 2026", ["20 February 2026", "Feb 21, 2026"]),
        ("Le 1er février 2026 à 14h30", ["1er février 2026", "14h30"]),
        ("at 14:00, 2:00 PM", ["2:00 PM", "14:00"]),
        ("1,000 and 1 000 and 25 % and 25%", ["1 000", "1,000", "25 %", "25%"]),
        ("model qwen3-2507 in **bold42**", ["qwen3-2507", "bold42"]),
        ("see [it](https://example.org/a/b.html).", ["https://example.org/a/b.html"]),
        ("look at auth.py, /etc/hosts and ./run", ["auth.py", "/etc/hosts", "./run"]),
        ("`livememfs/records` and `GET /v1/users`", ["livememfs/records", "/v1/users"]),
        ("| 1 | two |", ["1"]),
        ("_60_ and __61__ and _62 s_ in `__init__.py`", ["60", "61", "62", "__init__.py"]),
        ("12 and 12", ["12"]),
        ("2024-2026, 3-day, 5/10", ["2024", "2026", "3-day", "5/10"]),
        ("## 1.2.0 (2026-02-20)", ["1.2.0", "2026-02-20"]),
        ("## 20 February 2026", ["20 February 2026"]),
        ("## 60 s are enough", ["60 s"]),
        ("commit 9fceb02", ["9fceb02"]),
        ("_60._ and #_61", ["60", "61"]),
    ],
)
def test_facts_are_found_as_they_are_written(line: str, expected: list[str]) -> None:
    assert sorted(facts(line)) == sorted(expected)


@pytest.mark.parametrize(
    "line",
    [
        "", "# Title", "### 3. Setup", "## 2.1 Setup", "## 3 Architecture", "1. First", "  12) twelfth",
        "> - 1. quoted", "- [x] done", "```python3", "~~~ {start=3}", "A claim[^1] and &#39;quotes&#39;",
        "<h2>A title</h2>", "Step 2: and/or, client/server, I/O, e.g. this. Or that.", "May we march on? No.", "---",
        "| --- | :-: |", "etc... end.",
    ],
)  # fmt: skip
def test_marks_are_no_facts(line: str) -> None:
    assert facts(line) == []


# --- what sources say ------------------------------------------------------------------------------------------------

DATES = (
    "2026-02-20", "20 February 2026", "20 février 2026", "20/02/2026", "20.02.2026", "2026/02/20", "Feb 20, 2026",
    "February 20th 2026", "20260220T140000", "2026-02-20T14:00:00Z", "2026-02-20T14:00:00.123+01:00",
    "20260220T140000_cline_decision_1a2b3c4d.md",
)  # fmt: skip


@pytest.mark.parametrize("source", DATES)
@pytest.mark.parametrize("said", DATES[:8])
def test_a_date_is_found_in_every_form(source: str, said: str) -> None:
    assert Sources([f"It was {source}, they say."]).knows(f"on {said}")


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("1,000", "1000"),
        ("1 000", "1000"),
        ("1\u202f000 items", "1,000"),
        ("1000", "1 000"),
        ("10k", "10,000"),
        ("v2.1", "2.1"),
        ("2.1", "v2.1"),
        ("version 2", "v2"),
        ("issue 12", "#12"),
        ("https://example.org/a/b/pull/12", "#12"),
        ("#12", "issue 12"),
        ("60s", "60 s"),
        ("60 s", "60s"),
        ("60 seconds", "60s"),
        ("25 %", "25%"),
        ("3 days", "3-day"),
        ("src/auth.py", "auth.py"),
        ("a/" * 20 + "b.py", "`a/a/b.py`"),
        ("a/src/auth.py:42", "src/auth.py"),
        ("`livememfs/records/names`", "`livememfs/records`"),
        ("and/or", "`and/or`"),
        ("https://example.org/a/b.html?x=1#y", "https://example.org/a/b.html"),
        ("https://example.org/a/b.html", "b.html"),
        ("14:00", "14h00"),
        ("2026-02-20T14:00:00Z", "14:00"),
        ("2:00 PM", "14:00"),
        ("2026-02-20", "February 2026"),
        ("2026-02-20", "2026"),
        ("2026-02-20", "20 Feb"),
        ("Qwen3-2507", "qwen3-2507"),
        ("3,5 s", "3.5 s"),
        ("02", "2"),
        ("03/04/2026", "2026-03-04"),
        ("03/04/2026", "2026-04-03"),
        ("**2026-02-20**", "_2026-02-20_"),
        ("(port 8080)", "host:8080"),
        ("nothing at all", "no fact"),
    ],
)
def test_what_was_said_is_found(source: str, fact: str) -> None:
    assert Sources(["other", source]).knows(fact)


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("2120", "12"),
        ("12", "2120"),
        ("3", "3.0"),
        ("3.0", "3"),
        ("3.1", "3.10"),
        ("1.2.3", "1.2.4"),
        ("2026-02-20", "2026-02-21"),
        ("2026-02-20", "21 February 2026"),
        ("20 February 2026", "20"),
        ("2026-02-20", "20"),
        ("2026-02-20", "March 2026"),
        ("auth.py", "src/auth.py"),
        ("src/auth.py", "lib/auth.py"),
        ("livememfs/store", "livememfs/records"),
        ("src/auth.py", "src/auth.pyi"),
        ("src/auth.py", "uth.py"),
        ("a/" * 100, "`a/a.py`"),
        ("qwen3-2507", "2507"),
        ("S3", "3"),
        ("#12", "#13"),
        ("12 ms", "#12"),
        ("1,000", "1"),
        ("10k", "10"),
        ("14:00", "14:30"),
        ("14:00", "14"),
        ("2 notes", "v2"),
        ("1. this\n2. that", "2"),
        ("https://example.org/a", "https://example.org/b"),
        ("", "7"),
    ],
)
def test_what_nobody_said_is_not_found(source: str, fact: str) -> None:
    assert not Sources([source]).knows(fact)


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("1.5 s", "1500 ms"),
        ("2 GB", "2,000 MB"),
        ("2 GiB", "2 GB"),
        ("10 minutes", "600 s"),
        ("1h30", "90 min"),
        ("half an hour", "30 min"),
        ("12 months", "1 an"),
        ("$1,200", "1 200 $"),
        ("25 %", "0.25"),
        ("60", "60 s"),
        ("60 s", "60"),
        ("1e-4", "0.0001"),
        ("three hosts", "3 hosts"),
        ("vingt-cinq", "25"),
        ("v2.1.0", "v2"),
        ("v2.1.0", "version 2"),
        ("1.2.3", "1.2"),
        ("Python 3.11.4", "Python 3"),
        ("Python 3.11", "python3.11"),
        ("2.1.0", "v2.x"),
        ("0.8.0 and rc2", "0.8.0rc2"),
        ("ADR 12", "ADR-012"),
        ("utf8", "UTF-8"),
        ("node", "`Node.js`"),
        ("the auth module", "`auth/`"),
        ("the cache of prices", "`price_cache/`"),
        ("S3", "S3-only"),
        ("run.py in pipelines", "`pipelines/run.py`"),
        ("src/Auth.py", "src/auth"),
        ("commit 9fceb02a1b2c3d4e", "9fceb02"),
        ("ticket 140", "#140"),
        ("example.org/a/b", "https://example.org/a/b"),
        ("2026-11-23", "lundi 23 nov. 2026, 23.11.26, 23/11, 11/2026, 2026-W48, le 23, the 23rd, Q4"),
        ("du 23 au 25 novembre 2026", "2026-11-25"),
    ],
)
def test_what_was_said_is_found_in_another_form(source: str, fact: str) -> None:
    assert Sources([f"We said {source}."]).unknown(f"It is {fact}, then.") == ()


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("60 s", "60 min"),
        ("2 GB", "2 MB"),
        ("12 EUR", "$12"),
        ("src/auth.py tests/test_cache.py", "tests/auth.py"),
        ("the auth module", "auth.py"),
        ("ADR 12, 13 votes", "ADR-013"),
        ("12 tickets", "#12"),
        ("asyncio", "asyncio2"),
        ("2026-11-23", "2026-W49"),
    ],
)
def test_what_only_looks_alike_is_not_found(source: str, fact: str) -> None:
    assert Sources([source]).unknown(fact) == (fact,)


def test_the_words_of_a_name_are_in_one_text() -> None:
    assert Sources(["a cache", "of prices"]).unknown("`price_cache/`") == ("price_cache/",)


MONDAY = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("yesterday", "2026-11-22"),
        ("avant-hier", "21/11/2026"),
        ("tomorrow", "24 Nov 2026"),
        ("après-demain", "mercredi 25 novembre 2026"),
        ("last Friday", "2026-11-20"),
        ("vendredi dernier", "20 novembre"),
        ("on Friday", "2026-11-27"),
        ("next Monday", "2026-11-30"),
        ("next Friday", "2026-12-04"),
        ("in two days", "2026-11-25"),
        ("il y a 3 jours", "2026-11-20"),
        ("dans quinze jours", "2026-12-07"),
        ("a week ago", "2026-11-16"),
        ("two hours ago", "07:30"),
        ("la semaine prochaine", "2026-W49"),
        ("last month", "October 2026"),
        ("l'année prochaine", "2027"),
        ("fin du mois", "2026-11-30"),
        ("the end of January", "31 January 2027"),
        ("in March", "2027-03"),
        ("le 15", "2026-12-15"),
        ("3 janvier", "2027-01-03"),
        ("noon", "12:00"),
    ],
)
def test_a_day_that_is_meant_is_reckoned_from_when_it_was_written(said: str, day: str) -> None:
    sources = Sources([DatedText(f"It is {said}, they say.", MONDAY)])

    assert sources.unknown(f"on {day}") == ()
    assert Sources([f"It is {said}, they say."]).unknown(f"on {day}") != ()


@pytest.mark.parametrize("said", ["yesterday", "vendredi dernier", "in two days", "3 janvier", "le 15"])
def test_another_day_than_the_one_that_is_meant_has_no_source(said: str) -> None:
    assert Sources([DatedText(said, MONDAY)]).unknown("2026-11-18") == ("2026-11-18",)


@pytest.mark.parametrize("word", ["yesterday", "hier", "last Friday", "demain", "la semaine dernière"])
def test_a_day_that_is_only_meant_is_no_fact(word: str) -> None:
    assert facts(f"It was {word}.") == []


HARD = ("2026-11-23", "23 nov.", "v2", "1.2.3", "#12", "src/a.py", "auth/", "https://example.org")


@pytest.mark.parametrize("fact", [*HARD, "60 s", "12", "5/10", "3.5", "qwen3"])
def test_dates_versions_references_and_paths_are_hard(fact: str) -> None:
    assert is_hard(fact) is (fact in HARD)


@given(line=st.deferred(lambda: lines), text=st.deferred(lambda: lines))
def test_a_fact_means_the_same_alone_as_in_its_line(line: str, text: str) -> None:
    """A fact of a line that has no source has none when it is asked for by itself."""
    known = Sources([text])

    assert [fact for fact in known.unknown(line) if known.knows(fact)] == []


# --- lines -----------------------------------------------------------------------------------------------------------


def test_each_added_line_is_named_with_what_nobody_said() -> None:
    old = "# Facts\n\n- port 8080\n"
    new = "# Facts\r\n\r\n- port 8080\r\n- port 9090, since 2026-02-20\r\n- no fact\r\n- 9 of 10\r\n"

    assert unsourced(old, new, ["9090", "there are 10"]) == [
        UnsourcedFact(4, "- port 9090, since 2026-02-20", ("2026-02-20",)),
        UnsourcedFact(6, "- 9 of 10", ("9",)),
    ]


def test_the_old_text_is_a_source() -> None:
    assert unsourced("port 8080\n", "the port is 8080\n", []) == []
    assert unsourced("port 8080\n", "the port is 8080\n", Sources(["x"])) == []
    assert unsourced("port 8080\n", "the ports are 8080 and 81\n", Sources([])) == [
        UnsourcedFact(1, "the ports are 8080 and 81", ("81",))
    ]


def test_a_line_that_only_moved_is_not_added() -> None:
    old = "1. a `x1` 5\n2. b 6\n"

    assert unsourced(old, "* b 6\n  - [x] a `x1`  5\n", Sources([])) == []


def test_a_line_is_there_as_often_as_it_was() -> None:
    """A second copy is an added line, but the old text is its source."""
    assert unsourced("", "at 5\nat 5\n", []) == [UnsourcedFact(1, "at 5", ("5",)), UnsourcedFact(2, "at 5", ("5",))]
    assert unsourced("at 5\n", "at 5\nat 5\n", []) == []


words = st.sampled_from(
    [
        "a", "12", "1,000", "1 000", "2026-02-20", "20", "February", "feb.", "2026", "may", "mars", "1er", "#7",
        "issue", "v2", "version", "1.2.3", "src/a.py", "`x/y`", "and/or", "https://e.org/issues/3?q=1.", "(14:00)",
        "2:00", "PM", "14h30", "qwen3-2507", "_60_", "**25%**", "60", "s", "10k", "|", "1.", "-", ">", "##", "[x]",
        "[^1]", "&#39;", "<h2>", "```", "20260220T140000_a_b_00000000.md", "03/04/2026", "3-day", "\u00a0", "5/10",
        "x:1", "99/99/2026", "~/.a", "../", "@1", "1_000", "²", "٣", "Step", "000",
    ]
)  # fmt: skip
lines = st.one_of(
    st.lists(words, max_size=9).map(" ".join), st.lists(words, max_size=4).map("".join), st.text(max_size=30)
)


@given(texts=st.lists(st.lists(lines, max_size=4).map("\n".join), min_size=1, max_size=4), data=st.data())
def test_a_line_of_any_source_is_never_unsourced(texts: list[str], data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(texts))
    line = data.draw(st.sampled_from(source.replace("\r", "\n").split("\n")))

    assert unsourced("", line, texts) == []
    assert unsourced("", f"\n{line}\n", Sources(texts)) == []


@given(line=lines)
def test_a_fact_is_known_to_its_own_line(line: str) -> None:
    known = Sources([line])

    assert known.unknown(line) == ()
    assert [fact for fact in facts(line) if not known.knows(fact)] == []


@given(texts=st.lists(lines, max_size=5), line=lines, seed=st.randoms(use_true_random=False))
def test_the_order_of_the_sources_says_nothing(texts: list[str], line: str, seed: random.Random) -> None:
    shuffled = list(texts)
    seed.shuffle(shuffled)

    assert unsourced("", line, texts) == unsourced("", line, shuffled)


@given(old=lines, new=lines, texts=st.lists(lines, max_size=3))
def test_sources_may_be_given_as_texts_or_read_beforehand(old: str, new: str, texts: list[str]) -> None:
    """With sources read beforehand, no reading of a fact may be split over the old text and a source."""
    assert {each.number for each in unsourced(old, new, texts)} <= {
        each.number for each in unsourced(old, new, Sources(texts))
    }


# --- how long it takes -----------------------------------------------------------------------------------------------


def test_a_large_bank_and_many_notes_are_read_in_a_moment() -> None:
    chosen = random.Random(1)
    known = ["word", "another", "with", "some", "words", "of", "text", "that", "says", "little"]

    def text(size: int) -> str:
        made = ""
        parts = []
        while size > 0:
            made = " ".join(chosen.choice(known) for _ in range(14)) + f" {chosen.randint(0, 9999)} on 2026-02-20"
            parts.append(made)
            size -= len(made)
        return "\n".join(parts)

    bank, notes = text(1_000_000), [text(2000) for _ in range(500)]
    started = time.thread_time()
    sources = Sources([*notes, bank])
    assert unsourced(bank, f"{bank}\n{notes[0]}\n", sources) == []

    assert time.thread_time() - started < 4


@pytest.mark.parametrize(
    "piece",
    ["1 000 ", "1,", "a/", "2026-", "1-", "_1", "`", "feb ", "1:", "[", "<a", "http://a", "> ", "- ", "5 to "],
)
def test_no_text_is_slow_to_read(piece: str) -> None:
    _read_at_once(piece)


@pytest.mark.parametrize(
    "piece", ["in 3 ", "three ", "le 1 ", "end of ", "Ab 1 ", "$", "aB", "9 h ", "run : ", "twenty-", "last ", "hier "]
)
def test_no_note_is_slow_to_read(piece: str) -> None:
    _read_at_once(piece)


def _read_at_once(piece: str) -> None:
    started = time.thread_time()
    Sources([DatedText(piece * 20_000, MONDAY)])

    assert time.thread_time() - started < 4
