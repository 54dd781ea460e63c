"""`livememfs mcp`: the MCP server, started by an agent, or over HTTP.

Owns the choice of the server: this process with the configured bucket, or the daemon of a mount if a path names one;
the daemon has index, cache and credentials already. Standard output belongs to the protocol. Main thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli.common import AllowHost, Choice, command, naming_the_space, option, quiet_log, run
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.cli.serving import web
from livememfs.errors import MountError, UsageError
from livememfs.fuse.mounted import ask

if TYPE_CHECKING:
    from livememfs.config import Settings


@command
def mcp(
    choice: Choice,
    space: Annotated[
        str, typer.Option("--space", metavar="SPACE", help="The default space; a path names a space of a mount.")
    ] = "",
    mount: Annotated[
        Path | None,
        option("--mount", parser=Path, metavar="DIR", help="Use this mount; the space is that of the current project."),
    ] = None,
    tools: Annotated[str, typer.Option(metavar="SET", help="core, all, or names separated by commas.")] = "core",
    agent: Annotated[str, option(metavar="NAME", help="Name of the writer.  [default: the client's name]")] = "",
    http: Annotated[
        str | None, typer.Option("--http", metavar="ADDRESS", help="Serve HTTP here, to clients with tokens.")
    ] = None,
    allow_host: AllowHost = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Allow only what this token allows.  [default: everything]")
    ] = None,
) -> None:
    """Serve MCP on standard input and output, or over HTTP.

    `--space /path/to/mount/SPACE` and `--mount` use the daemon of that mount.

        livememfs mcp --space project
        livememfs mcp --mount ~/memory
        livememfs mcp --http 127.0.0.1:8765
    """
    settings = choice.load(token=token)
    if http is not None:
        web.listen(choice.at_store(token=token), http, allow_host or [], tools, pages=False)
        return
    quiet_log(settings)
    if mount is not None:
        if space:
            raise UsageError("--mount and --space exclude each other: name a space of a mount by its path")
        _through_mount(resolve(mount), {"folder": _here()}, tools, agent, settings.token)
    elif "/" in space:
        place = Path(space)  # only the mount is resolved: a look at the space would wait for a daemon that hangs
        _through_mount(resolve(place.parent), {"space": place.name}, tools, agent, settings.token)
    else:
        run(_stdio, choice.at_store(token=token), space, tools, agent)


async def _stdio(settings: Settings, space: str, tools: str, agent: str) -> None:
    from livememfs.app import open_app
    from livememfs.app.serving import over_stdio  # slow to import, and other commands do not need it
    from livememfs.spaces import making as spaces

    async with open_app(settings, serving=True) as app:
        if space:
            with naming_the_space(space):
                await spaces.require_space(app.replica, space)
        await over_stdio(app, tools=tools, agent=agent, space=space)


def _here() -> str:
    """The current directory; empty if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _through_mount(mount: Path, which: Mapping[str, str], tools: str, agent: str, token: str) -> None:
    """Relay to the daemon of a mount, which allows only what the token allows. MountError."""
    from livememfs.serve import sock

    record = mounts.find(mount)
    if record is None or not record.is_alive:
        raise MountError(f"nothing is mounted on {mount}; mount it, or name the space without a path")
    if ask(mount) is None:  # fail at once: a starting agent waits for its servers
        raise MountError(f"the daemon of {mount} does not answer")
    wanted = {**which, "tools": tools, "agent": agent}
    sock.relay(sock.connect(record.socket, wanted | ({"token": token} if token else {})))
