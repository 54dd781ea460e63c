"""Which livememfs mounts the kernel has, and whether one of them answers.

Owns the two questions. A child process asks the mount: a process that waits for a hanging daemon can be neither
interrupted nor killed, not even one of its threads, until the daemon answers or the mount is gone. Any thread.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KERNEL_TYPE = "fuse.livememfs"
MOUNTINFO = Path("/proc/self/mountinfo")
ANSWER_SECONDS = 3.0
_PROGRAM = """
import os, sys
try:
    os.statvfs(sys.argv[1])
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            sys.stdout.buffer.write(file.read())
except OSError as error:
    sys.exit(error.errno)
"""
"""`statvfs` always asks the daemon; `stat` may be answered from the kernel's cache, even for a dead daemon."""


def mount_points(table: Path = MOUNTINFO) -> list[str]:
    """The mount points of livememfs that the kernel has; none where it is not Linux."""
    points, lines = [], list[str]()
    with suppress(FileNotFoundError):
        lines = table.read_text(errors="surrogateescape").split("\n")
    for line in lines:
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] == KERNEL_TYPE:
            points.append(_unescape(before.split(" ")[4]))
    return points


def kernel_ids(point: str, table: Path = MOUNTINFO) -> tuple[str, int] | None:
    """The kernel's id of the livememfs mount on a mount point, the one that is seen, and its device as in `st_dev`."""
    found = None
    for line in table.read_text(errors="surrogateescape").split("\n"):
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if after.split(" ", 1)[0] == KERNEL_TYPE and _unescape(fields[4]) == point:
            major, _, minor = fields[2].partition(":")
            found = fields[0], os.makedev(int(major), int(minor))
    return found


def _unescape(text: str) -> str:
    """A path from the kernel's table, where blanks and backslashes are octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


@dataclass(frozen=True)
class MountAnswer:
    """The result: 0 or an errno, and the content of the file."""

    errno: int
    data: bytes = b""


def ask(mountpoint: Path, file: Path | None = None, *, seconds: float = ANSWER_SECONDS) -> MountAnswer | None:
    """Ask the daemon of a mount point, and for the content of a file on it. None without an answer in time."""
    paths = [str(path) for path in (mountpoint, file) if path is not None]
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, *paths],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
    assert child.stdout is not None  # it was asked for
    try:
        data, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()  # it ends when the mount does; nobody waits for that
        child.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
        return None
    return MountAnswer(child.returncode, data)
