"""From objects to what can be found in them: nothing of a text is lost, and no object is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.recall.index.reader import TITLE_CHARACTERS, is_indexed, records_in
from livememfs.recall.index.record import Record, digest
from livememfs.text.filenames import FILES_READ, files_in

NOTE = "space/live/20260303T140500_ann_decision_0123abcd.md"
FULL = b"""---
timestamp: 2026-03-03T14:05:09Z
agent: Zo\xc3\xab d'Arc
category: decision
tags: [db, "\xc3\x89cole"]
concepts: [why, how]
subjects: storage
files: [src/a.py]
space_id: space
---

# We keep the queue

because retry_upload() in src/upload.py and docs/README.md depend on it.
"""


def bank(text: str | bytes, key: str = "space/bank/a.md") -> list[Record]:
    """What is found in a file of the bank that was written at second 77."""
    return records_in(key, text.encode() if isinstance(text, str) else text, "etag", 77)


def note(data: str | bytes, key: str = NOTE) -> list[Record]:
    """What is found in a note."""
    return records_in(key, data.encode() if isinstance(data, str) else data, "etag", 77)


# --- notes -------------------------------------------------------------------------------------------------------


def test_a_note_is_one_record_with_all_that_its_front_matter_says() -> None:
    (record,) = note(FULL)
    assert (record.ref, record.key, record.etag) == (NOTE, NOTE, "etag")
    assert (record.kind, record.space, record.type, record.agent) == ("live", "space", "decision", "Zoë d'Arc")
    assert record.created == int(datetime(2026, 3, 3, 14, 5, 9, tzinfo=UTC).timestamp())
    assert record.title == "We keep the queue"
    assert record.pieces == (FULL.decode().partition("---\n\n")[2].strip(),)
    assert set(record.labels) == {
        ("tag", "db"), ("tag", "École"), ("concept", "why"), ("concept", "how"), ("subject", "storage"),
        ("file", "src/a.py"), ("file", "src/upload.py"), ("file", "docs/README.md"),
    }  # fmt: skip


def test_a_note_without_front_matter_takes_what_its_name_says() -> None:
    (record,) = note("just a line")
    assert (record.type, record.agent, record.title) == ("decision", "ann", "just a line")
    assert record.created == int(datetime(2026, 3, 3, 14, 5, tzinfo=UTC).timestamp())


def test_a_note_stays_whole_whatever_its_headings() -> None:
    (record,) = note("# one\n\na\n\n# two\n\nb\n")
    assert record.pieces == ("# one\n\na\n\n# two\n\nb",)


def test_a_decision_weighs_more_than_an_observation() -> None:
    decision, observation = (note(f"---\ncategory: {name}\n---\nx")[0] for name in ("decision", "observation"))
    assert decision.importance > observation.importance


@pytest.mark.parametrize(
    "data", [b"", b" \n\t\r\n", b"---\nagent: ann\n---\n", b"---\nagent: ann\n---\n \n", b"\xef\xbb\xbf"]
)
def test_an_empty_note_holds_nothing(data: bytes) -> None:
    assert note(data) == []


@pytest.mark.parametrize("data", [b"\xff\xfe\0a", b"caf\xe9", b"\x89PNG\r\n\x1a\n\0\0"])
def test_a_note_that_is_no_text_holds_nothing(data: bytes) -> None:
    assert note(data) == []


@pytest.mark.parametrize(
    "front",
    [
        "tags: 7", "tags: {a: b}", "concepts: 7", "concepts: [1, [x], null, ok]", "files: {a: b}", "agent: [x]",
        "timestamp: yesterday", "timestamp: 0001-01-01T00:00:00+14:00", "timestamp: 9999-12-31T23:59:59-14:00",
        "category: {}", "category: 12", 'tags: ["\\ud800"]', 'agent: "a\\0b"', "concepts: &a [*a]",
        "tags: [" + "x," * 200 + "]",
    ],
)  # fmt: skip
def test_odd_front_matter_makes_a_record_like_any_other(front: str) -> None:
    (record,) = note(f"---\n{front}\n---\nbody")
    assert "body" in record.text
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in record.labels)
    assert len(record.labels) <= 64
    for text in (record.agent, record.type, record.title, *(value for _, value in record.labels)):
        text.encode()
    datetime.fromtimestamp(record.created, UTC)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("## Heading\ntext", "Heading"),
        ("- item\n- other", "item"),
        ("\n\n  first line  \nsecond", "first line"),
        ("x" * 500, "x" * (TITLE_CHARACTERS - 1) + "…"),
        ("---", ""),
    ],
)
def test_the_title_is_the_first_line(body: str, title: str) -> None:
    assert note(body)[0].title == title


def test_a_mebibyte_is_read_as_a_whole() -> None:
    for body in ("a" * 1_048_576, "a.b/" * 262_144, "word " * 209_715 + "x", "é" * 524_288, "-" * 1_048_575 + "x"):
        (record,) = note(body)
        assert record.text == body.strip()
        assert len(record.title) <= TITLE_CHARACTERS


# --- the bank ----------------------------------------------------------------------------------------------------


def test_a_bank_file_is_cut_at_its_headings_and_what_stands_above_them_is_found_too() -> None:
    records = bank("above it all\n\n# One\n\nfirst src/a.py\n\n## Deep\n\nsecond\n\n# Empty\n\n# Two\n\nthird\n")
    assert [record.ref for record in records] == [
        "space/bank/a.md",
        "space/bank/a.md#One",
        "space/bank/a.md#One / Deep",
        "space/bank/a.md#Two",
    ]
    assert [record.title for record in records] == ["above it all", "One", "One / Deep", "Two"]
    assert [record.pieces for record in records] == [
        ("above it all",),
        ("One\nfirst src/a.py",),
        ("One / Deep\nsecond",),
        ("Two\nthird",),
    ]
    assert {(record.kind, record.key, record.etag, record.created) for record in records} == {
        ("bank", "space/bank/a.md", "etag", 77)
    }
    assert records[1].labels == (("file", "src/a.py"),)


def test_headings_that_are_there_twice_have_names_of_their_own() -> None:
    records = bank("# A\nx\n# A\ny\n## B\nz\n# A\nw\n## B\nv\n")
    refs = [record.ref for record in records]
    assert len(set(refs)) == len(refs) == 5


def test_a_heading_that_looks_like_the_name_of_a_repeated_one_has_a_name_of_its_own() -> None:
    """Two records by one name are refused by the table, and with them all that was read at the same time."""
    refs = [record.ref for record in bank("# A\nx\n# A (2)\ny\n# A\nz\n")]
    assert len(set(refs)) == 3


def test_a_heading_with_a_slash_and_one_below_another_have_names_of_their_own() -> None:
    refs = [record.ref for record in bank("# A / B\nx\n# A\ny\n## B\nz\n#\nw\n#\nv\n")]
    assert len(set(refs)) == len(refs)


def test_headings_in_a_fence_do_not_cut() -> None:
    (record,) = bank("# One\n\n```\n# no heading\n```\n")
    assert "# no heading" in record.text


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"# Only\n\n## Headings\n", b"a\0b", b"\x89PNG\r\n\x1a\n\0", b"caf\xe9", b"\xff\xfea\0"]
)
def test_a_bank_file_that_is_no_text_or_says_nothing_holds_nothing(data: bytes) -> None:
    assert bank(data) == []


def test_the_synthesis_is_cut_like_the_bank() -> None:
    records = bank("# One\nx\n", "space/_synthesis.md")
    assert [(record.kind, record.ref) for record in records] == [("synthesis", "space/_synthesis.md#One")]


@given(st.text(alphabet=st.sampled_from("# \nab`()2/"), max_size=80))
def test_no_line_of_a_bank_file_but_headings_and_blanks_is_lost(text: str) -> None:
    """Whatever stands in a fence, under a heading or above the first."""
    joined = "\n".join(record.text for record in bank(text))
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#") and set(line.strip()) & set("ab"):
            assert line.strip() in joined or line.strip().strip("#").strip() in joined


@given(st.binary(max_size=200))
def test_no_object_is_refused(data: bytes) -> None:
    for key in (NOTE, "space/live/x.md", "space/bank/a/b.md", "space/_synthesis.md"):
        for record in records_in(key, data, "etag", 0):
            assert record.pieces
            assert record.key == key
            assert record.text.strip()


# --- which objects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "indexed"),
    [
        (NOTE, True),
        ("space/bank/a.md", True),
        ("space/bank/deep/er/a.md", True),
        ("space/_synthesis.md", True),
        ("space/bank/picture.png", False),
        ("space/live/.keep", False),
        ("space/bank/.keep", False),
        ("space/_meta.json", False),
        ("space/_rules.md", False),
        ("_system/tokens.json", False),
        ("_backups/x.tar", False),
        ("space/elsewhere/x.md", False),
        ("file-in-the-root.md", False),
        ("", False),
        ("/", False),
    ],
)
def test_notes_bank_files_and_the_synthesis_are_indexed_and_nothing_else(key: str, indexed: bool) -> None:
    assert is_indexed(key) is indexed


@pytest.mark.parametrize("name", [".x.md.swp", "x.md~", ".#x.md", "4913"])
def test_what_editors_leave_behind_is_not_indexed(name: str) -> None:
    assert not is_indexed(f"space/live/{name}")


# --- names of files, and digests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see src/auth.py, ./docs/a-b.md and (README.md).", ["src/auth.py", "docs/a-b.md", "README.md"]),
        ("src/auth.py src/auth.py", ["src/auth.py"]),
        ("example.com, i.e. e.g. and github.io etc.", []),
        ("version 1.2.3 costs 4.50", []),
        ("retry_upload() does", []),
        ("`pyproject.toml`:12", ["pyproject.toml"]),
    ],
)
def test_names_that_look_like_files_are_heard(text: str, names: list[str]) -> None:
    assert list(files_in(text)) == names


def test_no_more_file_names_than_that_are_read() -> None:
    assert len(list(files_in(" ".join(f"f{n}.py" for n in range(1_000))))) == FILES_READ


@given(st.text(alphabet=st.characters(exclude_categories=())), st.text())
def test_the_same_text_has_the_same_digest_and_others_have_others(one: str, other: str) -> None:
    assert digest(one) == digest(one)
    assert (digest(one) == digest(other)) == (one == other)


# --- agents' own files ---------------------------------------------------------------------------------------------

TOPIC = "space/agents/claude-code/feedback_testing.md"


@pytest.mark.parametrize("type_", ["type: feedback", "metadata:\n  type: Feedback"])
def test_a_topic_of_an_agent_is_found_with_its_own_type_and_what_its_front_matter_says(type_: str) -> None:
    text = f"---\nname: testing\ndescription: No mocks\n{type_}\n---\n\nSee [[db]] and src/a.py.\n"
    (record,) = records_in(TOPIC, text.encode(), "etag", 77)
    assert (record.kind, record.type, record.agent, record.title) == ("agents", "feedback", "claude", "No mocks")
    assert record.text == "testing\nNo mocks\nSee [[db]] and src/a.py."
    assert (record.created, record.updated, record.labels) == (77, 77, (("file", "src/a.py"),))


@pytest.mark.parametrize("text", ["", "---\n---\n", "\udcff", "---\nname: [1]\ntype: {}\n---\n"])
def test_a_topic_without_words_has_no_record(text: str) -> None:
    assert records_in(TOPIC, text.encode("utf-8", "surrogateescape"), "etag", 77) == []


@pytest.mark.parametrize(
    ("name", "found"), [("a.md", True), ("sub/a.md", True), ("MEMORY.md", False), ("sub/MEMORY.md", False),
                        (".a.md", False), (".git/a.md", False), ("a.md.tmp.1", False), ("a.txt", False)]
)  # fmt: skip
def test_of_an_agents_own_files_the_topics_are_indexed_and_the_index_is_not(name: str, found: bool) -> None:
    assert is_indexed(f"space/agents/claude-code/{name}") is found
    assert not is_indexed(f"space/agents/somebody/{name}")
