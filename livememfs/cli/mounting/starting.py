"""What whoever starts a daemon and the daemon have to say to each other.

Owns the pipe by which it reports, and what it is told beside its settings. Refuses to start anything, and to load what
a daemon is made of: whoever starts one has no use for it. Main thread only.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from livememfs.config import Settings
from livememfs.errors import LiveMemError

log = structlog.get_logger("livememfs.cli")


@dataclass(frozen=True)
class Readiness:
    """The pipe to whoever started the daemon: one JSON line, then closed. `fd` None reports to nobody."""

    fd: int | None

    def ready(self) -> None:
        """The mount serves."""
        self._send({"state": "ready", "pid": os.getpid()})

    def failed(self, error: LiveMemError) -> None:
        """The mount will not come up."""
        self._send({"state": "failed", "reason": str(error), "advice": error.advice(), "exit_code": error.exit_code})

    def _send(self, value: dict[str, Any]) -> None:
        if self.fd is None:
            return
        try:
            os.write(self.fd, json.dumps(value).encode() + b"\n")
            os.close(self.fd)
        except OSError as error:  # whoever started us is gone or was told already; the mount goes on
            log.debug("nobody waits for readiness", reason=str(error))


@dataclass(frozen=True)
class FstabLine:
    """What a line of `/etc/fstab` has the kernel know of a mount: its source, and whether nothing is executed."""

    source: str = ""
    noexec: bool = False

    def options(self) -> list[str]:
        """The same as options of the command."""
        return [*(["--source", self.source] if self.source else []), *(["--noexec"] if self.noexec else [])]


@dataclass(frozen=True)
class Served:
    """What a daemon serves over HTTP: where (None: nothing), and by which names it is called."""

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
