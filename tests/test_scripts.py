"""The scripts: they are well-formed, refuse nonsense, and what CI runs always ends and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = [ROOT / "scripts" / "setup", ROOT / "scripts" / "demo", ROOT / "scripts" / "test", ROOT / ".ci" / "run"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_run_and_parsed(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True, timeout=10)


def test_setup_refuses_what_it_does_not_know() -> None:
    done = subprocess.run([ROOT / "scripts" / "setup", "everything"], capture_output=True, timeout=10, check=False)

    assert done.returncode == 2
    assert b"usage: scripts/setup [run|test]" in done.stderr


def processes_that_run(word: str) -> list[str]:
    """The ids of processes with `word` in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if word.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


def test_ci_ends_with_the_tests_status_whatever_they_leave_running(tmp_path: Path) -> None:
    """Processes that keep the output open, went into the background, or into a session of their own."""
    for folder in (".ci", "scripts", "tmp"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    fake = tmp_path / "scripts" / "test"
    mark = f"6{os.getpid()}"  # a number of seconds that nobody else sleeps for
    fake.write_text(
        f'#!/bin/sh\necho begun "$@"\nsleep {mark} & setsid sleep {mark} &\n'
        f"(trap '' TERM; sleep {mark}) &\necho ended; exit 7\n"
    )
    fake.chmod(0o755)

    done = subprocess.run(
        [tmp_path / ".ci" / "run", "one", "two"],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "tmp")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 7
    assert "begun one two\nended\n" in done.stdout
    assert processes_that_run(f"sleep\0{mark}") == []
    assert list((tmp_path / "tmp").iterdir()) == []
