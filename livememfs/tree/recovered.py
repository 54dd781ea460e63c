"""`.livememfs/recovered/`: what a crash left of files that were open.

Owns the view of these files; a limited mount shows those of its own spaces. `rm` gives a file up. Refuses any other
change: a user copies the file to where it belongs. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from livememfs import errors
from livememfs.cache.drafts import Recovered
from livememfs.tree.computed import ReadOnlyDirectory, ReadOnlyFile
from livememfs.tree.context import Context
from livememfs.tree.node import Attrs, Directory, Node

WHY = "it is what a crash left; copy it to where it belongs, and remove it here"


class RecoveredFile(ReadOnlyFile):
    """The bytes of one file, as they were some seconds before the crash."""

    __slots__ = ("context", "draft")

    def __init__(self, parent: Directory, context: Context, draft: Recovered) -> None:
        super().__init__(parent, draft.name, WHY)
        self.context, self.draft = context, draft

    async def attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o400, size=self.draft.size, mtime_ns=self.draft.written_ns)

    async def xattrs(self) -> dict[str, bytes]:
        return {"user.livememfs.path": self.draft.path.encode("utf-8", "surrogateescape")}

    async def data(self) -> bytes:
        data = self.context.replica.drafts.read(self.name)
        # The kernel may still know a file that this token cannot see any more.
        if data is None or not self.context.sees(self.draft.path):
            raise errors.NotFound(path=self.path)
        return data


class RecoveredDirectory(ReadOnlyDirectory):
    """All that crashes have left."""

    __slots__ = ("context",)

    def __init__(self, parent: Directory, name: str, context: Context) -> None:
        super().__init__(parent, name, WHY, mode=0o700)
        self.context = context

    async def children(self) -> Sequence[tuple[str, Node]]:
        recovered = [file for file in self.context.replica.drafts.recovered() if self.context.sees(file.path)]
        return [(file.name, RecoveredFile(self, self.context, file)) for file in recovered]

    async def unlink(self, name: str) -> None:
        await self.child(name)
        self.context.replica.drafts.remove(name)
