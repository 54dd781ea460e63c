"""The mount itself: is the mount point fit, serve it, let it go.

Owns the session of pyfuse3, which is one for the whole process. Refuses mount points that would hide something. `serve`
and `stop` belong to the trio thread; the others may be called from any thread.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyfuse3
import structlog

from livememfs.errors import MountError
from livememfs.fuse.adapter import Operations
from livememfs.fuse.mounted import ask, mount_points

if TYPE_CHECKING:
    from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.fuse")

FUSERMOUNT_SECONDS = 30

_mounted = False
"""Whether pyfuse3 has a session. Asked to end one that is not there, it brings the process down."""


def check_mountpoint(path: Path) -> None:
    """Raise MountError unless `path` is an empty directory. What a dead daemon left mounted there is cleared away."""
    if str(path) in mount_points() and ask(path) is None:
        raise MountError(
            f"what is mounted on {path} does not answer; `livememfs umount --lazy {path}` clears it away, and what was"
            " accepted is uploaded by the next mount of the same bucket"
        )
    try:
        os.statvfs(path)  # always asks the daemon; `stat` may be answered from what the kernel remembers of a dead one
        found = path.stat()
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise MountError(
                f"there is no directory {path}; make it first: mkdir -p {shlex.quote(str(path))}"
            ) from None
        if error.errno != errno.ENOTCONN:
            raise MountError(f"{path} cannot be mounted on: {error.strerror}") from None
        log.info("clearing away a mount whose daemon is gone", mountpoint=str(path))
        unmount(path, lazy=True)
        found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise MountError(f"{path} is not a directory")
    if path.is_mount():
        raise MountError(f"something is mounted on {path} already")
    try:
        taken = next(path.iterdir(), None)
    except OSError as error:
        raise MountError(f"{path} cannot be mounted on: {error.strerror}") from None
    if taken is not None:
        raise MountError(f"{path} is not empty; a mount would hide what is in it")


def check_places(mountpoint: Path, used: Sequence[tuple[str, Path]]) -> None:
    """Raise MountError where the daemon would wait for itself, and for ever.

    That is where what it reads or writes is below its own mount, or the mount is below the folder that it lists.
    """
    for what, folder in used:
        place = folder.resolve()
        if place.is_relative_to(mountpoint):
            raise MountError(f"the {what} {place} is inside of the mount point; name another place for one of them")
        if what == "store" and mountpoint.is_relative_to(place):
            raise MountError(f"{mountpoint} is inside of the store {place}; mount it somewhere else")


async def serve(
    root: Root,
    mountpoint: Path,
    *,
    allow_other: bool,
    op_timeout: float,
    on_ready: Callable[[], None],
    limited: bool = False,
    source: str = "",
    noexec: bool = False,
) -> None:
    """Mount `root` and answer the kernel until it lets go or `stop` is called. Raises MountError.

    `limited`: what a token allows is asked of the tree with each request. `source` is what the table of mounts has for
    a device, by which `/etc/fstab` is told what is mounted already.
    """
    global _mounted
    options = {*pyfuse3.default_options, f"fsname={_in_options(source or 'livememfs')}", "subtype=livememfs"}
    if noexec:
        options.add("noexec")
    if allow_other:
        options.add("allow_other")
    operations = Operations(root, root.context.errors, op_timeout, limited=limited)
    notifier = operations.notify_with(mountpoint)
    try:
        pyfuse3.init(operations, str(mountpoint), options)
    except RuntimeError as error:
        raise MountError(_why_not(mountpoint, error)) from None
    root.context.replica.subscribe(notifier.changed)
    _mounted = True
    try:
        notifier.start()
        on_ready()
        await pyfuse3.main()
    finally:
        _mounted = False
        notifier.stop()
        pyfuse3.close(unmount=True)
        notifier.join()


def stop() -> bool:
    """Have `serve` return. Requests that are being answered are answered first. False: nothing is mounted."""
    if _mounted:
        pyfuse3.terminate()
    return _mounted


def unmount(path: Path, *, lazy: bool = False) -> None:
    """Ask the kernel to let go of `path`; `lazy` detaches it now, whoever uses it. MountError when it cannot be."""
    command = ["fusermount3", "-u", *(["-z"] if lazy else []), "--", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FUSERMOUNT_SECONDS)
    except FileNotFoundError:
        raise MountError("fusermount3 is missing; install the package fuse3") from None
    except subprocess.TimeoutExpired:
        raise MountError(f"{path} cannot be unmounted: fusermount3 does not come back") from None
    if done.returncode:
        raise MountError(f"{path} cannot be unmounted: {done.stderr.strip().removeprefix('fusermount3: ')}")


def _in_options(text: str) -> str:
    """A value as it can stand among options, which commas part."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def _why_not(mountpoint: Path, error: RuntimeError) -> str:
    """What keeps libfuse from mounting, as far as it can be found out: its own words go to stderr."""
    device = Path("/dev/fuse")
    if not device.exists():
        return "there is no /dev/fuse; load the kernel module (modprobe fuse), or give the container the device"
    if not os.access(device, os.R_OK | os.W_OK):
        return "/dev/fuse may not be opened; it needs mode 0666, or run as root"
    return f"{mountpoint} cannot be mounted: {error}"
