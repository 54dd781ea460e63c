"""Inode numbers, and which nodes the kernel holds.

Owns the map from numbers to nodes. A number comes from the parent's and the name, so it is the same after a remount;
for a second node with the same number the next free one is taken. A node stays as long as the kernel counts a lookup on
it. Refuses to raise on a `forget`, even a wrong one. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from livememfs import errors
from livememfs.store.base import ObjectInfo
from livememfs.tree.node import Directory, Node
from livememfs.tree.objectfile import ObjectFile

ROOT = 1
OUTDATED = -1
"""No version has this number: what the kernel may have cached is outdated."""
_BITS = (1 << 62) - 1


@dataclass(frozen=True)
class InodeStatistics:
    """How many nodes the kernel holds."""

    held: int


class HeldNode:
    """A node with a number, or a promise: a name that a listing showed, whose node is made when it is asked for.

    `lookups` is how often the kernel was told of it, `told` the version whose attributes it may have cached, `pages`
    the version whose bytes it may have. Not `live`: the kernel has forgotten it, and its number is free. A promise has
    `info`, the version that was shown, and becomes a node by `directory.appear(name)`.
    """

    __slots__ = ("directory", "info", "ino", "live", "lookups", "name", "node", "pages", "told")

    def __init__(self, ino: int, node: Node | None, lookups: int = 0) -> None:
        self.ino = ino
        self.node = node
        self.lookups = lookups
        self.told: int | None = None
        self.pages: int | None = None
        self.live = True
        self.directory: Directory | None = None
        self.name = ""
        self.info: ObjectInfo | None = None

    def is_of(self, directory: Directory | None, name: str) -> bool:
        """Whether it is the record of a name, with a node or without."""
        node = self.node
        above, own = (self.directory, self.name) if node is None else (node.parent, node.name)
        return above is directory and own == name

    def fulfil(self, node: Node) -> None:
        """Give the promise its node. If that has another version by now, what the kernel was told is outdated."""
        self.told = OUTDATED
        if isinstance(node, ObjectFile) and node.body.info is not None and self.info is not None:
            same = (node.body.info.etag, node.body.info.size) == (self.info.etag, self.info.size)
            self.told = node.body.serial if same else OUTDATED
        node.ino = self.ino
        self.node, self.directory, self.info = node, None, None


class Inodes:
    """All inodes of one mount."""

    def __init__(self, root: Directory) -> None:
        root.ino = ROOT
        self._held: dict[int, HeldNode] = {ROOT: HeldNode(ROOT, root, 1)}

    def node(self, ino: int) -> Node:
        """The node with a number. Stale for a number that is not held any more."""
        held = self._held.get(ino)
        if held is None:
            raise errors.Stale(path=f"inode {ino}")
        if held.node is None:
            assert held.directory is not None  # a promise knows where it was made
            node = held.directory.appear(held.name)
            if node is None:
                raise errors.Stale(path=held.directory.path_of(held.name))
            if held.node is None:
                held.fulfil(node)
            return node
        return held.node

    def number(self, node: Node) -> int:
        """The node's number, without counting a lookup."""
        return self.hold(node).ino

    def hold(self, node: Node) -> HeldNode:
        """The node's record, without counting a lookup."""
        held = self._held.get(node.ino)
        if held is None or held.node is not node:
            ino = _natural(node)
            promised = self._held.get(ino)
            if promised is not None and promised.directory is node.parent and promised.name == node.name:
                promised.fulfil(node)
                return promised
            node.ino = self._free(ino)
            held = self._held[node.ino] = HeldNode(node.ino, node)
        return held

    def promise(self, directory: Directory, shown: Iterable[tuple[str, ObjectInfo]]) -> Iterator[HeldNode]:
        """The promises for names that a listing shows."""
        above = _hash(directory.ino or _natural(directory))
        for name, info in shown:
            ino = _below(above, name)
            held = self._held.get(ino)
            if held is None or held.directory is not directory or held.name != name:
                held = HeldNode(self._free(ino), None)
                held.directory, held.name = directory, name
                self._held[held.ino] = held
            held.info = info
            yield held

    def revive(self, held: HeldNode) -> HeldNode:
        """Make a record that was dropped findable again; where its name has another one by now, that is returned."""
        current = self._held.get(held.ino)
        if current is not None and current is not held:
            if current.node is held.node if held.node is not None else current.is_of(held.directory, held.name):
                return current  # a second number would be a second inode, and watches on the first would hear nothing
            held.ino = self._free(held.ino)
        if held.node is not None:
            held.node.ino = held.ino
        held.live, held.lookups, held.told, held.pages = True, 0, None, None
        self._held[held.ino] = held
        return held

    def known(self, directory: Directory, name: str, node: Node | None) -> int | None:
        """The number under which the kernel knows a name: its node's, or the promise of one; None when it does not."""
        if node is not None and node.ino:
            held = self._held.get(node.ino)
            return node.ino if held is not None and held.node is node and held.lookups else None
        ino = _number(directory.ino or _natural(directory), name)
        held = self._held.get(ino)
        promised = held is not None and held.directory is directory and held.name == name and held.lookups
        return ino if promised else None

    def count(self, node: Node) -> None:
        """The kernel has been told of this node once more."""
        self.hold(node).lookups += 1

    def count_again(self, ino: int) -> None:
        """The same by a number that the kernel knows."""
        self._held[ino].lookups += 1

    def drop_uncounted(self, node: Node) -> None:
        """Drop a node that the kernel was not told of after all."""
        held = self._held.get(node.ino)
        if held is not None and held.node is node:
            self.let_go(held)

    def let_go(self, held: HeldNode) -> None:
        """Drop a record that the kernel was not told of after all."""
        if held.live and not held.lookups:
            held.live = False
            self._held.pop(held.ino, None)

    def forget(self, ino: int, lookups: int) -> Node | None:
        """The kernel gives back lookups; returns the node when none is left."""
        held = self._held.get(ino)
        if held is None or ino == ROOT:
            return None
        held.lookups -= lookups
        if held.lookups > 0:
            return None
        held.live = False
        del self._held[ino]
        return held.node

    def tell(self, ino: int, version: int | None) -> None:
        """The kernel was given the attributes of this version; None: it may not cache them."""
        held = self._held.get(ino)
        if held is not None:
            held.told = version

    def told(self, ino: int) -> int | None:
        """The version whose attributes the kernel may have cached."""
        held = self._held.get(ino)
        return held.told if held is not None else None

    def keeps_pages(self, ino: int, version: int) -> bool:
        """Whether the kernel's cached pages are of this version; from now on they are."""
        held = self._held.get(ino)
        if held is None:
            return False
        same = held.pages == version
        held.pages = version
        return same

    def statistics(self) -> InodeStatistics:
        """Counters, cheap."""
        return InodeStatistics(len(self._held))

    def _free(self, ino: int) -> int:
        while ino <= ROOT or ino in self._held:
            ino += 1
        return ino


def _natural(node: Node) -> int:
    """The number that follows from a node's place."""
    if node.parent is None:
        return ROOT
    return _number(node.parent.ino or _natural(node.parent), node.name)


def _number(above: int, name: str) -> int:
    return _below(_hash(above), name)


def _hash(above: int) -> blake2b:
    return blake2b(above.to_bytes(8, "big"), digest_size=8)


def _below(above: blake2b, name: str) -> int:
    own = above.copy()
    own.update(name.encode("utf-8", "surrogateescape"))
    return int.from_bytes(own.digest(), "big") & _BITS
