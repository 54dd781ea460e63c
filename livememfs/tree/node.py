"""The vocabulary of the tree: nodes, handles, attributes, callers.

Owns the base classes. A node changes nothing unless its class says how: every mutating operation of the base classes
raises what `refuse` returns, so a new kind of file is read-only until its class allows a change (one guard, not one per
handler). Refuses FUSE types and errno numbers. Trio thread only.
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from livememfs import errors
from livememfs.records.posix import Stat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from livememfs.cache.listing import Heard
    from livememfs.store.base import ObjectInfo

OWN_XATTRS = "user.livememfs."
"""How the names of extended attributes begin that are made here."""
UNLISTED = frozenset(
    f"{OWN_XATTRS}{name}"
    for name in ("state", "key", "etag", "error", "conflict", "trust", "uses", "used_at", "told", "told_at")
)
"""Those that tell how a file is stored, and what it was worth. They are read by name: copiers would carry listed ones
to other disks.
"""
MAX_NAME_BYTES = 255
MAX_KEY_BYTES = 1_024

Kind = Literal["file", "directory", "symlink", "fifo", "socket", "char", "block"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: ids of the process, as the kernel gives them. `pid` is 0 when it is not known."""

    uid: int = 0
    gid: int = 0
    pid: int = 0
    umask: int = 0o022


NOBODY = Caller()
ACTING: ContextVar[Caller | None] = ContextVar("acting", default=None)
"""Who removes or moves a name, while a request of the kernel does; None for all that no process asked for."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Whose files are shown: `by_number` those of whom each file says, as NFS has it; else all are of one user.

    One user is right where nobody else is let in: the numbers of another machine may mean other people.
    """

    uid: int
    gid: int
    by_number: bool = False

    def shown(self, uid: int | None, gid: int | None) -> tuple[int, int]:
        """The owner and the group to show, for those that are stored; None where nothing is."""
        if not self.by_number:
            return self.uid, self.gid
        return self.uid if uid is None else uid, self.gid if gid is None else gid


@dataclass(frozen=True, slots=True)
class Attrs:
    """What `stat` shows. `mode` holds permission bits only; uid or gid None is the mount's owner.

    `atime_ns` and `ctime_ns` None are the same as `mtime_ns`. `rdev` is (major, minor) of a device. `volatile`
    attributes may change without notice and must be asked for each time. `version` changes when bytes that were read
    before are not the file's any more.
    """

    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    version: int = 0
    nlink: int = 1
    uid: int | None = None
    gid: int | None = None
    atime_ns: int | None = None
    ctime_ns: int | None = None
    rdev: tuple[int, int] = (0, 0)
    volatile: bool = False

    @classmethod
    def of(cls, kind: Kind, stat: Stat, size: int, **more: Any) -> Attrs:
        """From what POSIX knows of it; no mode and no time are 0."""
        owner, times = {"uid": stat.uid, "gid": stat.gid}, {"atime_ns": stat.atime_ns, "ctime_ns": stat.ctime_ns}
        return cls(kind, stat.mode or 0, size, stat.mtime_ns or 0, **(owner | times | more))


