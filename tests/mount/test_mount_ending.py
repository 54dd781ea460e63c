"""A mount in the foreground, and what becomes of it: its terminal closes, its log cannot be written, it is asked to end
before it serves. What was accepted is in the bucket, whatever it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine import ALONE, Mount, StartMount, clean_environment, detach, mounted_at, sh

WITHIN = 60.0
SIGCGT = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.MULTILINE)
THOUGHT = "project/live/insight.md"


@contextlib.contextmanager
def half_a_thought(mount: Mount, folder: Path) -> Iterator[None]:
    """A file that is open when the mount ends, and is in the bucket afterwards."""
    sh("mkdir -p project", cwd=mount.path)
    descriptor = os.open(mount / THOUGHT, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"half a thought")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # whoever closes it afterwards hears that the mount is gone
            os.close(descriptor)
    [note] = (folder / "project/live").glob("*_insight_*.md")
    assert note.read_text().endswith("half a thought")
    assert not mounted_at(mount.path)


def pipe_without_reader() -> tuple[int, Callable[[], None]]:
    """Like `livememfs mount -f 2>&1 | tee log` when tee is gone."""
    reader, writer = os.pipe()
    return writer, lambda: os.close(reader)


def full_disk() -> tuple[int, Callable[[], None]]:
    """A disk that was full from the first line on."""
    return os.open("/dev/full", os.O_WRONLY), lambda: None


def closed_terminal() -> tuple[int, Callable[[], None]]:
    """A terminal whose window is closed."""
    window, terminal = os.openpty()
    return terminal, lambda: os.close(window)


@pytest.mark.parametrize("opened", [pipe_without_reader, full_disk, closed_terminal])
def test_a_log_that_cannot_be_written_costs_nothing_but_the_log(
    start_mount: StartMount, folder: Path, opened: Callable[[], tuple[int, Callable[[], None]]]
) -> None:
    stderr, breaks = opened()
    mount = start_mount({"LIVEMEMFS_STORE": str(folder)}, stderr=stderr)
    os.close(stderr)

    with half_a_thought(mount, folder):
        breaks()
        mount.signal(signal.SIGINT)
        mount.expect_end(0)


@pytest.mark.parametrize(
    ("first", "pause", "second"),
    [(signal.SIGHUP, 0.005, signal.SIGHUP), (signal.SIGTERM, 0.0, signal.SIGHUP)],
    ids=["a terminal that closes", "a service manager with SendSIGHUP"],
)
def test_several_signals_at_an_end_cut_off_no_save(
    folder_mounted: Mount, folder: Path, first: signal.Signals, pause: float, second: signal.Signals
) -> None:
    with half_a_thought(folder_mounted, folder):
        folder_mounted.signal(first)
        time.sleep(pause)  # the moment is what is being tried
        folder_mounted.signal(second)
        folder_mounted.expect_end(0)


def test_a_mount_under_nohup_outlives_its_terminal(start_mount: StartMount, folder: Path) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(folder)}, before=("nohup",))

    mount.signal(signal.SIGHUP)
    with half_a_thought(mount, folder):
        mount.signal(signal.SIGTERM)
        mount.expect_end(0)

    assert "SIGTERM" in mount.log()
    assert "SIGHUP" not in mount.log()


def test_who_is_asked_to_end_before_it_serves_ends_well_and_leaves_nothing(tmp_path: Path) -> None:
    path, home = tmp_path / "mnt", tmp_path / "home"
    path.mkdir()
    command = [*ALONE, sys.executable, "-m", "livememfs", "mount", "-f", "--web", "127.0.0.1:0", str(path)]
    environment = clean_environment(home, LIVEMEMFS_STORE=str(tmp_path / "store"))
    with subprocess.Popen(command, env=environment, cwd="/", stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for_handler(process, signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=WITHIN)
        finally:
            process.kill()
            detach(path)

    assert process.returncode == 0, told
    assert not mounted_at(path)
    assert list((home / "state").rglob("mounts/*")) == []


def test_who_ends_late_leaves_alone_what_was_mounted_there_meanwhile(folder_mounted: Mount) -> None:
    """A copy of the mount in another namespace kept the daemon alive; then something else came to its place."""
    path = folder_mounted.path
    copied = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "echo; read -r line"]
    with subprocess.Popen(copied, stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        other.stdout.readline()
        sh(f"fusermount3 -u {path} && mount -t tmpfs none {path}")
        try:
            folder_mounted.signal(signal.SIGTERM)
            folder_mounted.expect_end(0)

            assert path.is_mount()
        finally:
            sh(f"umount {path}", status=None)
            other.communicate(b"\n")


def wait_for_handler(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Wait until the process would hear a signal. It is not mounted yet then: what it serves over HTTP comes first."""
    status, deadline = Path(f"/proc/{process.pid}/status"), time.monotonic() + WITHIN
    while not ((found := SIGCGT.search(status.read_text())) and int(found[1], 16) >> (number - 1) & 1):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline, "it never listened"
        time.sleep(0.002)
