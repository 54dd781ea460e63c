"""From an app to what it serves: the MCP server and the HTTP server around it, and WebDAV.

Owns the parts of an app that they are made from. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import trio
from starlette.routing import BaseRoute

from livememfs.app import App
from livememfs.app.visitor import Visitor, meeting
from livememfs.config import Settings, secret_settings, setting_names
from livememfs.errors import LiveMemError
from livememfs.records.access import Access
from livememfs.serve import local
from livememfs.serve.http import HttpServer, ListenAddress, application, names_of, session_manager
from livememfs.serve.mcp import McpServer
from livememfs.serve.news import Still
from livememfs.shown import without_login

if TYPE_CHECKING:
    from livememfs.serve.dav.server import DavServer


def mcp_server(
    app: App, *, tools: str = "core", agent: str = "", space: str = "", still: Still | None = None
) -> McpServer:
    """The MCP server of a bucket. `still` says what a client may do; without it, what this process may.

    BadRequest for an unknown tool.
    """
    return McpServer(
        app.tree,
        app.tokens,
        tools=tools,
        local=still or app.gate.still,
        agent=agent or app.settings.agent,
        space=space,
        timeout=app.settings.op_timeout,
    )


def http_server(
    app: App, address: ListenAddress, *, allow_hosts: Sequence[str] = (), tools: str = "core", pages: bool = True
) -> HttpServer:
    """MCP and the web pages over HTTP. Each request brings its own token. UsageError for an address without a name."""
    mcp = mcp_server(app, tools=tools)
    manager = session_manager(mcp)
    shown: list[BaseRoute] = []
    closing: list[Callable[[], None]] = []
    if pages:
        from livememfs.serve import web  # an MCP server has no use for templates

        site = web.Site(app.tree, app.tokens, app.settings.op_timeout, settings=_shown(app.settings))
        shown, closing = web.routes_of(site), [site.close]
        app.served["web"] = site.statistics
    names = names_of(address, allow_hosts)
    guard = application(app.tokens, app.status, hosts=names, mcp=manager, pages=shown)
    app.served["http"] = lambda: asdict(guard.statistics())
    app.served["mcp"] = lambda: asdict(mcp.statistics())
    return HttpServer(guard, address, mcp, manager, *closing)


def _shown(settings: Settings) -> list[tuple[str, str, str]]:
    """Each setting with its value and its meaning; of a secret only whether it is set."""
    secret, shown = secret_settings(), []
    for name, variable in setting_names().items():
        value = getattr(settings, name)
        text = ("(set)" if value else "") if name in secret else without_login(str(value))
        meaning = (type(settings).model_fields[name].description or "").partition("; see [")[0]
        shown.append((variable, text, meaning))
    return shown


async def over_stream(
    app: App, stream: trio.SocketStream, visitor: Visitor, *, tools: str, agent: str, space: str
) -> None:
    """MCP over one connection, with what a visitor may do. BadRequest."""
    server = mcp_server(app, tools=tools, agent=agent, space=space, still=visitor.still)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(visitor.run)
        await local.over_stream(server, stream)
        nursery.cancel_scope.cancel()


async def over_stdio(app: App, *, tools: str, agent: str, space: str) -> None:
    """MCP for the program that started this process. BadRequest."""
    await local.over_stdio(mcp_server(app, tools=tools, agent=agent, space=space))


async def dav_server(app: App, port: int) -> DavServer:
    """The tree over WebDAV. Each request brings its own token, and may do what both this process and the token may."""
    with _dav_extra():
        from livememfs.serve.dav.bridge import Bridge
        from livememfs.serve.dav.server import DavGuard, DavServer

    async def enter(secret: str) -> Access | None:
        own = await app.tokens.access(secret)
        return None if own is None else meeting(app.gate.access(), own)

    bridge = Bridge(trio.lowlevel.current_trio_token(), app.errors, app.settings.op_timeout)
    return DavServer(DavGuard(app.tree, enter, bridge), port)


@contextmanager
def _dav_extra() -> Iterator[None]:
    """An import that only works with what `livememfs[dav]` brings."""
    try:
        yield
    except ImportError as error:
        advice = "pip install 'livememfs[dav]'"
        raise LiveMemError(f"WebDAV is not installed here: {error}", advice=advice) from None
