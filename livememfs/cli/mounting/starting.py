"""What a daemon and the command that starts it exchange.

Owns the pipe on which the daemon reports, and its options that are no settings. Refuses to start anything, and to
import the modules of a daemon: the command that starts one does not need them. Main thread only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
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

    def ready(self, remarks: Sequence[str] = ()) -> None:
        """The mount serves. `remarks`: sentences for the person who mounts."""
        self._send({"state": "ready", "pid": os.getpid()} | ({"remarks": list(remarks)} if remarks else {}))

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


NAMING = ("s3_bucket_name", "s3_endpoint_url", "s3_region_name", "s3_signature_mode", "s3_path_style")


def place_of(settings: Settings) -> dict[str, Any]:
    """The settings that name the store, without secrets; `keys`: whether they had some for it. Empty where a token
    limits: whoever else finds the store by it would have all rights.
    """
    if settings.token:
        return {}
    if not settings.s3_bucket_name:
        return {"store": str(settings.store_path.absolute())}
    return {name: getattr(settings, name) for name in NAMING} | {"keys": bool(settings.s3_access_key_id)}


def places(settings: Settings) -> list[tuple[str, Path]]:
    """The folders that a daemon with these settings reads and writes."""
    store = [] if settings.s3_bucket_name else [("store", settings.store_path)]
    return [*store, ("cache", settings.cache_path)]
