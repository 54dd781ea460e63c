"""Control files and wait files: `touch .consolidate`, `cat .consolidate`, `cat .consolidate.wait`; `.digest` likewise.

Owns what a touch is (an open for writing, or setting times) and how a wait ends (a failure ends the read with EIO, so a
shell sees it). A touch queues a run and returns; the queue decides what runs. Refuses requests that are not JSON
objects. Trio thread only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import trio

from livememfs import errors
from livememfs.records.names import STATE
from livememfs.runs.options import RunKind, RunOptions
from livememfs.text.times import parse_iso
from livememfs.tree import rejected
from livememfs.tree.computed import BytesHandle, LastChange
from livememfs.tree.context import Context
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Handle, OpenMode
from livememfs.tree.rejected import RejectedReplies

MAX_REQUEST = 65_536
PROGRESS_SECONDS = 1.0
CLOCKS_DIFFER_SECONDS = 1.0
"""Allowance for rounding: the end of a run is stored in whole seconds, its length is measured by another clock."""


def with_refused_replies(replies: RejectedReplies, outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a run that ended, with the paths of the refused replies that are kept.

    A reply belongs to the run during which it was refused: runs of one space never overlap.
    """
    if "finished_at" not in outcome or not outcome.get("llm_calls"):
        return outcome
    began = parse_iso(outcome["finished_at"]) - timedelta(seconds=outcome["duration_seconds"] + CLOCKS_DIFFER_SECONDS)
    until = parse_iso(outcome["finished_at"]) + timedelta(seconds=CLOCKS_DIFFER_SECONDS)
    kept = [reply for reply in replies.since(outcome["space"], began) if reply.at <= until]
    if not kept:
        return outcome
    paths = [f"{STATE}/{rejected.NAME}/{reply.name}" for reply in kept]
    if outcome["state"] == "ok":
        return {**outcome, "refused_replies": paths}
    advice = "; ".join(filter(None, (outcome["what_to_do"], f"what the model said is in {paths[-1]}")))
    return {**outcome, "what_to_do": advice, "refused_replies": paths}


