"""A program asked as the model, on a real mount: what it does is not captured, and it ends with the daemon."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cloud import Bucket
from hooking import hook, status
from machine import SPACE, Mount, StartMount, sh
from test_mount_watch import until

from livememfs.testing.llm import consolidation_reply

REPLY = consolidation_reply({"notes.md": "# Now\n\nWe chose S3.\n"}, used={1: ["notes.md"]}, action="created")
EVENT = {"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": "/tmp", "prompt": "Mend the login"}
RUN = f"touch {SPACE}/.consolidate && cat {SPACE}/.consolidate.wait"
WITHIN = 20.0


@pytest.fixture
def started(bucket: Bucket, start_mount: StartMount, tmp_path: Path) -> Mount:
    """A mount that asks a program of its own, with a note. The program does what `tmp_path/does` says."""
    (tmp_path / "reply").write_text(json.dumps(REPLY))
    (tmp_path / "event").write_text(json.dumps(EVENT))
    mount = start_mount({**bucket.environment(), "LLMAAS_COMMAND": f"sh {tmp_path}/does"})
    (mount / SPACE).mkdir()
    (mount / SPACE / "live/one").write_text("We chose S3.")
    return mount


def test_a_program_whose_own_hooks_lead_here_is_not_captured(started: Mount, tmp_path: Path) -> None:
    hooks = started / SPACE / ".hooks/UserPromptSubmit"
    (tmp_path / "does").write_text(
        f"sh -c 'cat {tmp_path}/event >&3; cat <&3' 3<>{hooks} >{tmp_path}/told && cat {tmp_path}/reply"
    )

    sh(RUN, cwd=started.path)

    assert "We chose S3." in (started / SPACE / "bank/notes.md").read_text()
    assert (tmp_path / "told").read_text() == ""
    assert status(started)["sessions"]["events"]["events"] == 0
    assert hook(started / SPACE, "UserPromptSubmit", EVENT).returncode == 0
    assert status(started)["sessions"]["events"]["events"] == 1


def test_a_program_ends_with_the_daemon(started: Mount, tmp_path: Path) -> None:
    (tmp_path / "does").write_text(
        f"sleep 99 & echo $! $$ >{tmp_path}/pids.new; mv {tmp_path}/pids.new {tmp_path}/pids; wait"
    )
    os.utime(started / SPACE / ".consolidate")
    until((tmp_path / "pids").exists, WITHIN)

    started.stop()

    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    until(lambda: not any(is_running(pid) for pid in pids), WITHIN)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
