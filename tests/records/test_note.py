"""Notes: how a file becomes a note, and that nothing of the file is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import frontmatter as python_frontmatter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import NotText, TooLarge
from livememfs.records.keys import NoteName
from livememfs.records.note import (
    CATEGORIES,
    FIELDS,
    MAX_NOTE_BYTES,
    ORDERS,
    Note,
    Order,
    canonical_name,
    category_of,
    complete,
    order_of,
    uid8,
    uid_ending,
    uid_of,
)

NOW = datetime(2026, 2, 20, 14, 0, 0, 123456, tzinfo=UTC)
COMPLETE = (
    b'---\ntimestamp: "2026-02-20T14:00:00Z"\nagent: "cline-dev"\ncategory: "decision"\ntags: ["auth", "test"]\n'
    b'space_id: "projet-alpha"\n---\n\nWe use S3.\n'
)


def seal(data: bytes, *, name: str = "note.md", **more: Any) -> tuple[Note, bytes]:
    """`complete` with the arguments that most tests share."""
    shared = {"path": "alpha/live/x", "space": "alpha", "agent": "claude", "now": NOW}
    return complete(data, written_name=name, **{**shared, **more})


words = st.text(max_size=20)
given_text = words.filter(lambda text: text.strip() == text != "")
extra_fields = st.dictionaries(
    words.filter(lambda name: name not in FIELDS), st.integers(-9, 9) | words | st.lists(words, max_size=2), max_size=3
)
notes = st.builds(
    Note,
    timestamp=st.datetimes(timezones=st.just(UTC)),
    agent=given_text,
    category=st.sampled_from(CATEGORIES) | given_text,
    tags=st.lists(given_text, max_size=3).map(tuple),
    space_id=given_text,
    body=st.text(),
    extra=extra_fields,
)
foreign = st.one_of(
    st.text(),
    st.tuples(
        st.dictionaries(
            st.sampled_from([*FIELDS, "importance", "timestamp_given"]),
            st.sampled_from(
                ["", "~", "x", "[a, b]", "{}", "2026-02-20", "'2026-02-20T14:00:00+01:00'", "42", "no", "[", "*a"]
            ),
            max_size=7,
        ),
        st.text(max_size=20),
        st.sampled_from(["\n", "\r\n"]),
    ).map(lambda p: p[2].join(["---", *(f"{name}: {value}" for name, value in p[0].items()), "---", p[1]])),
)


# --- round trips -------------------------------------------------------------------------------------------------


@given(notes)
def test_any_note_reads_back_as_itself(note: Note) -> None:
    assert Note.parse(note.render(), path="x") == note


@given(notes)
def test_a_rendered_note_needs_no_completing(note: Note) -> None:
    assert seal(note.render()) == (note, note.render())


@given(notes)
def test_other_readers_of_front_matter_see_the_same_fields(note: Note) -> None:
    """The reference library for Python reads the fields that we wrote."""
    post = python_frontmatter.loads(note.render().decode())

    assert post["agent"] == note.agent
    assert post["category"] == note.category
    assert tuple(post["tags"]) == note.tags
    assert post.content == note.body.strip()


@given(foreign)
def test_completing_twice_changes_nothing(text: str) -> None:
    note, once = seal(text.encode())
    again, twice = seal(once, name="other-name.md", now=NOW + timedelta(days=1))

    assert twice == once
    assert again == note


@given(foreign)
def test_a_completed_note_is_what_a_reader_sees(text: str) -> None:
    note, data = seal(text.encode())

    assert Note.parse(data, path="x") == note


@given(st.text().filter(lambda text: not text.startswith(("---", "\ufeff"))))
def test_a_body_is_kept_byte_for_byte(body: str) -> None:
    note, data = seal(body.encode())

    assert note.body == body
    assert data.endswith(b"---\n\n" + body.encode())


# --- completing --------------------------------------------------------------------------------------------------


def test_a_bare_text_gets_all_fields_in_order() -> None:
    note, data = seal(b"We use S3.\n", name="decision-use-s3.md")

    assert data == (
        b'---\ntimestamp: "2026-02-20T14:00:00Z"\nagent: "claude"\ncategory: "decision"\ntags: []\nspace_id: "alpha"\n'
        b"---\n\nWe use S3.\n"
    )
    assert note == Note(NOW.replace(microsecond=0), "claude", "decision", (), "alpha", "We use S3.\n")


def test_a_complete_note_is_returned_as_it_is() -> None:
    note, data = seal(COMPLETE)

    assert data == COMPLETE
    assert note.agent == "cline-dev"
    assert note.tags == ("auth", "test")


def test_tags_are_optional() -> None:
    """Data model 4.4: a note without tags is complete."""
    data = COMPLETE.replace(b'tags: ["auth", "test"]\n', b"")

    assert seal(data)[1] == data
    assert seal(data)[0].tags == ()


def test_given_fields_go_before_everything_else() -> None:
    previous = Note(NOW, "cursor", "issue", ("old",), "alpha", "old")
    note, _ = seal(b"---\ncategory: todo\nagent: me\n---\nbody", name="decision.md", previous=previous)

    assert (note.agent, note.category, note.tags) == ("me", "todo", ("old",))


def test_the_previous_note_goes_before_the_arguments() -> None:
    written = datetime(2025, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    previous = Note(written, "cursor", "issue", ("old",), "beta", "old")

    note, _ = seal(b"new", name="decision.md", previous=previous)

    assert note == replace(previous, body="new")


def test_unknown_fields_survive_after_the_known_ones() -> None:
    note, data = seal(b"---\nimportance: 0.5\nagent: me\nlinks: [a, {b: c}]\n---\nbody")

    assert dict(note.extra) == {"importance": 0.5, "links": ["a", {"b": "c"}]}
    assert b'space_id: "alpha"\nimportance: 0.5\nlinks: ["a", {b: "c"}]\n---\n\nbody' in data


def test_a_timestamp_that_is_none_is_replaced_and_kept() -> None:
    note, data = seal(b"---\ntimestamp: last tuesday\n---\nbody")

    assert note.timestamp == NOW.replace(microsecond=0)
    assert note.extra == {"timestamp_given": "last tuesday"}
    assert b'timestamp_given: "last tuesday"\n' in data


def test_other_fields_of_no_use_are_kept_too() -> None:
    note, _ = seal(b"---\nagent: [a, b]\ntags: 5\ncategory:\n---\nbody")

    assert (note.agent, note.category, note.tags) == ("claude", "observation", ())
    assert note.extra == {"agent_given": ["a", "b"], "tags_given": 5}


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("2026-02-20", datetime(2026, 2, 20, tzinfo=UTC)),
        ("2026-02-20T15:00:00+01:00", datetime(2026, 2, 20, 14, tzinfo=UTC)),
        ("2026-02-20 14:00:00.5", datetime(2026, 2, 20, 14, 0, 0, 500_000, tzinfo=UTC)),
        ("'2026-02-20T14:00:00Z'", datetime(2026, 2, 20, 14, tzinfo=UTC)),
    ],
)
def test_a_given_timestamp_is_honoured_as_it_was_written(written: str, seen: datetime) -> None:
    note, data = seal(f"---\ntimestamp: {written}\n---\nbody".encode())

    assert note.timestamp == seen
    assert f'timestamp: "{written.strip(chr(39))}"'.encode() in data


def test_numbers_and_words_are_names() -> None:
    note, _ = seal(b"---\nagent: 42\ncategory: no\ntags: auth, 7\n---\nbody")

    assert (note.agent, note.category, note.tags) == ("42", "no", ("auth", "7"))


@pytest.mark.parametrize(
    "text",
    [
        "---\nnot a mapping\n---\nbody",
        "---\nagent: &x me\nother: *x\n---\nbody",
        "---\n\tagent: me\n---\nbody",
        "---\nagent: me\n" + "# filler\n" * 10_000 + "---\nbody",
        "---\nnever closed",
    ],
)
def test_odd_front_matter_is_body(text: str) -> None:
    note, data = seal(text.encode())

    assert note.body == text
    assert note.agent == "claude"
    assert data.endswith(text.encode())


def test_front_matter_that_grows_past_its_limit_is_body() -> None:
    """Escapes make a block larger than it was, but it must still be readable."""
    text = "---\nx: '" + "\\" * 20_000 + "'\n---\nbody"
    note, data = seal(text.encode())

    assert note.body == text
    assert seal(data) == (note, data)


def test_line_ends_are_kept() -> None:
    _, data = seal(b"---\r\nagent: me\r\n---\r\n\r\none\r\ntwo\r\n")

    assert data.endswith(b"---\n\none\r\ntwo\r\n")


def test_byte_order_marks_go() -> None:
    assert seal(b"\xef\xbb\xbf" + COMPLETE)[1] == COMPLETE
    assert seal(b"\xef\xbb\xbf\xef\xbb\xbfhello")[0].body == "hello"


@pytest.mark.parametrize(("agent", "seen"), [("", "unknown"), ("  ", "unknown"), ("a\udce9", "a?")], ids=ascii)
def test_an_agent_is_never_missing_and_from_a_broken_environment_is_text(agent: str, seen: str) -> None:
    note, data = complete(b"x", path="p", written_name="n", space="s", agent=agent, now=NOW)

    assert note.agent == seen
    assert Note.parse(data, path="p") == note


@pytest.mark.parametrize("data", [b"caf\xe9", b"\xff\xfeh\x00i\x00", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf8_are_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="alpha/live/x"):
        seal(data)
    with pytest.raises(NotText):
        Note.parse(data, path="x")


def test_the_limit_is_on_the_body() -> None:
    """A note at the limit may be read, edited and saved again with the front matter it got."""
    _, data = seal(b"x" * MAX_NOTE_BYTES)

    assert seal(data)[1] == data
    for body in (b"x" * (MAX_NOTE_BYTES + 1), "é".encode() * (MAX_NOTE_BYTES // 2) + b"x"):
        with pytest.raises(TooLarge):
            seal(body)


# --- foreign notes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "moment", "agent", "category"),
    [
        ("20260220T140000_my_agent_todo_a1b2c3d4.md", datetime(2026, 2, 20, 14, tzinfo=UTC), "my_agent", "todo"),
        ("note_001.md", datetime(1970, 1, 1, tzinfo=UTC), "unknown", "observation"),
    ],
)
def test_a_foreign_note_borrows_from_a_canonical_name(name: str, moment: datetime, agent: str, category: str) -> None:
    assert Note.parse(b"text", path="x", name=name) == Note(moment, agent, category, (), "", "text")


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "category"),
    [
        *((name, "todo") for name in ("todo.md", "todo")),
        *((name, "decision") for name in ("decision-use-s3.md", "Decision use S3")),
        ("QUESTION_why.md", "question"),
        ("insight: caching.md", "insight"),
        ("progress.2026.md", "progress"),
        ("issue#12.md", "issue"),
        *((name, "observation") for name in ("observation.txt", "todos.md", "decisions-made.md", "todo2.md")),
        *((name, "observation") for name in ("my-todo.md", ".todo.md", "note.md", "")),
    ],
)
def test_a_category_is_the_first_word_of_the_written_name(name: str, category: str) -> None:
    assert category_of(name) == category


def test_a_uid_follows_from_space_name_and_attempt() -> None:
    uids = {uid8("a", "x.md"), uid8("b", "x.md"), uid8("a", "y.md"), uid8("a", "x.md", 1), uid8("a", "x.md", 2)}

    assert len(uids) == 5
    assert uid8("a", "x.md") == uid8("a", "x.md", 0)
    assert all(len(uid) == 8 and int(uid, 16) >= 0 for uid in uids)


def test_the_first_digits_of_notes_of_one_second_grow_and_the_last_follow_from_the_name() -> None:
    order, at = Order(), NOW.replace(microsecond=0)
    now = at + timedelta(microseconds=500_000)

    numbers = [order.next("a", at, now + timedelta(milliseconds=late)) for late in (0, 0, 0, 1, -400, 100)]
    assert numbers == sorted(set(numbers))
    assert numbers[:3] == [2048, 2049, 2050]
    uids = [uid_of(number, uid_ending("a", "x.md")) for number in numbers]
    assert uids == sorted(uids)
    assert {uid[-5:] for uid in uids} == {uid8("a", "x.md")[-5:]}
    assert [order_of(uid) for uid in uids] == numbers
    # Other spaces and other seconds are counted by themselves. Only of the present second the fraction is known.
    assert order.next("b", at, now) == 2048
    assert [order.next("a", at + timedelta(hours=1), now) for _ in range(3)] == [0, 1, 2]


def test_a_second_with_more_notes_than_digits_tell_apart_goes_on() -> None:
    order, at = Order(), NOW.replace(microsecond=0)

    numbers = [order.next("a", at, at) for _ in range(ORDERS + 3)]

    assert numbers == [*range(ORDERS), *[ORDERS - 1] * 3]
    assert uid_of(numbers[-1] + 1, "00000") == "00000000"


@given(notes, st.text(max_size=20))
def test_any_note_has_a_canonical_name(note: Note, written: str) -> None:
    name = canonical_name(note, uid8("alpha", written))
    parsed = NoteName.parse(name)

    assert parsed is not None
    assert parsed.timestamp == note.timestamp.replace(microsecond=0)
    assert len(name.encode()) <= 255


def test_a_canonical_name_is_that_of_the_data_model() -> None:
    note, _ = seal(COMPLETE)

    assert canonical_name(note, "a1b2c3d4") == "20260220T140000_cline-dev_decision_a1b2c3d4.md"
