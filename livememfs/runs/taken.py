"""Notes in `live/` that were taken before, by a run or a person: late copies of them, and later versions.

Owns how the two are told apart. An upload may arrive long after its writer gave it up, when a run has taken the note or
a person has removed it. Such a late copy is known by the id of its write, and is removed; or the next run would read
the note twice. A note that somebody edited while a run took it is another version: it stays, and the next run learns
which lines are new. Refuses to remove a note on a guess: a note from any other write, such as one that was restored,
is a note like all others. Trio thread only.
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
"""How long an upload may be under way after its note was taken. A note that comes later was restored by somebody."""
LOOKED_AT = 64
"""Most entries that are read for the notes of one run; the newest ones."""
_CLOCKS = CLOCKS.total_seconds()
MAX_LINES = 5_000
"""In a longer note the new lines are not looked for: the comparison would take too long."""


@dataclass(frozen=True)
class Sifted:
    """Notes that a run may take, and `late`: copies of notes that were taken before."""

    notes: tuple[LiveNote, ...]
    late: tuple[LiveNote, ...]


async def sift(replica: Replica, space: str, notes: Sequence[LiveNote]) -> Sifted:
    """Separate late copies from the notes that a run may take. Changes nothing; raises the store's failures."""
    notes = _without_renamed(notes)
    if not notes:
        return Sifted((), ())
    runs, traces, takers = await _looked_up(replica, space, notes)
    suspects = [live for live in notes if live.key in takers or keys.removed_key(live.key) in traces]
    first = min((entry.number for live in suspects for entry in takers[live.key]), default=None)
    undone = await _undone(replica, runs, first) if first is not None else {}
    late: dict[str, LiveNote] = {}
    continued: dict[str, LiveNote] = {}
    for live in suspects:
        standing = [entry for entry in takers[live.key] if entry.number not in undone]
        if await _is_late(replica, live, takers[live.key], standing, traces, runs):
            late[live.key] = live
        elif standing and all(taken_in(entry)[live.key].sha256 != live.sha256 for entry in standing):
            continued[live.key] = await _continued(replica, live, standing[-1])
    kept = (continued.get(live.key, live) for live in notes if live.key not in late)
    return Sifted(tuple(kept), tuple(late.values()))


def _without_renamed(notes: Sequence[LiveNote]) -> list[LiveNote]:
    """Each note once: while a note is being renamed, the bucket has it under both names for a moment.

    Of the notes that come from one write the newest is taken; the others wait for the next run. A copy that another
    tool made with the same metadata is a note of its own.
    """
    newest: dict[str, LiveNote] = {}
    for live in sorted(notes, key=lambda live: live.modified_ns):
        newest |= dict.fromkeys(live.ids[:1], live)
    return [live for live in notes if not live.ids or live.op == newest[live.ids[0]].op]


async def named(replica: Replica, space: str, infos: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    """The notes, of these, under whose names a note was taken before. Reads no note."""
    if not infos:
        return []
    _, traces, takers = await _looked_up(replica, space, infos)
    return [info for info in infos if info.key in takers or keys.removed_key(info.key) in traces]


async def remove(replica: Replica, late: Iterable[LiveNote]) -> None:
    """Remove late copies; one that was changed since it was read stays."""

    async def take(live: LiveNote) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            await delete_version(replica, live.key, live.etag)
            log.info("a note that was taken before had come back by a late upload", key=live.key)

    await for_each(tuple(late), take)


async def _looked_up(
    replica: Replica, space: str, notes: Sequence[LiveNote | ObjectInfo]
) -> tuple[dict[int, ObjectInfo], dict[str, ObjectInfo], defaultdict[str, list[Entry]]]:
    """The runs by number, all objects of the ledger by key, and by key of a note the runs that took it, ascending."""
    infos = await replica.names.walk(keys.ledger_prefix(space))
    runs, traces = entries_in(infos), {info.key: info for info in infos}
    takers: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in await _read(replica, _possible_takers(runs, notes)):
        for note in entry.removes:
            takers[note.key].append(entry)
    return runs, traces, takers


def _possible_takers(runs: Mapping[int, ObjectInfo], notes: Iterable[LiveNote | ObjectInfo]) -> dict[int, ObjectInfo]:
    """The runs that may have taken one of these notes: those between the note's time stamp and its upload."""
    spans: list[tuple[float, float]] = []
    for live in notes:
        name = keys.NoteName.parse(keys.parse(live.key).name)
        if name is not None:
            written, changed = name.timestamp.timestamp(), _seconds(live.modified_ns)
            # Hosts and store have clocks of their own, so the span is wider on both sides.
            spans.append((min(written, changed) - _CLOCKS, changed + _CLOCKS))
    numbers = [
        number
        for number, info in runs.items()
        if any(start <= _seconds(info.modified_ns) <= end for start, end in spans)
    ]
    return {number: runs[number] for number in numbers[-LOOKED_AT:]}


def _seconds(modified_ns: int) -> float:
    return modified_ns / 1_000_000_000


async def _read(replica: Replica, runs: Mapping[int, ObjectInfo]) -> list[Entry]:
    """The runs, of these, that can be read, ascending."""
    entries = await read_all(replica, runs, lambda number, why: log.debug("unreadable", number=number, reason=why))
    return [entry for number in sorted(entries) if (entry := entries[number]) is not None]


async def _undone(replica: Replica, runs: Mapping[int, ObjectInfo], first: int) -> Mapping[int, int]:
    """The runs from `first` on that an undo has taken back: their notes are to stay."""
    return taken_back(await _read(replica, {number: info for number, info in runs.items() if number >= first}))


async def _is_late(
    replica: Replica,
    live: LiveNote,
    takers: Sequence[Entry],
    standing: Sequence[Entry],
    traces: Mapping[str, ObjectInfo],
    runs: Mapping[int, ObjectInfo],
) -> bool:
    """Whether this note comes from a write that had stored it before it was taken, and arrived soon after that."""
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
    """Whether an upload may have been under way since the note was taken."""
    return _seconds(live.modified_ns - taken_ns) <= LATE.total_seconds()


async def _continued(replica: Replica, live: LiveNote, entry: Entry) -> LiveNote:
    """A note of which a run took another version, with its new lines if that version can be read."""
    before = await _body_taken(replica, live, entry)
    return replace(live, taken_by=entry.number, new=None if before is None else added(before, live.note.body))


async def _body_taken(replica: Replica, live: LiveNote, entry: Entry) -> str | None:
    """The text of a note as a run has read it, from the backup that the run made."""
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
    """The lines that are new in a text; None for a text that is too long to be compared quickly."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return None
    if old and not old[-1].endswith("\n"):
        old[-1] += "\n"  # a line that is written below the last one does not change that one
    steps = SequenceMatcher(None, old, [line if line.endswith("\n") else f"{line}\n" for line in new]).get_opcodes()
    return "".join(line for tag, _, _, start, stop in steps if tag != "equal" for line in new[start:stop])
