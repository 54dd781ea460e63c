"""Checks of the mounts and mirrors of this machine, and of the agents that use them.

Owns the verdict on each. Never waits long for a mount, since a daemon may hang. Refuses the network. Trio thread only.
"""

from __future__ import annotations

import errno
import shlex
from pathlib import Path

import trio

from livememfs.cli.checks import Check, agents, mirrors
from livememfs.cli.mounting import mounts
from livememfs.fuse.mounted import ask


async def checks(project: Path) -> list[Check]:
    """Mounts first, then mirrors, then the agents of a project."""
    own = {record.mountpoint for record in mounts.records()}
    # The user's own mounts first: those of other users are not this user's to repair.
    known = sorted(set(mounts.kernel_mounts()), key=lambda path: (path not in own, path))
    state = {path: await _state(path) for path in known}
    mirrored = await trio.to_thread.run_sync(mirrors.checks, project)
    return [
        _mounts(state),
        *mirrored,
        *await agents.checks(project, [path for path, problem in state.items() if not problem]),
    ]


# --- mounts ------------------------------------------------------------------------------------------------------


async def _state(path: str) -> str:
    """The problem of a mount that the kernel has; empty without one."""
    if (record := mounts.find(Path(path))) is not None and not record.is_alive:
        return f"the daemon of {path} is dead"
    answer = await trio.to_thread.run_sync(ask, Path(path))
    if answer is None:
        return f"{path} does not answer"
    # EACCES is no problem: another user's mount must deny us.
    return f"the daemon of {path} is dead" if answer.errno == errno.ENOTCONN else ""


def _mounts(state: dict[str, str]) -> Check:
    broken = {path: problem for path, problem in state.items() if problem}
    gone = [record for record in mounts.records() if record.mountpoint not in state and not record.is_alive]
    problems = [*broken.values(), *(f"{record.mountpoint} ended badly{_reason(record)}" for record in gone)]
    if not problems:
        return Check("mounts", "ok", ", ".join(sorted(state)) or "none")
    path = next(iter([*broken, *(record.mountpoint for record in gone)]))
    lazy = " --lazy" if broken.get(path, "").endswith("does not answer") else ""
    forget = "removes it; the next mount of the same bucket uploads what is still on this machine"
    return Check("mounts", "warn", "; ".join(problems), f"`livememfs umount{lazy} {shlex.quote(path)}` {forget}")


def _reason(record: mounts.MountRecord) -> str:
    return f": {record.problem}" if record.problem else ""
