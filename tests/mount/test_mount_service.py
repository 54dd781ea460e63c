"""A mount under a service manager: what it is told, and what the unit starts."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud import Bucket
from machine import StartMount, clean_environment, mounted_at, sh

PATIENCE = 30.0


class Manager:
    """The socket of a service manager, and what came through it."""

    def __init__(self, address: str) -> None:
        self.environment = {"NOTIFY_SOCKET": address}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.settimeout(PATIENCE)

    def until(self, text: str) -> dict[str, str]:
        """The next word that has `text` in it."""
        while True:
            message = self.socket.recv(65_536).decode()
            if text in message:
                return dict(line.split("=", 1) for line in message.splitlines())


@pytest.fixture
def place() -> Iterator[str]:
    """The path of a socket, which has at most 107 characters: it is not below the other files of a test."""
    with tempfile.TemporaryDirectory(prefix="livememfs-", dir="/tmp") as folder:
        yield f"{folder}/notify"


@pytest.fixture
def a_manager(place: str) -> Iterator[Manager]:
    """A service manager at a path."""
    found = Manager(place)
    yield found
    found.socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, place: str) -> Iterator[Manager]:
    """A service manager at either kind of address."""
    found = Manager(place if request.param == "path" else f"@{place}")
    yield found
    found.socket.close()


def test_a_service_manager_is_told_when_the_mount_serves_and_when_it_ends(
    start_mount: StartMount, manager: Manager, tmp_path: Path
) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "store"), **manager.environment})

    assert str(mount.path) in manager.until("READY=1")["STATUS"]
    assert mounted_at(mount.path)
    mount.signal(signal.SIGTERM)
    assert int(manager.until("STOPPING=1")["EXTEND_TIMEOUT_USEC"]) > 1_000_000
    mount.expect_end()


def test_while_it_drains_it_says_how_much_is_left_and_asks_for_time(
    start_mount: StartMount, bucket: Bucket, a_manager: Manager
) -> None:
    mount = start_mount({**bucket.environment(), **a_manager.environment})
    sh("mkdir project && ls project/live", cwd=mount.path)
    mount.uploaded()

    with bucket.cloud.failing():
        sh("echo 'We chose S3.' > project/live/decision-store.md", cwd=mount.path)
        mount.signal(signal.SIGTERM)
        a_manager.until("STOPPING=1")
        told = [a_manager.until("STATUS=uploading") for _ in range(3)]
    mount.expect_end()

    assert {one["STATUS"] for one in told} == {"uploading, 1 left"}
    assert {int(one["EXTEND_TIMEOUT_USEC"]) for one in told} == {10_000_000}
    assert [key for key in bucket.keys("project/live/") if "_decision_" in key]


def test_a_service_manager_that_is_gone_keeps_no_mount_from_its_work(start_mount: StartMount, tmp_path: Path) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "store"), "NOTIFY_SOCKET": str(tmp_path / "nobody")})

    sh("mkdir project && echo hello > project/x && cat project/x", cwd=mount.path)
    mount.stop()


def test_what_the_unit_starts_is_a_mount(tmp_path: Path, a_manager: Manager) -> None:
    place, home = tmp_path / "my memory", tmp_path / "home"
    home.mkdir()
    environment = clean_environment(home)
    asked = [sys.executable, "-m", "livememfs", "service", "install", str(place), "--store", str(tmp_path / "store")]
    subprocess.run(asked, env=environment, capture_output=True, timeout=30, check=True)
    (unit,) = (home / "config" / "systemd" / "user").glob("*.service")
    line = next(line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))

    limited = ["timeout", "-k", "5", "100", "setpriv", "--pdeathsig", "KILL", "--"]
    started = [*limited, *shlex.split(line.removeprefix("ExecStart="))]
    with subprocess.Popen(started, env={**environment, **a_manager.environment}, stderr=subprocess.DEVNULL) as daemon:
        a_manager.until("READY=1")
        assert mounted_at(place)
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0

    assert not mounted_at(place)
