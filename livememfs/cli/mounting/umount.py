"""`livememfs umount`: unmount, then wait until the daemon has saved everything and ended.

Owns the search for processes that keep a mount busy. Refuses to kill any process. Main thread only.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, command
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.errors import LiveMemError, MountError

SHOWN_HOLDERS = 5
LOOK_SECONDS = 0.3
GRACE_SECONDS = 1.0
"""How long a daemon may take to learn from the kernel that its mount is gone, before it is told."""
LAZY_PATIENCE = 2.0
"""Seconds a lazy unmount waits: enough for the daemon of an unused mount, and short if the mount is in use."""


@command
def umount(
    choice: Choice,
    mountpoint: completion.MountedAt,
    lazy: Annotated[
        bool, typer.Option("--lazy", help="Detach now; the daemon ends once nobody uses the mount.")
    ] = False,
) -> None:
    """Unmount, and wait until everything is saved.

    livememfs umount ~/memory
    livememfs umount --lazy ~/memory
    """
    from livememfs.fuse.mountpoint import unmount

    patience = LAZY_PATIENCE if lazy else choice.load().drain_timeout + 10
    path = resolve(mountpoint)
    record = mounts.find(path)
    if str(path) not in mounts.kernel_mounts():
        _not_mounted(path, record)
        return
    alive = record is not None and record.is_alive
    try:
        # A mount whose daemon died cannot be used any more; only a lazy unmount removes it while files are open.
        unmount(path, lazy=lazy or (record is not None and not alive))
    except MountError as error:
        raise _busy(path) or error from None
    if record is None:
        output.say(f"{path} is unmounted; its daemon is not known, so nothing was waited for")
    elif not alive:
        record.forget()
        output.say(f"{path} is unmounted; its daemon, process {record.pid}, had died (see {record.log or 'its log'})")
    else:
        _wait(path, record, lazy, patience)


def _not_mounted(path: Path, record: mounts.MountRecord | None) -> None:
    """Say why nothing is mounted: the daemon still saves, or it ended badly."""
    if record is None:
        raise MountError(f"no livememfs is mounted on {path}")
    if record.is_alive:
        raise MountError(f"{path} is unmounted already, and process {record.pid} is still saving")
    record.forget()
    problem = f": {record.problem}" if record.problem else " (see its log)"
    raise MountError(f"no livememfs is mounted on {path}; the last one ended badly{problem}")


def _wait(path: Path, record: mounts.MountRecord, lazy: bool, patience: float) -> None:
    deadline = time.monotonic() + patience
    with output.bar(f"uploading what {path} still has") as show:
        if not lazy and not wait_for_exit(record.pid, GRACE_SECONDS):
            _tell(record)
        gone = _wait_watching(record, deadline, show)
    if not gone:
        if lazy:
            output.say(f"{path} is detached; process {record.pid} ends once nobody uses the mount")
            return
        raise MountError(
            f"{path} is unmounted, but process {record.pid} still runs after {patience:g} seconds",
            advice=f"`livememfs status` says when it has ended; {_whether_it_answers(record)}",
        )
    left = mounts.find(path)
    if left is not None and left.problem:
        left.forget()
        raise LiveMemError(
            f"{path} is unmounted, but not everything was saved: {left.problem}",
            advice=f"next: `{record.again}`; {_whether_it_answers(record)}",
        )
    output.say(f"{path} is unmounted; everything is in {record.store}")


def _tell(record: mounts.MountRecord) -> None:
    """Tell a daemon that its mount is gone. The kernel does not while another namespace, like that of a container that
    was started meanwhile, has a copy of the mount. Nothing happens where the daemon saves already.
    """
    from livememfs.serve import sock

    with contextlib.suppress(MountError):
        sock.connect(record.socket, {"unmounted": True}).close()


def _whether_it_answers(record: mounts.MountRecord) -> str:
    return f"`livememfs doctor` says whether {record.store} answers"


def _wait_watching(record: mounts.MountRecord, deadline: float, show: Callable[[int, int], None]) -> bool:
    """Whether the daemon ended in time; `show(done, of)` is called meanwhile."""
    most = 0
    while not wait_for_exit(record.pid, min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            return False
        left = record.left
        if left is not None:
            most = max(most, left)
            show(most - left, most)
    return True


def wait_for_exit(pid: int, timeout: float) -> bool:
    """Whether a process, which need not be a child, ended within `timeout` seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        readable, _, _ = select.select([descriptor], [], [], timeout)
        return bool(readable)
    finally:
        os.close(descriptor)


# --- who is it ---------------------------------------------------------------------------------------------------


def _busy(path: Path) -> MountError | None:
    """An error that names the processes which keep the mount busy; None when /proc shows none."""
    processes = holders(path)
    if not processes:
        return None
    named = ", ".join(processes[:SHOWN_HOLDERS]) + (" and others" if len(processes) > SHOWN_HOLDERS else "")
    return MountError(f"{path} is in use by {named}; end them, or use --lazy")


def holders(path: Path) -> list[str]:
    """The processes with a working directory or an open file below `path`, as far as /proc shows them."""
    processes = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid() and _holds(process, str(path)):
            name = "?"
            with contextlib.suppress(OSError):
                name = (process / "comm").read_text(errors="replace").strip()
            processes.append(f"{name} (process {process.name})")
    return sorted(processes)


def _holds(process: Path, path: str) -> bool:
    links = [process / "cwd", process / "root", process / "exe"]
    with contextlib.suppress(OSError):
        links += (process / "fd").iterdir()
    for link in links:
        with contextlib.suppress(OSError):
            target = str(link.readlink())
            if target == path or target.startswith(f"{path}/"):
                return True
    return False
