"""The one line of shell that a hook runs, and how ours is told from others'.

Owns the line's text. Pure.

The line hands standard input to an exchange file of the mount and prints what comes back. It ends with status 0
whatever happens, since agents take other statuses for a veto, and within `SECONDS` whatever the daemon does. A process
that waits for a daemon which hangs cannot be ended, so whatever touches the mount is a process of its own that nobody
waits for: it has neither the agent's output nor its errors, only a pipe, and `timeout` reads that. What it left of the
agent's input is then read by another, so that the agent is not told of a broken pipe.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

MARK = "# livememfs"
SECONDS = 2
"""How long a hook takes at most."""
_LINE = (
    "f={file}; {said}exec 3<&0; "
    '{{ {{ [ -e "$f" ] && {{ cat >&4 && cat <&4; }} 4<>"$f" || {{ cat >/dev/null;{off} }}; }} <&3 3<&- 2>/dev/null & '
    f"}}}} | timeout {SECONDS} cat 3<&- 2>/dev/null || {{{{ cat <&3 >/dev/null 2>&1 &{{off}} }}}}; exit 0 {MARK}"
)
_FORMER = (
    "f={file}; "
    '[ -e "$f" ] && {{ {{ cat >&3 && cat <&3; }} 3<>"$f"; }} 2>/dev/null || cat >/dev/null 2>&1; '
    f"exit 0 {MARK}"
)
_FILE = re.compile(r"f='((?:[^']|'\\'')*)/(\.livememfs/hooks|\.hooks)/((?:[a-z]+\.)?[A-Za-z_]+)'; ")
MACHINE = ".livememfs"
"""Where in a mount hooks lead that find their space by the directory they are run in."""


@dataclass(frozen=True)
class HookCommand:
    """Where a command of ours leads.

    :space:  the absolute path of a space in its mount; of `.livememfs` there for whichever space a project has
    :event:  the file: the agent's name, a dot and the event's, such as `claude.Stop`
    :off:    what the agent's user is to be told when nobody answers; empty for events that come often
    :former: whether it is the line of version 0.1, which knew no agents' names and no limit
    """

    space: str
    event: str
    off: str = ""
    former: bool = False

    @property
    def file(self) -> str:
        """The exchange file."""
        return f"{self.space}/{'hooks' if self.space.endswith(f'/{MACHINE}') else '.hooks'}/{self.event}"

    @property
    def command(self) -> str:
        """The line of shell."""
        if self.former:
            return _FORMER.format(file=_quoted(self.file))
        said = f"m={_quoted(json.dumps({'systemMessage': self.off}))}; " if self.off else ""
        return _LINE.format(file=_quoted(self.file), said=said, off=' printf %s "$m";' if self.off else "")


def memory_off(space: str) -> str:
    """What an agent's user is told when a session begins and nobody answers."""
    mount = space.rpartition("/")[0]
    return f"livememfs: memory is off: nothing answers on {mount}; `livememfs mount {mount}`, or `livememfs doctor`"


def is_marked(command: object) -> bool:
    """Whether a command says that it is of livememfs, be it as we wrote it or changed since."""
    return isinstance(command, str) and MARK in command and "hooks/" in command


def read(command: object) -> HookCommand | None:
    """Where a command leads that is exactly as we write it, or wrote it; None for any other value."""
    if not isinstance(command, str) or (found := _FILE.match(command)) is None:
        return None
    folder, kind, event = found[1].replace("'\\''", "'"), found[2], found[3]
    space = f"{folder}/{MACHINE}" if kind != ".hooks" else folder
    likely = (
        HookCommand(space, event),
        HookCommand(space, event, memory_off(space)),
        HookCommand(space, event, former=True),
    )
    return next((hook for hook in likely if hook.command == command), None)


def _quoted(text: str) -> str:
    """One word of shell, always in quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
