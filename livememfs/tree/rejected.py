"""`.livememfs/rejected/`: replies of a model that were refused, word for word, but without what is private.

Owns these replies, for a day and within limits, and the view of them. With a folder they outlive the process; other
files in that folder are left alone. Refuses every change by hand. A reply that cannot be kept is a line in the log and
never stops the run. Trio thread only; keeping a reply does not await.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from livememfs import errors
from livememfs.clock import Clock
from livememfs.text.privacy.redaction import redact
from livememfs.text.times import iso
from livememfs.tree.computed import ReadOnlyDirectory, ReadOnlyFile
from livememfs.tree.context import Context
from livememfs.tree.node import Attrs, Directory, Node

log = structlog.get_logger("livememfs.tree")

NAME = "rejected"
KEPT = 50
KEPT_BYTES = 20_000_000
KEPT_FOR = timedelta(days=1)
WHY = "it is what a model said and was refused; it goes by itself after a day"

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)-([^/]+?)(?:~([0-9]+))?\.txt")
_UNFINISHED = ".part"


@dataclass(frozen=True)
class RejectedReply:
    """A refused reply that is kept. `name` is its file; `size` is in bytes, with the head above the reply."""

    name: str
    space: str
    at: datetime
    size: int


@dataclass(frozen=True)
class RejectedStatistics:
    """Replies refused since the start, those that could not be kept, and what is kept now."""

    refused: int
    lost: int
    kept: int
    bytes: int


class RejectedReplies:
    """The refused replies of one mount, in `folder` (None: in memory)."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        self._clock = clock
        self._folder = folder
        self._contents: dict[str, bytes] = {}
        self._refused = self._lost = 0
        self._replies: list[RejectedReply] = _left_in(folder) if folder is not None else []
        self.forget()

    def keep(self, space: str, reason: str, text: str) -> None:
        """Keep a reply; `reason` says what is wrong with it."""
        self._refused += 1
        now = self._clock.now()
        head = f"when: {iso(now)}\nspace: {space}\nrefused: {' '.join(reason.split())}\n\n"
        data = redact(head + text).text.encode("utf-8", "backslashreplace")
        name = self._free_name(now, space)
        if len(data) > KEPT_BYTES or not self._write(name, data):
            self._lost += 1
            log.info("a refused reply is not kept", space=space, size=len(data))
            return
        self._replies.append(RejectedReply(name, space, now, len(data)))
        self.forget()

    def kept(self) -> list[RejectedReply]:
        """The kept replies, the oldest first."""
        self.forget()
        return list(self._replies)

    def since(self, space: str, moment: datetime) -> list[RejectedReply]:
        """The kept replies of one space that were refused at that moment or later."""
        return [reply for reply in self.kept() if reply.space == space and reply.at >= moment]

    def read(self, name: str) -> bytes | None:
        """The bytes of one reply; None when it is not kept any more."""
        if name not in {reply.name for reply in self.kept()}:
            return None
        if self._folder is None:
            return self._contents.get(name)
        try:
            return (self._folder / name).read_bytes()
        except OSError:  # somebody has removed the file
            return None

    def forget(self) -> None:
        """Remove the oldest replies: those over the age, the number or the size that is kept."""
        oldest = self._clock.now() - KEPT_FOR
        while self._replies and (
            self._replies[0].at <= oldest
            or len(self._replies) > KEPT
            or sum(reply.size for reply in self._replies) > KEPT_BYTES
        ):
            gone = self._replies.pop(0).name
            self._contents.pop(gone, None)
            if self._folder is not None:
                with suppress(OSError):
                    (self._folder / gone).unlink()

    def statistics(self) -> RejectedStatistics:
        """Counters, cheap."""
        size = sum(reply.size for reply in self._replies)
        return RejectedStatistics(self._refused, self._lost, len(self._replies), size)

    def _free_name(self, now: datetime, space: str) -> str:
        taken = {reply.name for reply in self._replies}
        stem = f"{now.astimezone(UTC).strftime(_STAMP)}-{space}"
        name, number = f"{stem}.txt", 1
        while name in taken:
            number += 1
            name = f"{stem}~{number}.txt"  # no name of a space can end so
        return name

    def _write(self, name: str, data: bytes) -> bool:
        """Whether it is kept. The file is renamed into place, so that a crash leaves no half of it."""
        if self._folder is None:
            self._contents[name] = data
            return True
        part = self._folder / f"{name}{_UNFINISHED}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(data)
            part.rename(self._folder / name)
        except OSError as error:
            log.info("a refused reply cannot be written", reason=error.strerror or str(error))
            with suppress(OSError):
                part.unlink()
            return False
        return True


def _left_in(folder: Path) -> list[RejectedReply]:
    """What a former process left in the folder, the oldest first."""
    replies: list[tuple[tuple[datetime, int], RejectedReply]] = []
    try:
        paths = list(folder.iterdir())
    except OSError:
        return []
    for path in paths:
        if path.name.endswith(f".txt{_UNFINISHED}"):
            with suppress(OSError):
                path.unlink()
            continue
        match = _NAME.fullmatch(path.name)
        with suppress(OSError, ValueError):
            if match is not None and path.is_file():
                at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
                replies.append(((at, int(match[3] or 1)), RejectedReply(path.name, match[2], at, path.stat().st_size)))
    return [reply for _, reply in sorted(replies, key=lambda dated: dated[0])]


# --- the view --------------------------------------------------------------------------------------------------------


class RejectedFile(ReadOnlyFile):
    """One refused reply."""

    __slots__ = ("context", "reply")

    def __init__(self, parent: Directory, context: Context, reply: RejectedReply) -> None:
        super().__init__(parent, reply.name, WHY)
        self.context, self.reply = context, reply

    async def attrs(self) -> Attrs:
        written = int(self.reply.at.timestamp()) * 1_000_000_000
        return Attrs(kind="file", mode=0o400, size=self.reply.size, mtime_ns=written)

    async def data(self) -> bytes:
        data = self.context.rejected.read(self.name)
        if data is None:
            raise errors.NotFound(path=self.path)
        return data


class RejectedDirectory(ReadOnlyDirectory):
    """All refused replies that are kept."""

    __slots__ = ("context",)

    def __init__(self, parent: Directory, name: str, context: Context) -> None:
        super().__init__(parent, name, WHY, mode=0o500)
        self.context = context

    async def children(self) -> Sequence[tuple[str, Node]]:
        return [(reply.name, RejectedFile(self, self.context, reply)) for reply in self.context.rejected.kept()]
