"""Tables in pipes and at terminals, and the signs of life of long commands."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from livememfs.cli import history, output, progress, tables

Terminal = Callable[[], tuple[str, str]]
Spinners = tuple[list[str], threading.Event]
RUN = ["1", "2026-02-01 10:00Z", "consolidation", "host", "some-model-2026", "10", "3", "4", "0", "taken back by 12"]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Both outputs are a terminal of 80 columns without colours; returns what they got."""
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(progress, "at_terminal", lambda _: True)
    return lambda: (lambda got: (got.out, got.err))(capsys.readouterr())


def test_a_table_in_a_pipe_is_not_padded_and_can_be_cut_into_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["A", "LONG", "B"], [["x", "y" * 250, "z"], ["x", "y", ""]], spare=["LONG"])

    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["A", "LONG", "B"], ["x", "y" * 250, "z"], ["x", "y"]]
    assert all(line == line.rstrip() for line in lines)


def test_wide_characters_are_aligned_too(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["A", "B"], [["\u8a18\u61b6", "x"], ["abcd", "x"]])

    assert capsys.readouterr().out.splitlines()[1:] == ["\u8a18\u61b6  x", "abcd  x"]


def test_a_narrow_terminal_leaves_out_what_can_be_spared_and_no_more() -> None:
    columns, rows = ["RUN", "KIND", "HOST", "STATE"], [["1", "consolidation", "h" * 12, "taken back by 2"]]

    assert tables.fitting(columns, rows, ["HOST"], 80) == columns
    assert tables.fitting(columns, rows, ["HOST"], 40) == ["RUN", "KIND", "STATE"]
    assert tables.fitting(columns, rows, [], 10) == columns


def test_the_runs_of_a_space_fit_80_columns_and_no_word_is_broken(terminal: Terminal) -> None:
    output.table(history.COLUMNS, [RUN], spare=history.SPARE)

    shown, _ = terminal()
    assert len(shown.splitlines()) == 2
    assert "consolidation" in shown
    assert "taken back by 12" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_what_a_terminal_has_no_room_for_is_named(terminal: Terminal) -> None:
    output.table(history.COLUMNS, [RUN], spare=history.SPARE)

    assert "not shown for want of room: HOST" in terminal()[1]


# --- signs of life -----------------------------------------------------------------------------------------------


@pytest.fixture
def spinners(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Spinners:
    """What spinners were begun and ended, and an event at the first that begins by itself."""
    seen, begun = list[str](), threading.Event()

    class Spinner:
        def __init__(self, text: str) -> None:
            self.text = text

        def start(self) -> None:
            seen.append(f"+{self.text}")
            begun.set()

        def stop(self) -> None:
            seen.append(f"-{self.text}")

        def __enter__(self) -> Spinner:
            self.start()
            return self

        def __exit__(self, *_: object) -> None:
            self.stop()

    monkeypatch.setattr(progress, "_status", Spinner)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    return seen, begun


def test_work_that_takes_long_shows_a_sign_until_it_ends(spinners: Spinners) -> None:
    seen, begun = spinners
    with progress.patience("at work"):
        assert begun.wait(10)
        assert seen == ["+at work"]

    assert seen == ["+at work", "-at work"]


def test_a_sign_of_its_own_takes_the_place_of_the_general_one(spinners: Spinners) -> None:
    seen, begun = spinners
    with progress.patience("at work"):
        assert begun.wait(10)
        with progress.busy("indexing"):
            progress._show("at work")

    assert seen == ["+at work", "-at work", "+indexing", "-indexing"]


def test_nothing_is_written_over_a_spinner(spinners: Spinners) -> None:
    seen, begun = spinners
    with progress.patience("at work"):
        assert begun.wait(10)
        output.note("a remark")
        assert seen == ["+at work", "-at work"]


def test_without_a_terminal_no_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.threading, "Timer", lambda *_: pytest.fail("a timer"))

    with progress.patience("at work"):
        pass
