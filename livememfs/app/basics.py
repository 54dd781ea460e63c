"""The values that every part of an app is built from, and the folder of the local state. Any thread."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from livememfs import private
from livememfs.cache.folder import cache_folder
from livememfs.clock import Clock
from livememfs.concurrency import Background
from livememfs.config import Settings
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.node import Ids


@dataclass(frozen=True, kw_only=True)
class Basics:
    """The values that every builder gets.

    `mountpoint` is None without a mount, and `folder` where no local state outlives the process. `serving`: without a
    mount, it answers others all the same. `alone`: the mount point is this one space.
    """

    settings: Settings
    clock: Clock
    errors: ErrorLog
    background: Background
    mountpoint: Path | None
    folder: Path | None
    serving: bool = False
    alone: str = ""

    @property
    def host(self) -> str:
        """This host's name as a part of a key."""
        return re.sub(r"[^A-Za-z0-9.-]", "-", self.settings.host_name).strip(".-") or "host"

    @property
    def mounted(self) -> str:
        """Where the mount is; empty without one."""
        return str(self.mountpoint or "")


def ids_of(settings: Settings) -> Ids:
    """Whose the files of a mount are. By number where root mounts or others are let in; else all are of one user.

    Who mounts for himself sees his own files as his on every machine, whatever his number is there.
    """
    uid = os.getuid() if settings.uid is None else settings.uid
    gid = os.getgid() if settings.gid is None else settings.gid
    mapped = settings.uid is not None or settings.gid is not None
    return Ids(uid, gid, by_number=not mapped and (settings.allow_other or os.getuid() == 0))


def local_state(settings: Settings, label: str) -> Path:
    """The folder for the local state of the bucket that `label` names. CacheInUse, CacheUnusable, NotPrivate."""
    if not settings.cache:
        with suppress(OSError):  # the error comes from `cache_folder`, with the reason
            private.folder(settings.cache_path, top=settings.cache_path.parent)
    return cache_folder(settings.cache_path, label)
