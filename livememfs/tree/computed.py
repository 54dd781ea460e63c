"""Files that are nowhere in the bucket: their content is computed when they are looked at.

Owns `ComputedFile`, a read-only file made by a function, `CostlyFile`, of which only an open pays for the content, and
`ComputedDirectory`, a fixed set of nodes. An open handle
keeps the content it was opened with, so a reader never sees half of two answers. Trio thread only.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.tree.node import Attrs, Caller, Directory, File, Handle, Node, OpenMode

if TYPE_CHECKING:
    from livememfs.tree.context import Context


class BytesHandle(Handle):
    """An open file with fixed content."""

    direct = True

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.version = zlib.crc32(data)

    async def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


class ComputedFile(File):
    """A read-only file whose content `content()` gives."""

    __slots__ = ("content", "context")

    def __init__(self, parent: Directory, name: str, context: Context, content: Callable[[], Awaitable[bytes]]) -> None:
        super().__init__(parent, name)
        self.context = context
        self.content = content

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly("livememfs computes it", path=self.path)

    async def attrs(self) -> Attrs:
        return self.attrs_of(await self.content())

    def attrs_of(self, data: bytes) -> Attrs:
        """What `stat` shows of this content."""
        now = self.context.now_ns()
        return Attrs(kind="file", mode=0o444, size=len(data), mtime_ns=now, version=zlib.crc32(data), volatile=True)

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            raise self.refuse("writing")
        return BytesHandle(await self.content())


class CostlyFile(ComputedFile):
    """The same where content costs requests: what `stat` shows is as of `last()`, the content that was made last."""

    __slots__ = ("last",)

    def __init__(
        self,
        parent: Directory,
        name: str,
        context: Context,
        content: Callable[[], Awaitable[bytes]],
        last: Callable[[], bytes],
    ) -> None:
        super().__init__(parent, name, context, content)
        self.last = last

    async def attrs(self) -> Attrs:
        return self.attrs_of(self.last() or await self.content())


class ComputedDirectory(Directory):
    """A fixed set of nodes."""

    __slots__ = ("nodes",)

    def __init__(self, parent: Directory, name: str) -> None:
        super().__init__(parent, name)
        self.nodes: dict[str, Node] = {}

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly("livememfs computes it", path=self.path)

    async def attrs(self) -> Attrs:
        return Attrs(kind="directory", mode=0o555, size=0, mtime_ns=0, nlink=2)

    async def child(self, name: str) -> Node:
        if name not in self.nodes:
            raise errors.NotFound(path=self.path_of(name))
        return self.nodes[name]

    async def children(self) -> Sequence[tuple[str, Node]]:
        return sorted(self.nodes.items())
