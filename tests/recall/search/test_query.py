"""The language of searches: what is a filter, what is text, and that nothing typed can break it."""

from __future__ import annotations

import time
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from livememfs.recall.search.query import (
    KINDS,
    LISTS,
    MAX_LIMIT,
    MOST_CHARACTERS,
    MOST_PHRASES,
    MOST_WORDS,
    Filter,
    Query,
    _Reading,
    parse,
)

NOW = datetime(2026, 3, 31, 14, 5, 9, 123456, tzinfo=UTC)


def read(text: str) -> Query:
    """The query in a text, asked on the last day of March 2026."""
    return parse(text, now=NOW)


def utc(*parts: int) -> datetime:
    """A moment in UTC."""
    return datetime(*parts, tzinfo=UTC)


# --- words, phrases, what to leave out ---------------------------------------------------------------------------


def test_free_text_is_kept_as_typed_and_its_words_without_punctuation_and_stop_words() -> None:
    query = read("Which database did we choose, and why?")

    assert query.text == "Which database did we choose, and why?"
    assert query.words == ("database", "choose")
    assert query.filters == ()
    assert query.read_as == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l'authentification qu’Élodie", ("authentification", "Élodie")),
        ("aujourd'hui", ("aujourd'hui",)),
        ("`retry_upload()` (UserRepository),", ("retry_upload", "UserRepository")),
        ("C++ C# .env --force src/auth.py v1.2.3.", ("C++", "C#", ".env", "force", "src/auth.py", "v1.2.3")),
        ("Cache cache CACHE cachés caches", ("Cache", "cachés")),
        ("comment est-ce que", ()),
        ("what is it?", ()),
        ("?! ... — -- -> =", ()),
    ],
)
def test_a_word_is_what_is_worth_looking_up(text: str, words: tuple[str, ...]) -> None:
    query = read(text)

    assert query.words == words
    assert query.text == text


@pytest.mark.parametrize(
    "text", ['"exactly once"', "“exactly once”", "« exactly once »", "«\u00a0exactly   once\u202f»"]
)
def test_quotes_of_every_kind_make_a_phrase(text: str) -> None:
    query = read(f"why {text} semantics")

    assert query.phrases == ("exactly once",)
    assert query.words == ("semantics",)
    assert query.text == "why exactly once semantics"


def test_a_phrase_may_begin_inside_a_word_but_not_behind_a_letter_or_digit() -> None:
    assert read('error:"no such file"').phrases == ("no such file",)
    assert read('("no such file")').phrases == ("no such file",)
    assert read('a 5" disk or a 3" disk').phrases == ()


@pytest.mark.parametrize("text", ['"', "“", "»", 'say "hello', '“never closed"', 'a " b', '""', '" "', '"?!"', "«»"])
def test_a_quote_without_a_phrase_is_text(text: str) -> None:
    query = read(text)

    assert query.phrases == ()
    assert query.text == text


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("queue -kafka", ("kafka",)),
        ('queue -"dead letter"', ("dead letter",)),
        ("file -« lettre morte »", ("lettre morte",)),
        ("b -b -a -b,", ("a", "b")),
        ("x -.env -_private -#12", ("#12", ".env", "_private")),
        ("x -foo:bar -http://x", ("foo:bar", "http://x")),
        ("x -C++", ("C++",)),
    ],
)
def test_a_minus_leaves_a_word_or_a_phrase_out(text: str, without: tuple[str, ...]) -> None:
    query = read(text)

    assert query.without == without
    assert f"without {', '.join(without)}" in query.read_as


@pytest.mark.parametrize("text", ["-", "--force", "->", "-=", "a - b", "well-known", '-"!!"', "-…"])
def test_a_minus_before_no_word_is_text(text: str) -> None:
    query = read(text)

    assert query.without == ()
    assert query.text == text


# --- filters -----------------------------------------------------------------------------------------------------


def test_filters_are_taken_out_of_the_text() -> None:
    query = read(
        "type:decision why agent:cline sqlite concept:how-it-works file:auth.py tag:x space:alpha in:bank limit:20"
    )

    assert query.text == "why sqlite"
    wanted = {"type": "decision", "agent": "cline", "concept": "how-it-works", "file": "auth.py"}
    wanted |= {"tag": "x", "space": "alpha", "in": "bank"}
    assert {key: query.wanted(key) for key in wanted} == {key: (value,) for key, value in wanted.items()}
    assert query.limit == 20
    assert query.doubts == ()


