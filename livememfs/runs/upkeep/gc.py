"""Garbage in the bucket: finding objects that are of no use any more, and removing them.

Owns what counts as garbage: objects in `live/` that no consolidation takes, torn backups, leases of spaces that are
gone, beacons of hosts that are silent, vectors of models that are not used any more, traces of notes that were removed
long ago, and records of what ended sessions were told. Refuses what is younger than a limit, and to remove another
version than it found; objects in `live/` are backed up before they are removed. Trio thread only.

The cost is one LIST for each part of a space, and a read of each old note. The ledger is read only for a space with an
old note that a run would take, from the newest run back, as far as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import NotFound, NotText, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.names import is_litter
from livememfs.records.note import Note
from livememfs.spaces import backups
from livememfs.spaces.backup_list import objects_of_backups
from livememfs.spaces.backup_make import each
from livememfs.spaces.describe import list_spaces
from livememfs.spaces.entries import entries_in, log_it, read_all
from livememfs.spaces.export import Progress
from livememfs.spaces.lease import Leases
from livememfs.spaces.objects import content, delete_version
from livememfs.store.base import ObjectInfo
from livememfs.text.times import iso

log = structlog.get_logger("livememfs.runs")

Kind = Literal[
    "unreadable", "no-note", "litter", "passed-over", "old",
    "torn-backup", "lease", "beacon", "vectors", "trace", "told",
]  # fmt: skip

OLDER_THAN = timedelta(days=30)
LEAST_AGE = timedelta(days=1)
"""A younger backup may still be under way, and a younger lease may be that of a space that is being restored."""
SILENT_FOR = timedelta(days=30)
TRACED_FOR = timedelta(days=180)
"""Longer than a machine is off: when it comes back, it may upload a note again that was removed meanwhile."""
READ_AT_ONCE = 8
_UNUSED = "another model has been in use since, and this one's can be computed again"
_SILENT = "its host has announced nothing since"
_TOLD = "the session was told nothing since"
_TRACED = "the note was removed so long ago that nobody can be about to store it again"
_IN_LIVE: frozenset[Kind] = frozenset({"unreadable", "no-note", "litter", "passed-over", "old"})


@dataclass(frozen=True)
class Finding:
    """One piece of garbage.

    :key:      of its object; the prefix of a torn backup and of vectors
    :modified: when it was last written
    :objects:  its objects, in the versions that were found
    """

    kind: Kind
    space: str
    key: str
    modified: datetime
    why: str
    objects: tuple[ObjectInfo, ...] = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes of all its objects."""
        return sum(info.size for info in self.objects)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        named = {"kind": self.kind, "space": self.space, "key": self.key, "why": self.why}
        return {**named, "objects": len(self.objects), "bytes": self.size, "modified": iso(self.modified)}


@dataclass(frozen=True)
class Removed:
    """What became of the findings.

    :objects: how many are gone
    :kept:    keys of objects that stay, because somebody wrote them meanwhile
    :backups: by space, the stamp of the backup that was made first
    """

    objects: int
    kept: tuple[str, ...]
    backups: dict[str, str]


# --- finding ---------------------------------------------------------------------------------------------------------


