"""`livememfs web`: the live page, MCP and figures over HTTP, without a mount.

Owns that whoever starts it is told where it is and how to get in. Main thread only.
"""

from __future__ import annotations

import signal
from typing import Annotated

import structlog
import trio
import typer

from livememfs import log
from livememfs.app import App, open_app
from livememfs.cli import output
from livememfs.cli.common import Choice, command, run
from livememfs.config import Settings

STOPPED_BY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
DEFAULT = "127.0.0.1:8765"

AllowHost = Annotated[
    list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name it is called by; repeat for more.")
]


@command
def web(
    choice: Choice,
    address: Annotated[str, typer.Argument(metavar="[ADDRESS]", help="Where to listen: HOST:PORT.")] = DEFAULT,
    allow_host: AllowHost = None,
) -> None:
    """Serve the live page, MCP (/mcp) and figures (/metrics) over HTTP.

    Whoever comes needs a token: `livememfs token create NAME`.
    """
    listen(choice.load(), address, allow_host or [], "all", pages=True)


def listen(settings: Settings, address: str, names: list[str], tools: str, *, pages: bool) -> None:
    """Serve until a signal ends it."""
    log.configure(settings.log_level, json=settings.log_json)
    run(_listen, settings, address, names, tools, pages)


async def _listen(settings: Settings, address: str, names: list[str], tools: str, pages: bool) -> None:
    from livememfs.app.serving import http_server  # as in `mcp`
    from livememfs.serve.http import Address

    async with open_app(settings, serving=True) as app, trio.open_nursery() as nursery:
        server = http_server(app, Address.parse(address), allow_hosts=names, tools=tools, pages=pages)
        url = await nursery.start(server.run)
        await tell(app, url, pages=pages)
        with trio.open_signal_receiver(*STOPPED_BY) as received:
            async for number in received:
                structlog.get_logger("livememfs.cli").info("stopping", signal=signal.Signals(number).name)
                break
        server.stop()


async def tell(app: App, url: str, *, pages: bool) -> None:
    """Where it is, and how to get in."""
    output.say(f"{url}/" if pages else f"{url}/mcp")
    if not any(token.state(app.clock.now()) == "active" for token in await app.tokens.list()):
        output.note("nobody has a token yet: `livememfs token create NAME --permissions read,write` makes one")