@dataclass(frozen=True, slots=True)
class AttrChange:
    """What `chmod`, `chown`, `truncate` or `utimens` asks for; None leaves a value as it is."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    atime_ns: int | None = None


@dataclass(frozen=True, slots=True)
class OpenMode:
    """The flags of `open` that matter here."""

    read: bool = True
    write: bool = False
    append: bool = False
    truncate: bool = False


class Handle:
    """One open file. `direct` keeps the kernel's page cache out; `seekable` is false for streams."""

    direct = False
    seekable = True
    version = 0

    async def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`; fewer only at the end."""
        raise errors.NotSupported(path="this file", detail="reading")

    async def write(self, offset: int, data: bytes) -> int:
        """Write all of `data`; returns how many bytes were taken."""
        raise errors.NotSupported(path="this file", detail="writing")

    async def flush(self) -> None:
        """Called at each close of a descriptor: what is written now must be safe, or this raises."""

    async def fsync(self) -> None:
        """Called by fsync and fdatasync."""
        await self.flush()

    async def change(self, node: Node, change: AttrChange, caller: Caller) -> None:
        """Change attributes through this descriptor."""
        await node.change(change, caller)

    async def release(self) -> None:
        """The last descriptor is closed. An error from here reaches nobody."""


class Node:
    """One directory entry. `ino` is given by the FUSE layer; 0 until then."""

    __slots__ = ("__weakref__", "ino", "name", "parent")
    why = ""
    """Why nothing can be changed here (EROFS); empty where something can."""
    rule = ""
    """What this place is for: the reason in an EPERM."""

    def __init__(self, parent: Directory | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.ino = 0

    @property
    def path(self) -> str:
        """Where it stands, relative to the mount point: for people, in messages."""
        if self.parent is None or self.parent.parent is None:
            return self.name
        return f"{self.parent.path}/{self.name}"

    def refuse(self, operation: str) -> errors.LiveMemError:
        """Why `operation` is not possible here."""
        if self.why:
            reason, _, advice = self.why.partition("; ")
            return errors.ReadOnly(reason, path=self.path, advice=advice)
        detail = f"{operation}: {self.rule}" if self.rule else f"{operation} is not possible here"
        return errors.NotPermitted(path=self.path or "/", detail=detail)

    def steady(self) -> bool:
        """Whether the watcher will report changes by others: then the kernel may cache name and attributes for long."""
        return False

    async def attrs(self) -> Attrs:
        """What `stat` shows. NotFound when the thing is gone."""
        raise NotImplementedError  # every concrete class has its own; there is no sensible default

    def listed_attrs(self) -> Attrs | None:
        """What a listing may show without a request; None when `attrs` is cheap or must be asked."""
        return None

    def shown(self, version: int | None) -> None:
        """The kernel is given the attributes of this version now."""

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Apply `change`, or refuse it whole."""
        raise self.refuse("changing attributes")

    async def xattrs(self) -> Mapping[str, bytes]:
        """All extended attributes."""
        return {}

    def sets(self, name: str) -> bool:
        """Whether setting this attribute changes anything. One of ours that does not is accepted and ignored."""
        return not name.startswith(OWN_XATTRS)

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        """Set one extended attribute; None removes it."""
        raise self.refuse("setting attributes")


class File(Node):
    """Something with bytes."""

    __slots__ = ()

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        """A new handle. With `mode.truncate` the content is dropped first."""
        raise self.refuse("opening")


class Symlink(Node):
    """A name that stands for another path."""

    __slots__ = ()

    async def target(self) -> str:
        """The path it stands for, as it was given."""
        raise NotImplementedError  # as in Node.attrs


class Directory(Node):
    """Something with names."""

    __slots__ = ()

    async def attrs(self) -> Attrs:
        """The same always, for a directory that keeps no attributes of its own."""
        return Attrs(kind="directory", mode=0o755, size=0, mtime_ns=0, nlink=2)

    async def child(self, name: str) -> Node:
        """The node under `name`; NotFound."""
        raise errors.NotFound(path=self.path_of(name))

    async def look(self) -> None:
        """Bring up to date what `stamp` is made from."""

    def stamp(self) -> object:
        """A value that stays equal only while a listing would show the same; None when that is not known."""
        return None

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        """As `children`, but with the bare version where no node is needed yet; `appear` makes the node later."""
        return await self.children()

    def overhear(self, heard: Heard) -> AbstractContextManager[None]:
        """Around `look` and `entries`: `heard` gets versions as they arrive, which `entries` will most likely give."""
        return nullcontext()

    def appear(self, name: str) -> Node | None:
        """The node for a name that `entries` gave without one; None when it is gone. Asks nobody."""
        return self.met(name)

    def met(self, name: str) -> Node | None:
        """The node under `name` if somebody has looked at it and it is still held; asks nobody."""
        return None

    def lose(self, name: str) -> bool:
        """Another host has removed a name: whoever holds its node keeps what it was. False: it is needed here."""
        return True

    def has(self, name: str, node: Node) -> bool:
        """Whether a name that `entries` gave with this node still leads to it, as far as is known; asks nobody."""
        return True

    async def children(self) -> Sequence[tuple[str, Node]]:
        """All names with their nodes, a snapshot, in a stable order."""
        return ()

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        """A new, empty file; the caller opens it next."""
        raise self.refuse(f"creating {name}")

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        """A new directory."""
        raise self.refuse(f"creating {name}")

    async def mknod(self, name: str, kind: Kind, mode: int, rdev: tuple[int, int], caller: Caller) -> Node:
        """A new pipe, socket or device."""
        raise self.refuse(f"creating {name}")

    async def symlink(self, name: str, target: str, caller: Caller) -> Symlink:
        """A new symbolic link."""
        raise self.refuse(f"creating {name}")

    async def unlink(self, name: str) -> None:
        """Remove a name that is not a directory."""
        raise self.refuse(f"removing {name}")

    async def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        raise self.refuse(f"removing {name}")

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        """Move `name` to `target/new_name`. Without `replace` an existing one is AlreadyExists."""
        raise self.refuse(f"renaming {name}")

    def path_of(self, name: str) -> str:
        """The path of a child, for messages."""
        return f"{self.path}/{name}" if self.parent is not None else name


def crossing(path: str, target: Directory) -> errors.LiveMemError:
    """Why a rename of `path` into a directory of another kind is refused: tools copy on EXDEV, but not into bank/."""
    refusal = target.refuse("moving something here")
    return refusal if isinstance(refusal, errors.ReadOnly) else errors.CrossesKinds(path=path)


def check_name(name: str, path: str) -> None:
    """Refuse a name that no key can carry: NameTooLong, InvalidName."""
    size = len(name.encode("utf-8", "surrogateescape"))
    if size > MAX_NAME_BYTES:
        raise errors.NameTooLong(path=path, detail=f"a name has at most {MAX_NAME_BYTES} bytes")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise errors.NotText(path=path.encode("utf-8", "replace").decode(), detail="a name must be UTF-8")


def check_key(key: str, path: str) -> None:
    """Refuse a key that S3 would not take."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise errors.NameTooLong(path=path, detail=f"a path has at most {MAX_KEY_BYTES} bytes")
