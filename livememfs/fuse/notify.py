"""Notices to the kernel, and by inotify to whoever watches, of changes that came from elsewhere.

Owns one thread that tells the kernel to ask again for attributes, and has the announcer make inotify report each
change. Refuses every notice that may block in the kernel (names, pages): such a thread would wait for an answer of this
daemon, would not die with it, and the dead mount would not be noticed. Notices of attributes are enough: for a removed
file the answer is ESTALE, after which the kernel looks the name up again; and with the attributes it drops its pages.
`changed` is called on the trio thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyfuse3
import structlog

from livememfs.cache.changes import Change
from livememfs.fuse.announcer import Act, Announcer
from livememfs.fuse.inodes import ROOT
from livememfs.fuse.pretence import MAKING
from livememfs.tree.locate import NodePlace, places
from livememfs.tree.node import Directory, Kind, Node
from livememfs.tree.plainfile import type_of
from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

JOINED_WITHIN = 2.0


@dataclass(frozen=True)
class NotifyStatistics:
    """Notices to the kernel, changes that were announced to inotify, and what of both did not get through."""

    told: int
    announced: int
    missed: int


class Expect(Protocol):
    """Prepares the answers to the announcer; see `Pretence.expect`."""

    def __call__(self, directory: Directory, name: str, key: str, *, made: bool) -> bool: ...


class Notifier:
    """The thread. `number(directory, name, node)` is an inode's number if the kernel knows it."""

    def __init__(
        self,
        root: Root,
        number: Callable[[Directory, str, Node | None], int | None],
        expect: Expect,
        announcer: Announcer,
    ) -> None:
        self._root = root
        self._number = number
        self._expect = expect
        self._announcer = announcer
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="livememfs-notify", daemon=True)
        self._stopping = False
        self._told = self._announced = self._missed = 0

    def start(self) -> None:
        """Begin. The mount must exist."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more notices. Does not wait."""
        self._stopping = True
        self._queue.put(None)
        self._announcer.stop()

    def join(self) -> None:
        """Wait for thread and process, after the mount is gone."""
        if self._thread.ident is not None:
            self._thread.join(JOINED_WITHIN)
        self._announcer.join()

    def changed(self, change: Change) -> None:
        """A subscriber of the stream of changes."""
        if change.by_caller or self._stopping:
            return
        for position, place in enumerate(places(self._root, change.key)):
            if not place.whole and change.origin == "local":
                continue  # the kernel itself has called for folders that this mount makes or removes
            ino, above = self._number(place.directory, place.name, place.node), self._number_of(place.directory)
            for number in (ino, above):
                if number is not None:
                    self._queue.put(partial(self._tell, number))
            if place.whole and above is not None and (position == 0 or change.kind == "delete"):
                self._announce(change, place)

    def _announce(self, change: Change, place: NodePlace) -> None:
        """Have inotify report it to those who watch the name or its directory."""
        info = self._root.context.replica.names.now(change.key)
        act = _act(change, type_of(info)[0] if info is not None else "file")
        if act is None:
            return
        if act is not Act.CHANGED and not self._expect(place.directory, place.name, change.key, made=change.new):
            self._missed += 1
            return
        path = place.directory.path_of(place.name)
        self._queue.put(partial(self._send, act, path))
        if act is Act.MADE:
            self._queue.put(partial(self._send, Act.CHANGED, path))  # for who waits until it is closed

    def _number_of(self, directory: Directory) -> int | None:
        above = directory.parent
        if above is None:
            return ROOT
        return self._number(above, directory.name, directory)

    def _tell(self, ino: int) -> None:
        pyfuse3.invalidate_inode(pyfuse3.InodeT(ino), attr_only=True)
        self._told += 1

    def _send(self, act: Act, path: str) -> None:
        if self._announcer.send(act, path):
            self._announced += 1
        else:
            self._missed += 1

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
        return NotifyStatistics(self._told, self._announced, self._missed)


def _act(change: Change, kind: Kind) -> Act | None:
    """How a change is announced; None when it makes no event, such as of a folder's own marker."""
    is_folder = change.key.endswith("/")
    if change.kind == "delete":
        return Act.REMOVED_DIRECTORY if is_folder else Act.REMOVED
    if not change.new:
        return None if is_folder or kind != "file" else Act.CHANGED
    if is_folder:
        return Act.MADE_DIRECTORY if not change.etag else None
    return MAKING.get(kind)
