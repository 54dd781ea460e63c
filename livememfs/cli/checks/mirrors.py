"""Checks of the mirrors of this machine: those that run or ended badly, and the one that the command is called in.

Owns the verdict on each. Refuses to take a lock, and to change anything. Blocking; any thread.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from livememfs.cli import output
from livememfs.cli.checks import Check
from livememfs.cli.mounting import mirrors
from livememfs.mirror.place import OURS, REFUSED, WHY

WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")
NEARLY = 0.8
"""This part of the notices of the system may be taken by one directory without a word."""


def checks(here: Path) -> list[Check]:
    """One check for each mirror; none where there is none."""
    known: dict[Path, str] = {Path(record.mountpoint): record.again for record in mirrors.records()}
    if (inside := mirrors.around(here)) is not None:
        known.setdefault(inside, f"livememfs sync {shlex.quote(str(inside))}")
    return [_check(directory, again) for directory, again in sorted(known.items())]


def _check(directory: Path, again: str) -> Check:
    problems = list(_problems(directory, again))
    if not problems:
        return Check("mirror", "ok", f"{directory} is kept equal")
    return Check("mirror", "warn", f"{directory}: {'; '.join(found for found, _ in problems)}", problems[0][1])


def _problems(directory: Path, again: str) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do."""
    details, kept, where = mirrors.ask(directory), mirrors.refused(directory), directory / OURS
    if details is None:
        yield "no process that answers keeps it equal", f"start it, or end one that hangs and start it: {again}"
        details = {}
    if error := details.get("last_error"):
        yield str(error), "look at the checks of the store; what was changed waits on this machine"
    figures = details.get("mirror") or {}
    folders, limit = int(figures.get("folders", 0)), int(WATCHES.read_text()) if WATCHES.exists() else 0
    raise_it = f"sysctl fs.inotify.max_user_watches={max(4 * folders, 2 * limit)}, as root, and start it again"
    if figures.get("polled"):
        yield "the system gives no notices of changes, so it is polled each second", raise_it
    elif limit and folders > NEARLY * limit:
        yield f"its {folders:,} folders take most of the {limit:,} notices that a user has", raise_it
    if stay := int(figures.get("waiting", 0)):
        yield f"{output.plural(stay, 'file')} not taken as they are", f"{where}/{WHY} says why; change or remove them"
    if kept:
        advice = f"{where}/{WHY} says why; move each to where it is taken, or delete it"
        yield f"{output.plural(kept, 'refused file')} kept in {where}/{REFUSED}", advice
