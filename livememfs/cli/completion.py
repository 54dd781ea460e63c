"""Completion by the shell: the script for it, and the names that it offers.

Owns which names are offered: spaces of a folder and of mounts, and mount points. Refuses the network, and long waits: a
mount that does not list its names at once offers none. Main thread only.
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
from livememfs.cli.common import Choice, argument, command
from livememfs.cli.mounting import mounts
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.records import keys

PROGRAM = "livememfs"
VARIABLE = "_LIVEMEMFS_COMPLETE"
"""The variable that the script sets; the parser expects this form of name."""
PATIENCE = 0.5


class Shell(StrEnum):
    """The shells with a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command
def completion(
    choice: Choice,  # noqa: ARG001 - every command has these options
    shell: Annotated[Shell, argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script with which SHELL completes commands, options, spaces and mount points.

    For bash: source <(livememfs completion bash)
    """
    output.say(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))


def prepare() -> None:
    """Turn completion on, if the script started this process."""
    if config.environment().get(VARIABLE):
        completion_init()  # the parser skips it because our app hides the options of completion


# --- what is offered ---------------------------------------------------------------------------------------------


def spaces(context: typer.Context, incomplete: str) -> list[str]:
    """Names of spaces: of the folder used as store, and of the user's mounts."""
    given = context.params
    try:
        settings = Choice(store=given.get("store"), bucket=given.get("bucket"), config=given.get("config")).load()
    except LiveMemError:
        return []
    names = set() if settings.s3_bucket_name else _of_folder(settings)
    for record in mounts.records():
        names |= _of_mount(Path(record.mountpoint)) if record.is_alive else set()
    return sorted(name for name in names if name.startswith(incomplete))


def mountpoints(incomplete: str) -> list[str]:
    """The mount points of present mounts, and of mounts that ended badly."""
    known = {*mounts.kernel_mounts(), *(record.mountpoint for record in mounts.records())}
    return sorted(path for path in known if path.startswith(incomplete))


MountedAt = Annotated[
    Path, argument(parser=Path, autocompletion=mountpoints, metavar="MOUNTPOINT", help="Where it is mounted.")
]
"""The argument of a command on a mount."""


def _of_folder(settings: Settings) -> set[str]:
    try:
        return {path.name for path in settings.store_path.iterdir() if (path / keys.META).is_file()}
    except OSError:
        return set()


def _of_mount(path: Path) -> set[str]:
    """The names that a mount lists. A thread asks: a daemon that hangs would stop the shell."""
    names: set[str] = set()

    def look() -> None:
        try:
            names.update(entry.name for entry in path.iterdir() if not entry.name.startswith((".", "_")))
        except OSError:
            return

    asking = threading.Thread(target=look, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return set() if asking.is_alive() else names - {"search"}
