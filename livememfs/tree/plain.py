"""Ordinary directories, and what is done to names in them: POSIX as far as an object store carries it.

Owns the translation of paths to keys (`a/b` is `prefix + a/b`, a directory is a common prefix, an empty one a marker
object `a/`). Refuses hard links and directory moves of more than `MAX_MOVED` objects (EXDEV: tools copy instead), and
for whoever is confined to spaces each link that leads out of one. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.records.metadata import META_MODE, META_MTIME, META_TYPE
from livememfs.tree.node import (
    AttrChange,
    Attrs,
    Caller,
    Directory,
    File,
    Node,
    Symlink,
    check_key,
    check_name,
    crossing,
)
from livememfs.tree.objectfile import number, replaced
from livememfs.tree.plainfile import SYMLINK, PlainFile, PlainSymlink, stays

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from livememfs.cache.listing import Heard
    from livememfs.cache.replica import Listing
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context

MAX_MOVED = 5_000
COMPLETED = 256
"""Up to this many files that were never read are asked for mode, time and type when their directory is listed."""


class PlainDirectory(Directory):
    """A directory: everything below one prefix."""

    __slots__ = ("_children", "_last", "_prefix", "_unsaved", "context", "gone", "mtime_ns")

    def __init__(self, parent: Directory | None, name: str, context: Context, prefix: str | None = None) -> None:
        super().__init__(parent, name)
        self.context = context
        self._prefix = prefix
        self._children: WeakValueDictionary[str, Node] = WeakValueDictionary()
        self._unsaved: dict[str, PlainFile] = {}
        self.mtime_ns: int | None = None
        self.gone = False
        self._last: Attrs | None = None

    @property
    def prefix(self) -> str:
        """The prefix of the keys below, "" or ending in "/"."""
        if self._prefix is None:
            assert isinstance(self.parent, PlainDirectory)  # only the top of a branch is told its prefix
            return f"{self.parent.prefix}{self.name}/"
        return self._prefix

    # --- what a subclass decides ------------------------------------------------------------------------------

    def shows(self, name: str) -> bool:
        """Whether an object or folder of this name is an ordinary one."""
        return name not in ("", ".", "..")

    def check_new(self, name: str) -> None:
        """Raise when nothing ordinary may get this name."""
        check_name(name, self.path_of(name))
        check_key(self.prefix + name, self.path_of(name))

    def check_target(self, name: str) -> None:
        """Raise when nothing ordinary may be moved to this name."""
        self.check_new(name)

    # --- looking ----------------------------------------------------------------------------------------------

    async def attrs(self) -> Attrs:
        if self.gone and self._last is not None:
            return self._last  # whoever has it open; another directory may have its name by now
        await self._expect_there()
        marker = await self._marker()
        meta = (marker.meta if marker is not None else None) or {}
        mode, mtime = number(meta.get(META_MODE), 8), self.mtime_ns
        if mtime is None:
            mtime = number(meta.get(META_MTIME), 10)
        if mtime is None:
            mtime = marker.modified_ns if marker is not None else 0
        mode = 0o755 if mode is None else mode & 0o7777
        return Attrs(kind="directory", mode=mode, size=0, mtime_ns=mtime, nlink=0 if self.gone else 2)

    def listed_attrs(self) -> Attrs:
        """What a listing of the parent shows: one request for each entry would be one too many."""
        return Attrs(kind="directory", mode=0o755, size=0, mtime_ns=self.mtime_ns or 0, nlink=2, volatile=True)

    async def _expect_there(self) -> None:
        """Stale when another host has removed this directory: the kernel may have the name still."""
        above = self.parent
        if self._prefix is not None or self.gone or not isinstance(above, PlainDirectory):
            return
        listing = await self.context.replica.names.listing(above.prefix)
        if self.name not in listing.folders and not self.unsaved_below():
            raise errors.Stale(path=self.path)

    async def _marker(self) -> ObjectInfo | None:
        """The object that stands for this directory itself, when there is one."""
        if not self.prefix:
            return None
        listing = await self.context.replica.names.listing(self.prefix)
        if "" not in listing.objects:
            return None
        found = await self.context.replica.names.complete([listing.objects[""]])
        return found[0] if found else None

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if not self.shows(name):
            raise errors.NotFound(path=self.path_of(name))
        unsaved = self._unsaved.get(name)
        if unsaved is not None:
            return unsaved
        listing = await self.context.replica.names.listing(self.prefix)
        return await self._node(name, listing)

    def steady(self) -> bool:
        return self.context.replica.names.watched(self.prefix)

    async def look(self) -> None:
        await self.context.replica.names.listing(self.prefix)

    def stamp(self) -> object:
        level = self.context.replica.names.levels.get(self.prefix)
        return None if level is None else (level.serial, tuple(self._unsaved), self.context.writes.count)

    def met(self, name: str) -> Node | None:
        return self._unsaved.get(name) or self._children.get(name)

    def has(self, name: str, node: Node) -> bool:
        return not self.shows(name) or self.met(name) is node

    async def children(self) -> Sequence[tuple[str, Node]]:
        replica = self.context.replica
        await self._complete_some()
        listing = await replica.names.listing(self.prefix)
        names = sorted({*listing.objects, *listing.folders, *self._unsaved})
        return [(name, self._unsaved.get(name) or self._listed(name, listing)) for name in names if self.shows(name)]

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        replica = self.context.replica
        await self._complete_some()
        listing, known = await replica.names.listing(self.prefix), self._children
        names = sorted({*listing.objects, *listing.folders, *self._unsaved})
        found: list[tuple[str, Node | ObjectInfo]] = []
        for name in names:
            if self.shows(name):
                info = listing.objects.get(name)
                bare = info is not None and info.meta is None and name not in listing.folders
                if info is not None and bare and name not in known and name not in self._unsaved:
                    found.append((name, info))
                else:
                    found.append((name, self._unsaved.get(name) or self._listed(name, listing)))
        return found

    def overhear(self, heard: Heard) -> AbstractContextManager[None]:
        return self.context.replica.names.overhear(self.prefix, heard)

    def appear(self, name: str) -> Node | None:
        level = self.context.replica.names.levels.get(self.prefix)
        if level is None or name not in level or not self.shows(name):
            return self.met(name)
        return self._unsaved.get(name) or self._listed(name, level)

    async def _complete_some(self) -> None:
        """Know mode, time and type of the files here, unless they are too many to be asked for."""
        replica = self.context.replica
        listing = await replica.names.listing(self.prefix)
        unknown = [info for name, info in listing.objects.items() if name and info.meta is None and self.shows(name)]
        if 0 < len(unknown) <= COMPLETED:
            await replica.fetch(unknown)

    def _listed(self, name: str, listing: Listing) -> Node:
        """The node for a name of the listing, with what a LIST tells alone if there is no more.

        A folder hides a file of the same name.
        """
        known = self._children.get(name)
        if name in listing.folders:
            return self._folder(name, known)
        return self._leaf(name, listing.objects[name], known)

    def _folder(self, name: str, known: Node | None) -> PlainDirectory:
        if not isinstance(known, PlainDirectory):
            known = PlainDirectory(self, name, self.context)
            self._children[name] = known
        return known

    async def _node(self, name: str, listing: Listing) -> Node:
        """The node for a name of the listing, with all that can be known of a file. NotFound."""
        info = listing.objects.get(name)
        if info is not None and info.meta is None and name not in listing.folders:
            await self.context.replica.fetch([info])
        if name not in listing.folders and name not in listing.objects:
            raise errors.NotFound(path=self.path_of(name))
        return self._listed(name, listing)

    def _leaf(self, name: str, info: ObjectInfo, known: Node | None) -> Node:
        if (info.meta or {}).get(META_TYPE) == SYMLINK:
            if not isinstance(known, PlainSymlink) or known.info.etag != info.etag:
                known = PlainSymlink(self, name, self.context, info)
        elif not isinstance(known, PlainFile) or not known.accepts(info):
            if isinstance(known, PlainFile):
                known.orphaned = True
            known = PlainFile(self, name, self.context, info, info.key)
        self._children[name] = known
        return known

    # --- changing ---------------------------------------------------------------------------------------------

    def saved(self, file: PlainFile) -> None:
        """A file's bytes are in the bucket: it need not be held here any more."""
        if self._unsaved.get(file.name) is file and not file.body.dirty:
            del self._unsaved[file.name]
            self._children[file.name] = file

    def unsaved(self) -> list[PlainFile]:
        """Files here whose bytes are not in the bucket."""
        loose = [child for child in self._children.values() if isinstance(child, PlainFile) and child.body.dirty]
        return [*self._unsaved.values(), *loose]

    def _touch(self) -> None:
        self.mtime_ns = self.context.now_ns()

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        self.check_new(name)
        await self._expect_free(name)
        file = PlainFile(self, name, self.context, None, self.prefix + name)
        file.mode = mode & 0o7777
        self._unsaved[name] = file
        self._touch()
        return file

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        self.check_new(name)
        check_key(f"{self.prefix}{name}/", self.path_of(name))  # its marker's, one byte more than a file's
        await self._expect_free(name)
        meta = {META_MODE: f"{mode & 0o7777:o}", META_MTIME: str(self.context.now_ns())}
        self.context.replica.save(f"{self.prefix}{name}/", b"", meta=meta, base=None)
        self.context.replica.names.begin(f"{self.prefix}{name}/")
        made = PlainDirectory(self, name, self.context)
        self._children[name] = made
        self._touch()
        return made

    async def symlink(self, name: str, target: str, caller: Caller) -> Symlink:
        self.check_new(name)
        self._expect_stays(target, name)
        await self._expect_free(name)
        data = target.encode("utf-8", "surrogateescape")
        key = self.prefix + name
        info = self.context.replica.save(key, data, meta={META_TYPE: SYMLINK}, base=None)
        made = PlainSymlink(self, name, self.context, info)
        self._children[name] = made
        self._touch()
        return made

    def _expect_stays(self, target: str, name: str) -> None:
        """LinkLeaves for a link that would lead whoever follows it out of the space, if that is not to be."""
        if self.context.confined and not stays(target, self.prefix):
            raise errors.LinkLeaves(path=self.path_of(name), target=target)

    async def _expect_free(self, name: str) -> None:
        if await _existing(self, name) is not None:
            raise errors.AlreadyExists(path=self.path_of(name))

    async def unlink(self, name: str) -> None:
        node = await self.child(name)
        if isinstance(node, Directory):
            raise errors.IsADirectory(path=node.path)
        if isinstance(node, PlainFile):
            await self._drop(name, node)
        elif isinstance(node, PlainSymlink):
            await self._keep_directory(name)
            self.context.replica.remove(node.key, base=node.info)
            self._children.pop(name, None)
        else:
            raise node.refuse("removing it")
        self._touch()

    async def _drop(self, name: str, file: PlainFile) -> None:
        """Take a file out of the tree; whoever holds it open keeps its bytes."""
        async with file.removing():
            if file.body.info is not None:
                assert file.key is not None  # it was stored under it
                await self._keep_directory(name)
                self.context.replica.remove(file.key, base=file.body.info)
        self._unsaved.pop(name, None)
        self._children.pop(name, None)

    async def _keep_directory(self, name: str) -> None:
        """A directory whose last entry goes stays a directory: it gets a marker if it had none."""
        if not self.prefix or self.parent is None:
            return
        listing = await self.context.replica.names.listing(self.prefix)
        if listing.folders <= {name} and set(listing.objects) <= {name}:
            self.context.replica.save(self.prefix, b"", meta={}, base=None)

    async def rmdir(self, name: str) -> None:
        node = await self.child(name)
        if not isinstance(node, Directory):
            raise errors.NotADirectory(path=node.path)
        empty, last = await _expect_empty(node)
        await self._keep_directory(name)
        self.context.replica.remove(empty.prefix, base=self.context.replica.names.now(empty.prefix))
        empty._leave(last)
        self._children.pop(name, None)
        self._touch()

    def _leave(self, last: Attrs) -> None:
        """Become a directory without a name: whoever has it open sees it as it was."""
        self.gone, self._last = True, replace(last, nlink=0)

    # --- moving -----------------------------------------------------------------------------------------------

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        node = await self.child(name)
        movable = isinstance(node, PlainFile | PlainSymlink) or (type(node) is PlainDirectory and node._prefix is None)
        if not movable or not isinstance(target, PlainDirectory):
            raise crossing(self.path_of(name), target)
        existing = await _existing(target, new_name)
        target.check_target(new_name)
        if existing is node:
            return
        if existing is not None and not replace:
            raise errors.AlreadyExists(path=target.path_of(new_name))
        if isinstance(node, PlainDirectory):
            await self._move_directory(node, target, new_name, existing)
        else:
            assert isinstance(node, PlainFile | PlainSymlink)  # `movable` said so
            await self._move_leaf(node, target, new_name, existing)
        self._touch()
        target._touch()

    async def _move_leaf(
        self, node: PlainFile | PlainSymlink, target: PlainDirectory, new_name: str, existing: Node | None
    ) -> None:
        if isinstance(existing, Directory):
            raise errors.IsADirectory(path=existing.path)
        if isinstance(node, PlainSymlink) and self.context.confined:
            target._expect_stays(await node.target(), new_name)
        if isinstance(existing, PlainFile):
            await existing.detach()
        name, key, unsaved = node.name, target.prefix + new_name, False
        try:
            if isinstance(node, PlainSymlink):
                node.info = await self._move_object(node.info, key, name)
                node.key = key
                self._children.pop(name, None)
            else:
                unsaved = await self._move_file(node, key, name)
        except BaseException:
            if isinstance(existing, PlainFile):
                existing.attach()  # it still has its name, or what the copy made of it
            raise
        if existing is not None:
            target._unsaved.pop(new_name, None)
        node.parent, node.name = target, new_name
        target._children[new_name] = node
        if isinstance(node, PlainFile) and unsaved:
            target._unsaved[new_name] = node

    async def _move_file(self, file: PlainFile, key: str, name: str) -> bool:
        """Give an ordinary file another key. What was written and not saved yet travels with it.

        True when the file was never stored: then the object under its key is what it replaces, and its own type and
        attributes are not those.
        """
        async with file._saving:
            unsaved = self._unsaved.get(name) is file
            if file.body.info is not None:
                info: ObjectInfo | None = await self._move_object(file.body.info, key, name)
            else:
                info = await self._overwrites(key)
            file.body.info = replaced(info) if unsaved and info is not None else info
            file.key = key
        self._unsaved.pop(name, None)
        self._children.pop(name, None)
        return unsaved

    async def _overwrites(self, key: str) -> ObjectInfo | None:
        """The object that a file never stored is about to replace: its next put is conditional on that version."""
        try:
            return await self.context.replica.names.stat(key)
        except errors.ObjectMissing:
            return None

    async def _move_object(self, source: ObjectInfo, target: str, name: str) -> ObjectInfo:
        """Have the other key accepted, over what is known to be there."""
        replaces = await self._overwrites(target)
        await self._keep_directory(name)
        return self.context.replica.move(source, target, replaces=replaces)

    async def _move_directory(
        self, node: PlainDirectory, target: PlainDirectory, new_name: str, existing: Node | None
    ) -> None:
        if existing is not None and not isinstance(existing, Directory):
            raise errors.NotADirectory(path=existing.path)
        if target.prefix.startswith(node.prefix):
            raise errors.InvalidName(path=target.path_of(new_name), detail="a directory cannot move into itself")
        if self.context.confined and target.prefix.count("/") < self.prefix.count("/"):
            raise errors.CrossesKinds(path=node.path)  # a link in it may lead too far up then: `mv` makes each anew
        empty = None if existing is None else await _expect_empty(existing)
        for file in node.unsaved_below():
            await file.flush(file.body)
        if target is not self:
            await self._keep_directory(node.name)
        old, new = node.prefix, f"{target.prefix}{new_name}/"
        found = await self.context.replica.names.walk(old, local=True)
        if len(found) > MAX_MOVED:
            raise errors.CrossesKinds(path=node.path)
        for key in (new, *(new + info.key[len(old) :] for info in found)):
            check_key(key, target.path_of(new_name))
        # Nothing was awaited since the walk: a version accepted after it would be removed with its old key.
        self.context.replica.move_all(old, new, found)
        if empty is not None:  # not before: whoever is refused finds it as it was
            if all(info.key != old for info in found):
                self._forget_marker(new)
            empty[0]._leave(empty[1])
        self._children.pop(node.name, None)
        node.parent, node.name = target, new_name
        target._children[new_name] = node
        node.rekey()

    def _forget_marker(self, key: str) -> None:
        """Have mode and times of a directory go whose name another one has got that has none of its own."""
        marker = self.context.replica.names.now(key)
        if marker is not None:
            with suppress(errors.NoSpace):  # the move is done
                self.context.replica.remove(key, base=marker)

    def unsaved_below(self) -> list[PlainFile]:
        """Files in this directory and those below that are not in the bucket."""
        found = self.unsaved()
        for child in list(self._children.values()):
            if isinstance(child, PlainDirectory):
                found.extend(child.unsaved_below())
        return found

    def rekey(self) -> None:
        """Tell every node that is known below what its key is now."""
        for name, child in [*self._children.items(), *self._unsaved.items()]:
            if isinstance(child, PlainDirectory):
                child.rekey()
            elif isinstance(child, PlainFile | PlainSymlink):
                child.rekey(self.prefix + name)

    async def set_xattr(self, name: str, value: bytes | None) -> None:
        raise errors.NotSupported(path=self.path, detail=f"setting {name} on a directory")

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode and times of a directory are kept in its marker."""
        if (change.mode is None and change.mtime_ns is None) or self.gone:
            return
        shown = await self.attrs()
        mode = shown.mode if change.mode is None else change.mode & 0o7777
        mtime = shown.mtime_ns if change.mtime_ns is None else change.mtime_ns
        base = (await self.context.replica.names.listing(self.prefix)).objects.get("")
        meta = {META_MODE: f"{mode:o}", META_MTIME: str(mtime)}
        self.context.replica.save(self.prefix, b"", meta=meta, base=base)
        self.mtime_ns = None


async def _existing(directory: Directory, name: str) -> Node | None:
    try:
        return await directory.child(name)
    except errors.NotFound:
        return None


async def _expect_empty(directory: Directory) -> tuple[PlainDirectory, Attrs]:
    """A directory that may go, and what it looks like. NotEmpty, or why it may not."""
    if not isinstance(directory, PlainDirectory) or directory._prefix is not None:
        raise directory.refuse("removing it")
    listing = await directory.context.replica.names.listing(directory.prefix, max_age=0.0)
    if directory._unsaved or listing.folders or set(listing.objects) - {""}:
        raise errors.NotEmpty(path=directory.path)
    return directory, await directory.attrs()
