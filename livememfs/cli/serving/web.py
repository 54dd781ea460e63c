"""`livememfs web`: the live page, MCP and figures over HTTP, without a mount.

Owns what is printed at its start: the address, and how to make a token. Main thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import output
from livememfs.cli.common import AllowHost, Choice, command, run

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.config import Settings

DEFAULT = "127.0.0.1:8765"
SHORTEST_KEY = 32
"""Characters of a key that nobody guesses: guesses are not slowed down."""


@command
def web(
    choice: Choice,
    address: Annotated[str, typer.Argument(metavar="[ADDRESS]", help="Where to listen: HOST:PORT.")] = DEFAULT,
    allow_host: AllowHost = None,
) -> None:
    """Serve the live page, MCP (/mcp) and figures (/metrics) over HTTP.

    Every client needs a token: `livememfs token create NAME`.

        livememfs web
        livememfs web 127.0.0.1:9000
    """
    listen(choice.at_store(), address, allow_host or [], "core", pages=True)


def listen(settings: Settings, address: str, names: list[str], tools: str, *, pages: bool) -> None:
    """Serve until a signal ends it."""
    from livememfs import log  # loads slowly, as all below

    log.configure(settings.log_level, json=settings.log_json)
    run(_listen, settings, address, names, tools, pages)


async def _listen(settings: Settings, address: str, names: list[str], tools: str, pages: bool) -> None:
    import trio

    from livememfs.app import open_app
    from livememfs.app.serving import http_server  # slow to import, as in `mcp`
    from livememfs.cli.mounting.ending import asked_to_end
    from livememfs.serve.http import ListenAddress

    async with open_app(settings, serving=True) as app, trio.open_nursery() as nursery:
        server = http_server(app, ListenAddress.parse(address), allow_hosts=names, tools=tools, pages=pages)
        url = await nursery.start(server.run)
        await tell(app, url, pages=pages)
        await asked_to_end()
        server.stop()


async def tell(app: App, url: str, *, pages: bool) -> None:
    """Print the address, and how to make a first token."""
    output.say(f"{url}/" if pages else f"{url}/mcp")
    key = app.settings.admin_bootstrap_key
    if key:
        weak = f"; with fewer than {SHORTEST_KEY} characters it can be guessed" if len(key) < SHORTEST_KEY else ""
        output.note(f"ADMIN_BOOTSTRAP_KEY is a token with all rights{weak}")
        return
    if not any(token.state(app.clock.now()) == "active" for token in await app.tokens.list()):
        output.note("nobody has a token yet: `livememfs token create NAME --permissions read,write` makes one")
