"""The directory that is mounted on: its checks, and unmounting.

Owns what needs no session, so that a short command need not load pyfuse3, and whether that is there at all. Refuses
mount points whose content a mount would hide. Any thread.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from livememfs.errors import MountError
from livememfs.fuse.mounted import ask, mount_points

log = structlog.get_logger("livememfs.fuse")

FUSERMOUNT_SECONDS = 30


def check_library() -> None:
    """Raise MountError where what speaks with the kernel is not installed, or cannot be loaded. Loads it, if it can."""
    try:
        import pyfuse3  # noqa: F401 - only whether it can be had
    except ImportError as error:
        if sys.platform != "linux":
            raise MountError("livememfs mounts on Linux alone; everything else works here") from None
        advice = "pip install 'livememfs[mount]'; everything but mounting works without it"
        raise MountError(f"this installation cannot mount: {error}", advice=advice) from None


def check_mountpoint(path: Path) -> None:
    """Raise MountError unless `path` is an empty directory. The mount of a dead daemon is removed first."""
    if str(path) in mount_points() and ask(path) is None:
        clear = f"livememfs umount --lazy {shlex.quote(str(path))}"
        raise MountError(
            f"what is mounted on {path} does not answer; `{clear}` clears it away, and what was accepted is uploaded by"
            " the next mount of the same bucket"
        )
    try:
        os.statvfs(path)  # always asks the daemon; `stat` may be answered from the kernel's cache
        status = path.stat()
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise MountError(
                f"there is no directory {path}; make it first: mkdir -p {shlex.quote(str(path))}"
            ) from None
        if error.errno != errno.ENOTCONN:
            raise MountError(f"{path} cannot be mounted on: {error.strerror}") from None
        log.info("clearing away a mount whose daemon is gone", mountpoint=str(path))
        unmount(path, lazy=True)
        status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise MountError(f"{path} is not a directory")
    if str(path) in mount_points():
        raise MountError(f"a livememfs is mounted on {path} already")
    try:
        taken = next(path.iterdir(), None)
    except OSError as error:
        raise MountError(f"{path} cannot be mounted on: {error.strerror}") from None
    if taken is not None:
        raise MountError(f"{path} is not empty; a mount would hide what is in it")


def check_places(mountpoint: Path, used: Sequence[tuple[str, Path]]) -> None:
    """Raise MountError where the daemon would wait for itself for ever.

    It would if it used files below its own mount, or if the mount were below the store, which the daemon lists.
    """
    for what, folder in used:
        place = folder.resolve()
        if place.is_relative_to(mountpoint):
            raise MountError(f"the {what} {place} is inside of the mount point; name another place for one of them")
        if what == "store" and mountpoint.is_relative_to(place):
            raise MountError(f"{mountpoint} is inside of the store {place}; mount it somewhere else")


def unmount(path: Path, *, lazy: bool = False) -> None:
    """Unmount `path`; `lazy` detaches it at once, even while it is used. MountError when that fails."""
    command = ["fusermount3", "-u", *(["-z"] if lazy else []), "--", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FUSERMOUNT_SECONDS)
    except FileNotFoundError:
        raise MountError("fusermount3 is missing; install the package fuse3") from None
    except subprocess.TimeoutExpired:
        raise MountError(f"{path} cannot be unmounted: fusermount3 does not come back") from None
    if done.returncode:
        raise MountError(f"{path} cannot be unmounted: {done.stderr.strip().removeprefix('fusermount3: ')}")
