"""Completion by the shell: the script for it, and the names that it offers.

Owns which names are offered: spaces of a folder and of mounts, and mount points. Refuses the network, and long waits: a
mount that does not list its names at once offers none. Main thread only.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, argument, command
from livememfs.cli.mounting import mounts
from livememfs.environment import default_store, environment, file_of
from livememfs.errors import LiveMemError, UsageError
from livememfs.records import keys

PATIENCE = 0.5

SHELLS = ("bash", "zsh", "fish")
"""The shells with a script."""


def _shells(incomplete: str) -> list[str]:
    return [shell for shell in SHELLS if shell.startswith(incomplete)]


@command
def completion(
    choice: Choice,  # noqa: ARG001 - every command has these options
    shell: Annotated[str, argument(metavar="SHELL", help="bash, zsh or fish.", autocompletion=_shells)],
) -> None:
    """Print the script with which SHELL completes commands, options, spaces and mount points.

    livememfs completion fish | source              in ~/.config/fish/config.fish
    source <(livememfs completion bash)             in ~/.bashrc
    source <(livememfs completion zsh)              in ~/.zshrc, below compinit
    """
    from typer._completion_shared import get_completion_script

    if shell not in SHELLS:
        raise UsageError(f"there is no script for {shell}; there is one for bash, zsh and fish")
    output.say(get_completion_script(prog_name=listing.PROGRAM, complete_var=listing.COMPLETING, shell=shell))


# --- what is offered ---------------------------------------------------------------------------------------------


def spaces(context: typer.Context, incomplete: str) -> list[str]:
    """Names of spaces: of the folder used as store, and of the user's mounts."""
    folder = _folder(
        context.find_root().params | {name: value for name, value in context.params.items() if value is not None}
    )
    names = _of_folder(folder) if folder is not None else set()
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


def _folder(given: Mapping[str, Any]) -> Path | None:
    """The folder used as store; None for a bucket, and for settings that cannot be read.

    Settings are loaded only where a file has some: that takes longer than all the rest.
    """
    environ, named = environment(), given.get("config")
    if given.get("store") is not None:
        return Path(given["store"]).expanduser()
    if given.get("bucket") or environ.get("S3_BUCKET_NAME"):
        return None
    if not file_of(environ, named)[0].exists():
        return Path(environ["LIVEMEMFS_STORE"]).expanduser() if environ.get("LIVEMEMFS_STORE") else default_store()
    try:
        settings = Choice(config=named).load()
    except LiveMemError:
        return None
    return None if settings.s3_bucket_name else settings.store_path


def _of_folder(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir() if (path / keys.META).is_file()}
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
