"""Exchange files: write a request, read the answer on the same descriptor.

Owns what a request is (all that was written before the first read) and who asks. A file that is opened for reading
alone shows how it is used, and asks nothing. Each open has its own buffers in both directions, and no position. A hook
may open the file for writing alone, and then nobody reads the answer; `.recall` refuses that. Trio thread only.
"""

from __future__ import annotations

import json
from dataclasses import replace

from livememfs import errors
from livememfs.concurrency import aside
from livememfs.records.turn import Turn
from livememfs.text.privacy import redaction as privacy
from livememfs.tree.computed import BytesHandle, LastChange
from livememfs.tree.context import Context
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Handle, OpenMode
from livememfs.tree.writer import is_asked_by_us, session_of, working_directory

MAX_REQUEST = 1 << 20
MAX_EVENT = 64 << 20
"""Bytes of one event of a hook: the output of a tool may be long."""
PROBE = b'{"livememfs": "doctor"}'
"""The event by which `doctor` proves that a hook works: it is answered, and nothing is kept."""
USAGE = """\
Open this file for reading and writing, write a message, and read what is known about it:

    exec 3<>.recall; echo "which database did we choose?" >&3; cat <&3; exec 3>&-

A message may be JSON: {"session": "...", "message": "...", "source": "user", "channel_id": "...", "format": "json"}.
Nothing is told twice to one session. A plain message belongs to the session of its terminal.
"""
HOOK_USAGE = """\
An agent's hook writes the JSON of its event here, and reads what to answer:

    {{ cat >&3; cat <&3; }} 3<>{event}

`livememfs install AGENT` sets that up.
"""


class Exchange(File):
    """A file that answers requests. A subclass makes the answer."""

    __slots__ = ("_changed", "context", "space")

    most = MAX_REQUEST
    """Bytes of a request."""

    def __init__(self, parent: Directory, name: str, context: Context, space: str) -> None:
        super().__init__(parent, name)
        self.context, self.space = context, space
        self._changed = LastChange()

    def refuse(self, operation: str) -> errors.LiveMemError:
        detail = f"it is opened for reading and writing: exec 3<>{self.name}"
        return errors.BadRequest(path=self.path, detail=detail)

    async def attrs(self) -> Attrs:
        return Attrs(kind="file", mode=0o644, size=0, mtime_ns=self._changed.of(b"", self.context), volatile=True)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """An open with O_TRUNC sets the length to 0, which is accepted; times and modes are not kept."""
        if change.size:
            raise self.refuse("changing its length")

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if not mode.write:
            return BytesHandle(self.usage().encode())
        if is_asked_by_us(caller.pid):
            return DeafHandle()
        return ExchangeHandle(self, caller, alone=not mode.read)

    def usage(self) -> str:
        """What an open for reading alone shows."""
        return USAGE

    async def answer(self, request: bytes, caller: Caller) -> bytes:
        """The answer to one request."""
        raise NotImplementedError  # every concrete class has its own

    def too_long(self) -> bytes:
        """The answer to a request that is too long, or why there is none."""
        raise errors.BadRequest(path=self.path, detail=f"a request has at most {self.most:,} bytes")


class RecallExchange(Exchange):
    """`.recall`: what to know before answering a message."""

    __slots__ = ()

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write and not mode.read:
            raise self.refuse("writing")
        return await super().open(mode, caller)

    async def answer(self, request: bytes, caller: Caller) -> bytes:
        """The answer to one request. NotText, BadRequest."""
        turn = Turn.parse(request, path=self.path)
        turn = replace(turn.of(session_of(caller.pid)), folder=working_directory(caller.pid))
        answer = await self.context.prehook.turn(self.space, turn)
        if answer.private:
            self.context.errors.record("privacy", self.path, privacy.told(self.path, answer.private))
        if turn.json:
            return (json.dumps(answer.to_json(), ensure_ascii=False) + "\n").encode()
        return answer.block.encode()


class HookExchange(Exchange):
    """`.hooks/<Event>`: an event of an agent. No event is refused: the agent must go on."""

    __slots__ = ()

    most = MAX_EVENT

    def usage(self) -> str:
        return HOOK_USAGE.format(event=self.name)

    async def answer(self, request: bytes, caller: Caller) -> bytes:
        """The answer to one event."""
        return PROBE if request.strip() == PROBE else await self.answer_event(request, caller)

    async def answer_event(self, request: bytes, caller: Caller) -> bytes:
        """The answer to an agent's own event."""
        return await self.context.hooks.answer(self.space, self.name, request)

    def too_long(self) -> bytes:
        error = errors.HookRefused(path=self.path, detail=f"an event has at most {self.most:,} bytes")
        self.context.errors.record("hook", self.path, error)
        return b"{}"


class MachineHook(HookExchange):
    """`.livememfs/hooks/<agent>.<Event>`: an event without a space. It belongs to the space of its project."""

    __slots__ = ()

    async def answer_event(self, request: bytes, caller: Caller) -> bytes:
        """The answer to an agent's own event."""
        door = self.context.door
        return await door.answer(self.name, request, caller.pid) if door is not None else b"{}"


class DeafHandle(Handle):
    """The handle of a program that livememfs asks as a model: it is ignored, or the observer would observe itself."""

    direct = True
    seekable = False

    async def write(self, offset: int, data: bytes) -> int:
        return len(data)

    async def read(self, offset: int, size: int) -> bytes:
        return b""


class ExchangeHandle(Handle):
    """One open: requests and answers by turns. What is written after an answer is the next request."""

    direct = True
    seekable = False

    def __init__(self, file: Exchange, caller: Caller, *, alone: bool) -> None:
        self.file, self.caller, self.alone = file, caller, alone
        self.request = bytearray()
        self.dropped = False
        self.rest: bytes | None = None

    async def write(self, offset: int, data: bytes) -> int:
        if self.dropped:
            return len(data)  # the rest of a request that was too long: its answer waits to be read
        self.rest = None
        if len(self.request) + len(data) > self.file.most:
            self.request.clear()  # half a request must not be answered
            self.rest, self.dropped = self.file.too_long(), True
            return len(data)
        self.request += data
        return len(data)

    async def read(self, offset: int, size: int) -> bytes:
        if self.request:
            request, self.request = bytes(self.request), bytearray()
            self.rest = await self.file.answer(request, self.caller)
        self.dropped = False
        part, self.rest = (self.rest or b"")[:size], (self.rest or b"")[size:]
        return part

    async def flush(self) -> None:
        """This close may not be the last: a shell duplicates descriptors. Only a complete request is taken here."""
        if self.alone and self.request:
            request = bytes(self.request)
            if await aside(len(request), lambda: _is_whole(request)):
                await self.read(0, 0)

    async def release(self) -> None:
        if self.alone and self.request:
            await self.read(0, 0)


def _is_whole(request: bytes) -> bool:
    try:
        json.loads(request)
    except (ValueError, RecursionError):
        return False
    return True
