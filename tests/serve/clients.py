"""Clients of what is served: by the official SDK, by plain HTTP, and line by line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2 as httpx
import mcp
import trio
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ServerNotification

from livememfs.app import App
from livememfs.app.serving import http_server
from livememfs.serve.http import HttpServer, ListenAddress
from livememfs.text.own import HEAD, RECORDED

SPACE = "alpha"
REVISIONS = ("legacy", "2026-07-28")
PATIENCE = 20.0
ACCEPT = {"accept": "application/json, text/event-stream"}
VALUES: dict[str, Any] = {
    "string": "x", "integer": 1, "number": 1, "boolean": True, "array": ["x"], "texts": ["x"], "integers": [1],
}  # fmt: skip
"""A value of each kind of parameter."""


class Client:
    """A client of the SDK, which checks each answer against the tool's schema."""

    def __init__(self, session: mcp.Client) -> None:
        self.session = session

    async def raw(self, name: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool."""
        return await self.session.call_tool(name, arguments)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that must not fail."""
        result = await self.raw(name, **arguments)
        assert not result.is_error, result.content[0].text  # type: ignore[union-attr]  # failures are texts
        assert result.structured_content is not None
        assert next(iter(result.structured_content.items())) == (RECORDED, HEAD)
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]  # it is a text
        return result.structured_content

    async def refused(self, name: str, /, **arguments: Any) -> str:
        """What a tool says that must refuse. Programs find it in the answer, models by `is_error`."""
        result = await self.raw(name, **arguments)
        assert result.is_error, result.structured_content
        answer = json.loads(result.content[0].text)  # type: ignore[union-attr]  # as above
        assert answer == result.structured_content
        assert answer["status"] in ("error", "not_found", "already_exists")
        return str(answer["message"])


OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


async def content_of(app: App) -> dict[str, str]:
    """The versions of all that is in the bucket. What was written before is announced (`_changes/`) a moment later."""
    return {info.key: info.etag for info in await app.replica.names.walk("") if "/_changes/" not in info.key}


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until it is true."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.01)


# --- over HTTP -------------------------------------------------------------------------------------------------------


def ask(method: str, **params: Any) -> dict[str, Any]:
    """A message of the protocol."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


HELLO = ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "plain", "version": "1"})


class Site:
    """A server on a port of this machine, and its tokens."""

    def __init__(self, app: App, server: HttpServer) -> None:
        self.app, self.server, self.url = app, server, server.url
        self.port = int(server.url.rpartition(":")[2])
        self.path = "/mcp"

    async def token(self, name: str = "me", permissions: str = "admin", *names: str, **more: Any) -> str:
        """A new one."""
        return (await self.app.tokens.create(name, [permissions], names, **more))[0]

    def browser(self, token: str = "") -> httpx.AsyncClient:
        """A client that speaks plain HTTP."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False, limits=limits)

    @asynccontextmanager
    async def client(
        self, token: str, heard: list[Any] | None = None, revision: str = "legacy"
    ) -> AsyncIterator[Client]:
        """A client of the SDK; `heard` gets the notifications."""

        async def hear(message: Any) -> None:
            if heard is not None and isinstance(message, ServerNotification):
                heard.append(message)

        async with self.browser(token) as http:
            stream = streamable_http_client(f"{self.url}{self.path}", http_client=http)
            async with mcp.Client(stream, mode=revision, message_handler=hear) as session:
                yield Client(session)


async def opened_session(browser: httpx.AsyncClient) -> dict[str, str]:
    """The headers of requests in a new session."""
    answer = await browser.post("/mcp", json=HELLO, headers=ACCEPT)
    return {**ACCEPT, "mcp-session-id": answer.headers["mcp-session-id"]}


@asynccontextmanager
async def serving(app: App, nursery: trio.Nursery, **options: Any) -> AsyncIterator[Site]:
    """A server of `app`."""
    server = http_server(app, ListenAddress("127.0.0.1", 0), **options)
    await nursery.start(server.run)
    yield Site(app, server)
    server.stop()


# --- line by line ----------------------------------------------------------------------------------------------------


class Line:
    """One connection of the protocol, line by line."""

    def __init__(self, stream: Any) -> None:
        self.stream, self._waiting = stream, b""

    async def say(self, message: dict[str, Any]) -> None:
        await self.stream.send_all(json.dumps(message).encode() + b"\n")

    async def hear(self) -> Any:
        with trio.fail_after(PATIENCE):
            while b"\n" not in self._waiting:
                self._waiting += await self.stream.receive_some()
        line, _, self._waiting = self._waiting.partition(b"\n")
        return json.loads(line)
