"""An event of a session: its line, its files, and how long fields are visibly shortened."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records.event import HEAD, TAIL, TOO_DEEP, Event, as_text, capped, digest_id, shortened, storable

AT = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)
NOTE = 60
"""The most characters of the words that say how much was left out."""

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def event(tool: str = "", given: Any = None, **fields: Any) -> Event:
    return Event("t1", "s-1", "tool", AT, project="/home/me/p", tool=tool, input=given, **fields)


# --- its line ----------------------------------------------------------------------------------------------------


@given(texts, st.sampled_from(["start", "prompt", "tool", "stop"]), moments, texts, values, values, st.integers(0, 9))
def test_an_event_is_one_line_and_comes_back_as_it_was(
    name: str, kind: Any, at: datetime, text: str, given_: Any, gave: Any, tokens: int
) -> None:
    event_ = Event(name, "s-1", kind, at, text, text, text, text, given_, gave, text, tokens)

    line = event_.to_json()

    assert "\n" not in line
    assert Event.from_json(line) == event_


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "null", "7", "{}", '{"id": "x"}', '{"at": 7}', '{"at": "never"}', '{"at": "2026-02-20", "x": 1}'],
)
def test_a_line_that_is_no_event_is_refused_with_an_error_that_readers_expect(line: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Event.from_json(line)


def test_what_a_line_does_not_say_is_empty() -> None:
    line = '{"id": "t1", "session": "s-1", "kind": "tool", "at": "2026-02-20T14:00:00Z", "of_a_later_version": 1}'

    event_ = Event.from_json(line)
    assert event_ == Event("t1", "s-1", "tool", AT)
    assert (event_.tokens, event_.failed, event_.input, event_.text) == (0, False, None, "")
    assert Event.from_json(Event("t1", "s-1", "tool", AT, failed=True).to_json()).failed


def nested(deep: int) -> Any:
    value: Any = "x"
    for _ in range(deep):
        value = [value]
    return value


def test_what_is_nested_too_deep_is_cut_off_at_two_hundred() -> None:
    assert storable(nested(200)) == nested(200)
    deeper = storable({"a": nested(200)})["a"]
    for _ in range(199):
        (deeper,) = deeper
    assert deeper == TOO_DEEP
    assert Event.from_json(Event("t1", "s-1", "tool", AT, input=nested(300)).to_json()).input != nested(300)


def test_half_a_character_is_not_stored() -> None:
    assert storable({"a\ud800": ["b\udfff", "é", "c"]}) == {"a\ufffd": ["b\ufffd", "é", "c"]}


# --- what it did ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given_", "command"),
    [
        ("Bash", {"command": "npm test"}, "npm test"),
        ("shell", {"command": ["npm", "test", 7]}, "npm test 7"),
        ("exec_command", {"cmd": "ls", "command": ""}, ""),
        ("run_commands", {"commands": "ls", "cmd": "pwd"}, "ls"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("Bash", {"command": 7}, ""),
        ("Bash", {}, ""),
        ("Bash", "npm test", ""),
        ("Read", {"command": "npm test"}, ""),
    ],
)
def test_a_command_is_what_a_shell_was_given(tool: str, given_: Any, command: str) -> None:
    assert event(tool, given_).command() == command


@pytest.mark.parametrize(
    ("gave", "error"),
    [("no such file", "no such file"), ({"error": "no", "code": 1}, "no"), ({"code": 1}, '{"code": 1}'), (None, "")],
)
def test_an_error_is_what_the_tool_says_of_it(gave: Any, error: str) -> None:
    assert event("Bash", output=gave, failed=True).error() == error


# --- files -------------------------------------------------------------------------------------------------------

READING = ["Read", "NotebookRead", "View", "read_file", "beforeReadFile"]
CHANGING = ["Edit", "MultiEdit", "Write", "NotebookEdit", "edit_file", "write_file", "afterFileEdit"]


@pytest.mark.parametrize("name", ["file_path", "notebook_path", "path", "filename", "target_file"])
@pytest.mark.parametrize("tool", [*READING, *CHANGING])
def test_a_file_is_what_the_tool_was_given_and_read_or_changed_as_the_tool_does(tool: str, name: str) -> None:
    files = event(tool, {name: "/home/me/p/src/a.py"}).files()

    assert files == ((("src/a.py",), ()) if tool in READING else ((), ("src/a.py",)))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/p/a.py", "a.py"),
        ("/home/me/p", "."),
        ("/home/me/py/a.py", "/home/me/py/a.py"),
        ("/etc/hosts", "/etc/hosts"),
        ("src/a.py", "src/a.py"),
        (" /home/me/p/a b.py ", "a b.py"),
    ],
)
def test_a_file_is_shown_relative_to_the_project_where_it_is_in_it(path: str, shown: str) -> None:
    assert event("Write", {"file_path": path}).files() == ((), (shown,))


def test_without_a_project_paths_stay_as_they_are() -> None:
    event_ = Event("t1", "s-1", "tool", AT, tool="Read", input={"file_path": "/home/me/p/a.py"})

    assert event_.files() == (("/home/me/p/a.py",), ())


@pytest.mark.parametrize("field", ["patch", "input", "command"])
@pytest.mark.parametrize("as_list", [False, True])
def test_a_patch_names_each_file_that_it_adds_changes_removes_or_moves_once(field: str, as_list: bool) -> None:
    text = (
        "*** Begin Patch\n*** Update File: /home/me/p/a.py\n*** Move to: b.py\n+*** Add File: not-one.py\n"
        "*** Add File: c d.py\n*** Delete File: e.py\n*** Update File: a.py\n*** End Patch"
    )
    patch: Any = ["apply_patch", text] if as_list else text

    assert event("apply_patch", {field: patch}).files() == ((), ("a.py", "b.py", "c d.py", "e.py"))


@pytest.mark.parametrize(
    ("tool", "given_", "gave"),
    [
        ("Bash", {"command": "cat src/a.py", "file_path": "src/a.py"}, "src/a.py"),
        ("Grep", {"path": "src", "pattern": "x"}, "src/a.py:1:x"),
        ("Read", {"pattern": "x"}, {"file_path": "src/a.py"}),
        ("Read", "src/a.py", ""),
        ("Read", ["src/a.py"], ""),
        ("Edit", {"file_path": 7, "path": ""}, "I edited src/a.py"),
        ("apply_patch", {"patch": 7, "input": None}, "*** Add File: a.py"),
        ("Bash", {"command": "apply_patch <<E\n*** Add File: a.py\nE"}, ""),
        ("", None, None),
    ],
)
def test_what_a_tool_says_or_only_looks_at_makes_no_file(tool: str, given_: Any, gave: Any) -> None:
    assert event(tool, given_, output=gave, text="src/a.py").files() == ((), ())


@given(st.sampled_from([*READING, *CHANGING, "apply_patch", "Bash"]), values, texts)
def test_whatever_a_tool_was_given_files_are_texts(tool: str, given_: Any, project: str) -> None:
    event_ = Event("t1", "s-1", "tool", AT, project=project, tool=tool, input=given_)

    assert all(isinstance(name, str) for files in event_.files() for name in files)


# --- what is long ------------------------------------------------------------------------------------------------


@given(texts, st.integers(1, 200))
def test_what_fits_is_not_touched_and_what_does_not_keeps_head_and_tail_and_says_what_is_missing(
    text: str, limit: int
) -> None:
    short = shortened(text, limit)

    if len(text) <= limit:
        assert short == text
        return
    head, tail = int(limit * HEAD), int(limit * TAIL)
    assert short.startswith(text[:head])
    assert short.endswith(text[len(text) - tail :])
    assert f"\n[... {len(text) - head - tail:,} characters left out ...]\n" in short
    assert len(short) <= limit + NOTE


def test_six_tenths_are_kept_of_the_beginning_and_three_of_the_end() -> None:
    short = shortened("a" * 5_000 + "b" * 5_000, 1_000)

    assert shortened("x" * 1_000, 1_000) == "x" * 1_000
    assert short == "a" * 600 + "\n[... 9,100 characters left out ...]\n" + "b" * 300


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4_000).map("x".__mul__) | values, max_size=6) | values,
    st.integers(400, 3_000),
)
def test_a_value_that_is_too_large_takes_about_as_much_as_it_may(value: Any, limit: int) -> None:
    smaller = capped(value, limit)

    if len(as_text(value)) <= limit:
        assert smaller == value
        return
    assert len(as_text(smaller)) <= limit + limit // 4 + NOTE
    assert smaller == value or "characters left out" in as_text(smaller)


def test_the_long_texts_of_an_object_are_shortened_and_the_object_stays_one() -> None:
    smaller = capped({"file_path": "/p/a.py", "content": "x" * 9_000, "lines": 3}, 3_000)

    assert (smaller["file_path"], smaller["lines"]) == ("/p/a.py", 3)
    assert re.fullmatch(r"x{600}\n\[\.\.\. 8,100 characters left out \.\.\.\]\nx{300}", smaller["content"])


EDITS = [{"old_string": f"def f{n}():\n" + "    pass\n" * 30, "new_string": "    return 1\n" * 30} for n in range(25)]
PATCH = "*** Begin Patch\n*** Update File: src/app.py\n" + "+x = 1\n" * 3_000 + "*** End Patch"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("MultiEdit", {"file_path": "/home/me/p/src/app.py", "edits": EDITS}),
        ("MultiEdit", {"edits": EDITS, "file_path": "src/app.py", "more": {"deep": ["y" * 9_000, "z"]}}),
        ("apply_patch", {"command": ["apply_patch", PATCH]}),
    ],
)
def test_the_file_of_a_large_edit_is_still_known(tool: str, given: Any) -> None:
    smaller = capped(given, 3_000)

    assert len(as_text(smaller)) <= 3_750 + NOTE
    assert event(tool, smaller).files()[1] == ("src/app.py",)


@pytest.mark.parametrize("value", [{"a": ["x" * 9_000]}, ["x" * 9_000], {str(n): n for n in range(5_000)}, "x" * 9_000])
def test_what_is_large_otherwise_is_shortened_as_a_whole(value: Any) -> None:
    assert capped(value, 1_000) == shortened(as_text(value), 1_000)


@pytest.mark.parametrize(
    ("value", "text"), [("a\nb", "a\nb"), (None, ""), ({"é": 1}, '{"é": 1}'), ([], "[]"), (False, "false")]
)
def test_a_text_is_itself_and_all_else_is_json(value: Any, text: str) -> None:
    assert as_text(value) == text


# --- ids ---------------------------------------------------------------------------------------------------------


@given(values, values)
def test_a_digest_is_the_same_for_equal_parts_alone(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (digest_id("tool", one) == digest_id("tool", other)) is same
    assert re.fullmatch("[0-9a-f]{24}", digest_id(one))


def test_the_order_of_fields_does_not_matter_and_half_a_character_does_no_harm() -> None:
    assert digest_id({"a": 1, "b": 2}) == digest_id({"b": 2, "a": 1})
    assert digest_id("\ud83d") != digest_id("\ud83e")
