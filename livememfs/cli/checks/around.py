"""Checks of the mounts of this machine, and of the agents that use them.

Owns the verdict on each. Never waits long for a mount, since a daemon may hang. Refuses the network. Trio thread only.
"""

from __future__ import annotations

import errno
from pathlib import Path

import trio

from livememfs.cli.checks import Check, agents
from livememfs.cli.mounting import mounts
from livememfs.fuse.mounted import ask


async def checks(project: Path) -> list[Check]:
    """Mounts first, then the agents of a project."""
    own = {record.mountpoint for record in mounts.records()}
    # The user's own mounts first: those of other users are not this user's to repair.
    known = sorted(set(mounts.kernel_mounts()), key=lambda path: (path not in own, path))
    state = {path: await _state(path) for path in known}
    return [_mounts(state), *await agents.checks(project, [path for path, one in state.items() if not one])]


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
    broken = {path: said for path, said in state.items() if said}
    gone = [one for one in mounts.records() if one.mountpoint not in state and not one.is_alive]
    found = [*broken.values(), *(f"{one.mountpoint} ended badly{_reason(one)}" for one in gone)]
    if not found:
        return Check("mounts", "ok", ", ".join(sorted(state)) or "none")
    path = next(iter([*broken, *(one.mountpoint for one in gone)]))
    lazy = " --lazy" if broken.get(path, "").endswith("does not answer") else ""
    forget = "removes it; the next mount of the same bucket uploads what is still on this machine"
    return Check("mounts", "warn", "; ".join(found), f"`livememfs umount{lazy} {path}` {forget}")


def _reason(record: mounts.MountRecord) -> str:
    return f": {record.problem}" if record.problem else ""
