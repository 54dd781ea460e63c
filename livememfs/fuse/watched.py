"""Which files and directories somebody watches by inotify, so that they stay in use.

Who waits for an event asks the mount nothing, so by requests alone nobody would seem to be there. Linux names each
watch in the `fdinfo` of its process, with the inode. Owns the question, asked every few seconds, and only while there
have been requests lately or watches were found: adding a watch makes a request, but for names that the kernel
remembers. Only root sees the processes of other users. `find` may run in any thread; all else on the trio thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs import errors
from livememfs.fuse.translate import STEADY_SECONDS
from livememfs.tree.node import Directory

if TYPE_CHECKING:
    from livememfs.fuse.inodes import Inodes

EVERY = 5.0
AWAKE = STEADY_SECONDS + 2 * EVERY
"""Seconds after a request in which a watch may be added that makes none."""
KEPT_IN_USE = 8
"""Directories of a mount that are kept in use, those that were watched last: each costs a LIST every few seconds."""
_WATCH = re.compile(rb"^inotify wd:([0-9a-f]+) ino:([0-9a-f]+) sdev:([0-9a-f]+) ", re.MULTILINE)


def find(device: int) -> list[int]:
    """The numbers of the watched inodes of a file system, `device` as `st_dev` has it; the last watch at the end."""
    wanted = os.major(device) << 20 | os.minor(device)
    found: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()) != "anon_inode:inotify":
                    continue
                for number, ino, sdev in _WATCH.findall((process / "fdinfo" / descriptor.name).read_bytes()):
                    if int(sdev, 16) == wanted:
                        found[int(ino, 16)] = int(number, 16)
    return sorted(found, key=found.__getitem__)


async def find_aside(device: int) -> list[int]:
    """The same in a thread: there may be many processes."""
    return await trio.to_thread.run_sync(find, device, abandon_on_cancel=True)


class Attention:
    """Keeps what is watched in use. `requests()` counts the requests of the mount."""

    def __init__(self, inodes: Inodes, requests: Callable[[], int]) -> None:
        self._inodes = inodes
        self._requests = requests
        self._asked = -1
        self._until = float("-inf")
        self.watched = 0
        """How many were found last."""

    async def run(self, device: int) -> None:
        """Look again and again, until cancelled."""
        while True:
            await trio.sleep(EVERY)
            if self._is_awake():
                await self.keep(await find_aside(device))

    def _is_awake(self) -> bool:
        asked, now = self._requests(), trio.current_time()
        if asked != self._asked or self.watched:
            self._asked, self._until = asked, now + AWAKE
        return now < self._until

    async def keep(self, found: list[int]) -> None:
        """Use what is watched: the names of each directory are to be known, or nobody could tell what is new."""
        directories: dict[Directory, None] = {}
        for ino in reversed(found):
            with suppress(errors.Stale):
                node = self._inodes.node(ino)
                above = node if isinstance(node, Directory) else node.parent
                if above is not None:
                    directories.setdefault(above)
        self.watched = len(found)
        for directory in list(directories)[:KEPT_IN_USE]:
            with suppress(errors.LiveMemError):
                await directory.look()
