"""Completion, asked the way a shell asks: a real bash reads the script and calls its function."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.cli import completion
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import MountRecord

ROOT = Path(__file__).resolve().parents[2]


PATHS = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@cache
def script_for_bash() -> str:
    """What a shell reads once, when it starts."""
    command = ["livememfs", "completion", "bash"]
    return subprocess.run(command, env=PATHS, capture_output=True, text=True, check=True).stdout


def offered(*words: str, **env: str) -> list[str]:
    """What bash offers for the last of these words."""
    line = ["livememfs", *words]
    script = f"""
        {script_for_bash()}
        COMP_WORDS=({shlex.join(line)}) COMP_CWORD={len(words)}
        $(complete -p livememfs | sed 's/.*-F \\([^ ]*\\) .*/\\1/') livememfs
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "LIVEMEMFS_"))}
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**kept, **PATHS, "HOME": "/", "LC_ALL": "C.UTF-8", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_groups_and_options() -> None:
    assert offered("selft") == ["selftest"]
    assert {"install", "uninstall", "status", "fstab"} <= set(offered("service", ""))
    assert offered("mount", "--drain") == ["--drain-timeout"]


def test_bash_completes_spaces_of_the_folder_that_is_the_store(cli: Cli, tmp_path: Path) -> None:
    for name in ("project", "private", "other"):
        cli("space", "create", name)
    (tmp_path / "store" / "plain").mkdir()

    assert offered("space", "info", "pr") == ["private", "project"]
    assert offered("search", "database", "--space", "o") == ["other"]
    assert offered("space", "info", "pr", LIVEMEMFS_STORE=str(tmp_path / "elsewhere")) == []
    chosen = ("space", "info", "--store", str(tmp_path / "store"), "o")
    assert offered(*chosen, LIVEMEMFS_STORE=str(tmp_path / "elsewhere")) == ["other"]


@pytest.mark.parametrize(
    ("shell", "marks"),
    [("bash", "complete -o default -F"), ("zsh", "#compdef livememfs"), ("fish", "complete --command")],
)
def test_there_is_a_script_for_each_shell(cli: Cli, shell: str, marks: str) -> None:
    ended = cli("completion", shell)

    assert (ended.code, ended.err) == (0, "")
    assert marks in ended.out


def test_mount_points_are_those_of_the_kernel_and_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "kernel_mounts", lambda: ["/mnt/b", "/mnt/a", "/home/x"])

    assert completion.mountpoints("/mnt") == ["/mnt/a", "/mnt/b"]


def test_spaces_of_the_users_mounts_are_offered_and_what_is_no_space_is_not(tmp_path: Path) -> None:
    for name in ("project", "search", ".livememfs", "_backups"):
        (tmp_path / "mnt" / name).mkdir(parents=True)
    for place, pid in (("mnt", os.getpid()), ("gone", os.getpid()), ("dead", 0)):
        started = mounts.start_time(pid) or 1
        MountRecord(mountpoint=str(tmp_path / place), pid=pid, started=started, since="", store="").write()
    (tmp_path / "dead" / "other").mkdir(parents=True)

    assert offered("space", "info", "") == ["project"]


def test_a_mount_that_hangs_keeps_no_shell_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    released, ended = threading.Event(), threading.Event()

    def hang(_: Path) -> list[Path]:
        released.wait(30)
        ended.set()
        return []

    monkeypatch.setattr(completion, "PATIENCE", 0.05)
    monkeypatch.setattr(Path, "iterdir", hang)

    assert completion._of_mount(tmp_path) == set()
    released.set()
    assert ended.wait(10)
