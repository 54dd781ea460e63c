"""`livememfs dav`: the tree over WebDAV, without a mount.

Owns the choice of the local state, and what is printed at its start: the address, and a first token. Main thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, command, run

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.config import Settings

PORT = 8766
TOKEN = "dav"
"""The name of the token that is made when there is none."""


@command
def dav(
    choice: Choice,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Where to listen.")] = PORT,
) -> None:
    """Serve the tree over WebDAV, for file managers and where nothing can be mounted.

    Only programs of this machine reach it. The password is a token, by any user name.

        livememfs dav
        livememfs dav --port 9000
    """
    from livememfs import log  # loads slowly, as all below

    settings = choice.at_store()
    log.configure(settings.log_level, json=settings.log_json)
    # A mount of the same bucket has a local state of its own.
    run(_serve, settings.model_copy(update={"cache": str(settings.cache_path / "dav")}), port)


async def _serve(settings: Settings, port: int) -> None:
    import trio

    from livememfs.app import open_app
    from livememfs.app.serving import dav_server
    from livememfs.cli.mounting.ending import asked_to_end

    async with open_app(settings, serving=True, keeps=True) as app, trio.open_nursery() as nursery:
        server = await dav_server(app, port)
        url = await nursery.start(server.run)
        output.say(url)
        await _tell(app)
        await asked_to_end()
        server.stop()


async def _tell(app: App) -> None:
    """Say what the password is. The first token is made here, and shown only now."""
    if app.gate.limited:
        output.note("the password is the token of this process")
    elif any(token.state(app.clock.now()) == "active" for token in await app.tokens.list()):
        output.note("the password is a token: `livememfs token create NAME --permissions read,write` makes one")
    else:
        secret, _ = await app.tokens.create(TOKEN, ["write"])
        output.say(secret)
        output.note(f"token {TOKEN}: it is the password, by any user name; it is shown only now")