@pytest.mark.parametrize(
    "text", ["type:b,a", "type:a type:b", "type:a,b type:a", 'type:"b","a"', "type:B,A", "type:a, type:b", "type:a,b?"]
)
def test_several_values_by_comma_or_by_repeating_are_one_filter(text: str) -> None:
    query = read(text)

    assert query.filters == (Filter("type", ("a", "b")),)
    assert query.text == ""
    assert "type is a or b" in query.read_as


@pytest.mark.parametrize("key", LISTS)
def test_each_list_can_be_asked_for_and_left_out(key: str) -> None:
    value, other = ("bank", "live") if key == "in" else ("alpha", "beta")

    query = read(f"-{key}:{other} x {key}:{value}")

    assert query.filters == (Filter(key, (value,)), Filter(key, (other,), negative=True))
    assert query.wanted(key) == (value,)
    assert query.unwanted(key) == (other,)


def test_a_quoted_value_may_have_blanks_and_commas() -> None:
    query = read('file:"my file.py",“a, b.md” agent:"Élodie Guérin"')

    assert query.wanted("file") == ("a, b.md", "my file.py")
    assert query.wanted("agent") == ("Élodie Guérin",)


def test_names_of_people_and_files_keep_their_case_and_vocabularies_lose_it() -> None:
    query = read("type:Decision concept:How in:BANK space:Alpha agent:Cline file:README.md tag:URGENT")

    read_as = {"type": "decision", "concept": "how", "in": "bank", "space": "alpha"}
    read_as |= {"agent": "Cline", "file": "README.md", "tag": "URGENT"}
    assert {key: query.wanted(key) for key in read_as} == {key: (value,) for key, value in read_as.items()}


def test_all_stands_alone() -> None:
    assert read("in:bank,all").wanted("in") == ("all",)
    assert read("in:all in:bank").wanted("in") == ("all",)


@pytest.mark.parametrize(
    "text",
    [
        "foo:bar", "http://x", "https://h:80/p?type:x", "std::vector", "10:30", r"C:\x", "file:///etc/hosts",
        ":type:x", "(type:x)", "ConnectionError: refused", "types:decision", "depuis:2026", "quand:2026 dans:bank",
    ],
)  # fmt: skip
def test_an_unknown_key_is_text_without_a_word_about_it(text: str) -> None:
    query = read(text)

    assert query.text == text
    assert query.filters == ()
    assert query.read_as == ()


@pytest.mark.parametrize("text", ["Type:decision", "TYPE:decision", "After:2026"])
def test_a_key_in_capitals_is_text_with_a_remark(text: str) -> None:
    query = read(text)

    assert query.text == text
    assert query.doubts == (f"{text.partition(':')[0]}: is no filter: keys are in lower case",)


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("after:yesterdayish", "after:yesterdayish is no date: read as text"),
        ("after:", "after: has no value: read as text"),
        ("type:,", "type:, has no value: read as text"),
        ('type:""', 'type:"" has no value: read as text'),
        ('file:"my', 'file:"my has a quote that is not closed: read as text'),
        ("in:attic", f"in:attic is none of {', '.join(KINDS)}: read as text"),
        ("-in:all", "-in:all would leave nothing: read as text"),
        ("space:b!d", "space:b!d is no name of a space: read as text"),
        ("space:search", "space:search is no name of a space: read as text"),
        ("limit:many", "limit:many is no number: read as text"),
        ("limit:-1", "limit:-1 is no number: read as text"),
        ("limit:٣", "limit:٣ is no number: read as text"),
        ("limit:1,2", "limit:1,2 takes one value: read as text"),
        ("after:2025,2026", "after:2025,2026 takes one value: read as text"),
        ("-limit:5", "-limit:5 cannot be left out: read as text"),
        ("-after:2026", "-after:2026 cannot be left out: read as text"),
    ],
)
def test_a_known_key_with_an_unusable_value_is_text_with_a_remark(text: str, doubt: str) -> None:
    query = read(text)

    assert query.text == text
    assert query.doubts == (doubt,)
    assert query == Query(text=text, typed=text, words=query.words)


