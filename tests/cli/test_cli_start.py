"""Starting a daemon: the answer on the pipe, and what becomes of each way in which it can fail to come."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from livememfs.cli.mounting import mount
from livememfs.cli.mounting.starting import Readiness
from livememfs.errors import BucketMissing, MountError, SettingsError, UsageError

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe whose reading end is closed at the end."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


@pytest.fixture
def ended() -> subprocess.Popen[bytes]:
    """A process that ended with status 3."""
    process = subprocess.Popen(["/bin/sh", "-c", "exit 3"])
    process.wait()
    return process


def test_readiness_is_told_with_the_process_id(pipe: Pipe) -> None:
    Readiness(pipe[1]).ready()

    assert mount._wait_for_answer(pipe[0], 5.0) == {"state": "ready", "pid": os.getpid()}


def test_a_failure_is_told_in_the_daemon_s_own_words(pipe: Pipe, ended: subprocess.Popen[bytes]) -> None:
    Readiness(pipe[1]).failed(BucketMissing(bucket="b", endpoint="http://x", key=""))

    answer = mount._wait_for_answer(pipe[0], 5.0)
    failure = mount._failure(ended, answer, Path("/log"))
    assert str(failure) == "there is no bucket b at http://x (create it, or correct S3_BUCKET_NAME)"
    assert failure.exit_code == 1


def test_wrong_settings_keep_their_exit_code(pipe: Pipe, ended: subprocess.Popen[bytes]) -> None:
    Readiness(pipe[1]).failed(SettingsError("no such setting"))

    answer = mount._wait_for_answer(pipe[0], 5.0)
    assert mount._failure(ended, answer, Path("/log")).exit_code == UsageError.exit_code


def test_a_death_without_words_points_at_the_log(pipe: Pipe, ended: subprocess.Popen[bytes]) -> None:
    os.close(pipe[1])

    answer = mount._wait_for_answer(pipe[0], 5.0)
    failure = mount._failure(ended, answer, Path("/the/log"))
    assert "ended with status 3" in str(failure)
    assert "/the/log" in str(failure)


def test_a_daemon_that_says_nothing_is_not_waited_for_for_ever(pipe: Pipe) -> None:
    with pytest.raises(MountError, match="did not come up within 0"):
        mount._wait_for_answer(pipe[0], 0.0)
    os.close(pipe[1])


def test_an_answer_in_pieces_is_put_together(pipe: Pipe) -> None:
    text = json.dumps({"state": "ready"}).encode() + b"\n"
    os.write(pipe[1], text[:5])
    os.write(pipe[1], text[5:])
    os.close(pipe[1])

    assert mount._wait_for_answer(pipe[0], 5.0) == {"state": "ready"}


def test_telling_somebody_who_is_gone_is_no_failure() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    Readiness(writer).ready()
    Readiness(None).ready()


def test_a_mount_point_is_what_the_kernel_will_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)

    assert mount.resolve(Path("link")) == tmp_path / "real"
    assert mount.resolve(Path("real/../other")) == tmp_path / "other"


def test_a_large_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(mount, "LARGEST_LOG", 10)
    log_file = mount._open_log(Path("/mnt"))
    log_file.write_text("x" * 11)

    assert mount._open_log(Path("/mnt")) == log_file
    assert log_file.read_text() == ""
    assert log_file.with_suffix(".old").read_text() == "x" * 11
