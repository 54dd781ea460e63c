"""Telling the kernel, and through it the editors, what changed without their doing.

Owns one thread and its queue. The thread alone calls pyfuse3's notify functions: they may wait for locks that only an
answer of the trio thread sets free. For files that editors watch it then touches the file through the mount, which is
what makes inotify report a change; the adapter knows the thread by its id and answers such a touch with nothing done.
Refuses to fail: whatever the kernel has forgotten needs no telling. `changed` is called on the trio thread.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyfuse3
import structlog

from livememfs.records import keys
from livememfs.tree.locate import Place, places
from livememfs.tree.objectfile import ObjectFile

if TYPE_CHECKING:
    from pathlib import Path

    from livememfs.cache.changes import Change
    from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

JOINED_WITHIN = 2.0
WATCHED_KINDS = ("bank", "synthesis")
"""What editors and rule files of IDEs have open."""


@dataclass(frozen=True)
class NotifyStatistics:
    """What the kernel was told, files touched for inotify, and calls that did not reach it."""

    told: int
    touched: int
    missed: int


class Notifier:
    """The thread. `held(node)` is the number of a node that the kernel knows, None for any other."""

    def __init__(self, root: Root, mountpoint: Path, held: Callable[[object], int | None]) -> None:
        self._root = root
        self._mountpoint = mountpoint
        self._held = held
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="livememfs-notify", daemon=True)
        self._stopping = False
        self._told = self._touched = self._missed = 0
        self.thread_id = 0

    def start(self) -> None:
        """Begin. The mount must be there."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more. Does not wait: the thread may be waiting for an answer of ours."""
        self._stopping = True
        self._queue.put(None)

    def join(self) -> None:
        """Wait for the thread, after the mount is gone."""
        if self._thread.ident is not None:
            self._thread.join(JOINED_WITHIN)

    def is_own(self, pid: int) -> bool:
        """Whether a request comes from the notifier itself; the kernel's pid is a thread's id."""
        return pid == self.thread_id

    def changed(self, change: Change) -> None:
        """A subscriber of the stream of changes."""
        if change.by_caller or self._stopping:
            return
        for place in places(self._root, change.key):
            # Folders that come and go by our own hand do so by a call of the kernel's; to drop such a name afterwards
            # would take the working directory away from whoever is in it.
            if place.whole or change.origin == "remote":
                self._tell(place, gone=change.kind == "delete")
        if change.kind == "put" and keys.parse(change.key).kind in WATCHED_KINDS:
            path = self._mountpoint / change.key
            self._queue.put(lambda: self._touch(path))

    def _tell(self, place: Place, *, gone: bool) -> None:
        node = place.node
        ino = self._held(node) if node is not None else None
        directory = self._held(place.directory)
        replaced = isinstance(node, ObjectFile) and bool(node.handles) and not node.busy
        if ino is not None and place.whole and not gone and not replaced:
            self._queue.put(lambda: pyfuse3.invalidate_inode(pyfuse3.InodeT(ino)))
        elif directory is not None:
            # A new name, one that is gone, or one that from now on stands for another version: ask again who it is.
            parent, name = pyfuse3.InodeT(directory), os.fsencode(place.name)
            deleted = pyfuse3.InodeT(ino if gone and ino is not None else 0)
            self._queue.put(lambda: pyfuse3.invalidate_entry(parent, pyfuse3.FileNameT(name), deleted))
        if directory is not None and (node is None or gone):
            self._queue.put(lambda: pyfuse3.invalidate_inode(pyfuse3.InodeT(directory), attr_only=True))

    def _touch(self, path: Path) -> None:
        """Have inotify report IN_ATTRIB and IN_MODIFY for a file. Two calls, neither of which changes anything."""
        size = path.stat().st_size
        os.utime(path)
        os.truncate(path, size)
        self._touched += 1

    def _run(self) -> None:
        self.thread_id = threading.get_native_id()
        while (call := self._queue.get()) is not None:
            if self._stopping:
                return
            try:
                call()
                self._told += 1
            except OSError as error:  # it does not know the name, or the name is in use, or the mount is gone
                self._missed += 1
                log.debug("the kernel was not told", reason=str(error))
            except Exception:  # the next file must not suffer for it
                self._missed += 1
                with suppress(Exception):
                    log.exception("telling the kernel failed")

    def statistics(self) -> NotifyStatistics:
        """Counters, cheap; from any thread."""
        return NotifyStatistics(self._told, self._touched, self._missed)
