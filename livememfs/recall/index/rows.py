"""Many rows of small numbers: in memory while they are few, then in a file that the kernel may drop from memory.

Owns that file. It has no name: no other process can cut it short (which would end this process), and it is gone with
the process, however that ends. Rows that were let go of are in the kernel's cache and not in our memory. Refuses to
survive a restart. Callers serialise `reserve`; an `array` taken before it stays good to read. Any thread.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

MAPPED_FROM = 64 << 20
"""Bytes from which on a file is used."""
TAKEN_AT_ONCE = 500
"""Rows looked at before what was around them is let go of."""


class Rows:
    """`array` has room for at least the rows reserved, each of `width` numbers of eight bits; zeros at first.

    `folder`: where the file may be; None keeps everything in memory, as does a disk without room.
    """

    def __init__(self, width: int, folder: Path | None = None) -> None:
        self.width, self._folder = width, folder
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self.array: NDArray[np.int8] = np.zeros((0, width), np.int8)

    @property
    def is_mapped(self) -> bool:
        """Whether the rows are in a file."""
        return self._map is not None

    def reserve(self, rows: int, used: int) -> None:
        """Have room for so many rows; the first `used` stay as they are. `array` is another one afterwards."""
        if rows * self.width >= MAPPED_FROM and self._folder is not None and self._grow_file(rows * self.width, used):
            return
        grown = np.zeros((rows, self.width), np.int8)
        grown[:used] = self.array[:used]
        self._file = self._map = None
        self.array = grown

    def _grow_file(self, size: int, used: int) -> bool:
        """Whether the disk has so much room; `array` lies in the file then."""
        fresh = self._file is None
        try:
            file = self._file or self._opened()
            os.posix_fallocate(file.fileno(), 0, size)  # a hole that cannot be filled ends the process
            mapped = mmap.mmap(file.fileno(), size)
        except (OSError, AttributeError):  # macOS has no such call
            return False
        array: NDArray[np.int8] = np.frombuffer(mapped, np.int8).reshape(-1, self.width)
        if fresh:
            array[:used] = self.array[:used]
        self._file, self._map, self.array = file, mapped, array
        return True

    def _opened(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it is open as long as these rows are there
        weakref.finalize(self, file.close)
        return file

    def take(self, wanted: NDArray[np.intp]) -> NDArray[np.int8]:
        """Some rows. Those in a file come into memory by portions: the kernel reads much around each row with it."""
        if not self.is_mapped:
            return self.array[wanted]
        taken = np.empty((len(wanted), self.width), np.int8)
        order = np.argsort(wanted)
        for first in range(0, len(order), TAKEN_AT_ONCE):
            places = order[first : first + TAKEN_AT_ONCE]
            taken[places] = self.array[wanted[places]]
            self.let_go()
        return taken

    def let_go(self) -> None:
        """Take the rows out of this process's memory. They stay in the kernel's cache or on the disk."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
