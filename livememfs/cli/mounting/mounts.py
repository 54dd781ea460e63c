"""The mounts of this machine: the records that daemons write, and the kernel's list.

Owns the records in the user's state directory, one small JSON file per mount, without secrets. A record is only a hint:
`is_alive` compares the start time of the process as well, since the kernel reuses process ids. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import platformdirs

from livememfs import private
from livememfs.cli.common import expanded
from livememfs.fuse.mounted import MOUNTINFO, mount_points


@dataclass(frozen=True, kw_only=True)
class MountRecord:
    """One mount.

    :pid:     the daemon
    :started: its start time in clock ticks since boot, to recognise a later process with the same id
    :since:   when it was mounted, ISO 8601
    :log:     its log file, empty if it logs to its terminal
    :problem: why the daemon ended badly, written at its end; such a record stays after the mount
    :place:   the settings that name its store, without secrets; empty for a mount that a token limits
    """

    KIND: ClassVar[str] = "mounts"
    """The folder of the records."""
    HOW: ClassVar[str] = "mounted on"

    mountpoint: str
    pid: int
    started: int
    since: str
    store: str
    log: str = ""
    problem: str = ""
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether the daemon runs."""
        return start_time(self.pid) == self.started

    @property
    def again(self) -> str:
        """The command that mounts the same store there again."""
        bucket, folder = self.place.get("s3_bucket_name"), self.place.get("store")
        source = f"s3://{bucket}" if bucket else str(folder or "")
        return shlex.join(["livememfs", "mount", *([source] if source else []), self.mountpoint])

    @property
    def path(self) -> Path:
        """The file of the record."""
        name = hashlib.sha256(self.mountpoint.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return folder(self.KIND) / f"{name}.json"

    @property
    def socket(self) -> Path:
        """The socket on which its daemon serves agents of this machine."""
        return self.path.with_suffix(".sock")

    def write(self) -> None:
        """Write the file in one step: a reader never sees a part of it."""
        private.folder(self.path.parent, top=state())
        draft = self.path.with_suffix(f".{self.pid}")
        private.write_text(draft, json.dumps(asdict(self)))
        draft.replace(self.path)

    def forget(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)

    @property
    def left(self) -> int | None:
        """How many files an ending daemon still has to upload; None while it is not ending."""
        try:
            return int(self.path.with_suffix(".left").read_text())
        except (OSError, ValueError):
            return None

    @property
    def url(self) -> str:
        """The URL at which its daemon serves HTTP; empty if it does not."""
        try:
            return self.path.with_suffix(".url").read_text()
        except OSError:
            return ""

    def serving(self, url: str) -> None:
        """Write down the URL of the daemon's HTTP server."""
        private.write_text(self.path.with_suffix(".url"), url)

    def draining(self, left: int) -> None:
        """Write down how many files are left to upload. Does nothing if the record is not that of this daemon."""
        if find(Path(self.mountpoint), type(self)) != self:
            return
        with contextlib.suppress(OSError):  # it is only for a progress bar
            private.write_text(self.path.with_suffix(".left"), str(left))

    def ended(self, problem: str) -> None:
        """Remove the record at the daemon's end; after a bad end keep it, with the reason.

        Does nothing if the record is not that of this daemon: another one may serve the mount point by now.
        """
        if find(Path(self.mountpoint), type(self)) != self:
            return
        for suffix in (".left", ".url"):
            self.path.with_suffix(suffix).unlink(missing_ok=True)
        if problem:
            replace(self, problem=problem).write()
        else:
            self.forget()


R = TypeVar("R", bound=MountRecord)


def state() -> Path:
    """The state directory, above the folders for records, sockets and logs."""
    return platformdirs.user_state_path("livememfs")


def folder(kind: str = MountRecord.KIND) -> Path:
    """The folder of the records."""
    return state() / kind


def log_path(mountpoint: Path) -> Path:
    """The log of a background mount: named after the mount point, so that every mount there adds to one file."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", str(mountpoint)).strip("-") or "root"
    return platformdirs.user_log_path("livememfs") / f"mount-{slug[-100:]}.log"


def records() -> list[MountRecord]:
    """All records, by mount point. Files that are no records are skipped."""
    return records_of(MountRecord)


def records_of(kind: type[R]) -> list[R]:
    """The same of another kind of record."""
    found = []
    for path in sorted(folder(kind.KIND).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            value = json.loads(path.read_text())
            names = [known.name for known in fields(kind) if known.name in value]
            found.append(kind(**{name: value[name] for name in names}))
    return sorted(found, key=lambda record: record.mountpoint)


def find(mountpoint: Path, kind: type[MountRecord] = MountRecord) -> MountRecord | None:
    """The record of one mount point."""
    return next((record for record in records_of(kind) if record.mountpoint == str(mountpoint)), None)


def kernel_mounts() -> list[str]:
    """The mount points where the kernel has a livememfs."""
    return mount_points(MOUNTINFO)


def resolve(mountpoint: Path) -> Path:
    """The absolute path that the kernel will show. A mount is not asked for it: its daemon may be dead, or hang."""
    path = Path.cwd() / expanded(mountpoint)
    if path.name not in ("", ".."):
        path = path.parent.resolve() / path.name
    return path if str(path) in kernel_mounts() else path.resolve()


def start_time(pid: int) -> int | None:
    """A process's start time in clock ticks since boot; None when it is gone, or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name in parentheses may contain any characters
    return None if state in ("Z", "X") else int(rest[18])
