"""The one line of shell that a hook runs, and how ours is told from others'.

Owns the line's text. Pure.

The line hands standard input to the mount's exchange file and prints what comes back. It prints nothing else and ends
with status 0 whatever happens, since agents take other statuses for a veto. Opening `<>` creates a missing file, so the
file is looked for first; what nobody takes is read to its end, so that the agent is not told of a broken pipe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = "# livememfs"
_LINE = (
    "f={file}; "
    '[ -e "$f" ] && {{ {{ cat >&3 && cat <&3; }} 3<>"$f"; }} 2>/dev/null || cat >/dev/null 2>&1; '
    f"exit 0 {MARK}"
)
_FILE = re.compile(r"f='((?:[^']|'\\'')*)/\.hooks/([A-Za-z]+)';")


@dataclass(frozen=True)
class Hook:
    """Where a command of ours leads: the absolute path of a space in its mount, and the event."""

    space: str
    event: str

    @property
    def command(self) -> str:
        """The line of shell."""
        return _LINE.format(file=_quoted(f"{self.space}/.hooks/{self.event}"))


def is_marked(command: object) -> bool:
    """Whether a command says that it is of livememfs, be it as we wrote it or changed since."""
    return isinstance(command, str) and MARK in command and "/.hooks/" in command


def read(command: object) -> Hook | None:
    """Where a command leads that is exactly as we write it; None for any other value."""
    if not isinstance(command, str) or (found := _FILE.match(command)) is None:
        return None
    hook = Hook(found[1].replace("'\\''", "'"), found[2])
    return hook if hook.command == command else None


def _quoted(text: str) -> str:
    """One word of shell, always in quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
