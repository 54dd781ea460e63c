"""Ordinary directories, and what is done to names in them: POSIX as far as an object store carries it.

Owns the translation of paths to keys (`a/b` is `prefix + a/b`, a directory is a common prefix), and the nodes that
somebody has met. `marker` has the objects of empty directories, `renaming` the moves. Refuses hard links, and to a
confined user each symbolic link that leads out of its space. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from stat import S_ISGID
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.cache.listing import Heard
from livememfs.cache.replica import Listing
from livememfs.records import keys
from livememfs.records.posix import NOTHING, PERMISSIONS, Stat
from livememfs.store.base import ObjectInfo
from livememfs.tree import renaming
from livememfs.tree.adopted import AdoptedFile
from livememfs.tree.context import Context
from livememfs.tree.marker import keep_directory, marker_of
from livememfs.tree.node import (
    NOBODY,
    AttrChange,
    Attrs,
    Caller,
    Directory,
    File,
    Kind,
    Node,
    Symlink,
    check_key,
    check_name,
    crossing,
)
from livememfs.tree.objectfile import changed, lose, node_of, stat_of
from livememfs.tree.plainfile import PlainFile, PlainObject, PlainSymlink, expect_stays, type_meta, type_of

DIRECTORY_MODE = 0o755
COMPLETED = 256
"""When a directory is listed, mode, time and type are asked for up to this many files whose metadata is unknown."""


class KnownNodes:
    """The nodes of one directory that somebody holds, and all files whose bytes are not in the bucket yet.

    `unsaved` keeps its files alive: nobody else may hold them after their close has failed.
    """

    __slots__ = ("_directory", "stored", "unsaved")

    def __init__(self, directory: PlainDirectory) -> None:
        self._directory = directory
        self.stored: WeakValueDictionary[str, Node] = WeakValueDictionary()
        self.unsaved: dict[str, PlainFile] = {}

    async def look_up(self, name: str, listing: Listing) -> Node:
        """The node for a name of the listing, with all that can be known of a file. NotFound."""
        info = listing.objects.get(name)
        if info is not None and info.meta is None and name not in listing.folders:
            await self._directory.context.replica.fetch([info])
        directory = self._directory
        there = name in listing.folders or name in listing.objects
        if there and name in listing.folders and name not in self.stored:
            there = await directory.context.replica.presence.is_there(f"{directory.prefix}{name}/")
        if not there:
            raise errors.NotFound(path=directory.path_of(name))
        return self.listed(name, listing)

    def listed(self, name: str, listing: Listing) -> Node:
        """The node for a name of the listing, or an unsaved file. A folder hides a file of the same name.

        Without metadata in the listing, the node shows what a LIST alone tells.
        """
        if name in self.unsaved:
            return self.unsaved[name]
        directory, node = self._directory, self.stored.get(name)
        if name in listing.folders:
            if not isinstance(node, PlainDirectory):
                node = PlainDirectory(directory, name, directory.context)
        elif (kind := type_of(info := listing.objects[name])[0]) != "file":
            make = PlainSymlink if kind == "symlink" else PlainObject
            if type(node) is not make or node.info.etag != info.etag:
                node = make(directory, name, directory.context, info)
            node.info = info
        else:
            file = node if isinstance(node, PlainFile) else None
            node = node_of(file, info, lambda: _file(directory, name, info))
        self.stored[name] = node
        return node

    def forget(self, name: str) -> None:
        """The name is gone."""
        self.unsaved.pop(name, None)
        self.stored.pop(name, None)

    def saved(self, file: PlainFile) -> None:
        """A file's bytes are in the bucket: it need not be kept alive here any more."""
        if self.unsaved.get(file.name) is file and not file.body.dirty:
            del self.unsaved[file.name]
            self.stored[file.name] = file

    def unsaved_below(self) -> list[PlainFile]:
        """Files in this directory and those below that are not in the bucket."""
        nodes = list(self.stored.values())
        files = [*self.unsaved.values(), *(node for node in nodes if isinstance(node, PlainFile) and node.body.dirty)]
        for node in nodes:
            if isinstance(node, PlainDirectory):
                files += node.known.unsaved_below()
        return files

    def rekey(self) -> None:
        """The directory has another prefix now: give every file and link below it the key that follows."""
        for name, node in [*self.stored.items(), *self.unsaved.items()]:
            if isinstance(node, PlainDirectory):
                node.known.rekey()
            elif isinstance(node, PlainFile | PlainObject):
                node.rekey(self._directory.prefix + name)


