"""Notices to the kernel, and by inotify to editors, of changes that came from elsewhere.

Owns one thread that tells the kernel to ask again for attributes, and one small process that touches the files that
editors watch, so that inotify reports a change. Refuses every notice that may block in the kernel (names, pages): such
a thread would wait for an answer of this daemon, would not die with it, and the dead mount would not be noticed.
Notices of attributes are enough: for a removed file the answer is ESTALE, after which the kernel looks the name up
again; and with the attributes it drops its pages. For the same reason another process does the touching: it holds
nothing of the mount open. `changed` is called on the trio thread.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyfuse3
import structlog

from livememfs.cache.changes import Change
from livememfs.records import keys
from livememfs.tree.locate import places
from livememfs.tree.node import Directory, Node
from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

JOINED_WITHIN = 2.0
WATCHED_KINDS = ("bank", "synthesis")
"""The kinds of files that editors have open, and that rule files of IDEs refer to."""
TOUCHER = """
import os, sys
for line in sys.stdin.buffer:
    path = bytes.fromhex(line.decode())
    try:
        size = os.stat(path).st_size
        os.utime(path)
        os.truncate(path, size)
    except OSError:
        pass
"""
"""For each path, in hexadecimal: two calls that change nothing and that inotify reports, IN_ATTRIB and IN_MODIFY."""


@dataclass(frozen=True)
class NotifyStatistics:
    """Notices to the kernel, files touched for inotify, and notices that did not reach the kernel."""

    told: int
    touched: int
    missed: int


class Notifier:
    """The thread and the process. `number(directory, name, node)` is an inode's number if the kernel knows it."""

    def __init__(
        self, root: Root, mountpoint: Path, number: Callable[[Directory, str, Node | None], int | None]
    ) -> None:
        self._root = root
        self._mountpoint = mountpoint
        self._number = number
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="livememfs-notify", daemon=True)
        self._toucher: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._told = self._touched = self._missed = 0

    def start(self) -> None:
        """Begin. The mount must exist."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more notices. Does not wait."""
        self._stopping = True
        self._queue.put(None)
        if self._toucher is not None and self._toucher.stdin is not None:
            with suppress(OSError):
                self._toucher.stdin.close()

    def join(self) -> None:
        """Wait for thread and process, after the mount is gone."""
        if self._thread.ident is not None:
            self._thread.join(JOINED_WITHIN)
        if self._toucher is not None:
            with suppress(subprocess.TimeoutExpired):
                self._toucher.wait(JOINED_WITHIN)

    def is_own(self, pid: int) -> bool:
        """Whether a request comes from the process that touches; the kernel's pid is a thread's id."""
        return self._toucher is not None and pid == self._toucher.pid

    def changed(self, change: Change) -> None:
        """A subscriber of the stream of changes."""
        if change.by_caller or self._stopping:
            return
        for place in places(self._root, change.key):
            if not place.whole and change.origin == "local":
                continue  # the kernel itself has called for folders that this mount makes or removes
            for ino in (self._number(place.directory, place.name, place.node), self._number_of(place.directory)):
                if ino is not None:
                    self._queue.put(partial(self._tell, ino))
        if change.kind == "put" and keys.parse(change.key).kind in WATCHED_KINDS:
            path = os.fsencode(self._mountpoint / change.key)
            self._queue.put(partial(self._touch, path))

    def _number_of(self, directory: Directory) -> int | None:
        above = directory.parent
        return self._number(above, directory.name, directory) if above is not None else None

    def _tell(self, ino: int) -> None:
        pyfuse3.invalidate_inode(pyfuse3.InodeT(ino), attr_only=True)
        self._told += 1

    def _touch(self, path: bytes) -> None:
        if self._toucher is None:
            command = [sys.executable, "-I", "-S", "-c", TOUCHER]
            self._toucher = subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", stdout=subprocess.DEVNULL)
        assert self._toucher.stdin is not None  # it was asked for
        self._toucher.stdin.write(path.hex().encode() + b"\n")
        self._toucher.stdin.flush()
        self._touched += 1

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            if self._stopping:
                return
            try:
                call()
            except (OSError, ValueError) as error:  # the kernel does not know it, or it is the end
                self._missed += 1
                log.debug("the kernel was not told", reason=str(error))
            except Exception:  # or the thread would end, with all later notices
                self._missed += 1
                log.exception("telling the kernel failed")

    def statistics(self) -> NotifyStatistics:
        """Counters, cheap; from any thread."""
        return NotifyStatistics(self._told, self._touched, self._missed)
