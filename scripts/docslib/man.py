"""Write the manual pages: livememfs(1), and one for each command, from the same help as docs/cli.md.

`docs_tables` of the tests reads the command line; this only writes what it reads in the form of man(7).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import docs_tables

from livememfs import __version__


def escaped(text: str) -> str:
    """A text that means itself: no line of it is taken for a request."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", plain, flags=re.MULTILINE)


def page(name: str, command: Any) -> str:
    """The manual page of one command."""
    (_, first), *rest = docs_tables.paragraphs(command.help)
    title = f"livememfs-{name.replace(' ', '-')}" if name else "livememfs"
    usage = " ".join(["livememfs", name, "[OPTIONS]", *(docs_tables.names(param) for param in arguments(command))])
    parts = [
        f'.TH "{title.upper()}" 1 "" "livememfs {__version__}" "livememfs"',
        f".SH NAME\n{escaped(title)} \\- {escaped(first.rstrip('.'))}",
        f".SH SYNOPSIS\n.B {escaped(re.sub(' +', ' ', usage))}",
    ]
    if said := [escaped(text) for typed, text in rest if not typed]:
        parts.append(".SH DESCRIPTION\n" + "\n.PP\n".join(said))
    parts += [f".SH EXAMPLES\n.nf\n{escaped(text)}\n.fi" for typed, text in rest if typed]
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    if shown:
        lines = (f".TP\n.B {escaped(docs_tables.names(each))}\n{escaped(each.help or '')}" for each in shown)
        parts.append(".SH OPTIONS\n" + "\n".join(lines))
    return "\n".join(parts) + "\n"


def arguments(command: Any) -> list[Any]:
    """The arguments, which have no dashes."""
    return [param for param in command.params if param.param_type_name == "argument"]


def whole(commands: dict[str, Any]) -> str:
    """livememfs(1): every command, and where more is written."""
    firsts = {name: escaped((each.help or "").strip().splitlines()[0]) for name, each in commands.items()}
    lines = (f".TP\n.BR livememfs\\-{escaped(name.replace(' ', '-'))} (1)\n{first}" for name, first in firsts.items())
    return "\n".join((
        f'.TH "LIVEMEMFS" 1 "" "livememfs {__version__}" "livememfs"',
        ".SH NAME\nlivememfs \\- agent memory as a file system",
        ".SH SYNOPSIS\n.B livememfs COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH COMMANDS", *lines,
        ".SH FILES\n.TP\n.I ~/.config/livememfs/config.toml\nThe settings, one `key = value` a line.",
    )) + "\n"  # fmt: skip


def main() -> None:
    """Write all pages into the folder that is named."""
    to = Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    commands = dict(docs_tables.every_command())
    (to / "livememfs.1").write_text(whole(commands))
    for name, command in commands.items():
        (to / f"livememfs-{name.replace(' ', '-')}.1").write_text(page(name, command))


if __name__ == "__main__":
    main()
