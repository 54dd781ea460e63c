"""Exchange files: write a request, read the answer on the same descriptor.

Owns what a request is (all that was written before the first read), whose it is, and that nothing is asked by those who
only look: a file that is opened for reading alone says how it is used. Each open has its own buffers, in both
directions, and no place in the file. Refuses an open for writing alone, since nobody could read the answer. Trio thread
only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.records import privacy
from livememfs.records.turn import Turn
from livememfs.tree.computed import BytesHandle
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Handle, OpenMode
from livememfs.tree.writer import session_of

if TYPE_CHECKING:
    from livememfs.tree.context import Context

MAX_REQUEST = 1 << 20
USAGE = """\
Open this file for reading and writing, write a message, and read what is known about it:

    exec 3<>.recall; echo "which database did we choose?" >&3; cat <&3; exec 3>&-

A message may be JSON: {"session": "...", "message": "...", "source": "user", "channel_id": "...", "format": "json"}.
Nothing is told twice to one session. A plain message belongs to the session of its terminal.
"""


class Recall(File):
    """`.recall`: what to know before answering a message."""

    __slots__ = ("context", "space")

    def __init__(self, parent: Directory, name: str, context: Context, space: str) -> None:
        super().__init__(parent, name)
        self.context, self.space = context, space

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.BadRequest(path=self.path, detail="it is opened for reading and writing: exec 3<>.recall")

    async def attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o644, size=0, mtime_ns=self.context.now_ns(), volatile=True)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """A length of 0 is what an open with O_TRUNC asks for; times and modes are not kept."""
        if change.size:
            raise self.refuse("changing its length")

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if not mode.write:
            return BytesHandle(USAGE.encode())
        if not mode.read:
            raise self.refuse("writing")
        return ExchangeHandle(self, caller)

    async def answer(self, request: bytes, caller: Caller) -> bytes:
        """The answer to one request. NotText, BadRequest."""
        turn = Turn.parse(request, path=self.path)
        if self.context.prehook is None:
            return b""
        found = await self.context.prehook.turn(self.space, turn.of(session_of(caller.pid)))
        if found.private:
            self.context.errors.record("privacy", self.path, privacy.told(self.path, found.private))
        if turn.json:
            return (json.dumps(found.to_json(), ensure_ascii=False) + "\n").encode()
        return found.block.encode()


class ExchangeHandle(Handle):
    """One open: requests and answers by turns. What is written after an answer is the next request."""

    direct = True
    seekable = False

    def __init__(self, file: Recall, caller: Caller) -> None:
        self.file, self.caller = file, caller
        self.request = bytearray()
        self.rest: bytes | None = None

    async def write(self, offset: int, data: bytes) -> int:
        if len(self.request) + len(data) > MAX_REQUEST:
            self.request.clear()  # half a request must not be answered
            raise errors.BadRequest(path=self.file.path, detail=f"a request has at most {MAX_REQUEST:,} bytes")
        self.rest = None
        self.request += data
        return len(data)

    async def read(self, offset: int, size: int) -> bytes:
        if self.request:
            request, self.request = bytes(self.request), bytearray()
            self.rest = await self.file.answer(request, self.caller)
        part, self.rest = (self.rest or b"")[:size], (self.rest or b"")[size:]
        return part

    async def flush(self) -> None:
        """A shell duplicates the descriptor and closes the first: nothing ends by that."""
