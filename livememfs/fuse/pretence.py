"""What the announcer is told: that its calls succeed, while nothing is changed.

Owns which changes are being announced, and every answer to the announcer's process, known by its id (`announcer`): a
name that has come is missing until it pretends to make it; one that has gone is there until it pretends to remove it.
With the answers the kernel gets what the bucket has: the new version's attributes, the new name, no name any more.
Refuses every call that the announcement of a change does not need, and each whose time has passed: the change may have
been followed by another. Asks the bucket nothing, but for new names of the root. Trio thread only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FUSEError

from livememfs.fuse import translate
from livememfs.fuse.announcer import Act
from livememfs.fuse.inodes import Inodes
from livememfs.tree.node import Attrs, Directory, Handle, Kind, Node
from livememfs.tree.objectfile import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livememfs.tree.root import Root

ANNOUNCED_WITHIN = 10.0
"""Seconds after which the announcer has failed: somebody was faster, or may do more than it may."""
AT_ONCE = 2_048
"""Changes that are being announced. Of more, nobody is told: a queue of inotify has room for 16,384 events."""
MAKING: Mapping[Kind, Act] = {
    "file": Act.MADE,
    "directory": Act.MADE_DIRECTORY,
    "symlink": Act.MADE_LINK,
    "fifo": Act.MADE_PIPE,
    "socket": Act.MADE_SOCKET,
}
_UNKNOWN = count(1 << 62)
"""Numbers of inodes that the kernel is told of only to remove them: no node has so high a one."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A name that is announced as made, or as removed; `key` is what the bucket has, or had, for it."""

    key: str
    made: bool
    until: float


