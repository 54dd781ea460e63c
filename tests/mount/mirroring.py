"""A mirror under test: `livememfs sync` in a process of its own, on a machine of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from machine import ALONE, READY_WITHIN, clean_environment


class MirrorProcess:
    """A machine with a directory that `livememfs sync` keeps equal to the bucket, or to a space.

    :name: of the host
    :settings: the bucket, on top of a clean environment
    """

    def __init__(self, name: str, folder: Path, settings: dict[str, str], *options: str) -> None:
        self.name, self.path, self.options = name, folder / f"mirror-{name}", options
        self.path.mkdir()
        self.log = folder / f"{name}.log"
        self.environment = clean_environment(folder / f"home-{name}", LIVEMEMFS_HOST=name, **settings)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> None:
        """Start the process, and wait until both sides are equal."""
        command = [*ALONE, sys.executable, "-m", "livememfs", "sync", str(self.path), *self.options]
        begins = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + READY_WITHIN
        while wait and b" is a mirror of " not in self.log.read_bytes()[begins:]:
            assert time.monotonic() < deadline, self.log.read_text()
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """End it, which takes in and uploads what is there."""
        ended = self.end(signal.SIGTERM)
        assert ended == 0, self.log.read_text()[-4_000:]

    def end(self, number: signal.Signals) -> int:
        """Send a signal; the status that the process ends with."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(60)
