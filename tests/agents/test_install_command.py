"""The line of shell that a hook runs, in the shells there are: it answers in time, or does nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from livememfs.agents.install.command import SECONDS, HookCommand, is_marked, memory_off, read

SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]
ODD = ["plain", "with blank", "it's", 'a"b', "$HOME", "back\\slash", "`id`", "é"]


def run(
    shell: str, space: Path, stdin: bytes = b"{}", event: str = "claude.PostToolUse", off: str = ""
) -> tuple[int, bytes, bytes]:
    """Exit status, standard output and standard error of a hook. What still waits for a daemon then is ended, as an
    unmount would do it.
    """
    command = [shell, "-c", HookCommand(str(space), event, off).command]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
        try:
            output, errors = process.communicate(stdin, timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output, errors


@pytest.mark.parametrize("folder", ["mnt", "mnt/project/.hooks", "mnt/project/.hooks/claude.PostToolUse"])
@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_mount_nothing_is_said_and_nothing_is_made(tmp_path: Path, shell: str, folder: str) -> None:
    """Also where a directory has the file's name: not even root can open it for writing."""
    (tmp_path / folder).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))

    assert run(shell, tmp_path / "mnt" / "project") == (0, b"", b"")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("shell", SHELLS)
def test_what_nobody_takes_is_read_to_its_end(tmp_path: Path, shell: str) -> None:
    """More than a pipe holds: the agent would be told of a broken pipe."""
    (tmp_path / ".hooks" / "Stop").mkdir(parents=True)
    for event in ("claude.PostToolUse", "Stop"):
        command = HookCommand(str(tmp_path), event).command
        with subprocess.Popen([shell, "-c", command], stdin=subprocess.PIPE, bufsize=0) as process:
            assert process.stdin is not None
            for _ in range(64):
                process.stdin.write(b"x" * 16_384)
            process.stdin.close()

            assert process.wait(30) == 0


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_comes_is_handed_over_and_what_comes_back_is_printed(tmp_path: Path, shell: str, name: str) -> None:
    """An ordinary file has one place for both directions: the request overwrites, and the rest is read."""
    file = tmp_path / name / ".hooks" / "claude.PostToolUse"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"123456and the answer")

    assert run(shell, tmp_path / name, b"asked:") == (0, b"and the answer", b"")
    assert file.read_bytes() == b"asked:and the answer"


@pytest.mark.parametrize("name", ODD)
def test_where_a_command_leads_can_be_read_from_it(name: str) -> None:
    space = f"/mnt/{name}/project"
    for hook in (
        HookCommand(space, "claude.Stop"),
        HookCommand(space, "windsurf.post_run_command"),
        HookCommand(space, "claude.SessionStart", memory_off(space)),
        HookCommand(space, "claude.SessionStart", memory_off(space, quoted=False)),
        HookCommand(f"/mnt/{name}/.livememfs", "claude.Stop"),
        HookCommand(space, "Stop", former=True),
    ):
        assert "\n" not in hook.command
        assert read(hook.command) == hook
        assert is_marked(hook.command)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_user_is_told_when_a_session_begins_and_nobody_answers(tmp_path: Path, shell: str, name: str) -> None:
    space = tmp_path / name / "project"

    status, output, errors = run(shell, space, b"x" * 100_000, "claude.SessionStart", memory_off(str(space)))

    assert (status, errors) == (0, b"")
    assert "memory is off: nothing answers on " + str(tmp_path / name) in json.loads(output)["systemMessage"]
    assert "\n" not in json.loads(output)["systemMessage"]


@pytest.mark.parametrize("off", ["", "memory is off"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_daemon_that_takes_nothing_is_waited_for_two_seconds(tmp_path: Path, shell: str, off: str) -> None:
    """A pipe that nobody reads stands for it. What the agent says is read to its end all the same."""
    (tmp_path / ".hooks").mkdir()
    os.mkfifo(tmp_path / ".hooks" / "claude.SessionStart")
    began = time.monotonic()

    status, output, errors = run(shell, tmp_path, b"x" * 1_000_000, "claude.SessionStart", off)

    assert (status, bool(output), errors) == (0, bool(off), b"")
    assert SECONDS <= time.monotonic() - began < SECONDS + 0.5


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("exit 0", "exit 1"),
        lambda text: f"echo hello; {text}",
        lambda text: text.replace("timeout 2", "timeout 60"),
        lambda text: text + ", mine",
    ],
)
def test_a_changed_command_is_ours_and_not_as_we_wrote_it(change: object) -> None:
    assert callable(change)
    text = change(HookCommand("/mnt/project", "claude.Stop").command)

    assert is_marked(text)
    assert read(text) is None


@pytest.mark.parametrize("value", [None, 3, "", "npm test", "echo /.hooks/Stop", "true # livememfs"])
def test_others_commands_are_not_ours(value: object) -> None:
    assert not is_marked(value)
    assert read(value) is None
