"""Notes in `live/` that were taken away before: those that came back by a late upload, and those edited since.

Owns the difference. An upload may arrive long after its writer gave it up, when a run has taken the note or a person
has removed it: such a copy is known by the id of its write, and goes. A note that somebody edited while a run took it
is another version: it stays, and what is new in it is told from what the run has read. Refuses to take a note away on a
guess: what was stored by any other write, like a note that was brought back, is a note like all others. Trio thread
only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import SequenceMatcher
from hashlib import sha256

import structlog

from livememfs.cache.removals import CLOCKS, Taken, taken_in
from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import NotText, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.note import Note
from livememfs.runs.notes import LiveNote
from livememfs.runs.standing import taken_back
from livememfs.spaces.entries import entries_in, read_all
from livememfs.spaces.objects import content, delete_version
from livememfs.store.base import ObjectInfo, StoredObject

log = structlog.get_logger("livememfs.runs")

LATE = timedelta(hours=1)
"""How long an upload may be on its way after its note was taken. What comes later was brought back by somebody."""
LOOKED_AT = 64
"""Entries that are read for the notes of one run, the newest."""
_CLOCKS = CLOCKS.total_seconds()
MAX_LINES = 5_000
"""Of a longer note nobody looks what is new in it."""


@dataclass(frozen=True)
class Sifted:
    """Notes that a run may take, and `late`: copies of notes that were taken before."""

    notes: tuple[LiveNote, ...]
    late: tuple[LiveNote, ...]


async def sift(replica: Replica, space: str, notes: Sequence[LiveNote]) -> Sifted:
    """Tell notes of which somebody took a version before. Changes nothing; raises what the store fails with."""
    notes = _without_renamed(notes)
    if not notes:
        return Sifted((), ())
    runs, traces, takers = await _looked_up(replica, space, notes)
    told = [live for live in notes if live.key in takers or keys.removed_key(live.key) in traces]
    if not told:
        return Sifted(tuple(notes), ())
    first = min((entry.number for live in told for entry in takers[live.key]), default=None)
    fallen = await _fallen(replica, runs, first) if first is not None else {}
    found: dict[str, LiveNote | None] = {}
    for live in told:
        standing = [entry for entry in takers[live.key] if entry.number not in fallen]
        if await _is_late(replica, live, takers[live.key], standing, traces, runs):
            found[live.key] = None
        elif standing and all(taken_in(entry)[live.key].sha256 != live.sha256 for entry in standing):
            found[live.key] = await _continued(replica, live, standing[-1])
    kept = (found.get(live.key, live) for live in notes)
    return Sifted(
        tuple(live for live in kept if live is not None),
        tuple(live for live in told if found.get(live.key, live) is None),
    )


def _without_renamed(notes: Sequence[LiveNote]) -> list[LiveNote]:
    """The notes without those that are being renamed: for a moment the bucket has one under both of its names.

    Of notes that one write has made the newest is taken, and the others wait for the next run. A copy with the metadata
    of another one, as other tools make it, is a note of its own.
    """
    newest: dict[str, LiveNote] = {}
    for live in sorted(notes, key=lambda live: live.modified_ns):
        newest |= dict.fromkeys(live.ids[:1], live)
    return [live for live in notes if not live.ids or live.op == newest[live.ids[0]].op]


async def named(replica: Replica, space: str, infos: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    """Those of these notes whose name was taken before, by anybody. Reads none of them."""
    if not infos:
        return []
    _, traces, takers = await _looked_up(replica, space, infos)
    return [info for info in infos if info.key in takers or keys.removed_key(info.key) in traces]


async def remove(replica: Replica, late: Iterable[LiveNote]) -> None:
    """Remove late copies, each only as the version that was read."""

    async def take(live: LiveNote) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            await delete_version(replica, live.key, live.etag)
            log.info("a note that was taken before had come back by a late upload", key=live.key)

    await for_each(tuple(late), take)


async def _looked_up(
    replica: Replica, space: str, notes: Sequence[LiveNote | ObjectInfo]
) -> tuple[dict[int, ObjectInfo], dict[str, ObjectInfo], defaultdict[str, list[Entry]]]:
    """The runs by number, the traces of removals by key, and by key of a note the runs that took it, ascending."""
    infos = await replica.names.walk(keys.ledger_prefix(space))
    runs, traces = entries_in(infos), {info.key: info for info in infos}
    takers: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in await _read(replica, _about(runs, notes)):
        for note in entry.removes:
            takers[note.key].append(entry)
    return runs, traces, takers


def _about(runs: Mapping[int, ObjectInfo], notes: Iterable[LiveNote | ObjectInfo]) -> dict[int, ObjectInfo]:
    """The runs that may have taken one of these notes: made between its time and its last change."""
    spans: list[tuple[float, float]] = []
    for live in notes:
        name = keys.NoteName.parse(keys.parse(live.key).name)
        if name is not None:
            written, changed = name.timestamp.timestamp(), _seconds(live.modified_ns)
            spans.append((min(written, changed) - _CLOCKS, changed + _CLOCKS))
    found = [
        number
        for number, info in runs.items()
        if any(start <= _seconds(info.modified_ns) <= end for start, end in spans)
    ]
    return {number: runs[number] for number in found[-LOOKED_AT:]}


def _seconds(modified_ns: int) -> float:
    return modified_ns / 1_000_000_000


async def _read(replica: Replica, runs: Mapping[int, ObjectInfo]) -> list[Entry]:
    """Those of these runs that can be understood, ascending."""
    found = await read_all(replica, runs, lambda number, why: log.debug("unreadable", number=number, reason=why))
    return [entry for number in sorted(found) if (entry := found[number]) is not None]


async def _fallen(replica: Replica, runs: Mapping[int, ObjectInfo], first: int) -> Mapping[int, int]:
    """The runs from `first` on that an undo has taken back."""
    return taken_back(await _read(replica, {number: info for number, info in runs.items() if number >= first}))


async def _is_late(
    replica: Replica,
    live: LiveNote,
    takers: Sequence[Entry],
    standing: Sequence[Entry],
    traces: Mapping[str, ObjectInfo],
    runs: Mapping[int, ObjectInfo],
) -> bool:
    """Whether the write that stored this note is one that had stored it before it was taken."""
    if not live.op:
        return False
    if standing and any(live.op in taken_in(entry)[live.key].ids for entry in takers):
        return _is_soon(live, max(runs[entry.number].modified_ns for entry in takers))
    trace = traces.get(keys.removed_key(live.key))
    if trace is None or not _is_soon(live, trace.modified_ns):
        return False
    data = await content(replica, trace)
    taken = await replica.unread.read(StoredObject(trace, data), Taken.parse) if data is not None else None
    return taken is not None and live.op in taken.ids


def _is_soon(live: LiveNote, taken_ns: int) -> bool:
    """Whether an upload may have been on its way since the note was taken."""
    return _seconds(live.modified_ns - taken_ns) <= LATE.total_seconds()


async def _continued(replica: Replica, live: LiveNote, entry: Entry) -> LiveNote:
    """A note of which a run took another version, with what is new in it as far as that version can be read."""
    before = await _body_taken(replica, live, entry)
    return replace(live, taken_by=entry.number, new=None if before is None else added(before, live.note.body))


async def _body_taken(replica: Replica, live: LiveNote, entry: Entry) -> str | None:
    """The text that a run has read of a note, from the backup before it."""
    if not entry.backup:
        return None
    key = f"{keys.backup_prefix(entry.space, entry.backup)}{keys.LIVE}/{live.name}"
    try:
        data = (await replica.read(key)).data
        if sha256(data).hexdigest() != taken_in(entry)[live.key].sha256:
            return None
        return Note.parse(data, path=key, name=live.name).body
    except (ObjectMissing, NotText):
        return None


def added(before: str, after: str) -> str | None:
    """The lines of a text that it did not have before; None for a text too long to be compared in a moment."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return None
    if old and not old[-1].endswith("\n"):
        old[-1] += "\n"  # who goes on below the last line has not changed that line
    steps = SequenceMatcher(None, old, [line if line.endswith("\n") else f"{line}\n" for line in new]).get_opcodes()
    return "".join(line for tag, _, _, start, stop in steps if tag != "equal" for line in new[start:stop])