def test_what_is_unusable_among_usable_values_is_left_out_with_a_remark() -> None:
    query = read("in:bank,attic space:alpha,b!d")

    assert (query.wanted("in"), query.wanted("space")) == (("bank",), ("alpha",))
    assert query.doubts == (
        f"in:attic is none of {', '.join(KINDS)}: left out",
        "space:b!d is no name of a space: left out",
    )


@pytest.mark.parametrize(("value", "limit"), [("0", 1), ("101", MAX_LIMIT), ("9" * 6000, MAX_LIMIT)])
def test_a_limit_out_of_range_is_clamped_with_a_remark(value: str, limit: int) -> None:
    query = read(f"limit:{value}")

    assert query.limit == limit
    assert query.doubts[0].endswith(f"is not from 1 to {MAX_LIMIT}: taken as {limit}")


def test_what_is_said_twice_or_excludes_itself_is_remarked() -> None:
    query = read("after:2026-03 after:2025 before:2026-02 limit:5 limit:7 type:a -type:a")

    assert (query.after, query.before, query.limit) == (utc(2026, 3, 1), utc(2026, 2, 1), 7)
    assert query.doubts == (
        "after is said more than once: the narrowest counts",
        "limit is said more than once: the last counts",
        "nothing is both after and before these dates",
        "type:a is both asked for and left out",
    )


def test_remarks_are_few_and_short_whatever_was_typed() -> None:
    query = read(" ".join(f"after:{number}{'x' * 50}" for number in range(200)))

    assert len(query.doubts) == 12
    assert query.doubts[-1] == "and 190 more such remarks"  # one of them: there are too many words
    assert max(map(len, query.doubts)) < 120


def test_as_many_remarks_as_there_may_be_are_all_said() -> None:
    query = read(" ".join(f"after:{number}x" for number in range(12)))

    assert len(query.doubts) == 12
    assert not any("more such" in doubt for doubt in query.doubts)


def test_a_page_that_was_pasted_costs_what_its_beginning_does_and_a_remark_says_so() -> None:
    """Words, phrases, what to leave out and values are looked up one by one: of each there is a most."""
    words = read(" ".join(f"word{number}" for number in range(10_000)))
    phrases = read(" ".join(f'"phrase {number}"' for number in range(1_000)))
    without = read(" ".join(f"-word{number}" for number in range(1_000)))
    values = read("tag:" + ",".join(f"t{number}" for number in range(1_000)))
    long = read("a" * (2 * MOST_CHARACTERS))

    assert words.words == tuple(f"word{number}" for number in range(MOST_WORDS))
    assert phrases.phrases == tuple(f"phrase {number}" for number in range(MOST_PHRASES))
    assert without.without == tuple(sorted(f"word{number}" for number in range(MOST_PHRASES)))
    assert len(values.wanted("tag")) == MOST_WORDS
    assert long.text == "a" * MOST_CHARACTERS
    for query in (words, phrases, without, values, long):
        assert "is left out" in query.doubts[-1]
        assert read(query.canonical()) == query


def test_a_text_of_the_greatest_length_is_read_without_a_remark() -> None:
    assert read("a" * MOST_CHARACTERS).doubts == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("after:", " is no date: read as text"),
        ("in:", " is none of "),
        ("limit:", " is not from 1 to 100: taken as 100"),
    ],
)
def test_a_remark_shows_sixty_characters_of_what_was_typed_and_marks_that_there_were_more(
    before: str, after: str
) -> None:
    shown = "9" * (60 - (0 if before == "limit:" else len(before)))
    (whole,) = read(before + shown).doubts
    (cut,) = read(f"{before}{shown}9").doubts
    assert whole.startswith(f"{before}{shown}{after}")
    assert cut.startswith(f"{before}{shown[:-1]}…{after}")


def test_a_remark_on_one_of_several_values_shows_sixty_characters_of_it() -> None:
    assert read(f"in:bank,{'x' * 61}").doubts[0].startswith(f"in:{'x' * 59}… is none of ")
    assert read(f"tag:{'x' * 61} -tag:{'x' * 61}").doubts == (f"tag:{'x' * 59}… is both asked for and left out",)


