"""Serving over HTTP: MCP at `/mcp`, figures at `/metrics`, a health check at `/healthz`, and the pages.

Owns the routes, and the server itself: its address, its waits for clients, its end. The guard surrounds all of it.
Refuses to listen beyond this machine without a host name for its clients. Trio thread only.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import structlog
import trio
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from livememfs.errors import Forbidden, UsageError
from livememfs.serve.connections import ClientConnections
from livememfs.serve.guard import LOOPBACK, Guard, GuardStatistics
from livememfs.serve.sessions import IDLE_SECONDS as SESSION_SECONDS
from livememfs.serve.sessions import MOST as SESSIONS
from livememfs.serve.sessions import McpEndpoint

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request

    from livememfs.serve.mcp import McpServer
    from livememfs.spaces.tokens import Tokens

log = structlog.get_logger("livememfs.serve")

DEFAULT_PORT = 8765
MCP, METRICS, HEALTH = "/mcp", "/metrics", "/healthz"
LOGIN, STATIC = "/login", "/static/"
LARGE = rf"{MCP}|/s/[^/]+/(?:notes/|note/.+|memories/|memory/.+|bank/.+|about)"
"""Where a text may be sent: a call of a tool, a form of a page."""
OPEN = (HEALTH, LOGIN, STATIC)
"""Paths without a token: they show nothing of the bucket."""

Status = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class ListenAddress:
    """An address to listen at. Port 0: any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int = DEFAULT_PORT) -> ListenAddress:
        """`HOST:PORT`, `HOST`, `PORT` or `[IPv6]:PORT`. UsageError."""
        host, colon, digits = text.rpartition(":")
        if not colon and text.isdecimal():
            host, digits = LOOPBACK[0], text
        elif not colon or text.endswith("]"):
            host, digits = text, str(port)
        host = host.strip("[]") or LOOPBACK[0]
        if not digits.isdecimal() or int(digits) > 65_535 or any(character in host for character in " /@"):
            raise UsageError(f"{text!r} is no address to listen at, such as 127.0.0.1:{DEFAULT_PORT}")
        return cls(host, int(digits))

    @property
    def here_only(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def names_of(address: ListenAddress, others: Sequence[str]) -> tuple[str, ...]:
    """The host names of a server. UsageError for a server beyond this machine without any."""
    if address.here_only:
        return (*LOOPBACK, address.host, *others)
    everywhere = address.host in ("0.0.0.0", "::")
    if everywhere and not others:
        raise UsageError(f"listening at {address.host} needs --allow-host NAME: the host name that clients use")
    return (*others, *(() if everywhere else (address.host,)))


def application(
    tokens: Tokens,
    status: Status,
    *,
    hosts: Sequence[str],
    mcp: StreamableHTTPSessionManager,
    pages: Sequence[BaseRoute] = (),
) -> Guard:
    """All routes, with the guard around them."""
    routes: list[BaseRoute] = [
        Route(METRICS, partial(_metrics, status), methods=["GET"]),
        Route(HEALTH, partial(_healthz, status), methods=["GET"]),
        Route(MCP, McpEndpoint(mcp), methods=["GET", "POST", "DELETE"]),
        *pages,
    ]
    return Guard(
        Starlette(routes=routes),
        tokens,
        hosts=hosts,
        open_paths=OPEN,
        always=HEALTH,
        large=LARGE,
        sign_in=LOGIN if pages else "",
    )


async def _metrics(status: Status, request: Request) -> Response:
    """Figures for Prometheus, for callers with access to the whole bucket."""
    from livememfs.serve.metrics import CONTENT_TYPE, render

    access = request.state.access
    if not access.everywhere:
        refused = Forbidden(path="the bucket", name=access.name, permission="read")
        return JSONResponse({"error": str(refused), "what_to_do": refused.advice()}, 403)
    return Response(render(status()), media_type=CONTENT_TYPE)


async def _healthz(status: Status, _: Request) -> Response:
    """Whether it works, in one word: callers need no token here."""
    from livememfs.serve.metrics import healthy

    well, about = healthy(status())
    return JSONResponse(about, 200 if well else 503)


class HttpServer:
    """One server. `run` serves until `stop`, or until it is cancelled; `closing` ends streams, which have no end."""

    def __init__(
        self,
        app: Guard,
        address: ListenAddress,
        mcp: McpServer,
        manager: StreamableHTTPSessionManager,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._app, self._address, self._mcp, self._manager = app, address, mcp, manager
        self._connections = ClientConnections(app)
        self._closing = closing
        self._stopping = trio.Event()
        self.url = ""

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; reports its URL once it listens. UsageError if it cannot listen."""
        listening = self._bind()
        host, port = listening.getsockname()[:2]
        self.url = f"http://{ListenAddress(host, port)}"
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._manager.run())
            nursery = await stack.enter_async_context(trio.open_nursery())
            nursery.start_soon(self._mcp.run)
            await nursery.start(self._connections.serve, listening)
            log.info("serving", url=self.url)
            task_status.started(self.url)
            await self._stopping.wait()
            nursery.cancel_scope.cancel()

    def _bind(self) -> socket.socket:
        """The socket to listen on. UsageError."""
        family = socket.AF_INET6 if ":" in self._address.host else socket.AF_INET
        try:
            return socket.create_server((self._address.host, self._address.port), family=family)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"the server cannot listen at {self._address}: {reason}") from None

    def stop(self) -> None:
        """End it: no new client is accepted."""
        self._closing()
        self._stopping.set()

    def statistics(self) -> GuardStatistics:
        """Counters of the guard, cheap."""
        return self._app.statistics()


def session_manager(mcp: McpServer) -> StreamableHTTPSessionManager:
    """The SDK's session manager for HTTP."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(mcp.sdk, max_sessions=SESSIONS, session_idle_timeout=SESSION_SECONDS)
