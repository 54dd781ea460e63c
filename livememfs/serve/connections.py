"""Connections to the HTTP server: their number, their owners, and their time limits.

Owns accepting them, HTTP/1.1 as the only protocol (no h2c, no HTTP/2 by prior knowledge), and the choice of connections
to close: an owner with too many loses the one that was idle longest, so that no owner can crowd out another. The owner
is the address until the guard sees a good token on the connection, and then that token, since behind a proxy all have
one address. Refuses to read a request: hypercorn does. Trio thread only.
"""

from __future__ import annotations

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
"""Fewer if the system allows few descriptors: a mount needs some too. Half of them may be of one token, and half of
unknown owners.
"""
WAITING = 512
"""Connections that the kernel queues until they are accepted."""
IDLE_SECONDS = 30
"""Most seconds without a request, or for the head of one."""
SEND_SECONDS = 60.0
"""Most seconds for a client to read a part of an answer."""


class Connection:
    """One connection, as the guard sees it."""

    def __init__(self, stream: trio.SocketStream, all_: ClientConnections) -> None:
        self.owner, self.known, self.busy = _address(stream), False, 0
        self.scope = trio.CancelScope()
        self._stream, self._all = stream, all_

    def belongs_to(self, holder: str) -> None:
        """The guard saw a good token on it."""
        if (self.owner, self.known) != (holder, True):
            self.owner, self.known = holder, True
            self._all.make_room(self)

    def begun(self) -> None:
        """A request begins."""
        self.busy += 1

    def ended(self) -> None:
        """A request ended; this connection is now the last used one."""
        self.busy -= 1
        self._all.used(self)

    def hang_up(self) -> None:
        """Close it, also while it waits for its reader."""
        self.scope.cancel()
        self._stream.socket.close()


class ClientConnections:
    """All connections of a server."""

    def __init__(self, app: Any) -> None:
        import resource  # here: Windows has none

        self._app, self._config, self._context = ASGIWrapper(app), Config(), WorkerContext(None)
        self._config.errorlog = self._config.accesslog = None
        self._config.include_server_header = False
        self._config.keep_alive_timeout = IDLE_SECONDS
        self.most = min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._open: dict[Connection, None] = {}
        """In order of use, the longest idle first."""
        self.hung_up = 0

    async def serve(self, listening: socket.socket, *, task_status: trio.TaskStatus[Any]) -> None:
        """Serve all connections, until cancelled."""
        listening.listen(WAITING)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
        try:
            await trio.serve_listeners(self._one, [listener], task_status=task_status)
        finally:
            for connection in self._open:
                connection.hang_up()

    async def _one(self, stream: trio.SocketStream) -> None:
        connection = Connection(stream, self)
        self._open[connection] = None
        try:
            with connection.scope:
                self.make_room(connection)
                state = LifespanState({CONNECTION: connection})  # every request gets this state
                await _Server(self._app, self._config, self._context, state, cast(Any, stream))
        finally:
            self._open.pop(connection, None)
            await trio.aclose_forcefully(stream)

    def used(self, connection: Connection) -> None:
        """Mark it as the last used one."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def make_room(self, new: Connection) -> None:
        """Close connections over the limits, after this one came or got its owner."""
        others = [connection for connection in self._open if connection is not new]
        if new.known:
            self._keep(self.most // 2, [other for other in others if other.known and other.owner == new.owner])
        else:
            self._keep(self.most // 2, [other for other in others if not other.known])
        self._keep(self.most, [other for other in others if other in self._open])

    def _keep(self, most: int, others: Sequence[Connection]) -> None:
        """Make room for one more: first those without a token, then those of the owner with most; idle ones first."""
        if len(others) < most:
            return
        count = Counter(connection.owner for connection in others)
        first = sorted(others, key=lambda connection: (connection.known, -count[connection.owner], connection.busy > 0))
        for connection in first[: len(others) - most + 1]:
            del self._open[connection]
            connection.hang_up()
            self.hung_up += 1

    def __len__(self) -> int:
        return len(self._open)


def _address(stream: trio.SocketStream) -> str:
    with suppress(OSError):
        return str(stream.socket.getpeername()[0])
    return ""


class _Http1(H11Protocol):
    """HTTP/1.1 only. A request for another protocol is an ordinary request here; the guard refuses it."""

    async def _check_protocol(self, event: Any) -> None:
        """Never switch protocols."""


class _Tasks(TaskGroup):
    """The tasks of one connection."""

    async def spawn_app(self, app: Any, config: Config, scope: Any, send: Any) -> Any:
        """As in hypercorn, but an answer before the end of the body stops the wait for the rest: the connection would
        hang until the client gives up.
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
                )  # type: ignore[assignment]  # it has all methods used of the wrapper
                await self.protocol.initiate()
                await self.idle_task.restart(self._task_group, self._idle_timeout)
                await self._read_data()
        except OSError:
            pass
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """As in hypercorn, but with a time limit. Only time ends the sending: a client cannot use half an answer."""
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
