"""The line of shell that a hook runs, and how our line is recognised.

Owns the line's text. Pure.

The line writes standard input to an exchange file of the mount and prints the answer. It always ends with status 0,
because agents take another status for a veto, and always within `SECONDS`. A process that waits for a daemon that hangs
cannot be killed. So a separate process, for which nobody waits, touches the mount: it has neither the output nor the
errors of the agent, only a pipe, and `timeout` reads that pipe. Another process then reads the rest of the agent's
input, so that the agent gets no broken pipe.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

MARK = "# livememfs"
SECONDS = 2
"""Most seconds of a hook."""
_LINE = (
    "f={file}; {message}exec 3<&0; "
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
"""The folder of a mount for hooks that find their space by their working directory."""


@dataclass(frozen=True)
class HookCommand:
    """The target of our command.

    :space:  the absolute path of a space in its mount; the path of `.livememfs` there for the space of any project
    :event:  the name of the file: the agent, a dot and the event, such as `claude.Stop`
    :off:    a message for the agent's user if the mount does not answer; empty for frequent events
    :former: whether it is the line of version 0.1, which had no agent names and no time limit
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
        message = f"m={_quoted(json.dumps({'systemMessage': self.off}))}; " if self.off else ""
        return _LINE.format(file=_quoted(self.file), message=message, off=' printf %s "$m";' if self.off else "")


def memory_off(space: str, *, quoted: bool = True) -> str:
    """The message for the agent's user if a session begins and the mount does not answer. `quoted`: False gives that of
    earlier versions, which did not quote a blank.
    """
    mount = space.rpartition("/")[0]
    start = f"livememfs mount {shlex.quote(mount) if quoted else mount}"
    return f"livememfs: memory is off: nothing answers on {mount}; `{start}`, or `livememfs doctor`"


def is_marked(command: object) -> bool:
    """Whether a command has the mark of livememfs, unchanged or not."""
    return isinstance(command, str) and MARK in command and "hooks/" in command


def read(command: object) -> HookCommand | None:
    """The target of a command that is exactly as this or an earlier version writes it; None for any other value."""
    if not isinstance(command, str) or (file := _FILE.match(command)) is None:
        return None
    folder, kind, event = file[1].replace("'\\''", "'"), file[2], file[3]
    space = f"{folder}/{MACHINE}" if kind != ".hooks" else folder
    likely = (
        HookCommand(space, event),
        HookCommand(space, event, memory_off(space)),
        HookCommand(space, event, memory_off(space, quoted=False)),
        HookCommand(space, event, former=True),
    )
    return next((hook for hook in likely if hook.command == command), None)


def _quoted(text: str) -> str:
    """One word of shell, always in quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
