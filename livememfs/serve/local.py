"""MCP to one process on this machine: over standard input and output, or over a connection to a mount's socket.

Owns lines of JSON in both directions. Trio thread only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import trio
from mcp import types
from mcp.shared.message import SessionMessage

from livememfs.serve import shape

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from livememfs.serve.mcp import McpServer

Receive = Callable[[], Awaitable[bytes | bytearray]]
Send = Callable[[bytes], Awaitable[None]]
LONGEST_LINE = 4 << 20
CHUNK = 1 << 16
LAST_ANSWERS = 10.0
"""Seconds for the last answers after the end of the input: `printf ... | livememfs mcp` expects its answer, and a note
in the last request must be stored.
"""
NEVER_ANSWERED = "subscriptions/listen"


async def over_stdio(server: McpServer) -> None:
    """Serve the client that started this process, until it closes standard input."""
    # The SDK's own streams read in a thread and wait for it: then no signal could end this process.
    await _over(server, _lines(_input(sys.stdin.fileno())), _output(sys.stdout.fileno()))


async def over_stream(server: McpServer, stream: trio.SocketStream) -> None:
    """Serve one client, until it disconnects."""
    await _over(server, _lines(partial(stream.receive_some, CHUNK), LONGEST_LINE), stream.send_all)


async def _over(server: McpServer, lines: AsyncIterator[bytes], send: Send) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run)
        async with _messages(lines, send) as (received, sent):
            await server.sdk.run(received, sent, server.sdk.create_initialization_options())
        nursery.cancel_scope.cancel()


class _Unanswered:
    """The requests of one client that wait for an answer."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._none = trio.Event()

    def received(self, message: types.JSONRPCMessage) -> None:
        """A message came."""
        if isinstance(message, types.JSONRPCRequest) and message.method != NEVER_ANSWERED:
            self._ids.add(message.id)

    def sent(self, message: types.JSONRPCMessage) -> None:
        """A message was sent."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            self._ids.discard(message.id)
            if not self._ids:
                self._none.set()

    async def wait(self) -> None:
        """Wait until all are answered: at the end of the input the SDK would drop unsent answers."""
        self._none = trio.Event()
        if self._ids:
            with trio.move_on_after(LAST_ANSWERS):
                await self._none.wait()


@asynccontextmanager
async def _messages(lines: AsyncIterator[bytes], send: Send) -> AsyncIterator[tuple[Any, Any]]:
    """The streams for the SDK, over lines of JSON."""
    into: MemoryObjectSendStream[SessionMessage | Exception]
    received: MemoryObjectReceiveStream[SessionMessage | Exception]
    sent: MemoryObjectSendStream[SessionMessage]
    out: MemoryObjectReceiveStream[SessionMessage]
    into, received = anyio.create_memory_object_stream(0)
    sent, out = anyio.create_memory_object_stream(0)
    unanswered = _Unanswered()

    async def read() -> None:
        async with into:
            async for line in lines:
                try:
                    if not await shape.fits(line):
                        raise ValueError("a message has too many parts, or too deep ones")
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await into.send(error)
                else:
                    unanswered.received(message)
                    await into.send(SessionMessage(message))
            await unanswered.wait()

    async def write() -> None:
        async with out:
            async for message in out:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await send(text.encode() + b"\n")
                unanswered.sent(message.message)

    async def quietly(work: Any) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError, anyio.ClosedResourceError, BrokenPipeError):
            await work()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(quietly, read)
        nursery.start_soon(quietly, write)
        yield received, sent
        nursery.cancel_scope.cancel()


def _input(source: int) -> Receive:
    """Reads from a descriptor.

    In a thread, because a plain file or /dev/null cannot be polled, and because other processes may share the terminal
    or pipe and expect it to block. A cancellation abandons the thread. It bypasses Python's own buffer, whose lock it
    would still hold at the end of the interpreter.
    """

    async def read() -> bytes:
        return await trio.to_thread.run_sync(os.read, source, CHUNK, abandon_on_cancel=True)

    return read


async def _lines(receive: Receive, longest: float = float("inf")) -> AsyncIterator[bytes]:
    """Whole lines, the last one also without a line end; a line that is too long ends them."""
    waiting = bytearray()
    while chunk := await receive():
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            waiting += part
            yield bytes(waiting)
            waiting.clear()
        waiting += rest
        if len(waiting) > longest:
            return
    if waiting:
        yield bytes(waiting)


def _output(target: int) -> Send:
    """Writes to a descriptor. A client that does not read cannot keep this process from ending."""

    async def write(data: bytes) -> None:
        while data:
            data = data[await trio.to_thread.run_sync(os.write, target, data, abandon_on_cancel=True) :]

    return write
