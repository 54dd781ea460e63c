"""Taking back a run of a space, and everything after it, as a new run.

Owns the course of an undo: under the lease of the space, with a backup of its own, committed to the ledger and carried
out like any run, so a crash leaves all of it or nothing. An undo can be taken back like any run. Refuses a run whose
backup is gone. Knows nothing of queues: the caller waits for the lease. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import BadRequest, LiveMemError, NotFound
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.records.space import Meta
from livememfs.runs.apply import carry_out, finish_open
from livememfs.runs.inputs import parsed_meta
from livememfs.runs.ledger import commit
from livememfs.runs.result import Metrics
from livememfs.runs.standing import last_standing
from livememfs.runs.undo.entry import TakeBack, Taking
from livememfs.spaces import backups
from livememfs.spaces.counts import put_right
from livememfs.spaces.describe import require_space
from livememfs.spaces.entries import runs
from livememfs.spaces.lease import Leases

log = structlog.get_logger("livememfs.runs")


async def undo(
    replica: Replica,
    clock: Clock,
    leases: Leases,
    host: str,
    space: str,
    number: int | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> Entry:
    """Make bank, synthesis, notes and rules as they were before run `number`, to the byte. Returns the new run.

    :host:   this machine's name, for the ledger
    :number: None: the last run that no later undo has taken back, so a second undo goes one run further
             back. The number of an undo: its effect is taken back
    :report: called with each phase: waiting, backing up, writing, removing

    Notes that were written since stay, and so does what digests did. Raises NotFound for a space or a run that does not
    exist, BadRequest for a digest, LiveMemError when the run's backup is gone or incomplete, LeaseLost, and the store's
    failures. Nothing has changed then, unless the message says that the run is being taken back.
    """
    started = trio.current_time()
    await require_space(replica, space)
    report("waiting for its turn")
    async with leases.hold(space) as held:
        await finish_open(replica, clock, space)
        since = await _since(replica, space, number)
        work = TakeBack(replica, space, since)
        await work.find_backups()
        report("backing up")
        backup = await backups.create(replica, clock, space, automatic=True)
        taking = await work.taking()
        record, run = await _record(replica, space, await work.record(), since)
        figures = _figures(taking, run, trio.current_time() - started)
        entry = _entry(taking, record, run, since[0].number, clock.now(), backup, figures)
        entry = replace(entry, host=host, fence=held.fence)
        await held.check()
        report("writing")
        await commit(replica, entry)
        await _carry_out(replica, clock, entry, report)
        # Not before this: the backup that is being restored may be the oldest one.
        with suppress(LiveMemError):
            await backups.prune(replica, space)
    log.info("run_taken_back", space=space, number=entry.undoes, run=run, notes=taking.notes)
    return entry.applied(clock.now())


def _entry(
    taking: Taking, record: Write, run: int, undoes: int, now: datetime, backup: backups.Backup, figures: dict[str, Any]
) -> Entry:
    """The entry of an undo, still without its host and fence."""
    return Entry(
        number=run,
        space=backup.space,
        kind="undo",
        committed_at=now,
        writes=(*taking.writes, record),
        removes=taking.removes,
        undoes=undoes,
        backup=backup.stamp,
        metrics=figures,
    )


async def _since(replica: Replica, space: str, number: int | None) -> list[Entry]:
    """The run to take back and those after it, ascending. NotFound when there is no such run, BadRequest for a digest.

    LiveMemError when one of them cannot be read: the notes that it took would be lost.
    """
    unreadable: dict[int, str] = {}
    entries = await runs(replica, space, report=unreadable.__setitem__)
    chosen = last_standing(entries) if number is None else number
    if chosen is None:
        raise NotFound(path=f"run of {space} that could be taken back")
    since = [entry for entry in reversed(entries) if entry.number >= chosen]
    damaged = max(unreadable, default=0)
    if damaged >= chosen:
        raise LiveMemError(
            f"run {chosen} of {space} cannot be taken back: run {damaged} cannot be read: {unreadable[damaged]}"
        )
    if not since or since[0].number != chosen:
        raise NotFound(path=f"run {chosen} of {space}")
    if not since[0].changes_bank:
        raise BadRequest(
            path=f"run {chosen} of {space}", detail=f"it is a {since[0].kind}; what it stored can be forgotten"
        )
    return since


async def _record(replica: Replica, space: str, then: Meta, since: Sequence[Entry]) -> tuple[Write, int]:
    """The write of `_meta.json`, with the figures of `then`, before the runs `since`; and the number of the new run."""
    stored = await replica.read(keys.meta_key(space), fresh=True)
    now = parsed_meta(stored)
    number = max(now.ledger, since[-1].number) + 1
    then = await put_right(replica, space, then, before=since[0].number)
    return Write(keys.META, stored.info.etag, now.with_figures(then, number).render().decode()), number


async def _carry_out(replica: Replica, clock: Clock, entry: Entry, report: Callable[[str], None]) -> None:
    """Carry the undo out. LiveMemError when not all of it could be written yet."""
    try:
        failure = (await carry_out(replica, clock, entry, report)).failure
    except LiveMemError as error:
        failure = error
    if failure is not None:
        raise LiveMemError(
            f"run {entry.undoes} of {entry.space} is being taken back, and not all of it could be written yet: "
            f"{failure}; the next run of the space, or a mount of it, does the rest"
        ) from failure


def _figures(taking: Taking, run: int, seconds: float) -> dict[str, Any]:
    """The figures of an undo: those of every run, and its own."""
    bank = [write for write in taking.writes if write.key.startswith(f"{keys.BANK}/")]
    changed = [write for write in bank if not write.removes]
    created = sum(write.before is None for write in changed)
    synthesis = next((write.content or "" for write in taking.writes if write.key == keys.SYNTHESIS), "")
    figures = Metrics(
        notes_remaining=taking.left,
        bank_files_updated=len(changed) - created,
        bank_files_created=created,
        synthesis_size=len(synthesis.encode()),
        duration_seconds=round(seconds, 3),
        ledger=run,
    )
    return {
        **figures.of("consolidation"),
        "bank_files_removed": len(bank) - len(changed),
        "notes_restored": taking.notes,
    }
