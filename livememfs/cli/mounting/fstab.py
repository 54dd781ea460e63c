"""`livememfs service fstab`: a line for `/etc/fstab`, and the link through which mount(8) finds livememfs.

Owns the form of the line and the link `/sbin/mount.fuse.livememfs`. Refuses to edit `/etc/fstab`, to replace a file
that is no such link, and to write secrets in the line. Main thread only.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, argument, command
from livememfs.cli.doctor import setting_sources
from livememfs.cli.mounting.mounts import resolve
from livememfs.environment import environment, file_of
from livememfs.errors import MountError, UsageError

if TYPE_CHECKING:
    from livememfs.config import Settings

HELPER = "mount.fuse.livememfs"
SBIN = Path("/sbin")
OF_STORE = ("S3_BUCKET_NAME", "S3_ENDPOINT_URL", "LIVEMEMFS_STORE")


@command
def fstab(
    choice: Choice,
    mountpoint: Annotated[Path, argument(parser=Path, metavar="MOUNTPOINT", help="Where to mount.")],
    allow_other: Annotated[bool, typer.Option("--allow-other", help="Let other users use the mount.")] = False,
    link: Annotated[bool, typer.Option("--link", help=f"Make {SBIN / HELPER} first, as root.")] = False,
) -> None:
    """Print the line for /etc/fstab that mounts on MOUNTPOINT.

    With --link, it also makes the link through which `mount` finds livememfs.

        livememfs service fstab /memory --allow-other
    """
    settings = choice.quiet()
    if link:
        _link(SBIN / HELPER, Path(sys.executable).with_name(HELPER))
    output.say(line_for(choice, settings, resolve(mountpoint), allow_other=allow_other))
    if not (SBIN / HELPER).exists():
        output.note(
            f"mount does not know livememfs yet; as root: livememfs service fstab --link {shlex.quote(str(mountpoint))}"
        )
    if named := only_here(choice, settings):
        output.note(
            f"mount does not see this shell's {named}; write them to a file that root reads, and add config=FILE"
        )


def only_here(choice: Choice, settings: Settings) -> str:
    """The variables of this shell, apart from the store's, which a line or a unit names itself."""
    sources = setting_sources(choice, settings)
    shell = [setting.variable for setting in sources if setting.source.startswith("environment")]
    return ", ".join(variable for variable in shell if variable not in OF_STORE)


def line_for(choice: Choice, settings: Settings, place: Path, *, allow_other: bool) -> str:
    """The line. UsageError for a value with a comma: mount would end the option there."""

    options = ["nofail"]
    if settings.s3_bucket_name:
        source = settings.s3_bucket_name
        options += ["_netdev", *([f"endpoint_url={settings.s3_endpoint_url}"] if settings.s3_endpoint_url else [])]
    else:
        source = str(settings.store_path.absolute())
    file, is_named = file_of(environment(), choice.config)
    options += [f"config={file.absolute()}"] if is_named else []
    options += ["allow_other"] if allow_other or settings.allow_other else []
    if any("," in option for option in options):
        raise UsageError("mount takes no comma in the path of the configuration file or in the endpoint")
    return " ".join(map(_escaped, (source, str(place), "fuse.livememfs", ",".join(options), "0", "0")))


def _escaped(word: str) -> str:
    """A field of fstab: blanks and the like as octal numbers."""
    return re.sub(r"[ \t\r\n\\#]", lambda match: f"\\{ord(match[0]):03o}", word)


def _link(link: Path, program: Path) -> None:
    """Make `link` point to `program`. MountError when that fails, or when another file is there."""
    if not program.exists():
        raise MountError(f"there is no {program}; install livememfs again")
    try:
        if link.is_symlink() and link.readlink().name == HELPER:
            link.unlink()
        link.symlink_to(program)
    except FileExistsError:
        raise MountError(f"{link} is not from livememfs; move it away first") from None
    except OSError as error:
        advice = "; run this as root" if os.geteuid() else ""
        raise MountError(f"{link} cannot be made: {error.strerror}{advice}") from None