class Pretence:
    """The answers of one mount. `entry(node, attrs)` are attributes for the kernel, `opened(node, handle)` a number."""

    def __init__(
        self,
        root: Root,
        inodes: Inodes,
        entry: Callable[[Node, Attrs], EntryAttributes],
        opened: Callable[[Any, Handle], int],
    ) -> None:
        self._root = root
        self._inodes = inodes
        self._entry = entry
        self._opened = opened
        self._expected: dict[tuple[Directory, str], Expected] = {}
        self._answers: dict[str, Callable[..., Awaitable[Any]]] = {
            "lookup": self._lookup, "getattr": self._getattr, "setattr": self._setattr, "open": self._open,
            "mknod": self._make, "mkdir": self._make, "symlink": self._make,
            "unlink": self._remove, "rmdir": self._remove,
        }  # fmt: skip

    # --- what is announced ------------------------------------------------------------------------------------

    def expect(self, directory: Directory, name: str, key: str, *, made: bool) -> bool:
        """Begin to announce that a name has come or gone. False: too much is announced at this moment."""
        now = trio.current_time()
        self._expected = {place: one for place, one in self._expected.items() if one.until > now}
        if len(self._expected) >= AT_ONCE:
            return False
        self._expected[directory, name] = Expected(key, made, now + ANNOUNCED_WITHIN)
        return True

    def is_coming(self, directory: Directory | None, name: str) -> bool:
        """Whether a name is there whose making is still to be announced: the kernel must not keep it until then."""
        if not self._expected or directory is None:
            return False
        one = self._expecting(directory, name)
        return one is not None and one.made

    def _expecting(self, directory: Directory, name: str) -> Expected | None:
        one = self._expected.get((directory, name))
        return one if one is not None and one.until > trio.current_time() else None

    # --- the answers ------------------------------------------------------------------------------------------

    async def answer(self, operation: str, args: Sequence[Any]) -> Any:
        """The answer to one request of the announcer. Raises FUSEError for whatever it need not do."""
        answer = self._answers.get(operation)
        if answer is None:
            raise FUSEError(errno.EPERM)
        return await answer(*args)

    async def _lookup(self, parent: int, name: bytes, _: object) -> EntryAttributes:
        directory, text = self._directory(parent), os.fsdecode(name)
        expected = self._expecting(directory, text)
        if expected is not None and not expected.made:
            return await self._former(directory, text, expected)
        node = None if expected is not None else await self._node(directory, text)
        if node is None:
            raise FUSEError(errno.ENOENT)
        return await self._reveal(node)

    async def _getattr(self, ino: int, _: object) -> EntryAttributes:
        return await self._shown(self._inodes.node(ino))

    async def _setattr(self, ino: int, *_: object) -> EntryAttributes:
        return await self._getattr(ino, None)

    async def _open(self, ino: int, *_: object) -> pyfuse3.FileInfo:
        node = self._inodes.node(ino)
        return pyfuse3.FileInfo(fh=self._opened(node, Handle()), keep_cache=True)

    async def _make(self, parent: int, name: bytes, *_: object) -> EntryAttributes:
        directory, text = self._directory(parent), os.fsdecode(name)
        expected = self._expecting(directory, text)
        node = await self._node(directory, text) if expected is not None and expected.made else None
        if node is None:
            raise FUSEError(errno.EPERM)
        self._expected.pop((directory, text), None)
        return await self._reveal(node)

    async def _remove(self, parent: int, name: bytes, _: object) -> None:
        directory, text = self._directory(parent), os.fsdecode(name)
        expected = self._expecting(directory, text)
        if expected is None or expected.made or self._is_there(expected.key) or not directory.lose(text):
            raise FUSEError(errno.ENOENT)
        self._expected.pop((directory, text), None)

    # --- inside -----------------------------------------------------------------------------------------------

    def _directory(self, ino: int) -> Directory:
        node = self._inodes.node(ino)
        if not isinstance(node, Directory):
            raise FUSEError(errno.ENOTDIR)
        return node

    async def _node(self, directory: Directory, name: str) -> Node | None:
        """The node under a name, as far as its directory knows."""
        if directory is self._root:
            return await directory.child(name)  # it has to find out whether a folder is a space
        return directory.appear(name)

    def _is_there(self, key: str) -> bool:
        names = self._root.context.replica.names
        if not key.endswith("/"):
            return names.now(key) is not None
        above, _, name = key[:-1].rpartition("/")
        level = names.levels.get(f"{above}/" if above else "")
        return level is None or name in level.folders

    async def _reveal(self, node: Node) -> EntryAttributes:
        shown = await self._shown(node)
        self._inodes.count(node)
        return shown

    async def _shown(self, node: Node) -> EntryAttributes:
        entry = self._entry(node, await _attrs(node))
        if isinstance(node, ObjectFile) and node.body.info is not None and node.body.info.meta is None:
            entry.attr_timeout = 0.0  # mode and time are to be asked for
        return entry

    async def _former(self, directory: Directory, name: str, expected: Expected) -> EntryAttributes:
        """What was under a name, as far as the kernel need know it to remove the name."""
        node = directory.met(name)
        if node is not None:
            self._inodes.count(node)
            return _brief(self._entry(node, await _attrs(node)))
        kind: Kind = "directory" if expected.key.endswith("/") else "file"
        attrs = Attrs(kind, 0o755 if kind == "directory" else 0o644, 0, 0)
        ino = self._inodes.known(directory, name, None)
        if ino is None:
            ino = next(_UNKNOWN)
        else:
            self._inodes.count_again(ino)
        return _brief(translate.entry(ino, attrs, self._root.context.ids))


async def _attrs(node: Node) -> Attrs:
    """What is known of a node, in the version that the bucket has by now."""
    if isinstance(node, ObjectFile) and node.key is not None:
        info = node.context.replica.names.now(node.key)
        if info is not None:
            node.accepts(info)
    attrs = node.listed_attrs()
    return attrs if attrs is not None else await node.attrs()


def _brief(entry: EntryAttributes) -> EntryAttributes:
    """For this one call: the kernel keeps neither name nor attributes."""
    entry.entry_timeout = entry.attr_timeout = 0.0
    return entry
