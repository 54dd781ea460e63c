"""A socket of a mount, by which an agent's process shares its daemon: index, cache and credentials stay in one place.

Owns the socket: that nobody but this user can open it, that its path is never too long for the system, and the first
line of each connection, which says what is wanted. Refuses to know what is spoken afterwards. `connect` and `relay` may
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
"""Connections that have said what they want; more are told so."""
MOST_SILENT = 64
"""Connections that have not. When there are more, the one that has been silent longest is ended."""
FIRST_LINE = 4_096
FIRST_SECONDS, ANSWER_SECONDS = 10.0, 60.0
CHUNK = 1 << 16
LONGEST_PATH = 107
"""Bytes of a socket's path that the system takes."""

Client = Callable[[trio.SocketStream, Mapping[str, Any]], Awaitable[None]]
"""Serves one connection, given what its first line says."""


async def listen(path: Path, client: Client, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve whoever of this user's processes connects, until cancelled. Where that cannot be, nobody is served: a mount
    is worth having without.
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
    _remove(path)  # of a daemon that is no more: a mount point has one
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
    """The same path in as many characters as the system takes."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class _Room:
    """Who is there: connections that have not said what they want, the oldest first, and how many others."""

    def __init__(self) -> None:
        self._silent: dict[trio.CancelScope, None] = {}
        self._clients = 0

    async def first_line(self, stream: trio.SocketStream) -> Mapping[str, Any] | None:
        """What a client wants; None for one that does not say so in time."""
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
        """A client that is served. MountError where there are too many."""
        if self._clients >= MOST_CLIENTS:
            raise MountError(f"{MOST_CLIENTS} agents share this mount already")
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1


async def _one(client: Client, room: _Room, stream: trio.SocketStream) -> None:
    """One connection. However it ends, the others go on."""
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
    """Tell a client that it gets what it wants."""
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


def connect(path: Path, wanted: Mapping[str, Any]) -> socket.socket:
    """A connection to a mount's daemon. MountError when nobody listens, or for what it refuses."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as short:
            made.connect(short)
        made.settimeout(ANSWER_SECONDS)
        made.sendall(json.dumps(wanted).encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            byte = made.recv(1)  # what follows is the protocol's
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
    """Pass bytes on between a connection and two descriptors, until the daemon ends it. Blocking.

    Threads, since standard input and output may be shared with a process that does not expect them not to block.
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
