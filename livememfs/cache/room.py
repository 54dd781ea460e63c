"""Whether new content still has room here until the bucket has it.

Owns the answer, from the share of the disk that is ours and from what the disk has left. Refuses to count what was only
read: that is evicted. Trio thread only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from livememfs.errors import NoSpace

if TYPE_CHECKING:
    from pathlib import Path

    from livememfs.cache.blobs import Blobs
    from livememfs.cache.database import Database
    from livememfs.cache.journal.steps import Journal

DISK_RESERVE = 32 << 20
"""Bytes of the local disk that new content leaves alone."""
BELIEVED = 0.5
"""Seconds for which the disk is not asked again what it has left: many small files are saved in that time."""


class Room:
    """The room for what was accepted. `max_bytes` may wait for the bucket at a time."""

    def __init__(self, database: Database, journal: Journal, blobs: Blobs, max_bytes: int) -> None:
        self._database = database
        self._journal = journal
        self._blobs = blobs
        self._max_bytes = max_bytes
        self._asked = float("-inf")
        self._free = self._total = 0

    def expect(self, size: int, *, is_here: bool = False) -> None:
        """NoSpace when `size` more bytes cannot be kept until they are uploaded. `is_here`: the disk has them.

        One file may be larger than the cache, when nothing else waits.
        """
        backlog = self._journal.ops.backlog
        if backlog and backlog + size > self._max_bytes:
            raise NoSpace(f"{backlog:,} bytes wait for the bucket already, and the cache holds {self._max_bytes:,}")
        folder = self._database.folder
        if folder is None or is_here:
            return
        if trio.current_time() - self._asked > BELIEVED:
            self._ask(folder)
        while self._free < size + DISK_RESERVE:
            self._ask(folder)  # what is short is not taken from memory: somebody may have made room
            if self._free < size + DISK_RESERVE and not self._blobs.evict():
                raise NoSpace(f"the disk of {folder} is nearly full")
        self._free -= size

    def space(self) -> tuple[int, int]:
        """Bytes in all, and how many can be written until some are uploaded: what the disk and the cache have."""
        folder = self._database.folder
        left = max(0, self._max_bytes - self._journal.ops.backlog)
        if folder is None:
            return self._max_bytes, left
        if trio.current_time() - self._asked > BELIEVED:
            self._ask(folder)
        return self._total, min(left, max(0, self._free - DISK_RESERVE))

    def _ask(self, folder: Path) -> None:
        found = os.statvfs(folder)
        self._asked, self._free = trio.current_time(), found.f_bavail * found.f_frsize
        self._total = found.f_blocks * found.f_frsize
