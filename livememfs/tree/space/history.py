"""`.history/<n>/` and `.why/`: what the bank was after each run, and which notes its parts came from.

Owns the views; `runs/history` knows the past. Nothing is read before somebody looks at a name below these two: listing
`.history` costs as much as listing any folder, and a size in `.why` is computed when it is asked for. An entry of the
ledger is read once. The newest `WINDOW` runs are listed; older ones are found by their number. Every change is EROFS.
Trio thread only.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from livememfs import errors
from livememfs.records import keys
from livememfs.runs.history import History, PastBankFile
from livememfs.runs.origins import OUTGOING_NAME, outgoing_page
from livememfs.tree.computed import ReadOnlyDirectory, ReadOnlyFile
from livememfs.tree.context import Context
from livememfs.tree.node import Attrs, Caller, Directory, Handle, Node, OpenMode, check_name

WINDOW = 100
"""How many runs are listed: a tool that reads every file must not read the runs of years."""
PAST = "it is what was; `livememfs undo` brings it back"


class HistoryDirectory(ReadOnlyDirectory):
    """`.history`: one directory for each run, by its number."""

    __slots__ = ("history",)

    def __init__(self, parent: Directory, name: str, history: History) -> None:
        super().__init__(parent, name, PAST)
        self.history = history

    async def child(self, name: str) -> Node:
        if not (name.isascii() and name.isdecimal() and not name.startswith("0")):
            raise errors.NotFound(path=self.path_of(name))
        number = int(name)
        try:
            info = await self.history.find(number)
        except errors.NotFound:
            raise errors.NotFound(path=self.path_of(name)) from None
        return PastBank(self, name, self.history, number, info.modified_ns)

    async def children(self) -> Sequence[tuple[str, Node]]:
        listed = await self.history.listed()
        times = {str(number): info.modified_ns for number, info in listed.items()}
        return [(name, PastBank(self, name, self.history, int(name), when)) for name, when in sorted(times.items())]


class PastBank(ReadOnlyDirectory):
    """The bank as it was after one run, or a folder of it: `folder` is its path in the bank, with the slash."""

    __slots__ = ("folder", "history", "number")

    def __init__(
        self, parent: Directory, name: str, history: History, number: int, when_ns: int, folder: str = ""
    ) -> None:
        super().__init__(parent, name, PAST, mtime_ns=when_ns)
        self.history, self.number, self.folder = history, number, folder

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name == OUTGOING_NAME and not self.folder:
            return await self._outgoing()
        files = await self.history.bank_after(self.number)
        past = files.get(self.folder + name)
        if past is not None:
            return PastFile(self, name, self.history, past, self.mtime_ns)
        if any(path.startswith(f"{self.folder}{name}/") for path in files):
            return self._below(name)
        raise errors.NotFound(path=self.path_of(name))

    async def children(self) -> Sequence[tuple[str, Node]]:
        nodes: dict[str, Node] = {}
        for path, past in (await self.history.bank_after(self.number)).items():
            if path.startswith(self.folder):
                name, slash, _ = path[len(self.folder) :].partition("/")
                nodes[name] = self._below(name) if slash else PastFile(self, name, self.history, past, self.mtime_ns)
        return sorted(nodes.items())

    async def _outgoing(self) -> OutgoingPage:
        """The page of the lines that the run took out of the bank. NotFound when it took none."""
        entry = await self.history.outline(self.number)
        if entry is None or not entry.outgoing:
            raise errors.NotFound(path=self.path_of(OUTGOING_NAME))
        return OutgoingPage(self, OUTGOING_NAME, outgoing_page(entry).encode(), self.mtime_ns)

    def _below(self, name: str) -> PastBank:
        return PastBank(self, name, self.history, self.number, self.mtime_ns, f"{self.folder}{name}/")


class OutgoingPage(ReadOnlyFile):
    """Which lines a run took out of the bank."""

    __slots__ = ("page", "when_ns")

    def __init__(self, parent: Directory, name: str, page: bytes, when_ns: int) -> None:
        super().__init__(parent, name, PAST)
        self.page, self.when_ns = page, when_ns

    async def attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o444, size=len(self.page), mtime_ns=self.when_ns)

    async def data(self) -> bytes:
        return self.page


class PastFile(ReadOnlyFile):
    """A bank file as it was."""

    __slots__ = ("history", "past", "when_ns")

    def __init__(self, parent: Directory, name: str, history: History, past: PastBankFile, when_ns: int) -> None:
        super().__init__(parent, name, PAST)
        self.history, self.past, self.when_ns = history, past, when_ns

    async def attrs(self) -> Attrs:
        return self.listed_attrs()

    def listed_attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o444, size=self.past.size, mtime_ns=self.when_ns)

    async def data(self) -> bytes:
        return await self.history.content(self.past)

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        handle = await super().open(mode, caller)
        handle.version = 0  # the version in its attributes, which never changes
        return handle


class WhyDirectory(ReadOnlyDirectory):
    """`.why`, or a folder of it: a page for each file of the bank, under the same name."""

    __slots__ = ("context", "folder", "history", "space")

    def __init__(
        self, parent: Directory, name: str, context: Context, space: str, history: History, folder: str = ""
    ) -> None:
        super().__init__(parent, name)
        self.context, self.space, self.history, self.folder = context, space, history, folder

    async def children(self) -> Sequence[tuple[str, Node]]:
        prefix = f"{keys.bank_prefix(self.space)}{self.folder}"
        level = await self.context.replica.names.listing(prefix)
        names = [name for name in level.objects if keys.parse(prefix + name).kind == "bank"]
        nodes: dict[str, Node] = {name: WhyFile(self, name) for name in names}
        nodes |= {name: self._below(name) for name in level.folders}
        return sorted(nodes.items())

    def _below(self, name: str) -> WhyDirectory:
        return WhyDirectory(self, name, self.context, self.space, self.history, f"{self.folder}{name}/")


class WhyFile(ReadOnlyFile):
    """Where one file of the bank came from."""

    __slots__ = ()

    parent: WhyDirectory

    async def attrs(self) -> Attrs:
        data = await self.data()
        return Attrs(kind="file", mode=0o444, size=len(data), mtime_ns=0, version=zlib.crc32(data), volatile=True)

    def listed_attrs(self) -> Attrs:
        """Volatile, and without the size: it costs a page, which listing names must not pay for."""
        return Attrs(kind="file", mode=0o444, size=0, mtime_ns=0, volatile=True)

    async def data(self) -> bytes:
        """The page. NotFound when the file has gone."""
        return (await self.parent.history.why(f"{self.parent.folder}{self.name}")).encode()
