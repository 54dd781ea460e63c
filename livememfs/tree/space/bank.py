"""`bank/` and the other folders that nobody writes by hand, such as backups.

Owns read-only views of objects and folders. Every change answers EROFS, root's too: the refusal comes from here,
because mode bits do not stop root. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.records import keys
from livememfs.store.base import ObjectInfo
from livememfs.tree.computed import ReadOnlyDirectory
from livememfs.tree.context import Context
from livememfs.tree.node import Caller, Directory, Handle, Node, OpenMode, check_name
from livememfs.tree.objectfile import ObjectFile, lose, node_of

WHY = "consolidation writes it; write a note into live/ and touch .consolidate"


class StoredFile(ObjectFile):
    """One object, as it is."""

    __slots__ = ("why",)

    def __init__(self, parent: Directory, name: str, context: Context, info: ObjectInfo, why: str = WHY) -> None:
        super().__init__(parent, name, context, info, info.key)
        self.why = why

    def check_writable(self) -> None:
        raise self.refuse("writing")

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        handle = await super().open(mode, caller)
        if self.key is not None and caller.pid and keys.parse(self.key).kind == "observation":
            self.context.opened(self.key, caller.pid)
        return handle


class StoredDirectory(ReadOnlyDirectory):
    """Everything below one prefix, as it is."""

    __slots__ = ("_children", "context", "prefix")

    def __init__(self, parent: Directory, name: str, context: Context, prefix: str, why: str = WHY) -> None:
        super().__init__(parent, name, why, mode=0o755)
        self.context, self.prefix = context, prefix
        self._children: WeakValueDictionary[str, Node] = WeakValueDictionary()

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(name) if _shown(name) else None
        if name in listing.folders or info is not None:
            return self._node(name, info if name not in listing.folders else None)
        raise errors.NotFound(path=self.path_of(name))

    def steady(self) -> bool:
        return self.context.replica.names.watched(self.prefix)

    async def look(self) -> None:
        await self.context.replica.names.listing(self.prefix)

    def met(self, name: str) -> Node | None:
        return self._children.get(name)

    def appear(self, name: str) -> Node | None:
        level = self.context.replica.names.levels.get(self.prefix)
        if level is None or name not in level or not _shown(name):
            return self.met(name)
        return self._node(name, None if name in level.folders else level.objects[name])

    def lose(self, name: str) -> bool:
        return lose(self._children, name)

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self.context.replica.names.listing(self.prefix)
        nodes = {name: self._node(name, info) for name, info in listing.objects.items() if _shown(name)}
        nodes.update({name: self._node(name, None) for name in listing.folders})
        return sorted(nodes.items())

    def _node(self, name: str, info: ObjectInfo | None) -> Node:
        """A folder when `info` is None."""
        known = self._children.get(name)
        if info is None:
            if not isinstance(known, StoredDirectory):
                known = StoredDirectory(self, name, self.context, f"{self.prefix}{name}/", self.why)
        else:
            file = known if isinstance(known, StoredFile) else None
            known = node_of(file, info, lambda: StoredFile(self, name, self.context, info, self.why))
        self._children[name] = known
        return known


def _shown(name: str) -> bool:
    return name not in ("", keys.KEEP)
