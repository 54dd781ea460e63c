"""Inode numbers, and which nodes the kernel holds.

Owns the map from numbers to nodes. A number comes from the path, so it is the same after a remount; two nodes that
claim the same number are told apart by counting on. A node stays as long as the kernel counts a lookup on it. Refuses
to raise on a `forget`, whatever the kernel says. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from livememfs import errors

if TYPE_CHECKING:
    from livememfs.tree.node import Directory, Node

ROOT = 1
_BITS = (1 << 62) - 1


@dataclass(frozen=True)
class InodeStatistics:
    """How many nodes the kernel holds."""

    held: int


@dataclass(slots=True)
class _Held:
    node: Node
    lookups: int = 0
    told: int | None = None
    pages: int | None = None


class Inodes:
    """All inodes of one mount.

    `told` is the version whose attributes the kernel may have cached, `pages` the version whose bytes it may have.
    """

    def __init__(self, root: Directory) -> None:
        root.ino = ROOT
        self._held: dict[int, _Held] = {ROOT: _Held(root, 1)}

    def node(self, ino: int) -> Node:
        """The node behind a number. Stale when the kernel asks for one that we let go."""
        held = self._held.get(ino)
        if held is None:
            raise errors.Stale(path=f"inode {ino}")
        return held.node

    def number(self, node: Node) -> int:
        """The node's number, without counting a lookup."""
        held = self._held.get(node.ino)
        if held is None or held.node is not node:
            node.ino = self._free(node)
            self._held[node.ino] = _Held(node)
        return node.ino

    def count(self, node: Node) -> None:
        """The kernel has been told of this node once more."""
        self._held[self.number(node)].lookups += 1

    def drop_uncounted(self, node: Node) -> None:
        """Let go of a node that the kernel was not told of after all."""
        held = self._held.get(node.ino)
        if held is not None and held.node is node and not held.lookups:
            del self._held[node.ino]

    def forget(self, ino: int, lookups: int) -> None:
        """The kernel gives back lookups."""
        held = self._held.get(ino)
        if held is None or ino == ROOT:
            return
        held.lookups -= lookups
        if held.lookups <= 0:
            del self._held[ino]

    def tell(self, ino: int, version: int | None) -> None:
        """The kernel was given attributes of this version to keep; None: of nothing it may keep."""
        held = self._held.get(ino)
        if held is not None:
            held.told = version

    def told(self, ino: int) -> int | None:
        """The version whose attributes the kernel may have cached."""
        held = self._held.get(ino)
        return held.told if held is not None else None

    def keeps_pages(self, ino: int, version: int) -> bool:
        """Whether the kernel's pages are of this version; from now on they are."""
        held = self._held.get(ino)
        if held is None:
            return False
        same = held.pages == version
        held.pages = version
        return same

    def statistics(self) -> InodeStatistics:
        """Counters, cheap."""
        return InodeStatistics(len(self._held))

    def _free(self, node: Node) -> int:
        digest = blake2b(node.path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        ino = int.from_bytes(digest, "big") & _BITS
        while ino <= ROOT or ino in self._held:
            ino += 1
        return ino
