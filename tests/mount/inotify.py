"""inotify, as editors and `inotifywait` use it, by way of the C library."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import Self

MODIFY, ATTRIB, CLOSE_WRITE, CREATE, DELETE, DELETE_SELF = 0x2, 0x4, 0x8, 0x100, 0x200, 0x400
IS_DIRECTORY = 0x40000000
ALL = MODIFY | CLOSE_WRITE | CREATE | DELETE | DELETE_SELF
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """`with Watch(path) as watch: watch.wait(MODIFY, 2.0)`."""

    def __init__(self, path: Path, mask: int = MODIFY | ATTRIB) -> None:
        self.descriptor = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        assert self.descriptor >= 0
        assert _libc.inotify_add_watch(self.descriptor, os.fsencode(path), mask) >= 0, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        os.close(self.descriptor)

    def wait(self, wanted: int, seconds: float) -> float | None:
        """Seconds until an event of that kind; None when there was none in time."""
        started = time.monotonic()
        while (left := started + seconds - time.monotonic()) > 0:
            if select.select([self.descriptor], [], [], left)[0] and self._seen() & wanted:
                return time.monotonic() - started
        return None

    def _seen(self) -> int:
        found = 0
        for mask, _ in self.events():
            found |= mask
        return found

    def events(self) -> list[tuple[int, str]]:
        """What has come by now: masks, each with the name in the directory that is watched."""
        try:
            data, found = os.read(self.descriptor, 65_536), []
        except BlockingIOError:
            return []
        while data:
            _, mask, _, size = _EVENT.unpack_from(data)
            end = _EVENT.size + size
            found.append((mask, data[_EVENT.size : end].rstrip(b"\0").decode()))
            data = data[end:]
        return found

    def expect(self, wanted: set[tuple[int, str]], seconds: float) -> list[float]:
        """Seconds until each of these events has come, all of them within `seconds`; others do not matter."""
        started, missing, delays = time.monotonic(), set(wanted), list[float]()
        while missing:
            left = started + seconds - time.monotonic()
            assert left > 0, f"not within {seconds} s: {missing}"
            select.select([self.descriptor], [], [], left)
            for mask, name in self.events():
                for event in [one for one in missing if mask & one[0] == one[0] and name == one[1]]:
                    missing.discard(event)
                    delays.append(time.monotonic() - started)
        return delays
