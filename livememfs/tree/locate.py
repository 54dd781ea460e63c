"""From a key of the bucket to the nodes that show it, as far as they have been met.

Owns which directory has the name, and which node is under it. Refuses to make requests and nodes: the kernel needs no
notice of a name that nobody has looked up. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from livememfs.tree.node import Directory, Node
from livememfs.tree.root import Root
from livememfs.tree.space.live import Live


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A name in a directory. `node` is None when nobody has met it; `whole` when it stands for the key itself."""

    directory: Directory
    name: str
    node: Node | None
    whole: bool


def places(root: Root, key: str) -> Iterator[NodePlace]:
    """Every place where a change of `key` shows: the name itself, or the first folder on the way that was not met."""
    directory: Directory = root
    parts = key.rstrip("/").split("/")  # a folder's marker stands for the folder
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        node = directory.met(part)
        if last or not isinstance(node, Directory):
            yield NodePlace(directory, part, node, last)
            if last and isinstance(directory, Live):
                yield from (
                    NodePlace(directory, name, node, whole=True) for name in directory.known.written_names(part)
                )
            return
        directory = node
