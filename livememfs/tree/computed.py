"""Files, links and directories that cannot be changed; most are not in the bucket, but computed at each look.

Owns `ReadOnlyDirectory` and `ReadOnlyFile`, which say why nothing in them can be changed (EROFS); `ComputedFile`, whose
content a function makes; and `ComputedLink`. An open handle keeps the content that it was opened with, so that a reader
never sees half of two answers. Trio thread only.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.tree.context import Context
from livememfs.tree.node import Attrs, Caller, Directory, File, Handle, Node, OpenMode, Symlink, check_name

COMPUTED = "livememfs computes it"
"""The usual reason why something cannot be changed."""

AnyNode = TypeVar("AnyNode", bound=Node)
Content = Callable[[], Awaitable[bytes]]


class BytesHandle(Handle):
    """An open file with fixed content."""

    direct = True

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.version = zlib.crc32(data)

    async def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


class ReadOnlyFile(File):
    """A file that cannot be changed; a subclass knows its attributes. `why` is the reason in the error."""

    __slots__ = ("why",)

    def __init__(self, parent: Directory, name: str, why: str = COMPUTED) -> None:
        super().__init__(parent, name)
        self.why = why

    async def data(self) -> bytes:
        """All of it."""
        raise NotImplementedError  # every concrete class has its own

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            raise self.refuse("writing")
        return BytesHandle(await self.data())


class LastChange:
    """When the bytes of a file became what they are, as far as anybody has looked.

    A copier or `tar` that finds another time than before takes the file for one that changes under its hands.
    """

    __slots__ = ("_ns", "_sum")

    def __init__(self) -> None:
        self._sum: int | None = None
        self._ns = 0

    def of(self, data: bytes, context: Context) -> int:
        """The time of these bytes, in nanoseconds since 1970: that of the last look, unless they differ from it."""
        found = zlib.crc32(data)
        if found != self._sum:
            self._sum, self._ns = found, context.now_ns()
        return self._ns


class ComputedFile(ReadOnlyFile):
    """A read-only file whose content `content()` gives.

    Where content costs requests, `stat` shows the size of `last()`, the content that was made last.
    """

    __slots__ = ("_changed", "content", "context", "last")

    def __init__(
        self, parent: Directory, name: str, context: Context, content: Content, last: Callable[[], bytes] = bytes
    ) -> None:
        super().__init__(parent, name)
        self.context, self.content, self.last = context, content, last
        self._changed = LastChange()

    async def data(self) -> bytes:
        return await self.content()

    async def attrs(self) -> Attrs:
        data = self.last() or await self.content()
        when = self._changed.of(data, self.context)
        return Attrs(kind="file", mode=0o444, size=len(data), mtime_ns=when, version=zlib.crc32(data), volatile=True)


class ComputedLink(Symlink):
    """A link to the target that `point_to` set last."""

    __slots__ = ("_mtime_ns", "_target", "why")

    def __init__(self, parent: Directory, name: str, why: str = COMPUTED) -> None:
        super().__init__(parent, name)
        self._target, self._mtime_ns, self.why = "", 0, why

    def point_to(self, target: str, mtime_ns: int) -> None:
        """Set the target and the time."""
        self._target, self._mtime_ns = target, mtime_ns

    async def attrs(self) -> Attrs:
        return Attrs(kind="symlink", mode=0o777, size=len(self._target.encode()), mtime_ns=self._mtime_ns)

    async def target(self) -> str:
        return self._target


class ReadOnlyDirectory(Directory):
    """A directory in which nothing can be changed. `why` is the reason in the error.

    It shows `nodes`. A subclass that computes what it shows has its own `children`, and its own `child` where one name
    costs less than all of them. `held` returns the same node for a name for as long as somebody holds it.
    """

    __slots__ = ("_held", "mode", "mtime_ns", "nodes", "why")

    def __init__(
        self, parent: Directory, name: str, why: str = COMPUTED, *, mode: int = 0o555, mtime_ns: int = 0
    ) -> None:
        super().__init__(parent, name)
        self.why, self.mode, self.mtime_ns = why, mode, mtime_ns
        self.nodes: dict[str, Node] = {}
        self._held: WeakValueDictionary[str, Node] | None = None  # most directories need none

    async def attrs(self) -> Attrs:
        return Attrs(kind="directory", mode=self.mode, size=0, mtime_ns=self.mtime_ns, nlink=2)

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        node = self.nodes.get(name) or dict(await self.children()).get(name)
        if node is None:
            raise errors.NotFound(path=self.path_of(name))
        return node

    async def children(self) -> Sequence[tuple[str, Node]]:
        return sorted(self.nodes.items())

    def holding(self, name: str) -> Node | None:
        """The node of a name that somebody holds."""
        return self._held.get(name) if self._held is not None else None

    def held(self, name: str, make: Callable[[str], AnyNode]) -> AnyNode:
        """The node of a name, made by `make(name)` when nobody holds one. Under one name it always makes one kind."""
        if self._held is None:
            self._held = WeakValueDictionary()
        node = self._held.get(name)
        if node is None:
            node = self._held[name] = make(name)
        return node  # type: ignore[return-value]  # of the kind that `make` makes
