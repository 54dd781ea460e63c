"""What processes last read of the indexes of agents' memories: the versions that their next ones are made from.

Owns the answer to the question which version a process that replaces such a file has seen: the one that it read itself,
else one that its children or siblings read for it, as `cat` does for a shell. Another host's lines may have come since
then, and must not pass for lines that the process took out. Refuses to guess for a process for which nobody read. Trio
thread only; nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import trio

from livememfs.tree.writer import kin_of

MOST_READS = 64
"""Threads whose last reads are remembered."""
MOST_BYTES = 1 << 20
"""Of an index; Claude Code reads 25 KB of one."""
ITS_OWN = 10.0
"""Seconds for which a thread's own read counts before a later one of its process: a program that does several things at
once does each in a thread, one with a pool of threads reads by one and writes by another."""


class Kin(NamedTuple):
    """A thread, as the kernel names a caller, its process, and the process that started that; 0 where not known."""

    thread: int = 0
    process: int = 0
    parent: int = 0


class _Read(NamedTuple):
    key: str
    by: Kin
    data: bytes
    moment: float


class IndexReads:
    """The last reads of one mount. `kin(pid)`: the process of a thread, and its parent; zeros when it has ended."""

    def __init__(self, kin: Callable[[int], tuple[int, int]] = kin_of) -> None:
        self._kin = kin
        self._reads: dict[tuple[str, Kin], _Read] = {}

    def who(self, pid: int) -> Kin:
        """The caller `pid`, to be asked while it waits for the answer: later it may have ended."""
        return Kin(pid, *self._kin(pid)) if pid else Kin()

    def note(self, key: str, by: Kin, data: bytes) -> None:
        """A process knows this content now."""
        if by.thread and len(data) <= MOST_BYTES:
            same = next((read.data for read in self._reads.values() if read.data == data), data)
            self._reads.pop((key, by), None)
            self._reads[key, by] = _Read(key, by, same, trio.current_time())
            if len(self._reads) > MOST_READS:
                del self._reads[next(iter(self._reads))]

    def base(self, key: str, by: Kin) -> bytes | None:
        """What a process has last seen of an index; None when nothing is known of that."""
        reads = [read for read in reversed(self._reads.values()) if read.key == key and by.thread]
        own = (read for read in reads if read.by.thread == by.thread)
        if (mine := next(own, None)) is not None and trio.current_time() - mine.moment <= ITS_OWN:
            return mine.data
        for is_near in (_same_process, _child, _sibling):
            for read in reads:
                if is_near(read.by, by):
                    return read.data
        return mine.data if mine is not None else None


def _same_process(reader: Kin, writer: Kin) -> bool:
    return reader.process == writer.process != 0


def _child(reader: Kin, writer: Kin) -> bool:
    return reader.parent == writer.process != 0


def _sibling(reader: Kin, writer: Kin) -> bool:
    return reader.parent == writer.parent != 0
