"""A terminal that is interrupted, an output that cannot be written, folders that cannot be used: one sentence each."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.cli.mounting.starting import places
from livememfs.config import Settings
from livememfs.errors import MountError
from livememfs.fuse.mountpoint import check_mountpoint, check_places

COMMAND = [sys.executable, "-m", "livememfs"]
WITHIN = 30.0


def livememfs(*arguments: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, since its standard output is what is tried."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, "LIVEMEMFS_EMBED_MODEL": "none", **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=WITHIN,
        check=False,
    )


# --- what is shown -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["space", "list"], ["note", "project", "text"], ["--help"]], ids=" ".join)
def test_an_output_that_cannot_be_written_is_one_sentence(project: str, arguments: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        ended = livememfs(*arguments, stdout=full)
    finally:
        os.close(full)

    assert ended.returncode == 1
    assert ended.stderr.decode() == (
        "livememfs: the output cannot be written: No space left on device (the command itself is done)\n"
    )


def test_characters_that_a_terminal_does_not_have_are_shown_as_escapes(cli: Cli, project: str) -> None:
    assert cli("memories", "add", project, "Zoë likes 日本").code == 0

    ended = livememfs("memories", "list", project, stdout=subprocess.PIPE, PYTHONIOENCODING="ascii")

    assert ended.returncode == 0
    assert b"Zo\\xeb likes \\u65e5\\u672c" in ended.stdout


def test_a_question_at_the_terminal_is_ended_by_an_interrupt(cli: Cli, project: str) -> None:
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        [*COMMAND, "space", "delete", project],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with asking as child:
        assert child.stderr is not None
        try:
            while b"[y/N]" not in child.stderr.readline():
                assert child.poll() is None
            time.sleep(0.2)  # until it reads: nothing tells that from outside
            child.send_signal(signal.SIGINT)
            assert child.wait(WITHIN) == 130
            assert b"Traceback" not in child.stderr.read()
        finally:
            child.kill()
            os.close(ours)
            os.close(theirs)
    assert cli("space", "info", project).code == 0


# --- folders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["{folder}/file", "{folder}/file/below", "/proc/nothing/here"])
def test_a_cache_that_cannot_be_is_one_sentence(
    cli: Cli, project: str, tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIVEMEMFS_CACHE", cache.format(folder=tmp_path))
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")

    ended = cli("search", "x")

    ended.fails("the local state cannot be kept in", "LIVEMEMFS_CACHE")


@pytest.mark.parametrize(
    ("store", "cache", "mountpoint", "sentence"),
    [
        ("a", "c", "a/mnt", "is inside of the store"),
        ("a", "c", "a", "the store .*/a is inside of the mount point"),
        ("mnt/inner", "c", "mnt", "the store .* is inside of the mount point"),
        ("a", "mnt/cache", "mnt", "the cache .* is inside of the mount point"),
        ("link", "c", "a/mnt", "is inside of the store"),
    ],
)
def test_a_mount_that_would_wait_for_itself_is_refused(
    tmp_path: Path, store: str, cache: str, mountpoint: str, sentence: str
) -> None:
    (tmp_path / "link").symlink_to("a")
    settings = Settings(store=str(tmp_path / store), cache=str(tmp_path / cache))

    with pytest.raises(MountError, match=sentence):
        check_places(tmp_path / mountpoint, places(settings))


def test_neighbours_and_buckets_may_be_mounted_anywhere(tmp_path: Path) -> None:
    beside = Settings(store=str(tmp_path / "memory.store"), cache=str(tmp_path / "memory.cache"))
    bucket = Settings(store=str(tmp_path), s3_bucket_name="b", cache=str(tmp_path / "cache"))

    check_places(tmp_path / "memory", places(beside))
    check_places(tmp_path / "memory", places(bucket))


def test_a_mount_point_that_is_not_there_is_told_how_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(MountError, match=r"mkdir -p '.*/my memory'"):
        check_mountpoint(tmp_path / "my memory")
