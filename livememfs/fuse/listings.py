"""The listing of a directory in the kernel's form, kept while nothing in it changes.

Owns the work for each name. A directory may have a hundred thousand names, so the work begins while the store is still
sending them. Refuses to decide what is shown: `Directory.entries` does, and other prepared names are dropped. Trio
thread only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import pyfuse3

from livememfs import errors
from livememfs.fuse import translate
from livememfs.fuse.inodes import OUTDATED, HeldNode, Inodes
from livememfs.store.base import ObjectInfo
from livememfs.tree.node import Attrs, Directory, Ids, Node
from livememfs.tree.objectfile import stat_of

Listed = tuple[bytes, HeldNode, pyfuse3.EntryAttributes]
"""One name of a listing, ready for the kernel."""


class Listings:
    """The listings of one mount's directories. `owned` and `ids_in`: see `tree.root`."""

    def __init__(
        self, inodes: Inodes, ids: Ids, owned: Callable[[Node, Attrs], Attrs], ids_in: Callable[[Directory], Ids]
    ) -> None:
        self._inodes = inodes
        self._ids = ids
        self._owned = owned
        self._ids_in = ids_in
        self._kept: WeakKeyDictionary[Directory, tuple[object, list[Listed]]] = WeakKeyDictionary()

    async def of(self, directory: Directory) -> list[Listed]:
        """The names of a directory in the kernel's form; made anew only when the directory has changed."""
        kept, ready = self._kept.get(directory), _Ready(directory, self._inodes, self._ids_in(directory))
        with directory.overhear(ready.add):
            await directory.look()
            stamp = directory.stamp()
            if kept is not None and stamp is not None and kept[0] == (stamp, directory.steady()):
                return kept[1]
            entries = await directory.entries()
        stamp, steady = directory.stamp(), directory.steady()
        ready.settle(steady=steady)
        ready.add(
            [(name, node) for name, node in entries if isinstance(node, ObjectInfo) and not ready.has(name, node)]
        )
        files, names = ready.files, list[Listed]()
        for name, node in entries:
            listed = files[name][1] if isinstance(node, ObjectInfo) else await self._listed(name, node, steady=steady)
            if listed is not None:
                names.append(listed)
        if stamp is not None and directory.stamp() == stamp:
            self._kept[directory] = ((stamp, steady), names)
        return names

    def drop(self, directory: Directory) -> None:
        """Drop the listing of a directory that the kernel has forgotten: the entries refer to it, and would keep it."""
        _, names = self._kept.pop(directory, (None, ()))
        for _, held, _ in names:
            self._inodes.let_go(held)

    def current(self, directory: Directory, names: Sequence[Listed]) -> bool:
        """Whether a listing that was returned before is still the current one."""
        kept = self._kept.get(directory)
        return kept is not None and kept[1] is names and kept[0] == (directory.stamp(), directory.steady())

    def again(self, directory: Directory, listed: Listed) -> pyfuse3.EntryAttributes:
        """The present attributes of a name that was listed before: the kernel believes what it is told last."""
        name, held, entry = listed
        node = held.node
        if node is None:  # nobody on this machine has used it
            return entry
        attrs = node.listed_attrs()
        if attrs is not None:
            entry = translate.entry(held.ino, self._owned(node, attrs), self._ids, steady=directory.steady())
            if not attrs.volatile and held.told != attrs.version:
                held.told = OUTDATED  # the answer may have no room for this entry
        if not directory.has(os.fsdecode(name), node):
            entry.entry_timeout = entry.attr_timeout = 0.0
        return entry

    async def _listed(self, name: str, node: Node, *, steady: bool) -> Listed | None:
        """The entry of a node; None when it has gone since the names were listed."""
        try:
            attrs = node.listed_attrs() or await node.attrs()
        except (errors.NotFound, errors.Stale):
            return None
        held = self._inodes.hold(node)
        held.told = None if attrs.volatile else attrs.version
        entry = translate.entry(node.ino, self._owned(node, attrs), self._ids, steady=steady)
        return os.fsencode(name), held, entry


class _Ready:
    """The prepared entries of one directory's files that are known from the store's LIST alone."""

    def __init__(self, directory: Directory, inodes: Inodes, ids: Ids) -> None:
        self.files: dict[str, tuple[ObjectInfo, Listed]] = {}
        self._directory = directory
        self._inodes = inodes
        self._ids = ids
        self._steady = directory.steady()

    def has(self, name: str, info: ObjectInfo) -> bool:
        """Whether this version is prepared."""
        known = self.files.get(name)
        return known is not None and known[0] is info

    def add(self, shown: Sequence[tuple[str, ObjectInfo]]) -> None:
        """Prepare more files."""
        fsencode, file_entry, steady, ids = os.fsencode, translate.file_entry, self._steady, self._ids
        for (name, info), held in zip(shown, self._inodes.promise(self._directory, shown), strict=True):
            entry = file_entry(held.ino, info.size, stat_of(info), ids, steady=steady)
            self.files[name] = info, (fsencode(name), held, entry)

    def settle(self, *, steady: bool) -> None:
        """Set how long the kernel may cache the entries; `steady` is known only after the store has answered."""
        if steady != self._steady:
            self._steady = steady
            for _, (_, _, entry) in self.files.values():
                entry.attr_timeout = translate.file_seconds(steady=steady)
