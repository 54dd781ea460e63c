"""`livememfs top`: the figures of mounts, at a look and between two."""

from __future__ import annotations

from typing import Any

import pytest
from commandline import Cli

from livememfs.cli.mounting import status, top
from livememfs.cli.mounting.status import MountStatus


def details(hooks: int, **more: Any) -> dict[str, Any]:
    """A `status.json` with what is looked at."""
    figures = {
        "tree": {"spaces": 3},
        "consolidations": {"running": 1, "queued": 2, "error": 4},
        "hooks": {"requests": hooks},
        "errors": {"errors": 5},
    }
    waiting = {"pending": 2, "pending_bytes": 2048, "sessions": {"events": {"waiting": 6}}}
    return {"state": "ok", "last_error": "", "statistics": figures, **waiting, **more}


def test_a_row_has_spaces_queue_runs_agents_and_errors() -> None:
    (row,) = top.rows([MountStatus("/mnt", "mounted", None, details(7, last_error="slow down"))], {})

    assert row == [
        "/mnt", "ok", "3", "2 files, 2.0 KiB", "1 now, 2 queued, 4 failed", "7 hooks, 6 events to observe",
        "5: slow down",
    ]  # fmt: skip


def test_hooks_are_those_since_the_last_look() -> None:
    (row,) = top.rows([MountStatus("/mnt", "mounted", None, details(9))], {"/mnt": details(7)})

    assert row[5].startswith("2 hooks")


def test_a_mount_that_does_not_answer_or_is_of_another_version_has_its_row() -> None:
    silent, other = MountStatus("/a", "not answering", None), MountStatus("/b", "mounted", None, {"state": "ok"})

    rows = top.rows([silent, other], {})
    assert rows[0] == ["/a", "not answering", "-", "-", "-", "-", "-"]
    assert rows[1][:4] == ["/b", "ok", "0", "-"]


def test_in_a_pipe_it_is_shown_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "look", lambda: [MountStatus("/mnt", "mounted", None, details(7))])

    shown = cli("top").out.splitlines()
    assert [line.split()[0] for line in shown] == ["MOUNT", "/mnt"]


def test_at_a_terminal_it_goes_on_until_it_is_interrupted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([[], [MountStatus("/mnt", "mounted", None, details(7))]])
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("livememfs.cli.progress.at_terminal", lambda _: True)
    monkeypatch.setattr(status, "look", lambda: next(looks))
    monkeypatch.setattr(top.time, "sleep", wait)

    assert cli("top", "--every", "3").code == 130
    assert waited == [3.0, 3.0]
