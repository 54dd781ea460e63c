"""The text of a systemd user unit that mounts, and its name.

Owns the text with systemd's quoting, and the line that marks a unit as written by livememfs. The text has no secrets,
but names a file that has them. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import platformdirs

MARK = "# Written by `livememfs service install`; `livememfs service uninstall` removes it."
PLACE = "X-Livememfs-Mountpoint="
LONGEST_NAME = 200

_PLAIN = re.compile(r"[A-Za-z0-9_./:=@,+-]+")

_TEXT = """\
{mark}
[Unit]
Description=livememfs on {place}
# The network may be down for long: never stop trying.
StartLimitIntervalSec=0
{place_line}

[Service]
Type=notify
ExecStart={command}
EnvironmentFile=-{environment}
# The log says why it ended. A wrong option or setting (status 2) is still wrong at the next try.
Restart=on-failure
RestartPreventExitStatus=2
RestartSec=10
TimeoutStartSec={start}
# SIGTERM unmounts and uploads; only processes that outlive the daemon are killed.
KillMode=mixed
TimeoutStopSec={stop}
UMask=0077
LimitCORE=0
# Nothing here may put the daemon into a mount namespace (ProtectHome=, PrivateTmp=, ...), where nobody else would see
# the mount, or forbid it new privileges (NoNewPrivileges=, SystemCallFilter=, ...), which fusermount3 needs.

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit. `command` is the program and its arguments, `environment` the file with secrets; times in seconds."""

    mountpoint: str
    command: Sequence[str]
    environment: str
    start_timeout: float
    stop_timeout: float

    def text(self) -> str:
        """The text of the unit file."""
        program, *arguments = self.command
        return _TEXT.format(
            mark=MARK,
            place=_specifiers(self.mountpoint),
            place_line=PLACE + self.mountpoint,
            command=" ".join([quoted(program, is_program=True), *map(quoted, arguments)]),
            environment=self.environment,
            start=f"{self.start_timeout:g}",
            stop=f"{self.stop_timeout:g}",
        )


def service_environment() -> Path:
    """The user's file for variables that must not be in a unit."""
    return platformdirs.user_config_path("livememfs") / "env"


def name_of(mountpoint: str) -> str:
    """The name of the unit for a mount point, escaped as systemd escapes paths."""
    escaped = re.sub(r"[^A-Za-z0-9:_./]", _hexadecimal, mountpoint.strip("/")).replace("/", "-")
    escaped = re.sub(r"^\.", r"\\x2e", escaped) or "-"
    if len(escaped) > LONGEST_NAME:
        escaped = sha256(escaped.encode()).hexdigest()[:16]
    return f"livememfs-{escaped}.service"


def mountpoint_in(text: str) -> str | None:
    """The mount point of a unit; None for a text that livememfs did not write."""
    lines = text.splitlines()
    if not lines or lines[0] != MARK:
        return None
    return next((line.removeprefix(PLACE) for line in lines if line.startswith(PLACE)), None)


def quoted(word: str, *, is_program: bool = False) -> str:
    """A word of a unit's command line. systemd replaces no variables in the first word, so its `$` stays single."""
    word = _specifiers(word) if is_program else _specifiers(word).replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def file_named(path: str, home: str) -> str:
    """A file's path for a setting of a unit; below the home directory it begins with systemd's `%h`."""
    if path.startswith(f"{home}/"):
        return f"%h/{_specifiers(path.removeprefix(f'{home}/'))}"
    return _specifiers(path)


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _hexadecimal(match: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape"))
