"""Checks of the mounts and mirrors of this machine, and of the agents that use them.

Owns the verdict on each. Never waits long for a mount, since a daemon may hang. Refuses the network. Trio thread only.
"""

from __future__ import annotations

from pathlib import Path

import trio

from livememfs.cli.checks import Check, agents, mirrors
from livememfs.cli.mounting.status import MountStatus, look_at_mounts

BROKEN = ("not answering", "daemon died", "ended badly")


async def checks(project: Path) -> list[Check]:
    """Mounts first, then mirrors, then the agents of a project."""
    known = await trio.to_thread.run_sync(look_at_mounts)
    mirrored = await trio.to_thread.run_sync(mirrors.checks, project)
    serving = [one.mountpoint for one in known if one.state == "mounted"]
    return [_mounts(known), *mirrored, *await agents.checks(project, serving)]


def _mounts(known: list[MountStatus]) -> Check:
    # What the kernel has comes first, and the user's own: mounts of other users are not this user's to repair.
    order = sorted(known, key=lambda one: (one.state == "ended badly", one.record is None))
    broken = [one for one in order if one.state in BROKEN]
    if not broken:
        return Check("mounts", "ok", ", ".join(one.mountpoint for one in known if one.state == "mounted") or "none")
    return Check("mounts", "warn", "; ".join(one.found for one in broken), broken[0].advice)
