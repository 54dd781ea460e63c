"""MCP to one process on this machine: over standard input and output, or over a connection to a mount's socket.

Owns lines of JSON in both directions. Trio thread only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import trio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from livememfs.serve import shape

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from livememfs.serve.mcp import McpServer

LONGEST_LINE = 4 << 20
CHUNK = 1 << 16
LAST_ANSWERS = 0.2
"""How long what was asked just before the input ended has for its answer: `printf ... | livememfs mcp` wants one."""


async def over_stdio(server: McpServer) -> None:
    """Serve whoever started this process, until they close its standard input."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run)
        # What the SDK opens by itself is read in a thread that it waits for: no signal would end this process then.
        source = cast("anyio.AsyncFile[str]", _lines_of(sys.stdin.fileno()))
        target = cast("anyio.AsyncFile[str]", _Output(sys.stdout.fileno()))
        async with stdio_server(source, target) as (received, sent):
            await server.sdk.run(received, sent, server.sdk.create_initialization_options())
        nursery.cancel_scope.cancel()


async def _lines_of(source: int) -> AsyncIterator[str]:
    """The lines of a descriptor, the last one also without an end.

    Read in a thread that is left behind when cancelled, and past Python's own buffer, whose lock such a thread would
    hold while the interpreter ends. A thread, since a plain file or /dev/null cannot be waited for, and since a
    terminal or pipe may be shared with processes that do not expect it not to block.
    """
    waiting = bytearray()
    while chunk := await trio.to_thread.run_sync(os.read, source, CHUNK, abandon_on_cancel=True):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            waiting += part
            yield waiting.decode(errors="replace")
            waiting.clear()
        waiting += rest
    if waiting:
        yield waiting.decode(errors="replace")
    await trio.sleep(LAST_ANSWERS)  # the SDK drops every answer that is not written when the input ends


class _Output:
    """A descriptor as the SDK writes to it. A client that has stopped reading keeps nobody from ending this process."""

    def __init__(self, target: int) -> None:
        self._target = target

    async def write(self, text: str) -> None:
        """Write all of it."""
        left = text.encode()
        while left:
            left = left[await trio.to_thread.run_sync(os.write, self._target, left, abandon_on_cancel=True) :]

    async def flush(self) -> None:
        """Nothing is kept back."""


async def over_stream(server: McpServer, stream: trio.SocketStream) -> None:
    """Serve one client, until it goes."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run)
        async with _messages(stream) as (received, sent):
            await server.sdk.run(received, sent, server.sdk.create_initialization_options())
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _messages(stream: trio.SocketStream) -> AsyncIterator[tuple[Any, Any]]:
    """The streams that the SDK takes, over one connection."""
    into: MemoryObjectSendStream[SessionMessage | Exception]
    received: MemoryObjectReceiveStream[SessionMessage | Exception]
    sent: MemoryObjectSendStream[SessionMessage]
    out: MemoryObjectReceiveStream[SessionMessage]
    into, received = anyio.create_memory_object_stream(0)
    sent, out = anyio.create_memory_object_stream(0)

    async def read() -> None:
        async with into:
            async for line in _lines(stream):
                try:
                    if not await shape.fits(line):
                        raise ValueError("a message has too many parts, or too deep ones")
                    await into.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False)))
                except ValueError as error:
                    await into.send(error)

    async def write() -> None:
        async with out:
            async for message in out:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stream.send_all(text.encode() + b"\n")

    async def quietly(work: Any) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError, anyio.ClosedResourceError):
            await work()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(quietly, read)
        nursery.start_soon(quietly, write)
        yield received, sent
        nursery.cancel_scope.cancel()


async def _lines(stream: trio.SocketStream) -> AsyncIterator[bytes]:
    """Whole lines; one that never ends, ends the connection."""
    waiting = bytearray()
    while chunk := await stream.receive_some(CHUNK):
        waiting += chunk
        while (at := waiting.find(b"\n")) >= 0:
            line = bytes(waiting[:at])
            del waiting[: at + 1]
            yield line
        if len(waiting) > LONGEST_LINE:
            return
