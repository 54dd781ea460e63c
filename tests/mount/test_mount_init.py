"""`livememfs init` with a real mount: afterwards all that it said can be typed."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import machine
import pytest
from cloud import Bucket
from machine import clean_environment, detach, mounted_at, sh


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home directory; what is mounted in it is gone at the end."""
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"
    if mounted_at(tmp_path / "home/memory"):
        detach(tmp_path / "home/memory")


def test_after_init_a_new_shell_writes_finds_and_unmounts(tmp_path: Path, home: Path, bucket: Bucket) -> None:
    """The keys are in the file alone then: a new shell has no variables."""
    shell = clean_environment(home)
    with_keys = {**shell, **bucket.environment(), "LIVEMEMFS_EMBED_MODEL": "none"}

    told = machine.livememfs("init", cwd=tmp_path, env=with_keys).stdout

    values = tomllib.loads((home / "config/livememfs/config.toml").read_text())
    assert values["s3_secret_access_key"] == bucket.environment()["S3_SECRET_ACCESS_KEY"]
    assert values["s3_secret_access_key"] not in told
    typed = next(line for line in told.splitlines() if "echo " in line)
    sh(typed.strip(), env=shell)
    sh("cat .livememfs/journal.wait", cwd=home / "memory", env=shell)
    assert "we chose S3" in machine.livememfs("search chose --space notes", cwd=tmp_path, env=shell).stdout
    machine.livememfs("umount home/memory", cwd=tmp_path, env=shell)
    assert not mounted_at(home / "memory")
    assert os.listdir(home / "memory") == []


def test_a_second_init_finds_the_mount_and_another_store_there_is_refused(tmp_path: Path, home: Path) -> None:
    shell = clean_environment(home)
    machine.livememfs(f"init {tmp_path}/store {home}/memory", cwd=tmp_path, env=shell)

    again = machine.livememfs(f"init {tmp_path}/store {home}/memory", cwd=tmp_path, env=shell)
    assert f"the memory is mounted on {home}/memory" in again.stdout
    before = (home / "config/livememfs/config.toml").read_bytes()
    refused = machine.livememfs(f"init {tmp_path}/other {home}/memory", cwd=tmp_path, env=shell, status=1)
    assert f"something else is mounted on {home}/memory" in refused.stderr
    assert (home / "config/livememfs/config.toml").read_bytes() == before
    machine.livememfs(f"umount {home}/memory", cwd=tmp_path, env=shell)


def test_what_is_printed_to_undo_it_leaves_nothing_when_it_is_pasted(tmp_path: Path) -> None:
    """Also where paths have blanks, after notes were written, and with a space of the same name in the usual store."""
    home = tmp_path / "my home"
    home.mkdir()
    shell = clean_environment(home) | {"LIVEMEMFS_EMBED_MODEL": "none"}
    machine.livememfs("space create notes", cwd=tmp_path, env=shell)
    before = names(home)
    store, place = shlex.quote(f"{home}/a store"), shlex.quote(f"{home}/my memory")

    told = machine.livememfs(f"init {store} {place}", cwd=tmp_path, env=shell).stdout
    sh(next(line for line in told.splitlines() if "echo " in line), env=shell)
    assert names(home) > before
    assert mounted_at(home / "my memory")
    assert not any("cache" in line or "state" in line for line in told.splitlines() if line.startswith("  rm "))
    sh(told.partition("To undo all of this:\n")[2].partition("\n\n")[0], cwd=tmp_path, env=shell)

    assert names(home) == before
    assert not mounted_at(home / "my memory")
    assert "notes" in machine.livememfs("space list", cwd=tmp_path, env=shell).stdout


def names(home: Path) -> set[str]:
    """What is in a home, but for the state that each command makes, and the folder of all configuration."""
    found = {str(path.relative_to(home)) for path in home.rglob("*")}
    return {name for name in found if name != "config" and not name.startswith(("cache", "state"))}


class Terminal:
    """A program at a real terminal, as somebody sees it who types and reads."""

    def __init__(self, line: str, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            shlex.split(line), env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.said = ""

    def until(self, words: str, seconds: float = 60) -> None:
        """Read on until these words have come, after what was read before."""
        came = ""
        while words not in came:
            ready, _, _ = select.select([self._ours], [], [], seconds)
            assert ready, f"{words!r} does not come after {self.said}{came}"
            came += os.read(self._ours, 4096).decode()
        self.said += came

    def type(self, text: str) -> None:
        os.write(self._ours, f"{text}\n".encode())

    def close(self) -> int:
        """The program's status, at its end."""
        with suppress(OSError):  # EIO: the program has ended, and nobody has the other end
            while os.read(self._ours, 4096):
                pass
        os.close(self._ours)
        return self.process.wait(60)


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    shell = clean_environment(home) | {"LIVEMEMFS_EMBED_MODEL": "none", "TERM": "dumb", "COLUMNS": "200"}
    started = Terminal(f"{sys.executable} -m livememfs init {home}/store {home}/memory", shell)
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait()


def test_at_a_terminal_a_wrong_answer_is_asked_for_again(home: Path, terminal: Terminal) -> None:
    terminal.until("Which model")
    terminal.type("both")
    terminal.until("none of")
    terminal.type("none")
    terminal.until("first space?")
    terminal.type("My Shop")
    terminal.until("first space?")
    terminal.type("shop")
    terminal.until("Now type:")
    assert terminal.close() == 0
    assert (home / "memory/shop").is_dir()


def test_at_a_terminal_what_changes_for_an_agent_is_shown_before_it_is_asked_for(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").touch(0o755)
    shell = clean_environment(home) | {"LIVEMEMFS_EMBED_MODEL": "none", "TERM": "dumb", "COLUMNS": "200"}
    line = f"{sys.executable} -m livememfs init {home}/store {home}/memory --space shop"
    terminal = Terminal(line, shell | {"PATH": f"{tmp_path}/bin:{shell['PATH']}"})
    terminal.until("Which model")
    terminal.type("none")
    terminal.until("Connect claude-code")
    terminal.type("yes")
    terminal.until("+++ b/.claude/settings.json")
    terminal.until("Change 1 file like this? [y/N]")
    terminal.type("n")
    terminal.until("claude-code is not connected: nothing was changed")
    assert terminal.close() == 0
    assert not (home / ".claude").exists()


def test_an_interrupt_at_a_question_leaves_no_configuration_and_no_mount(home: Path, terminal: Terminal) -> None:
    terminal.until("Which model")
    terminal.type("none")
    terminal.until("first space?")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("nothing was changed")
    assert terminal.close() == 130
    assert not (home / "store").exists()
    assert not (home / "config").exists()
    assert not (home / "memory").exists()
