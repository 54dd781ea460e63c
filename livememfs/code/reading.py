"""Reads files of a worktree that records name, and keeps the digests of what it read.

Owns that a path from the bucket leads nowhere else: no link is followed, no other file system entered, nothing but a
plain file is read; and that the work is bounded by bytes and by time. Refuses to say what a digest means. Blocking, any
thread, several at once.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from livememfs.code.anchor import is_inside
from livememfs.code.span import SourceText

LARGEST = 1 << 20
"""Bytes of a file; a larger one has no anchors."""
TOO_LARGE = "too large"
"""In place of the digests of a larger one; equal to none."""
KEPT = 8_192
"""Files whose digests are kept."""
MOST_SYMBOLS = 256
"""Digests that are kept of one file."""
SETTLED_NS = 50_000_000
"""A file that changed so shortly before it was read may change again without another time."""


@dataclass
class Allowance:
    """What may still be spent on one check.

    :until: by the monotonic clock, in seconds
    :bytes: that may be read
    """

    until: float
    bytes: int

    @classmethod
    def of(cls, seconds: float, most: int) -> Allowance:
        """So much from now on."""
        return cls(time.monotonic() + seconds, most)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be done."""
        return self.bytes <= 0 or time.monotonic() >= self.until


class FileMissing(Exception):
    """There is no such file in the worktree."""


class FileUnread(Exception):
    """It was not read: no room for it, or it may not be read."""


_Stamp = tuple[int, ...]


class CodeFiles:
    """The files of worktrees."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], tuple[_Stamp, dict[str, str]]] = {}
        self._lock = threading.Lock()

    def digests(self, top: Path, path: str, symbols: Iterable[str], room: Allowance) -> Mapping[str, str]:
        """The digests of some symbols of a file, each empty where the file has none. FileMissing, FileUnread."""
        known, digests = self._known.get((top, path), ((), {}))
        wanted = set(symbols)
        if known and wanted <= digests.keys() and _stamp_of(top, path) == known:
            return digests
        if room.is_spent:
            raise FileUnread
        with _Opened(top, path) as file:
            info = os.fstat(file.descriptor)
            stamp = _stamp(info)
            if known != stamp:
                digests = {}
            if info.st_size > LARGEST:  # it was smaller when it got its anchor, so it has changed
                return dict.fromkeys(wanted, TOO_LARGE)
            if not wanted <= digests.keys():
                source = SourceText(file.read(info, room))
                digests = {**digests, **{symbol: source.digest(symbol) for symbol in wanted}}
                if time.time_ns() - max(info.st_mtime_ns, info.st_ctime_ns) > SETTLED_NS:
                    self._keep((top, path), stamp, digests)
            return digests

    def source(self, top: Path, path: str, room: Allowance) -> tuple[SourceText, int]:
        """A file, and when it was last changed in nanoseconds since 1970. FileMissing, FileUnread."""
        if room.is_spent:
            raise FileUnread
        with _Opened(top, path) as file:
            info = os.fstat(file.descriptor)
            return SourceText(file.read(info, room)), info.st_mtime_ns

    def _keep(self, place: tuple[Path, str], stamp: _Stamp, digests: dict[str, str]) -> None:
        with self._lock:
            if len(digests) <= MOST_SYMBOLS:
                self._known[place] = stamp, digests
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]


def _stamp(info: os.stat_result) -> _Stamp:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _stamp_of(top: Path, path: str) -> _Stamp:
    """That of a file that was read before; it is only looked at, so a link on the way does no harm."""
    try:
        return _stamp(os.lstat(f"{top}/{path}"))
    except OSError:
        return ()


class _Opened:
    """A plain file below a directory, open: each step of its path is opened by itself, so that no link is followed."""

    def __init__(self, top: Path, path: str) -> None:
        self.descriptor = -1
        self._top, self._path = top, path

    def __enter__(self) -> _Opened:
        if not is_inside(self._path):
            raise FileMissing
        *folders, name = self._path.split("/")
        try:
            self.descriptor = os.open(self._top, os.O_PATH | os.O_DIRECTORY)
            device = os.fstat(self.descriptor).st_dev
            for folder in folders:
                self._step(folder, os.O_PATH | os.O_DIRECTORY)
            self._step(name, os.O_PATH)  # to be read only once it is known for a plain file
            info = os.fstat(self.descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            self.__exit__()
            raise FileMissing from error
        except (OSError, ValueError) as error:  # a folder that may not be entered, a name that no file can have
            self.__exit__()
            raise FileUnread from error
        if info.st_dev != device:  # a mount may hang, and ours would wait for itself
            self.__exit__()
            raise FileUnread
        if not stat.S_ISREG(info.st_mode):
            self.__exit__()
            raise FileMissing
        return self

    def _step(self, name: str, flags: int) -> None:
        below = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor)
        os.close(self.descriptor)
        self.descriptor = below

    def read(self, info: os.stat_result, room: Allowance) -> bytes:
        """All of it. FileUnread."""
        if info.st_size > min(LARGEST, room.bytes):
            raise FileUnread
        try:
            opened = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.read(opened, LARGEST + 1)
            finally:
                os.close(opened)
        except OSError as error:
            raise FileUnread from error
        if len(data) != info.st_size:  # it is being written
            raise FileUnread
        room.bytes -= len(data)
        return data

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            with suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = -1