class PlainDirectory(Directory):
    """A directory: everything below one prefix."""

    __slots__ = ("_prefix", "context", "known", "last", "own")

    def __init__(self, parent: Directory | None, name: str, context: Context, prefix: str | None = None) -> None:
        super().__init__(parent, name)
        self.context = context
        self._prefix = prefix
        self.known = KnownNodes(self)
        self.own = NOTHING
        """What was set here and is not in the marker: the times of changes inside."""
        self.last: Attrs | None = None
        """What it was when it lost its name, for those who have it open."""

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
        if self.last is not None:
            return self.last  # another directory may have its name by now
        if self._prefix is None:
            await _expect_there(self)
        return replace(_attrs(self, await marker_of(self)), volatile=False)

    def listed_attrs(self) -> Attrs:
        """What a listing of the parent shows: to ask for each marker that is not known would cost too many requests."""
        level = self.context.replica.names.levels.get(self.prefix)
        return _attrs(self, level.objects.get("") if level is not None else None)

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if not self.shows(name):
            raise errors.NotFound(path=self.path_of(name))
        if name in self.known.unsaved:
            return self.known.unsaved[name]
        return await self.known.look_up(name, await self.context.replica.names.listing(self.prefix))

    def steady(self) -> bool:
        return self.context.replica.names.watched(self.prefix)

    async def look(self) -> None:
        await self.context.replica.names.listing(self.prefix)

    def stamp(self) -> object:
        level = self.context.replica.names.levels.get(self.prefix)
        return None if level is None else (level.serial, tuple(self.known.unsaved), self.context.writes.count)

    def met(self, name: str) -> Node | None:
        return self.known.unsaved.get(name) or self.known.stored.get(name)

    def lose(self, name: str) -> bool:
        node = self.known.stored.get(name)
        if name in self.known.unsaved or (isinstance(node, PlainDirectory) and node.known.unsaved_below()):
            return False
        if isinstance(node, PlainDirectory):
            leave(node, node.listed_attrs())
        return lose(self.known.stored, name)

    def has(self, name: str, node: Node) -> bool:
        return not self.shows(name) or self.met(name) is node

    async def children(self) -> Sequence[tuple[str, Node]]:
        names, listing = await self._shown()
        return [(name, self.known.listed(name, listing)) for name in names]

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        names, listing = await self._shown()
        shown: list[tuple[str, Node | ObjectInfo]] = []
        for name in names:
            info = listing.objects.get(name)
            needs_node = name in listing.folders or self.met(name) is not None
            bare = info is not None and info.meta is None and not needs_node
            shown.append((name, info if info is not None and bare else self.known.listed(name, listing)))
        return shown

    async def _shown(self) -> tuple[Sequence[str], Listing]:
        """The names here, sorted, with the listing. Metadata of up to `COMPLETED` files is asked for before."""
        replica = self.context.replica
        listing = await replica.names.listing(self.prefix)
        unknown = [info for name, info in listing.objects.items() if name and info.meta is None and self.shows(name)]
        if 0 < len(unknown) <= COMPLETED:
            await replica.fetch(unknown)
        empty = await replica.presence.empty(self.prefix)
        listing = await replica.names.listing(self.prefix)
        names = sorted({*listing.objects, *listing.folders - empty, *self.known.unsaved})
        return [name for name in names if self.shows(name)], listing

    def overhear(self, heard: Heard) -> AbstractContextManager[None]:
        return self.context.replica.names.overhear(self.prefix, heard)

    def appear(self, name: str) -> Node | None:
        level = self.context.replica.names.levels.get(self.prefix)
        if level is None or name not in level or not self.shows(name):
            return self.met(name)
        return self.known.listed(name, level)

    # --- changing ---------------------------------------------------------------------------------------------

    def touch(self) -> None:
        """A name here has changed."""
        now = self.context.now_ns()
        self.own = replace(self.own, mtime_ns=now, ctime_ns=now)

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        self.check_new(name)
        stat = await made_by(self, caller, mode)
        await expect_free(self, name)
        file = _file(self, name, None, caller)
        file.own = stat
        self.known.unsaved[name] = file
        self.touch()
        return file

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        self.check_new(name)
        check_key(f"{self.prefix}{name}/", self.path_of(name))  # the marker's key is one byte longer
        meta = (await made_by(self, caller, mode, folder=True)).render()
        await expect_free(self, name)
        self.context.replica.save(f"{self.prefix}{name}/", b"", meta=meta, base=None)
        self.context.replica.names.begin(f"{self.prefix}{name}/")
        made = PlainDirectory(self, name, self.context)
        self.known.stored[name] = made
        self.touch()
        return made

    async def symlink(self, name: str, target: str, caller: Caller) -> Symlink:
        self.check_new(name)
        if self.context.confined:
            expect_stays(target, self, name)
        data = target.encode("utf-8", "surrogateescape")
        meta = type_meta("symlink", (0, 0)) | replace(await made_by(self, caller, 0), mode=None).render()
        await expect_free(self, name)
        info = self.context.replica.save(self.prefix + name, data, meta=meta, base=None)
        made = PlainSymlink(self, name, self.context, info)
        self.known.stored[name] = made
        self.touch()
        return made

    async def mknod(self, name: str, kind: Kind, mode: int, rdev: tuple[int, int], caller: Caller) -> Node:
        self.check_new(name)
        meta = type_meta(kind, rdev) | (await made_by(self, caller, mode)).render()
        await expect_free(self, name)
        info = self.context.replica.save(self.prefix + name, b"", meta=meta, base=None)
        made = self.known.stored[name] = PlainObject(self, name, self.context, info)
        self.touch()
        return made

    async def unlink(self, name: str) -> None:
        node = await self.child(name)
        if isinstance(node, Directory):
            raise errors.IsADirectory(path=node.path)
        if isinstance(node, PlainFile):
            await self._drop(name, node)
        elif isinstance(node, PlainObject):
            await keep_directory(self, name)
            self.context.replica.remove(node.key, base=node.info)
            self.known.stored.pop(name, None)
        else:
            raise node.refuse("removing it")
        self.touch()

    async def _drop(self, name: str, file: PlainFile) -> None:
        """Take a file out of the tree; open handles keep its bytes."""
        if isinstance(file, AdoptedFile):
            await file.keep()
        async with file.removing():
            if file.body.info is not None:
                assert file.key is not None  # it was stored under it
                await keep_directory(self, name)
                self.context.replica.remove(file.key, base=file.body.info)
        self.known.forget(name)

    async def rmdir(self, name: str) -> None:
        node = await self.child(name)
        if not isinstance(node, Directory):
            raise errors.NotADirectory(path=node.path)
        empty, last = await _expect_empty(node)
        await keep_directory(self, name)
        self.context.replica.remove(empty.prefix, base=self.context.replica.names.now(empty.prefix))
        leave(empty, last)
        self.known.stored.pop(name, None)
        self.touch()

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        node = await self.child(name)
        movable = isinstance(node, PlainFile | PlainObject) or (type(node) is PlainDirectory and node._prefix is None)
        if not movable or not isinstance(target, PlainDirectory):
            raise crossing(self.path_of(name), target)
        existing = await _existing(target, new_name)
        target.check_target(new_name)
        if existing is node:
            return
        if existing is not None and not replace:
            raise errors.AlreadyExists(path=target.path_of(new_name))
        if isinstance(node, PlainDirectory):
            renaming.check_directory_move(self, node, target, new_name, existing)
            replaces = None if existing is None else await _expect_empty(existing)
            await renaming.move_directory(self, node, target, new_name, replaces)
        else:
            assert isinstance(node, PlainFile | PlainObject)  # `movable` said so
            await renaming.move_leaf(self, node, target, new_name, existing)
        self.touch()
        target.touch()

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        raise errors.NotSupported(path=self.path, detail=f"setting {name} on a directory")

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times of a directory are kept in its marker; the root has none."""
        if self.last is not None or not self.prefix:
            return
        marker = await marker_of(self)
        stat = _stat(marker)
        own = changed(self.own, change, self.context, stat.under(self.own))
        if own is self.own:
            return
        self.context.replica.save(self.prefix, b"", meta=stat.under(own).render(), base=marker)
        self.context.writes.count += 1  # listings show the owner of the space for what has none
        self.own = NOTHING


def _file(directory: PlainDirectory, name: str, info: ObjectInfo | None, maker: Caller = NOBODY) -> PlainFile:
    """The node of a file; `info` None: a new one, which `maker` makes."""
    key = directory.prefix + name
    if keys.is_adopted(key):
        return AdoptedFile(directory, name, directory.context, info, key, maker)
    return PlainFile(directory, name, directory.context, info, key)


def leave(directory: PlainDirectory, last: Attrs) -> None:
    """Make it a directory without a name: a process that has it open sees it as it was."""
    directory.last = replace(last, nlink=0)


async def made_by(directory: PlainDirectory, caller: Caller, mode: int, *, folder: bool = False) -> Stat:
    """What something new in a directory begins with. With its set-gid bit, a directory passes on its group."""
    stat = Stat(mode=mode & PERMISSIONS, mtime_ns=directory.context.now_ns())
    if not directory.context.ids.by_number:
        return stat
    above = await directory.attrs()
    if not above.mode & S_ISGID:
        return replace(stat, uid=caller.uid, gid=caller.gid)
    _, gid = directory.context.ids.shown(above.uid, above.gid)
    return replace(stat, mode=mode & PERMISSIONS | (S_ISGID if folder else 0), uid=caller.uid, gid=gid)


def _stat(marker: ObjectInfo | None) -> Stat:
    """What a marker says of its directory, with mode and time."""
    return stat_of(marker, DIRECTORY_MODE) if marker is not None else Stat(mode=DIRECTORY_MODE, mtime_ns=0)


def _attrs(directory: PlainDirectory, marker: ObjectInfo | None) -> Attrs:
    level = directory.context.replica.names.levels.get(directory.prefix)
    below = len(level.folders) if level is not None and directory._prefix is None else 0
    links = 0 if directory.last is not None else 2 + below
    return Attrs.of("directory", _stat(marker).under(directory.own), 0, nlink=links, volatile=True)


async def _expect_there(directory: PlainDirectory) -> None:
    """Stale when another host has removed this directory: the kernel may have the name still."""
    above = directory.parent
    if directory.last is not None or not isinstance(above, PlainDirectory):
        return
    replica = directory.context.replica
    listed = directory.name in (await replica.names.listing(above.prefix)).folders
    if not (listed and await replica.presence.is_there(directory.prefix)) and not directory.known.unsaved_below():
        raise errors.Stale(path=directory.path)


async def expect_free(directory: Directory, name: str) -> None:
    """AlreadyExists when a directory has the name."""
    if await _existing(directory, name) is not None:
        raise errors.AlreadyExists(path=directory.path_of(name))


async def _existing(directory: Directory, name: str) -> Node | None:
    try:
        return await directory.child(name)
    except errors.NotFound:
        return None


async def _expect_empty(directory: Node) -> tuple[PlainDirectory, Attrs]:
    """A directory that may be removed, and its attributes. NotEmpty, or the refusal of the directory."""
    if not isinstance(directory, PlainDirectory) or directory._prefix is not None:
        raise directory.refuse("removing it")
    listing = await directory.context.replica.names.listing(directory.prefix)
    names = {*directory.known.unsaved, *listing.objects, *listing.folders} - {""}
    if names - await directory.context.replica.presence.empty(directory.prefix):
        raise errors.NotEmpty(path=directory.path)
    return directory, await directory.attrs()
