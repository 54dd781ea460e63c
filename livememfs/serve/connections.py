"""Connections to the HTTP server: how many there are, whose, and for how long they may keep us waiting.

Owns accepting them, HTTP/1.1 as the only protocol (no h2c, no HTTP/2 by prior knowledge), and whom to hang up on: who
has too many loses the one that was idle longest, so that nobody's are paid for by another. A connection belongs to its
address until the guard has seen a good token on it; from then on to that token, since behind a proxy all share one
address. Refuses to read a request: hypercorn does. Trio thread only.
"""

from __future__ import annotations

import resource
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup, _handle
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState, LifespanState

from livememfs.serve.guard import CONNECTION

MOST = 1_024
"""Fewer where the system allows few descriptors: a mount needs some too. Half of them may be of one token, and half of
those whose token is not known yet.
"""
WAITING = 512
"""Connections that the system keeps until they are accepted."""
IDLE_SECONDS = 30
"""How long a connection may be open without a request, or take to send the head of one."""
SEND_SECONDS = 60.0
"""How long a client may take to read a part of an answer."""


class Connection:
    """One connection, as the guard sees it."""

    def __init__(self, stream: trio.SocketStream, all_: ClientConnections) -> None:
        self.owner, self.known, self.busy = _address(stream), False, 0
        self.scope = trio.CancelScope()
        self._stream, self._all = stream, all_

    def belongs_to(self, holder: str) -> None:
        """A good token was seen on it."""
        if (self.owner, self.known) != (holder, True):
            self.owner, self.known = holder, True
            self._all.make_room(self)

    def begun(self) -> None:
        """A request is under way."""
        self.busy += 1

    def ended(self) -> None:
        """It no longer is; the connection is the one that was used last."""
        self.busy -= 1
        self._all.used(self)

    def hang_up(self) -> None:
        """End it, also where it waits for a reader."""
        self.scope.cancel()
        self._stream.socket.close()


class ClientConnections:
    """All connections of a server."""

    def __init__(self, app: Any) -> None:
        self._app, self._config, self._context = ASGIWrapper(app), Config(), WorkerContext(None)
        self._config.errorlog = self._config.accesslog = None
        self._config.include_server_header = False
        self._config.keep_alive_timeout = IDLE_SECONDS
        self.most = min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._open: dict[Connection, None] = {}
        """The one that was idle longest first."""
        self.hung_up = 0

    async def serve(self, listening: socket.socket, *, task_status: trio.TaskStatus[Any]) -> None:
        """Serve whoever connects, until cancelled."""
        listening.listen(WAITING)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        try:
            await trio.serve_listeners(self._one, [listener], task_status=task_status)
        finally:
            for one in self._open:
                one.hang_up()

    async def _one(self, stream: trio.SocketStream) -> None:
        one = Connection(stream, self)
        self._open[one] = None
        try:
            with one.scope:
                self.make_room(one)
                state = LifespanState({CONNECTION: one})  # each request gets what is in it
                await _Server(self._app, self._config, self._context, state, cast(Any, stream))
        finally:
            self._open.pop(one, None)
            await trio.aclose_forcefully(stream)

    def used(self, one: Connection) -> None:
        """It is not idle."""
        if one in self._open:
            self._open[one] = self._open.pop(one)

    def make_room(self, new: Connection) -> None:
        """Hang up on what is too much since this one came, or since it is known whose it is."""
        others = [one for one in self._open if one is not new]
        if new.known:
            self._keep(self.most // 2, [one for one in others if one.known and one.owner == new.owner])
        else:
            self._keep(self.most // 2, [one for one in others if not one.known])
        self._keep(self.most, [one for one in others if one in self._open])

    def _keep(self, most: int, others: Sequence[Connection]) -> None:
        """Make room for one more: those without a token go first, then those of whoever has most; idle ones first."""
        if len(others) < most:
            return
        count = Counter(one.owner for one in others)
        first = sorted(others, key=lambda one: (one.known, -count[one.owner], one.busy > 0))
        for one in first[: len(others) - most + 1]:
            del self._open[one]
            one.hang_up()
            self.hung_up += 1

    def __len__(self) -> int:
        return len(self._open)


def _address(stream: trio.SocketStream) -> str:
    with suppress(OSError):
        return str(stream.socket.getpeername()[0])
    return ""


class _Http1(H11Protocol):
    """HTTP/1.1 and nothing else. What asks for another protocol is a request like any other; the guard refuses it."""

    async def _check_protocol(self, event: Any) -> None:
        """No other protocol is begun."""


class _Tasks(TaskGroup):
    """The tasks of one connection."""

    async def spawn_app(self, app: Any, config: Config, scope: Any, send: Any) -> Any:
        """As hypercorn does it, but an answer that did not wait for all of a body ends the wait for the rest: else the
        connection would hang until its other end gives up.
        """
        put, get = trio.open_memory_channel[Any](config.max_app_queue_size)

        async def ask(*given: Any) -> None:
            with get:
                await app(*given)

        async def tell(event: Any) -> None:
            with suppress(trio.BrokenResourceError):
                await put.send(event)

        assert self._nursery is not None
        threads: tuple[Any, Any] = trio.to_thread.run_sync, trio.from_thread.run
        self._nursery.start_soon(_handle, cast(Any, ask), config, scope, get.receive, send, *threads)
        return tell


class _Server(TCPServer):
    """One connection of hypercorn's, without TLS, and with a limit on how long it waits for a reader."""

    async def run(self) -> None:
        """Serve it until one of the two sides ends it."""
        try:
            peer, own = self.stream.socket.getpeername()[:2], self.stream.socket.getsockname()[:2]
            async with _Tasks() as self._task_group:
                self.protocol = _Http1(
                    self.app,
                    self.config,
                    self.context,
                    self._task_group,
                    ConnectionState(self.state),
                    False,
                    peer,
                    own,
                    self.protocol_send,
                )  # type: ignore[assignment]  # which has all that is asked of the wrapper
                await self.protocol.initiate()
                await self.idle_task.restart(self._task_group, self._idle_timeout)
                await self._read_data()
        except OSError:
            pass
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """As hypercorn does it, but not for ever: half an answer is no answer, so only time ends the sending of one."""
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + SEND_SECONDS) as patience:
                    await self.stream.send_all(event.data)
                gone = patience.cancelled_caught
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                gone = True
        if gone:
            await self.protocol.handle(Closed())