async def find(
    replica: Replica, clock: Clock, space: str | None = None, *, older_than: timedelta = OLDER_THAN
) -> list[Finding]:
    """The garbage of one space, or of all with those that are gone; sorted by space, kind and key.

    Raises NotFound for a space of which the bucket has nothing.
    """
    now = clock.now()
    before = now - max(older_than, LEAST_AGE)
    spaces = {entry.name for entry in await list_spaces(replica)}
    findings = await _torn_backups(replica, space, before)
    findings += await _leases(replica, space, spaces, before)
    if space is not None and space not in spaces and not findings:
        raise NotFound(path=space)
    for name in sorted(spaces if space is None else spaces & {space}):
        findings += await _in_live(replica, name, before)
        findings += await _vectors(replica, name, before)
        of_use_for_a_while: tuple[tuple[Kind, str, str, datetime, str], ...] = (
            ("beacon", f"{name}/{keys.CHANGES}/", ".json", now - SILENT_FOR, _SILENT),
            ("trace", keys.removed_prefix(name), "", now - TRACED_FOR, _TRACED),
            ("told", f"{name}/{keys.SESSIONS}/", f"/{keys.TOLD}", before, _TOLD),
        )
        for kind, prefix, ending, limit, why in of_use_for_a_while:
            infos = [info for info in await replica.names.walk(prefix) if info.key.endswith(ending)]
            findings += [_finding(kind, name, info, why) for info in infos if _modified([info]) < limit]
    return sorted(findings, key=lambda finding: (finding.space, finding.kind, finding.key))


def _finding(kind: Kind, space: str, info: ObjectInfo, why: str) -> Finding:
    return Finding(kind, space, info.key, _modified([info]), why, (info,))


def _modified(infos: Iterable[ObjectInfo]) -> datetime:
    """When the newest of some objects was written. Without the times of a store everything counts as young."""
    stamps = [info.modified_ns for info in infos]
    if not all(stamps):
        return datetime.max.replace(tzinfo=UTC)
    return datetime.fromtimestamp(max(stamps) / 1_000_000_000, UTC)


async def _torn_backups(replica: Replica, space: str | None, before: datetime) -> list[Finding]:
    torn = []
    for (name, stamp), infos in (await objects_of_backups(replica, space)).items():
        prefix, modified = keys.backup_prefix(name, stamp), _modified(infos)
        if modified < before and all(info.key != prefix + keys.META for info in infos):
            why = "it was interrupted and cannot be restored"
            torn.append(Finding("torn-backup", name, prefix, modified, why, tuple(infos)))
    return torn


async def _leases(replica: Replica, space: str | None, spaces: set[str], before: datetime) -> list[Finding]:
    head, dot, tail = keys.lease_key("?").partition("?")
    assert dot
    unused = []
    for info in await replica.names.walk(head):
        name = info.key[len(head) :].removesuffix(tail)
        wanted = space in (None, name) and name not in spaces and info.key == keys.lease_key(name)
        if wanted and _modified([info]) < before:
            unused.append(_finding("lease", name, info, "its space is gone"))
    return unused


async def _vectors(replica: Replica, space: str, before: datetime) -> list[Finding]:
    """Vectors of models that are not used any more: vectors of another model were written since."""
    models: dict[str, list[ObjectInfo]] = {}
    for info in await replica.names.walk(f"{space}/{keys.INDEX}/"):
        model = keys.parse(info.key).name.partition("/")[0]
        if model != keys.USES:
            models.setdefault(model, []).append(info)
    last = max(map(_modified, models.values()), default=before)
    return [
        Finding("vectors", space, f"{space}/{keys.INDEX}/{model}/", _modified(infos), _UNUSED, tuple(infos))
        for model, infos in models.items()
        if _modified(infos) < min(last, before)
    ]


async def _in_live(replica: Replica, space: str, before: datetime) -> list[Finding]:
    findings: list[Finding] = []
    notes: list[ObjectInfo] = []
    for info in await replica.names.walk(keys.live_prefix(space)):
        parsed = keys.parse(info.key)
        if parsed.kind not in ("note", "live-other") or _modified([info]) >= before:
            continue
        if is_litter(parsed.name.rpartition("/")[2]):
            findings.append(_finding("litter", space, info, "an editor or a tool has left it"))
        elif parsed.kind == "live-other":
            findings.append(_finding("no-note", space, info, "no run takes it: a note is a .md directly in live/"))
        else:
            notes.append(info)
    agents, unreadable = await _agents(replica, notes)
    findings += [_finding("unreadable", space, info, "no run takes it: it is not UTF-8 text") for info in unreadable]
    return findings + await _passed_over(replica, space, agents)


