"""The mirrors of this machine: the records that `livememfs sync` writes, and what a running one says of itself.

Owns how a running mirror is asked, and what waits in the folder of a directory that is one. Refuses to take its lock:
whoever only looks must not keep a process from beginning. Any thread; blocking.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from livememfs.cli.mounting.mounts import MountRecord, records_of, start_time
from livememfs.errors import LiveMemError
from livememfs.mirror.client import OURS, SOCKET

ANSWER_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True)
class MirrorRecord(MountRecord):
    """One process that mirrors: `mountpoint` is the directory, and `space` is empty for the whole bucket."""

    KIND: ClassVar[str] = "mirrors"
    HOW: ClassVar[str] = "mirrored in"

    space: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether the process runs. Where the system tells no start times, a later one with its id is taken for it."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return (start_time(self.pid) or 0) == self.started

    @property
    def again(self) -> str:
        """The command that goes on with it."""
        return shlex.join(["livememfs", "sync", self.mountpoint, *(["--space", self.space] if self.space else [])])


def records() -> list[MirrorRecord]:
    """All records, but of a process that was killed where there is no mirror any more. A disk that went is told of."""
    found = records_of(MirrorRecord)
    for record in found:
        if not record.problem and not is_mirror(Path(record.mountpoint)) and not record.is_alive:
            record.forget()
    return [record for record in found if record.path.exists()]


def is_mirror(directory: Path) -> bool:
    """Whether a directory is, or was, one that `livememfs sync` keeps equal."""
    from livememfs.mirror.place import MARKER  # loads slowly, as all below

    return (directory / OURS / MARKER).is_file()


def around(path: Path) -> Path | None:
    """The mirror that a path is in."""
    return next((folder for folder in (path, *path.parents) if is_mirror(folder)), None)


def ask(directory: Path) -> dict[str, Any] | None:
    """What the process that mirrors says of itself, as a mount does in `status.json`; None when none answers."""
    from livememfs.serve import sock
    from livememfs.text.foreign import read_object

    answer = b""
    with suppress(OSError, LiveMemError):
        connection = sock.connect(directory / OURS / SOCKET, {"status": True}, seconds=ANSWER_SECONDS)
        with connection:
            connection.settimeout(ANSWER_SECONDS)
            while part := connection.recv(1 << 16):
                answer += part
        return read_object(answer)
    return None


def refused(directory: Path) -> int:
    """How many files are kept that the tree has refused."""
    from livememfs.mirror.place import REFUSED

    return sum(path.is_file() for path in (directory / OURS / REFUSED).rglob("*"))


def last_error(details: dict[str, Any]) -> str:
    """The last thing that went wrong by the word of a running mirror: what its store, or the tree, has refused."""
    refusal = (details.get("mirror") or {}).get("last_refusal") or ""
    return str(details.get("last_error") or (f"refused: {refusal}" if refusal else ""))
