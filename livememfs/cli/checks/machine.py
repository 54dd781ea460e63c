"""Whether this machine can mount: Python, the kernel, FUSE, the user's own folders, the disk.

Owns the checks that need no other process. Refuses the network. Any thread.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import stat
import sys
from pathlib import Path

from livememfs import config, private
from livememfs.cache.room import DISK_RESERVE
from livememfs.cli import output
from livememfs.cli.checks import Check
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.unit import service_environment
from livememfs.config import Settings
from livememfs.environment import environment, file_of
from livememfs.errors import MountError, NotPrivate
from livememfs.fuse.mountpoint import check_library

NEARLY_FULL = 8 * DISK_RESERVE
OLDEST_PYTHON = (3, 11)
OLDEST_KERNEL = (5, 3)
"""The first with `pidfd_open`, which `umount` needs to wait for a daemon."""
DEVICE, FUSE_CONF = Path("/dev/fuse"), Path("/etc/fuse.conf")
CONTAINER = "in a container add --device /dev/fuse --cap-add SYS_ADMIN"


def checks(settings: Settings | None, config_file: Path | None) -> list[Check]:
    """All checks; without settings those that do not depend on them."""
    return [
        _python(),
        *_mounting(settings),
        _own_folders(settings),
        _secrets_file(config_file),
        *([disk(settings)] if settings else []),
    ]


# --- what a mount needs ------------------------------------------------------------------------------------------


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Check("python", "fail", version, f"install Python {wanted} or newer")
    return Check("python", "ok", version)


def _mounting(settings: Settings | None) -> list[Check]:
    """What a mount needs; the one line that there can be none, where pyfuse3 was left out."""
    try:
        check_library()
    except MountError as error:
        return [Check("mounting", "warn", str(error), error.advice())]
    return [_kernel(), _fusermount(), _device(), _allow_other(settings)]


def _kernel(filesystems: Path = Path("/proc/filesystems")) -> Check:
    release = platform.release()
    number = re.match(r"(\d+)\.(\d+)", release)
    if platform.system() != "Linux" or number is None:
        return Check("kernel", "fail", f"{platform.system()} {release}", "use a machine with Linux")
    if (int(number[1]), int(number[2])) < OLDEST_KERNEL:
        return Check("kernel", "fail", release, f"use Linux {'.'.join(map(str, OLDEST_KERNEL))} or newer")
    known = filesystems.read_text().split() if filesystems.exists() else []
    if "fuse" not in known and not DEVICE.exists():  # with the device, opening it may load the module
        return Check("kernel", "fail", f"{release} without FUSE", "load the kernel module: modprobe fuse")
    return Check("kernel", "ok", release)


def _fusermount() -> Check:
    path = shutil.which("fusermount3")
    if path is None:
        return Check("fusermount3", "fail", "not found", "install the package fuse3 (apt-get install fuse3)")
    return Check("fusermount3", "ok", path)


def _device() -> Check:
    if not DEVICE.exists():
        return Check("/dev/fuse", "fail", "not there", f"load the kernel module (modprobe fuse); {CONTAINER}")
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        advice = f"let this user read and write /dev/fuse (chmod 666 /dev/fuse, as root); {CONTAINER}"
        return Check("/dev/fuse", "fail", error.strerror or str(error), advice)
    return Check("/dev/fuse", "ok", "usable")


def _allow_other(settings: Settings | None, path: Path | None = None) -> Check:
    path = path or FUSE_CONF
    try:
        lines = path.read_text().splitlines()
    except OSError:
        lines = []
    if "user_allow_other" in (line.strip() for line in lines):
        return Check("user_allow_other", "ok", f"set in {path}")
    if os.geteuid() == 0:
        return Check("user_allow_other", "ok", "not set, and root does not need it")
    if settings is not None and settings.allow_other:
        advice = f"add user_allow_other to {path}"
        return Check("user_allow_other", "fail", "not set, and --allow-other needs it", advice)
    return Check("user_allow_other", "ok", "not set; only --allow-other would need it")


# --- the user's own ----------------------------------------------------------------------------------------------


def _own_folders(settings: Settings | None) -> Check:
    """Whether a mount could write its local state, record and log, and no other user owns these folders."""
    folders = [mounts.folder(), mounts.log_path(Path("/x")).parent, *([settings.cache_path] if settings else [])]
    for folder in folders:
        is_named = settings is not None and settings.cache and folder == settings.cache_path
        try:
            private.check(folder / "bucket" if is_named else folder, top=folder if is_named else folder.parent)
        except NotPrivate as error:
            return Check("permissions", "fail", str(error), error.advice())
        there = _nearest(folder)
        if not there.is_dir():
            advice = f"move {there} away: livememfs needs a folder at {folder}"
            return Check("permissions", "fail", f"{there} is no directory", advice)
        if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
            advice = f"let this user write to {there}"
            if settings is not None and folder == settings.cache_path:
                advice += ", or set LIVEMEMFS_CACHE to another folder"
            return Check("permissions", "fail", f"{there} cannot be written to", advice)
    return Check("permissions", "ok", "the folders for state and logs can be written to")


def _secrets_file(config_file: Path | None) -> Check:
    """Whether others can read a configuration file, or a service's environment file, that has secrets."""
    path, _ = file_of(environment(), config_file)
    secret = config.secret_settings()
    names = {variable: name for name, variable in config.setting_names().items()}
    for file in (path, service_environment()):
        try:
            is_shared = stat.S_IMODE(file.stat().st_mode) & (stat.S_IRGRP | stat.S_IROTH)
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        keys = (line.partition("=")[0].strip() for line in lines)
        named = [key for key in keys if names.get(key, key) in secret]
        if named and is_shared:
            return Check(
                "secrets", "warn", f"others can read {file}, with {named[0]}", f"chmod 600 {shlex.quote(str(file))}"
            )
    return Check("secrets", "ok", "none that others can read")


# --- the disk ----------------------------------------------------------------------------------------------------


def disk(settings: Settings) -> Check:
    """Whether the local state has enough disk space: below the reserve a mount refuses every write."""
    there = _nearest(settings.cache_path)
    usage = os.statvfs(there)
    free = usage.f_bavail * usage.f_frsize
    room = f"{output.size(free)} free for {settings.cache_path}"
    advice = f"free disk space at {there}, or set LIVEMEMFS_CACHE to a folder on another disk"
    if free < DISK_RESERVE:
        return Check("disk", "fail", f"{room}; a mount refuses to write below {output.size(DISK_RESERVE)}", advice)
    if free < NEARLY_FULL:
        return Check("disk", "warn", f"{room}, which is nearly full", advice)
    return Check("disk", "ok", room)


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if os.path.lexists(path))
