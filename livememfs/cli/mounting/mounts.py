"""Which mounts there are: what daemons wrote down about themselves, and what the kernel says.

Owns the records in the user's state directory, one small JSON file per mount, without secrets. A record is a hint,
never proof: whether its process lives is checked with the start time, since process ids are used again. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import platformdirs

from livememfs import private
from livememfs.fuse.mounted import MOUNTINFO, mount_points

_MOUNTINFO = MOUNTINFO


@dataclass(frozen=True, kw_only=True)
class MountRecord:
    """One mount.

    :pid:     the daemon
    :started: its start time in clock ticks since boot, which tells it from a later process with the same id
    :since:   when it was mounted, ISO 8601
    :log:     where the daemon logs to, empty for its terminal
    :problem: why the daemon ended badly, written at its end; then the record outlives the mount
    """

    mountpoint: str
    pid: int
    started: int
    since: str
    store: str
    log: str = ""
    problem: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether the daemon runs."""
        return start_time(self.pid) == self.started

    @property
    def path(self) -> Path:
        """The file it is kept in."""
        name = hashlib.sha256(self.mountpoint.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return folder() / f"{name}.json"

    @property
    def socket(self) -> Path:
        """Where its daemon serves agents of this machine."""
        return self.path.with_suffix(".sock")

    def write(self) -> None:
        """Keep it, whole or not at all."""
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
        """Where its daemon serves HTTP; empty where it does not."""
        try:
            return self.path.with_suffix(".url").read_text()
        except OSError:
            return ""

    def serving(self, url: str) -> None:
        """Tell people where that is."""
        private.write_text(self.path.with_suffix(".url"), url)

    def draining(self, left: int) -> None:
        """Tell whoever waits for the end how much is left. Whoever never served, or lost its place, says nothing."""
        if find(Path(self.mountpoint)) != self:
            return
        with contextlib.suppress(OSError):  # it is only for a progress bar
            private.write_text(self.path.with_suffix(".left"), str(left))

    def ended(self, problem: str) -> None:
        """Take leave: nothing stays of a good end, the reason stays of a bad one.

        Only what was written by this very daemon is touched; another one may have taken the mount point since.
        """
        if find(Path(self.mountpoint)) != self:
            return
        for suffix in (".left", ".url"):
            self.path.with_suffix(suffix).unlink(missing_ok=True)
        if problem:
            replace(self, problem=problem).write()
        else:
            self.forget()


def state() -> Path:
    """Where records, sockets and logs are, each in a folder of their own."""
    return platformdirs.user_state_path("livememfs")


def folder() -> Path:
    """Where the records are."""
    return state() / "mounts"


def log_path(mountpoint: Path) -> Path:
    """The log of a background mount: named after the mount point, so that its history stays in one place."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", str(mountpoint)).strip("-") or "root"
    return platformdirs.user_log_path("livememfs") / f"mount-{slug[-100:]}.log"


def records() -> list[MountRecord]:
    """All records, by mount point. Files that are no records are passed over."""
    found = []
    for path in sorted(folder().glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            value = json.loads(path.read_text())
            found.append(
                MountRecord(**{field.name: value[field.name] for field in fields(MountRecord) if field.name in value})
            )
    return sorted(found, key=lambda record: record.mountpoint)


def find(mountpoint: Path) -> MountRecord | None:
    """The record of one mount point."""
    return next((record for record in records() if record.mountpoint == str(mountpoint)), None)


def kernel_mounts() -> list[str]:
    """The mount points where the kernel has a livememfs."""
    return mount_points(_MOUNTINFO)


def start_time(pid: int) -> int | None:
    """A process's start time in clock ticks since boot; None when it is gone or only waits to be reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name in parentheses may itself hold anything
    return None if state in ("Z", "X") else int(rest[18])