@pytest.mark.parametrize(
    ("typed", "before"), [("", "words: "), ('"', "phrases: "), ("tag:", "tag is "), ("-", "without ")]
)
def test_what_was_understood_is_told_in_parts_of_two_hundred_characters(typed: str, before: str) -> None:
    closing = '"' if typed == '"' else ""
    long = read(f"{typed}{'x' * 300}{closing}").describe()
    assert long.removeprefix(before).rstrip("…").strip("x") == ""
    assert long.startswith(before)
    assert 200 <= len(long) <= 200 + len(before)
    assert long.endswith("…")


def test_text_without_a_word_is_told_in_two_hundred_characters() -> None:
    assert read("!" * 201).describe() == f"text: {'!' * 199}…"
    assert read("!" * 200).describe() == f"text: {'!' * 200}"


# --- dates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("2026", utc(2026, 1, 1)),
        ("2026-02", utc(2026, 2, 1)),
        ("2026-02-03", utc(2026, 2, 3)),
        ("2026-02-03T10:20", utc(2026, 2, 3, 10, 20)),
        ("2026-02-03T10:20:30Z", utc(2026, 2, 3, 10, 20, 30)),
        ("2026-02-03t10:20:30.5z", utc(2026, 2, 3, 10, 20, 30, 500000)),
        ("2026-02-03T10:20:30+01:00", utc(2026, 2, 3, 9, 20, 30)),
        ('"2026-02-03 10:20"', utc(2026, 2, 3, 10, 20)),
        ("6h", utc(2026, 3, 31, 8, 5, 9)),
        ("7d", utc(2026, 3, 24, 14, 5, 9)),
        ("2w", utc(2026, 3, 17, 14, 5, 9)),
        ("1mo", utc(2026, 2, 28, 14, 5, 9)),
        ("3mo", utc(2025, 12, 31, 14, 5, 9)),
        ("1y", utc(2025, 3, 31, 14, 5, 9)),
        ("today", utc(2026, 3, 31)),
        ("yesterday", utc(2026, 3, 30)),
        ("today.", utc(2026, 3, 31)),
    ],
)
def test_after_and_before_count_from_the_first_moment_of_what_they_name(value: str, start: datetime) -> None:
    assert read(f"x after:{value}") == Query(text="x", typed="x", words=("x",), after=start)
    assert read(f"x before:{value}") == Query(text="x", typed="x", words=("x",), before=start)


@pytest.mark.parametrize(
    ("value", "start", "end"),
    [
        ("2026", utc(2026, 1, 1), utc(2027, 1, 1)),
        ("2026-02", utc(2026, 2, 1), utc(2026, 3, 1)),
        ("2025-12", utc(2025, 12, 1), utc(2026, 1, 1)),
        ("2024-02-29", utc(2024, 2, 29), utc(2024, 3, 1)),
        ("2026-02-03T10:20Z", utc(2026, 2, 3, 10, 20), utc(2026, 2, 3, 10, 21)),
        ("yesterday", utc(2026, 3, 30), utc(2026, 3, 31)),
        ("7d", utc(2026, 3, 24, 14, 5, 9), None),
    ],
)
def test_a_date_is_the_whole_of_what_it_names(value: str, start: datetime, end: datetime | None) -> None:
    query = read(f"date:{value}")

    assert (query.after, query.before) == (start, end)


@pytest.mark.parametrize(
    "value",
    [
        "2026-13", "2026-02-30", "0000", "9999-12", "20260203", "2026-W05", "2026-2-3", "99999y", "99999mo",
        "99999w99", "7", "7m", "-7d", "tomorrow", "2026-02-03T25:00", "2026-02-03T10:20:30+99:00", "٢٠٢٦",
        "03/02/2026", "0001-01-01T00:00+14:00",
    ],
)  # fmt: skip
def test_what_is_no_date_is_text(value: str) -> None:
    query = read(f"date:{value}")

    assert query.text == f"date:{value}"
    assert query.doubts == (f"date:{value} is no date: read as text",)


def test_the_remark_says_which_end_is_included() -> None:
    query = read("after:2026-02 before:2026-03-01T00:00:30")

    assert query.read_as == ("after 2026-02-01 00:00 UTC (included)", "before 2026-03-01 00:00:30 UTC (not included)")


@pytest.mark.parametrize(("value", "year"), [("2025y", 1), ("9998", 9998), ("2026y", None), ("9999", None)])
def test_a_date_whose_time_is_not_all_in_the_calendar_is_text(value: str, year: int | None) -> None:
    assert (read(f"after:{value}").after or utc(2026, 1, 1)).year == (year or 2026)
    assert bool(read(f"after:{value}").doubts) == (year is None)


