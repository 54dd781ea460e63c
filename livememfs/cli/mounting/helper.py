"""`mount.fuse.livememfs`: mount(8) calls it for `mount -t fuse.livememfs` and for lines of `/etc/fstab`.

Owns the translation: a source and a list of options becomes a command line of `livememfs mount`. Refuses
unknown options, and secrets as options: every user of the machine could read them. Main thread only.

    mount.fuse.livememfs SOURCE DIRECTORY [-o OPTION,...] [-t TYPE] [-fnsv]

SOURCE is the name of a bucket (or `s3://NAME`), the path of a folder used as one, or `none`: the store of the
configuration file.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from livememfs.cli import output
from livememfs.cli.main import main as livememfs
from livememfs.errors import LiveMemError, UsageError

USED_WRONGLY, FAILED = 1, 32
"""Exit statuses of mount(8)."""
VALUES = (
    "config", "endpoint_url", "log_level", "agent", "uid", "gid", "op_timeout", "cache", "cache_size", "fsync",
    "poll_interval", "drain_timeout", "web",
)  # fmt: skip
"""Options with a value; `livememfs mount` has the same ones, with hyphens."""
FLAGS = ("allow_other", "noexec")
IGNORED = {
    "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "_netdev", "nofail", "async",
    "dev", "nodev", "suid", "nosuid", "exec", "loud", "silent", "atime", "noatime", "diratime", "nodiratime",
    "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
}  # fmt: skip
"""Options that mount(8) handles itself, or that make no difference here."""
COMMENTS = ("x-", "X-", "comment=", "user=", "group=")
SECRET = re.compile(r"secret|token|password|(access|api)_?key")


@dataclass
class MountCall:
    """A call by mount(8). `fake`: change nothing; `sloppy`: ignore unknown options."""

    places: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    fake: bool = False
    sloppy: bool = False
    verbose: bool = False

    @classmethod
    def read(cls, words: Sequence[str]) -> MountCall:
        """Parse the arguments. UsageError."""
        call, rest = cls(), list(words)
        while rest:
            word = rest.pop(0)
            if word in ("-o", "-t", "-N"):
                if not rest:
                    raise UsageError(f"{word} has no value")
                value = rest.pop(0)
                call.options += [option for option in value.split(",") if option] if word == "-o" else []
            elif re.fullmatch("-[fnsv]+", word):
                call.fake |= "f" in word
                call.sloppy |= "s" in word
                call.verbose |= "v" in word
            elif word.startswith("-") and word != "-":
                raise UsageError(f"{word} is no option of a mount helper; options of the mount go behind -o")
            else:
                call.places.append(word)
        if len(call.places) != 2:
            raise UsageError("usage: mount.fuse.livememfs SOURCE DIRECTORY [-o OPTION,...]")
        return call

    def command(self) -> list[str]:
        """The command line of livememfs. UsageError for an unknown option."""
        source, directory = self.places
        words = ["mount", *_store(source), "--source", source]
        for option in self.options:
            words += self._option(option)
        return [*words, "--", directory]

    def _option(self, option: str) -> list[str]:
        name, has_value, value = option.partition("=")
        if name in VALUES and has_value:
            return [f"--{name.replace('_', '-')}", value]
        if name in FLAGS and not has_value:
            return [f"--{name.replace('_', '-')}"]
        if option in IGNORED or option.startswith(COMMENTS):
            return []
        if SECRET.search(name):
            raise UsageError(
                f"{name} is a secret, and every user can read options; write it into the file that config= names"
            )
        if self.sloppy:
            return []
        if option == "ro":
            raise UsageError("there is no read-only mount; leave out the option ro")
        if name in VALUES:
            raise UsageError(f"the option {name} needs a value: {name}=...")
        raise UsageError(f"livememfs does not know the option {option}; it knows {', '.join((*VALUES, *FLAGS))}")


def _store(source: str) -> list[str]:
    """The options that name the store."""
    if source in ("none", "livememfs", "-"):
        return []
    if source.startswith("s3://"):
        return ["--bucket", source.removeprefix("s3://").rstrip("/")]
    return ["--store", source] if "/" in source else ["--bucket", source]


def main(arguments: Sequence[str] | None = None) -> None:
    """Mount, and exit with a status of mount(8): 0 done, 1 used wrongly, 32 failed."""
    try:
        call = MountCall.read(sys.argv[1:] if arguments is None else arguments)
        command = call.command()
    except LiveMemError as error:
        output.complain(error)
        sys.exit(USED_WRONGLY)
    if call.fake:
        sys.exit(0)
    # Advice is for people at a terminal; at boot it would only fill the log.
    with contextlib.redirect_stdout(sys.stdout if call.verbose else io.StringIO()):
        try:
            livememfs(command)
        except SystemExit as ended:
            status = ended.code or 0
            sys.exit(0 if status == 0 else USED_WRONGLY if status == UsageError.exit_code else FAILED)


if __name__ == "__main__":
    main()