class Control(File):
    """`.consolidate` or `.digest` of one space: a touch asks for a run of that kind."""

    __slots__ = ("_changed", "context", "kind", "space", "writers")

    def __init__(self, parent: Directory, name: str, context: Context, space: str, kind: RunKind) -> None:
        super().__init__(parent, name)
        self.context, self.space, self.kind = context, space, kind
        self.writers: set[ControlHandle] = set()
        self._changed = LastChange()

    async def attrs(self) -> Attrs:
        answer = self.answer()
        when = self._changed.of(answer, self.context)
        return Attrs(kind="file", mode=0o644, size=len(answer), mtime_ns=when, volatile=True)

    def answer(self) -> bytes:
        """What `cat` shows: one JSON object."""
        status = self.context.consolidations.status(self.space, self.kind)
        status = with_refused_replies(self.context.rejected, status)
        return (json.dumps(status, ensure_ascii=False) + "\n").encode()

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if not mode.write:
            return BytesHandle(self.answer())
        handle = ControlHandle(self)
        self.writers.add(handle)
        return handle

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Setting times is a touch. With an open for writing, which is a touch too, it counts once.

        GNU touch opens, duplicates the descriptor, closes the first one and sets the times through the second.
        """
        if change.mtime_ns is None:
            return
        waiting = [writer for writer in self.writers if not writer.counted]
        if waiting or not self.writers:
            self.submit(b"")
        for writer in waiting:
            writer.counted = True

    def submit(self, request: bytes) -> None:
        """Ask for a run; `request` is what the writer wrote, the options. BadRequest."""
        self.context.consolidations.touch(self.space, RunOptions.parse(request, path=self.path, kind=self.kind))


class ControlHandle(Handle):
    """An open for writing: a close submits what was written. Without any bytes it is a plain touch.

    Only `release` knows that no close follows: a shell duplicates the descriptor and closes the first one before a byte
    is written. A plain touch is submitted there, since it cannot be refused and no error has to be reported.
    """

    direct = True

    def __init__(self, control: Control) -> None:
        self.control = control
        self.request = bytearray()
        self.counted = False

    async def read(self, offset: int, size: int) -> bytes:
        return self.control.answer()[offset : offset + size]

    async def write(self, offset: int, data: bytes) -> int:
        if len(self.request) + len(data) > MAX_REQUEST:
            raise errors.BadRequest(f"a request has at most {MAX_REQUEST:,} bytes", path=self.control.path)
        self.request += data
        return len(data)

    async def flush(self) -> None:
        if self.request:
            self.counted = True
            request = bytes(self.request)
            self.request.clear()
            self.control.submit(request)

    async def fsync(self) -> None:
        """Nothing to make durable; the run is queued at close."""

    async def release(self) -> None:
        self.control.writers.discard(self)
        if not self.counted:
            self.control.submit(b"")


class _WaitFile(File):
    """A file that is read to wait for something. A subclass gives the lines; the last line is the result."""

    __slots__ = ("_changed", "context")

    def __init__(self, parent: Directory, name: str, context: Context) -> None:
        super().__init__(parent, name)
        self.context = context
        self._changed = LastChange()

    async def attrs(self) -> Attrs:
        when = self._changed.of(b"", self.context)
        return Attrs(kind="file", mode=0o444, size=0, mtime_ns=when, volatile=True)

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            raise self.refuse("writing")
        return StreamHandle(self.lines(), self.path)

    def lines(self) -> AsyncIterator[dict[str, Any]]:
        """The lines for a reader who opens the file now."""
        raise NotImplementedError  # every concrete class has its own


class Wait(_WaitFile):
    """`.consolidate.wait`, `.digest.wait`: reading it follows the run that covers every touch made before the open."""

    __slots__ = ("kind", "space")
    why = "it is read to wait for a run"

    def __init__(self, parent: Directory, name: str, context: Context, space: str, kind: RunKind) -> None:
        super().__init__(parent, name, context)
        self.space, self.kind = space, kind

    def lines(self) -> AsyncIterator[dict[str, Any]]:
        ticket = self.context.consolidations.latest(self.space, self.kind)  # as of the open, not of the first read
        return self._lines(ticket)

    async def _lines(self, ticket: int) -> AsyncIterator[dict[str, Any]]:
        async for value in self.context.consolidations.wait(self.space, ticket, self.kind):
            yield with_refused_replies(self.context.rejected, value)


class StreamHandle(Handle):
    """A stream of JSON lines. The last one is the result; a failure is raised after it was read."""

    direct = True
    seekable = False

    def __init__(self, lines: AsyncIterator[dict[str, Any]], path: str) -> None:
        self.lines = lines
        self.path = path
        self.rest = b""
        self.last: dict[str, Any] = {}
        self.ended = False

    async def read(self, offset: int, size: int) -> bytes:
        if not self.rest and not self.ended:
            line = await anext(self.lines, None)
            self.ended = line is None
            if line is not None:
                self.last, self.rest = line, (json.dumps(line, ensure_ascii=False) + "\n").encode()
        if not self.rest and self.last.get("state") in ("held", "error"):
            # Only now: the reader has the line with the reason, and then gets the failure.
            raise errors.LiveMemError(f"{self.path}: {self.last.get('reason') or 'the run failed'}")
        part, self.rest = self.rest[:size], self.rest[size:]
        return part


class JournalWait(_WaitFile):
    """`.livememfs/journal.wait`: reading it ends when the bucket has what was accepted before the open."""

    __slots__ = ()
    why = "it is read to wait for the bucket"

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """A line each second, and the result at the end."""
        replica = self.context.replica
        barrier = replica.barrier(sees=self.context.sees)
        reason: str | None = None
        while reason is None:
            with trio.move_on_after(PROGRESS_SECONDS):
                reason = await barrier.wait()
            left = replica.journal.statistics()
            ended = {"state": "error", "reason": reason} if reason else {"state": "ok"}
            state = {"state": "running"} if reason is None else ended
            yield {**state, "pending": left.pending, "pending_bytes": left.pending_bytes}
