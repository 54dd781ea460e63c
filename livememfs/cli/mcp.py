"""`livememfs mcp`: the MCP server, for an agent that starts it, or over HTTP.

Owns where the bucket comes from: the settings, or, where a mount or a space in one is named by its path, that mount's
daemon, which has index, cache and credentials already. Standard output belongs to the protocol. Main thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from livememfs.app import open_app
from livememfs.cli import web
from livememfs.cli.common import AllowHost, Choice, command, quiet_log, run
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mount import resolve
from livememfs.cli.space import naming_the_space
from livememfs.config import Settings
from livememfs.errors import MountError, UsageError
from livememfs.fuse.mounted import ask
from livememfs.serve import sock
from livememfs.spaces import making as spaces


@command
def mcp(
    choice: Choice,
    space: Annotated[
        str, typer.Option("--space", metavar="SPACE", help="The space meant where none is named; PATH in a mount.")
    ] = "",
    mount: Annotated[
        Path | None,
        typer.Option(
            "--mount",
            parser=Path,
            metavar="DIR",
            help="Go through this mount; the space is that of the project it is started in.",
            show_default=False,
        ),
    ] = None,
    tools: Annotated[str, typer.Option(metavar="SET", help="core, all, or names with commas.")] = "core",
    agent: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who writes.  [default: what the client calls itself]", show_default=False),
    ] = "",
    http: Annotated[
        str | None, typer.Option("--http", metavar="ADDRESS", help="Listen there, for clients with tokens.")
    ] = None,
    allow_host: AllowHost = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Allow what this token does.  [default: everything]")
    ] = None,
) -> None:
    """Serve MCP to the agent that starts this, or over HTTP.

    `--space /path/to/mount/SPACE` and `--mount` go through the daemon of that mount.
    """
    settings = choice.load(token=token)
    if http is not None:
        web.listen(settings, http, allow_host or [], tools, pages=False)
        return
    quiet_log(settings)
    if mount is not None:
        if space:
            raise UsageError("--mount and --space exclude each other: a space of a mount is named by its path")
        _through_mount(resolve(mount), {"folder": _here()}, tools, agent, settings.token)
    elif "/" in space:
        place = Path(space)  # its mount is resolved alone: whatever looks at the space waits for a daemon that hangs
        _through_mount(resolve(place.parent), {"space": place.name}, tools, agent, settings.token)
    else:
        run(_stdio, settings, space, tools, agent)


async def _stdio(settings: Settings, space: str, tools: str, agent: str) -> None:
    from livememfs.app.serving import over_stdio  # the protocol takes long to import; other commands do without

    async with open_app(settings, serving=True) as app:
        if space:
            with naming_the_space(space):
                await spaces.require_space(app.replica, space)
        await over_stdio(app, tools=tools, agent=agent, space=space)


def _here() -> str:
    """The directory this is started in; empty for one that is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _through_mount(mount: Path, which: Mapping[str, str], tools: str, agent: str, token: str) -> None:
    """Pass on what is said to the daemon of a mount, which allows what the token does. MountError."""
    record = mounts.find(mount)
    if record is None or not record.is_alive:
        raise MountError(f"nothing is mounted on {mount}; mount it, or name the space without a path")
    if ask(mount) is None:  # an agent that begins waits for its servers
        raise MountError(f"the daemon of {mount} does not answer")
    wanted = {**which, "tools": tools, "agent": agent}
    sock.relay(sock.connect(record.socket, wanted | ({"token": token} if token else {})))
