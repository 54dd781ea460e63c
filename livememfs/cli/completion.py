"""Completion by the shell: the script that it reads, and the names that are offered behind commands.

Owns what is offered: spaces of a folder and of mounts, and mount points. Refuses the network, and to keep a shell
waiting: a mount that does not list its names at once has none. Main thread only.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

from livememfs import config
from livememfs.cli import output
from livememfs.cli.common import Choice, command
from livememfs.cli.mounting import mounts
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.records import keys

PROGRAM = "livememfs"
VARIABLE = "_LIVEMEMFS_COMPLETE"
"""By which the script asks; the parser looks for a name like this."""
PATIENCE = 0.5


class Shell(StrEnum):
    """The shells there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command
def completion(
    choice: Choice,  # noqa: ARG001 - every command has these options
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print what SHELL has to read to complete commands, options, spaces and mount points.

    For bash: source <(livememfs completion bash)
    """
    output.say(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))


def prepare() -> None:
    """Get ready for a question of a script, if this process is asked one."""
    if config.environment().get(VARIABLE):
        completion_init()  # which the parser leaves out where it is not to offer options for it


# --- what is offered ---------------------------------------------------------------------------------------------


def spaces(context: typer.Context, incomplete: str) -> list[str]:
    """Names of spaces: those of the folder that is the store, and of the user's mounts."""
    given = context.params
    try:
        settings = Choice(store=given.get("store"), bucket=given.get("bucket"), config=given.get("config")).load()
    except LiveMemError:
        return []
    found = set() if settings.s3_bucket_name else _of_folder(settings)
    for record in mounts.records():
        found |= _of_mount(Path(record.mountpoint)) if record.is_alive else set()
    return sorted(name for name in found if name.startswith(incomplete))


def mountpoints(incomplete: str) -> list[str]:
    """Where something is mounted, or was and ended badly."""
    known = {*mounts.kernel_mounts(), *(record.mountpoint for record in mounts.records())}
    return sorted(path for path in known if path.startswith(incomplete))


MountedAt = Annotated[
    Path,
    typer.Argument(
        parser=Path,
        autocompletion=mountpoints,
        metavar="MOUNTPOINT",
        help="Where it is mounted.",
        show_default=False,
    ),
]
"""The argument of a command on a mount."""


def _of_folder(settings: Settings) -> set[str]:
    try:
        return {path.name for path in settings.store_path.iterdir() if (path / keys.META).is_file()}
    except OSError:
        return set()


def _of_mount(path: Path) -> set[str]:
    """What a mount lists, asked by a thread that nobody waits for long."""
    found: set[str] = set()

    def look() -> None:
        try:
            found.update(one.name for one in path.iterdir() if not one.name.startswith((".", "_")))
        except OSError:
            return

    asking = threading.Thread(target=look, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return set() if asking.is_alive() else found - {"search"}