def test_a_time_without_an_offset_is_in_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as away:
        away.setenv("TZ", "XXX-15")
        time.tzset()
        query = parse("after:today", now=NOW.replace(tzinfo=None))
    time.tzset()
    assert query == read("after:today")


def test_what_begins_where_it_ends_is_nothing_and_a_remark_says_so() -> None:
    assert read("after:2026-02 before:2026-02").doubts == ("nothing is both after and before these dates",)
    assert read("after:2026-02-01 before:2026-02-02").doubts == ()


def test_the_time_counts_in_utc_wherever_it_was_read() -> None:
    eastern = timezone(timedelta(hours=10))
    at_night = datetime(2026, 4, 1, 3, 0, tzinfo=eastern)

    assert parse("after:today", now=at_night).after == utc(2026, 3, 31)
    assert parse("after:today", now=datetime(2026, 4, 1, 3, 0)).after == utc(2026, 4, 1)


@pytest.mark.parametrize("now", [datetime.min, datetime.max, datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))])
def test_a_time_at_the_edge_of_the_calendar_is_no_date(now: datetime) -> None:
    query = parse("after:20y date:yesterday before:today", now=now)

    assert isinstance(query, Query)


# --- a query as a whole ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  ", "type:decision", "?!", "-kafka", "🔥 type:x", "after:today limit:3 …"])
def test_a_query_without_a_letter_or_digit_has_nothing_to_rank_by(text: str) -> None:
    assert read(text).is_filter_only


@pytest.mark.parametrize(
    ("text", "wordless"),
    [
        ("", False), ("  ", False), ("?!", True), ("🔥", True), ("\u200b", False), ('"?!"', True),
        ("... limit:3", True), ("?! -kafka", False), ("🔥 type:x", False), ("… after:today", False),
        ("type:x", False), ("is it?", False),
    ],
)  # fmt: skip
def test_a_query_of_signs_alone_asks_for_nothing(text: str, wordless: bool) -> None:
    assert read(text).is_wordless == wordless


@pytest.mark.parametrize("text", ["is it", "x type:decision", '"x"', "日本語", "7"])
def test_a_query_with_text_has(text: str) -> None:
    assert not read(text).is_filter_only


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("why  sqlite\ttype:b,a", "type:a,b why sqlite"),
        ("-type:x type:y type:Z", "type:y,z -type:x"),
        ('file:"my file.py","ab"', 'file:ab,"my file.py"'),
        ("date:2026-02", "after:2026-02-01T00:00:00Z before:2026-03-01T00:00:00Z"),
        ("-b -a -“two words”", '-a -b -"two words"'),
        ("« deux mots » limit:007", "limit:7 « deux mots »"),
        ('"lone file:"my file"', '"lone file:"my file"'),
        ('file:"my file" "lone', 'file:"my file" "lone'),
        ("type:Decision after:", "type:decision after:"),
        ("", ""),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    query = read(text)

    assert query.canonical() == canonical
    assert read(canonical) == query


def test_order_and_repetition_of_filters_make_no_other_query() -> None:
    assert read("type:a x -z agent:c type:b -y") == read("-y agent:c,c type:b,A -z x")


def test_a_query_is_described_in_one_line() -> None:
    query = read('retry "dead letter" uploads type:decision -agent:cline -kafka in:bank after:2026-02-01 limit:20')

    assert query.describe() == (
        "words: retry, uploads; phrases: dead letter; without kafka; type is decision; agent is not cline; in bank; "
        "after 2026-02-01 00:00 UTC (included); at most 20"
    )
    assert read("is it").describe() == "text: is it"
    assert read("").describe() == "everything"


# --- whatever is typed -------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *LISTS, *KINDS, "after", "before", "date", "limit", "Type", "2026", "2026-02", "7d", "today", "99999y", "0",
        ":", ":", ":", ",", "-", "-", '"', '"', "“", "”", "«", "»", " ", " ", " ", "  ", "/", "//", ".", "?", "(", "'",
        "500", "’", "\u00a0", "\n", "\x00", "\u200f", "\u202e", "\u200d", "\ud800", "\u0301", "\u0338", "=", "<", "e",
        "l'", "qu’", "\ue000", "auth.py", "Élodie", "İ", "ß", "ς", "日本", "🔥", "why", "le",
    ]
)  # fmt: skip
TYPED = st.one_of(
    st.lists(PIECES, max_size=40).map("".join),
    st.text(st.characters(codec=None), max_size=80),
    st.lists(st.one_of(PIECES, st.text(st.characters(codec=None), max_size=4)), max_size=30).map(" ".join),
)


