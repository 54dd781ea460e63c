"""What `status`, `doctor`, `install` and other commands know of a mirror, from its process in a directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from livememfs.cli.checks.mirrors import checks
from livememfs.cli.main import main
from livememfs.cli.mounting import mirrors, mounts

READY_WITHIN = 60.0
Run = Callable[..., tuple[object, str]]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a space, in a home of its own where nothing is mounted."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(mounts, "MOUNTINFO", Path("/dev/null"))
    (tmp_path / "dir/project").mkdir(parents=True)
    return tmp_path / "dir"


@pytest.fixture
def mirror(directory: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that mirrors a folder there, which nothing names for the commands."""
    command = [sys.executable, "-m", "livememfs", "sync", str(directory), "--store", str(tmp_path / "elsewhere")]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: mirrors.ask(directory) is not None)
        yield process
        process.kill()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("status")`: the exit status of a command, and what it said."""

    def run(*arguments: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return run


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_running_mirror_is_listed_with_what_was_refused_last_and_one_that_died_with_what_to_do(
    directory: Path, mirror: subprocess.Popen[bytes], run: Run, tmp_path: Path
) -> None:
    until(lambda: (directory / "project/README.md").exists())
    (directory / "project/bank/mine.md").write_text("mine")
    until(lambda: mirrors.refused(directory) == 1)

    code, said = run("status", str(directory))
    assert code == 0
    assert f"{directory}  mirrored" in said
    assert f"{directory}: refused: project/bank/mine.md: " in said
    assert f"folder {tmp_path}/elsewhere" in said
    (check,) = checks(tmp_path)
    assert (check.verdict, "1 refused file kept" in check.found) == ("warn", True)
    code, said = run("space", "list")
    assert "project" in said, "a command uses the store that is mirrored"
    assert f"which is mirrored in {directory}" in said

    mirror.send_signal(signal.SIGKILL)
    mirror.wait()
    code, said = run("status")
    assert code == 1
    assert f"{directory}: `livememfs sync {directory}` goes on with it" in said
    (directory / ".livememfs-mirror/mirror.json").unlink()
    assert mirrors.records() == []  # it is a mirror no more


def test_one_that_ended_is_not_listed_and_doctor_tells_of_it_inside_alone(
    directory: Path, mirror: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert [check.verdict for check in checks(tmp_path)] == ["ok"]
    mirror.send_signal(signal.SIGTERM)
    assert mirror.wait(60) == 0

    assert mirrors.records() == []
    assert checks(tmp_path) == []
    (check,) = checks(directory / "project")
    assert (check.verdict, f"livememfs sync {directory}" in check.advice) == ("warn", True)


def test_one_whose_disk_went_away_is_listed_with_the_reason(directory: Path, run: Run) -> None:
    record = mirrors.MirrorRecord(mountpoint=str(directory), pid=os.getpid(), started=0, since="", store="x")
    record.write()
    record.ended("its disk is gone")

    code, said = run("status")
    assert (code, f"{directory}: its disk is gone; " in said) == (1, True)


@pytest.mark.parametrize("figure", [{"polled": True}, {"folders": 90}])
def test_doctor_says_when_the_system_has_too_few_notices(
    figure: dict[str, int], directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limit").write_text("100\n")
    monkeypatch.setattr("livememfs.cli.checks.mirrors.WATCHES", tmp_path / "limit")
    monkeypatch.setattr(mirrors, "ask", lambda _: {"mirror": {"folders": 2} | figure})
    (directory / ".livememfs-mirror").mkdir()
    (directory / ".livememfs-mirror/mirror.json").write_text("{}")

    (check,) = checks(directory)
    assert (check.verdict, "fs.inotify.max_user_watches" in check.advice) == ("warn", True)


@pytest.mark.parametrize("named", [True, False])
def test_install_says_what_to_do_instead(named: bool, directory: Path, run: Run) -> None:
    (directory / ".livememfs-mirror").mkdir()
    (directory / ".livememfs-mirror/mirror.json").write_text("{}")
    mirrors.MirrorRecord(mountpoint=str(directory), pid=os.getpid(), started=0, since="", store="x").write()

    options = ["--mount", str(directory)] if named else []
    code, said = run("install", "claude-code", "--space", "project", *options)
    assert code == 2
    assert "livememfs hook" in said
