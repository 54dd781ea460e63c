"""A socket of a mount, by which an agent's process shares its daemon: index, cache and credentials stay in one place.

Owns the socket, which only this user can open and whose path is never too long for the kernel, and the first line of
each connection, which says what the client wants. Refuses to know the protocol after it. `connect` and `relay` may
be called from any thread, the rest from the trio thread.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from livememfs import private
from livememfs.errors import LiveMemError, MountError

log = structlog.get_logger("livememfs.serve")

MOST_CLIENTS = 256
"""Most clients; more get an error."""
MOST_SILENT = 64
"""Most connections before their first line. With more, the oldest of them is closed."""
FIRST_LINE = 4_096
FIRST_SECONDS, ANSWER_SECONDS = 10.0, 60.0
CHUNK = 1 << 16
LONGEST_PATH = 107
"""Most bytes of a socket's path in the kernel."""

Client = Callable[[trio.SocketStream, Mapping[str, Any]], Awaitable[None]]
"""Serves one connection, given the content of its first line."""


async def listen(path: Path, client: Client, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve the processes of this user that connect, until cancelled.

    If the socket cannot be made, serve nobody: the mount works without it.
    """
    try:
        listener = _listener(path)
    except OSError as error:
        log.warning("agents cannot share this mount", socket=str(path), reason=error.strerror or str(error))
        task_status.started()
        return
    room = _Room()
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(trio.serve_listeners, partial(_one, client, room), [listener]))
            task_status.started()
    finally:
        _remove(path)


def _listener(path: Path) -> trio.SocketListener:
    _remove(path)  # left by an earlier daemon: a mount point has only one
    private.make(path.parent)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old = os.umask(0o177)
    try:
        with _short(path) as short:
            made.bind(short)
        made.listen(MOST_SILENT)
    except BaseException:
        made.close()
        raise
    finally:
        os.umask(old)
    return trio.SocketListener(trio.socket.from_stdlib_socket(made))


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """The same path, short enough for the kernel."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class _Room:
    """The connections before their first line, the oldest first, and the number of clients."""

    def __init__(self) -> None:
        self._silent: dict[trio.CancelScope, None] = {}
        self._clients = 0

    async def first_line(self, stream: trio.SocketStream) -> Mapping[str, Any] | None:
        """The first line of a client; None if it does not come in time."""
        with trio.CancelScope() as scope:
            self._silent[scope] = None
            if len(self._silent) > MOST_SILENT:
                oldest = next(iter(self._silent))
                del self._silent[oldest]
                oldest.cancel()
            try:
                return await _first_line(stream)
            finally:
                self._silent.pop(scope, None)
        return None

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count a client. MountError if there are too many."""
        if self._clients >= MOST_CLIENTS:
            raise MountError(f"{MOST_CLIENTS} agents share this mount already")
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1


async def _one(client: Client, room: _Room, stream: trio.SocketStream) -> None:
    """One connection. Its errors do not end the others."""
    try:
        wanted = await room.first_line(stream)
        if wanted is not None:
            with room.place():
                await client(stream, wanted)
    except LiveMemError as error:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(FIRST_SECONDS):
            await stream.send_all(json.dumps({"error": str(error)}).encode() + b"\n")
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return
    except Exception:
        log.exception("a client of the mount's socket failed")


async def welcome(stream: trio.SocketStream) -> None:
    """Tell a client that it is accepted."""
    await stream.send_all(b"{}\n")


async def _first_line(stream: trio.SocketStream) -> Mapping[str, Any] | None:
    """What a client wants; None for one that does not say so. Byte by byte: what follows is not for us."""
    line = bytearray()
    with trio.move_on_after(FIRST_SECONDS):
        while len(line) < FIRST_LINE:
            byte = await stream.receive_some(1)
            if not byte or byte == b"\n":
                break
            line += byte
    with suppress(ValueError, RecursionError):
        value = json.loads(line)
        return value if isinstance(value, dict) else None
    return None


# --- the other end ----------------------------------------------------------------------------------------------


def connect(path: Path, wanted: Mapping[str, Any], *, seconds: float = ANSWER_SECONDS) -> socket.socket:
    """A connection to a mount's daemon. MountError when nobody listens or answers in time, or for what it refuses."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        with _short(path) as short:
            made.connect(short)
        made.sendall(json.dumps(wanted).encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            byte = made.recv(1)  # further bytes belong to the protocol
            if not byte:
                raise OSError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            answer += byte
        made.settimeout(None)
        reason = json.loads(answer).get("error", "")
    except (OSError, ValueError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise MountError(f"the daemon of the mount does not answer: {reason}") from None
    if reason:
        made.close()
        raise MountError(f"the daemon of the mount refuses: {reason}")
    return made


def relay(connection: socket.socket, source: int = 0, target: int = 1) -> None:
    """Relay bytes between a connection and two descriptors, until the daemon closes it. Blocking.

    Uses threads: standard input and output may be shared with a process that expects them to block.
    """

    def send() -> None:
        with suppress(OSError):
            while data := os.read(source, CHUNK):
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    with suppress(OSError):
        while data := connection.recv(CHUNK):
            while data:
                data = data[os.write(target, data) :]
