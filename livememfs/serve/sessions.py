"""Sessions of MCP over HTTP: their owners, their number, and which one is ended when there are too many.

Owns the endpoint around the SDK's session manager: a message with too many or too deep parts is refused before it is
parsed; only the token that opened a session may use it; a token with too many sessions loses the one that was idle
longest. Refuses to end a busy session. Trio thread only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from livememfs.concurrency import LARGE
from livememfs.serve import shape
from livememfs.serve.guard import again

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import Message, Receive, Scope, Send

MOST = 1_000
MOST_OF_A_TOKEN = 250
IDLE_SECONDS = 600.0
"""Seconds without a request after which a session ends; its client opens another."""
HEADER, VERSION = "mcp-session-id", "mcp-protocol-version"


@dataclass(eq=False)
class _Session:
    """One session: its owner, the time of its last use, its running requests."""

    holder: str
    user: Any
    used: float
    busy: int = 0


class McpEndpoint:
    """The SDK's endpoint at `/mcp`."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager
        self._turn = trio.CapacityLimiter(1)
        self._open: dict[str, _Session] = {}
        """In order of use, the least recent first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, whose body the guard has read."""
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        message = await receive()
        if not await shape.fits(message.get("body", b"")):
            reason = {"error": "the message has too many parts, or they are nested too deep"}
            await JSONResponse(reason, 400)(scope, receive, send)
            return
        access, holder = scope["state"]["access"], scope["state"]["holder"]
        # By this user the SDK binds a session to its token: no other token can use it.
        user = AuthenticatedUser(AccessToken(token="", client_id=access.name, scopes=[], subject=holder))
        scope = {**scope, "user": user}
        if len(message.get("body", b"")) < LARGE:
            await self._pass_on(scope, again(message, receive), send)
            return
        # Parsing a large message holds the thread for milliseconds, so only one is parsed at a time. The turn ends when
        # the SDK answers, or asks for further messages: by then it has parsed this one.
        turn = object()
        await self._turn.acquire_on_behalf_of(turn)

        async def heard(message: Message) -> None:
            self._end_turn(turn)
            await send(message)

        async def more() -> Message:
            self._end_turn(turn)
            return await receive()

        try:
            await self._pass_on(scope, again(message, more), heard)
        finally:
            self._end_turn(turn)

    def _end_turn(self, turn: object) -> None:
        if turn in self._turn.statistics().borrowers:
            self._turn.release_on_behalf_of(turn)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

        headers = Headers(scope=scope)
        name, version = headers.get(HEADER), headers.get(VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._manager.handle_request(scope, receive, send)  # the newest protocol revision has no sessions
        elif name is None:
            await self._begin(scope, scope["state"]["holder"], receive, send)
        else:
            await self._go_on(name, scope, receive, send)

    async def _begin(self, scope: Scope, holder: str, receive: Receive, send: Send) -> None:
        """A request without a session; the right kind of it opens one."""
        if not await self._make_room(holder):
            reason = {"error": "too many sessions are open", "what_to_do": "end one, or try again in a moment"}
            await JSONResponse(reason, 503)(scope, receive, send)
            return
        session = _Session(holder, scope["user"], trio.current_time(), busy=1)

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = Headers(raw=message["headers"]).get(HEADER)
                if name is not None:
                    self._open[name] = session
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, heard)
        finally:
            session.busy -= 1

    async def _go_on(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A request in a session; the manager refuses an unknown session, or one of another token."""
        session = self._open.get(name)
        if session is None or session.holder != scope["state"]["holder"]:
            await self._manager.handle_request(scope, receive, send)
            return

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start" and (message["status"] == 404 or scope["method"] == "DELETE"):
                self._open.pop(name, None)
            await send(message)

        session.busy += 1
        try:
            await self._manager.handle_request(scope, receive, heard)
        finally:
            session.busy -= 1
            session.used = trio.current_time()
            if name in self._open:
                self._open[name] = self._open.pop(name)

    async def _make_room(self, holder: str) -> bool:
        """Make room for one more session of a token: end its own idle ones, then those of the token with most; whether
        there is room.
        """
        now = trio.current_time()
        for name in [idle for idle, session in self._open.items() if not session.busy]:
            if self._open[name].used + IDLE_SECONDS < now:
                del self._open[name]  # the manager has ended it already
        own = sum(session.holder == holder for session in self._open.values())
        if own >= MOST_OF_A_TOKEN:
            return await self._give_up(holder)
        if len(self._open) < MOST or await self._give_up(holder):
            return True
        [(greediest, _)] = Counter(session.holder for session in self._open.values()).most_common(1)
        return await self._give_up(greediest)

    async def _give_up(self, holder: str) -> bool:
        """End the longest idle session of a token; False if all are busy."""
        own = ((name, session) for name, session in self._open.items() if session.holder == holder)
        name = next((name for name, session in own if not session.busy), None)
        if name is None:
            return False
        session = self._open.pop(name)
        about = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "user": session.user}
        given: list[tuple[bytes, bytes]] = [(HEADER.encode(), name.encode()), (b"accept", b"application/json")]
        await self._manager.handle_request({**about, "headers": given}, _nothing, _nobody)
        return True

    def __len__(self) -> int:
        return len(self._open)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nobody(_: Message) -> None:
    """Drops the answer."""
