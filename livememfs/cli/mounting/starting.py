"""What a daemon and the command that starts it exchange.

Owns the pipe on which the daemon reports, and its options that are no settings. Refuses to start anything, and to
import the modules of a daemon: the command that starts one does not need them. Main thread only.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livememfs.errors import LiveMemError

if TYPE_CHECKING:
    from livememfs.config import Settings


@dataclass(frozen=True)
class Readiness:
    """The pipe to the process that started the daemon: one JSON line, then closed. `fd` None: no report."""

    fd: int | None

    def ready(self) -> None:
        """The mount serves."""
        self._send({"state": "ready", "pid": os.getpid()})

    def failed(self, error: LiveMemError) -> None:
        """The mount cannot start."""
        self._send({"state": "failed", "reason": str(error), "advice": error.advice(), "exit_code": error.exit_code})

    def _send(self, value: dict[str, Any]) -> None:
        if self.fd is None:
            return
        try:
            os.write(self.fd, json.dumps(value).encode() + b"\n")
            os.close(self.fd)
        except OSError as error:  # the starter is gone, or was told already; the mount goes on
            import structlog

            structlog.get_logger("livememfs.cli").debug("nobody waits for readiness", reason=str(error))


@dataclass(frozen=True)
class FstabLine:
    """What a line of `/etc/fstab` says for the kernel: the source, and whether programs may not be executed."""

    source: str = ""
    noexec: bool = False

    def options(self) -> list[str]:
        """The same as options of the command."""
        return [*(["--source", self.source] if self.source else []), *(["--noexec"] if self.noexec else [])]


@dataclass(frozen=True)
class Served:
    """HTTP of a daemon: its address (None: no HTTP), and the host names that clients use."""

    address: str | None = None
    names: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """The same as options of the command."""
        named = [word for name in self.names for word in ("--allow-host", name)]
        return ["--web", self.address, *named] if self.address is not None else []


def places(settings: Settings) -> list[tuple[str, Path]]:
    """The folders that a daemon with these settings reads and writes."""
    store = [] if settings.s3_bucket_name else [("store", settings.store_path)]
    return [*store, ("cache", settings.cache_path)]
