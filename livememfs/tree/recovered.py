"""`.livememfs/recovered/`: what a crash left of files that were open.

Owns the view of it, of which a limited mount has its own spaces' files, and that `rm` gives a file up. Refuses any
other change: copy it to where it belongs. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.tree.computed import BytesHandle
from livememfs.tree.node import Attrs, Caller, Directory, File, Handle, Node, OpenMode

if TYPE_CHECKING:
    from livememfs.cache.drafts import Recovered
    from livememfs.tree.context import Context

WHY = "it is what a crash left; copy it to where it belongs, and remove it here"


class RecoveredFile(File):
    """The bytes of one file, as they were some seconds before the crash."""

    __slots__ = ("context", "found")

    def __init__(self, parent: Directory, context: Context, found: Recovered) -> None:
        super().__init__(parent, found.name)
        self.context, self.found = context, found

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly(WHY, path=self.path)

    async def attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o400, size=self.found.size, mtime_ns=self.found.written_ns)

    async def xattrs(self) -> dict[str, bytes]:
        return {"user.livememfs.path": self.found.path.encode("utf-8", "surrogateescape")}

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            raise self.refuse("writing")
        if not self.context.sees(self.found.path):  # the kernel knows it since more was to be seen
            raise errors.NotFound(path=self.path)
        data = self.context.replica.drafts.read(self.name)
        if data is None:
            raise errors.NotFound(path=self.path)
        return BytesHandle(data)


class RecoveredDirectory(Directory):
    """All that crashes have left."""

    __slots__ = ("context",)

    def __init__(self, parent: Directory, name: str, context: Context) -> None:
        super().__init__(parent, name)
        self.context = context

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly(WHY, path=self.path)

    async def attrs(self) -> Attrs:
        return Attrs(kind="directory", mode=0o700, size=0, mtime_ns=0, nlink=2)

    async def child(self, name: str) -> Node:
        for known, node in await self.children():
            if known == name:
                return node
        raise errors.NotFound(path=self.path_of(name))

    async def children(self) -> Sequence[tuple[str, Node]]:
        found = [one for one in self.context.replica.drafts.recovered() if self.context.sees(one.path)]
        return [(one.name, RecoveredFile(self, self.context, one)) for one in found]

    async def unlink(self, name: str) -> None:
        await self.child(name)
        self.context.replica.drafts.remove(name)
