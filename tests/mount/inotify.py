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

MODIFY, ATTRIB, CLOSE_WRITE, CREATE, DELETE = 0x2, 0x4, 0x8, 0x100, 0x200
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
        data, found = os.read(self.descriptor, 65_536), 0
        while data:
            _, mask, _, size = _EVENT.unpack_from(data)
            found |= mask
            data = data[_EVENT.size + size :]
        return found