@given(TYPED)
@settings(max_examples=400)
@example('a"b type:"x"y"z w" -("q')
@example('in:x("a"in:x("a"in:x("a"')
@example('type:İ,"K" -"e\u200d\u0301"')
@example('file:e"\u0301 -=\u0338 "\u0338"')
def test_canonical_text_gives_the_same_query_and_itself(text: str) -> None:
    query = read(text)
    again = read(query.canonical())

    assert again == query
    assert again.canonical() == query.canonical()


@given(TYPED)
@settings(max_examples=200)
def test_the_canonical_text_means_the_same_at_another_time(text: str) -> None:
    query = read(text)

    assert parse(query.canonical(), now=utc(2031, 7, 1)) == query


@given(TYPED, TYPED)
def test_equal_queries_have_equal_canonical_text(first: str, second: str) -> None:
    one, other = read(first), read(second)

    assert (one == other) == (one.canonical() == other.canonical())


@given(TYPED)
@settings(max_examples=200)
def test_no_part_of_a_query_has_what_cannot_be_seen(text: str) -> None:
    query = read(text)
    values = [value for condition in query.filters for value in condition.values]
    parts = [query.text, query.typed, *query.words, *query.phrases, *query.without, *values]

    assert all(unicodedata.is_normalized("NFC", part) for part in parts)
    assert "".join([*parts, query.canonical(), query.describe(), *query.read_as]).isprintable()


@given(TYPED)
@settings(max_examples=200)
def test_every_part_of_a_query_is_usable(text: str) -> None:
    """A consumer need not check anything again."""
    query = read(text)

    assert all(condition.values and all(condition.values) for condition in query.filters)
    assert [(item.field, item.negative) for item in query.filters] == sorted(
        {(item.field, item.negative) for item in query.filters}, key=lambda pair: (LISTS.index(pair[0]), pair[1])
    )
    assert set(query.wanted("in")) <= set(KINDS)
    assert query.limit is None or 1 <= query.limit <= MAX_LIMIT
    assert all(moment is None or moment.tzinfo is UTC for moment in (query.after, query.before))
    assert all(any(map(str.isalnum, item)) for item in (*query.words, *query.phrases, *query.without))
    assert query.describe()


@given(st.text(st.characters(codec=None), max_size=10_000))
@settings(max_examples=25)
def test_ten_thousand_characters_of_anything_are_read(text: str) -> None:
    assert isinstance(read(text), Query)


BOMBS = [
    '"', "“", "«", "-", ":", ",", "type:", 'type:"', "-type:", 'in:x("a"', 'a"', '("', "-“", 'type:"a",', "after:",
    "a" * 99 + ":",
]  # fmt: skip
BOMBS += ["e\u0301", "\u0301", "type:a ", "-a ", "?", ".", "'", "l'", "limit:9 ", "\u00a0", "#", "1", "date:2026-02 "]


@pytest.mark.parametrize("bomb", BOMBS)
def test_ten_kilobytes_of_one_thing_are_read(bomb: str) -> None:
    query = read(bomb * (10_240 // len(bomb.encode())))

    assert read(query.canonical()) == query


class Counted(str):
    """A text that counts how many of its characters were taken or searched."""

    __slots__ = ("looks",)

    def __getitem__(self, place: int | slice) -> str:
        taken = super().__getitem__(place)
        self.looks += len(taken)
        return taken

    def index(self, sought: str, start: int) -> int:
        found = super().index(sought, start)
        self.looks += found - start + 1
        return found


@pytest.mark.parametrize("bomb", BOMBS)
def test_reading_is_linear_in_the_text(bomb: str) -> None:
    """Counted in characters, not in seconds."""
    source = Counted(bomb * (4_000 // len(bomb)))
    source.looks = 0
    reading = _Reading(source, NOW)

    at = 0
    while at < len(source):
        at = reading.take(at)

    assert source.looks <= 16 * len(source)
