"""`livememfs status`: the mounts and mirrors of this machine and their states.

Owns the words for the state of each, and what to do about it. Reads `.livememfs/status.json` of every mount that
serves, asks every mirror for the same, and never waits long. Main thread only.
"""

from __future__ import annotations

import errno
import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, argument, command
from livememfs.cli.mounting import mirrors, mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.errors import MountError
from livememfs.fuse.mounted import ask
from livememfs.mirror.client import OURS, SOCKET
from livememfs.records.names import STATE

State = Literal["mounted", "mirrored", "not answering", "daemon died", "saving", "ended badly"]
WELL = ("mounted", "mirrored")

WHAT_TO_DO: dict[State, str] = {
    "not answering": "see its log; if it lasts, `livememfs umount --lazy {path}` detaches it, then mount again",
    "daemon died": "`livememfs umount {path}` removes it; the next mount of the same bucket uploads what is left here",
    "saving": "it is unmounted, but still uploads or is still in use",
    "ended badly": "see its log; `livememfs umount {path}` removes it from this list",
}
OF_A_MIRROR: dict[State, str] = {
    "not answering": "its process does not answer; if that lasts, end the process and run `{again}`",
    "saving": "it is ending, and still uploads",
    "ended badly": "`{again}` goes on with it, and nothing is lost; `rm {file}` takes it off this list",
}


@dataclass(frozen=True)
class MountStatus:
    """One mount or mirror. `details` is its own `status.json`, None when it cannot be read."""

    mountpoint: str
    state: State
    record: mounts.MountRecord | None
    details: dict[str, Any] | None = None

    @property
    def found(self) -> str:
        """The state, with the reason of a bad end."""
        reason = f" ({self.record.problem})" if self.record is not None and self.record.problem else ""
        return f"{self.mountpoint}: {self.state}{reason}"

    @property
    def advice(self) -> str:
        """What to do about its state; empty where it is well."""
        if isinstance(self.record, mirrors.MirrorRecord):
            return OF_A_MIRROR.get(self.state, "").format(again=self.record.again, file=self.record.path)
        return WHAT_TO_DO.get(self.state, "").format(path=shlex.quote(self.mountpoint))

    @property
    def store(self) -> str:
        """What is mounted or mirrored there."""
        space = self.record.space if isinstance(self.record, mirrors.MirrorRecord) else ""
        return f"{space} of {self.record.store}" if self.record and space else self.record.store if self.record else "-"

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        known = asdict(self.record) if self.record else {"mountpoint": self.mountpoint}
        return {**known, "state": self.state, "advice": self.advice, "details": self.details}


@command
def status(
    choice: Choice,  # noqa: ARG001 - every command has these options
    mountpoint: Annotated[
        Path | None,
        argument(
            parser=Path,
            autocompletion=completion.mountpoints,
            metavar="[MOUNTPOINT]",
            help="Only this mount, or the directory of this mirror.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the mounts and mirrors and their states.

    Exits 1 when one of them has a problem.

        livememfs status
        livememfs status ~/memory
        livememfs status --json
    """
    statuses = look()
    if mountpoint is not None:
        path = str(resolve(mountpoint))
        statuses = [entry for entry in statuses if entry.mountpoint == path]
        if not statuses:
            raise MountError(f"no livememfs is mounted on {path}, and none mirrors into it")
    if as_json:
        output.print_json([entry.to_json() for entry in statuses])
    else:
        _show(statuses, detailed=mountpoint is not None)
    if any(entry.state not in WELL for entry in statuses):
        raise typer.Exit(1)


def look() -> list[MountStatus]:
    """Every mount, by mount point, then every mirror in a record."""
    return [*look_at_mounts(), *map(_mirror, mirrors.records())]


def look_at_mounts() -> list[MountStatus]:
    """Every mount in the kernel's list or in a record, by mount point."""
    known = {record.mountpoint: record for record in mounts.records()}
    in_kernel = set(mounts.kernel_mounts())
    return [_one(path, known.get(path), path in in_kernel) for path in sorted(known.keys() | in_kernel)]


def _mirror(record: mirrors.MirrorRecord) -> MountStatus:
    directory = Path(record.mountpoint)
    details = mirrors.ask(directory)
    if details is not None:
        return MountStatus(record.mountpoint, "mirrored", record, details)
    if not record.is_alive:
        return MountStatus(record.mountpoint, "ended badly", record)
    is_listening = (directory / OURS / SOCKET).exists()
    return MountStatus(record.mountpoint, "not answering" if is_listening else "saving", record)


def _one(path: str, record: mounts.MountRecord | None, in_kernel: bool) -> MountStatus:
    alive = record is not None and record.is_alive
    if not in_kernel:
        return MountStatus(path, "saving" if alive else "ended badly", record)
    if record is not None and not alive:
        return MountStatus(path, "daemon died", record)
    answer = ask(Path(path), Path(path, STATE, "status.json"))
    if answer is not None and answer.errno == errno.ENOTCONN:
        return MountStatus(path, "daemon died", record)
    if answer is not None and answer.errno == errno.EACCES:  # that of another user, which must deny us
        return MountStatus(path, "mounted", record)
    try:
        details = json.loads(answer.data if answer is not None else b"")
    except ValueError:
        return MountStatus(path, "not answering", record)
    return MountStatus(path, "mounted", record, details)


def _show(statuses: list[MountStatus], *, detailed: bool) -> None:
    if not statuses:
        output.say("nothing is mounted; `livememfs mount DIRECTORY` mounts")
        return
    rows = []
    for entry in statuses:
        record = entry.record
        known = [str(record.pid), record.since] if record else ["-", "-"]
        rows.append([entry.mountpoint, entry.state, entry.store, *known])
    output.table(["MOUNT POINT", "STATE", "STORE", "PROCESS", "SINCE"], rows, spare=["PROCESS", "SINCE"])
    for entry in statuses:
        if entry.advice:
            problem = f"{entry.record.problem}; " if entry.record and entry.record.problem else ""
            output.say(f"{entry.mountpoint}: {problem}{entry.advice}")
        if entry.state == "mirrored" and (error := mirrors.last_error(entry.details or {})):
            output.say(f"{entry.mountpoint}: {error}")
    if detailed and statuses[0].details:
        output.say("", *_lines(statuses[0].details))


def _lines(value: dict[str, Any], prefix: str = "") -> list[str]:
    """Nested values as `a.b: value` lines."""
    lines: list[str] = []
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines += _lines(inner, f"{prefix}{name}.")
        elif inner not in (None, "", [], {}):
            lines.append(f"{prefix}{name}: {inner if isinstance(inner, str) else json.dumps(inner)}")
    return lines
