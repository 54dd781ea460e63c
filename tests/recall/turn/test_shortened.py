"""What is left out of the pages of a session: the oldest lines, and none from the middle."""

from __future__ import annotations

from datetime import UTC, datetime

from livememfs.recall.turn.context import _within
from livememfs.recall.turn.pending import FILES, _done
from livememfs.records.event import Event

LONG = "a word of many " * 40


def edited(name: str) -> Event:
    return Event(name, "s", "tool", datetime(2026, 2, 20, tzinfo=UTC), tool="Edit", input={"file_path": name})


def test_no_line_older_than_one_that_was_left_out_is_shown() -> None:
    """A gap in a timeline would say that nothing happened there."""
    assert _within(["short and old", LONG, "the last"], 60) == ["the last"]
    assert _within(["short and old", "the last"], 60) == ["short and old", "the last"]


def test_of_very_many_changed_files_the_last_are_named_and_the_others_counted() -> None:
    names = [f"/p/f{number}.py" for number in range(FILES + 3)]

    assert _done([edited(name) for name in names]) == [f"- Changed: {', '.join(names[3:])} and 3 more"]
    assert _done([edited(name) for name in names[:FILES]]) == [f"- Changed: {', '.join(names[:FILES])}"]