async def _agents(
    replica: Replica, notes: Sequence[ObjectInfo]
) -> tuple[dict[str, list[ObjectInfo]], list[ObjectInfo]]:
    """These notes by agent, and those that are no text."""
    agents: dict[str, list[ObjectInfo]] = {}
    unreadable: list[ObjectInfo] = []

    async def look(info: ObjectInfo) -> None:
        data = await content(replica, info)
        if data is None:
            return
        try:
            note = Note.parse(data, path=info.key, name=keys.parse(info.key).name)
        except NotText:
            unreadable.append(info)
        else:
            agents.setdefault(note.agent, []).append(info)

    await each(notes, look, None)
    return agents, unreadable


async def _passed_over(replica: Replica, space: str, agents: dict[str, list[ObjectInfo]]) -> list[Finding]:
    """Notes that were there when the last consolidation ran, of agents of whom no run has ever taken a note.

    None in a space without a consolidation: its notes wait for the first one. None where the ledger cannot be read: it
    is not known what runs took.
    """
    if not agents:
        return []
    left, last = dict(agents), datetime.min.replace(tzinfo=UTC)
    infos = entries_in(await replica.names.walk(keys.ledger_prefix(space)))
    numbers = sorted(infos, reverse=True)
    while numbers and left:
        part, numbers = numbers[:READ_AT_ONCE], numbers[READ_AT_ONCE:]
        for entry in (await read_all(replica, {number: infos[number] for number in part}, log_it)).values():
            if entry is None:
                return []
            last = max(last, entry.committed_at) if entry.kind == "consolidation" else last
            for note in entry.removes:
                left.pop(note.agent, None)
    why = "runs have passed it over, and never took a note of {}"
    return [
        _finding("passed-over", space, info, why.format(agent))
        for agent, notes in left.items()
        for info in notes
        if _modified([info]) < last
    ]


# --- removing --------------------------------------------------------------------------------------------------------


async def remove(
    replica: Replica, clock: Clock, leases: Leases, findings: Sequence[Finding], *, progress: Progress | None = None
) -> Removed:
    """Remove findings, each object only in the version that was found.

    Objects in `live/` are removed under the lease of the space, after an automatic backup. Raises what a backup fails
    with; nothing of that space is removed then.
    """
    gone: list[ObjectInfo] = []
    kept: list[str] = []
    made: dict[str, str] = {}
    total = sum(len(finding.objects) for finding in findings)

    async def take(info: ObjectInfo) -> None:
        try:
            with suppress(ObjectMissing):
                await delete_version(replica, info.key, info.etag)
            gone.append(info)
        except PreconditionFailed:
            kept.append(info.key)
        if progress:
            progress(len(gone) + len(kept), total)

    for space in sorted({finding.space for finding in findings}):
        mine = [finding for finding in findings if finding.space == space]
        inside = [info for finding in mine if finding.kind in _IN_LIVE for info in finding.objects]
        outside = [finding for finding in mine if finding.kind not in _IN_LIVE]
        if inside:
            async with leases.hold(space) as held:
                made[space] = (await backups.create(replica, clock, space, automatic=True)).stamp
                await held.check()
                await each(inside, take, None)
            await backups.prune(replica, space)
        for finding in outside:
            if not await _came_back(replica, finding):
                await each(finding.objects, take, None)
    log.info("garbage_removed", objects=len(gone), kept=len(kept))
    return Removed(len(gone), tuple(sorted(kept)), made)


async def _came_back(replica: Replica, finding: Finding) -> bool:
    """Whether the backup was completed, or the space was made again, after it was found."""
    proofs = {"torn-backup": finding.key + keys.META, "lease": keys.meta_key(finding.space)}
    key = proofs.get(finding.kind)
    if key is None:
        return False
    try:
        await replica.names.stat(key, fresh=True)
    except ObjectMissing:
        return False
    return True
