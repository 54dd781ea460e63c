"""Writing what a consolidation decided: bank, synthesis, `_meta.json`, and only then the notes go (consolidation 2,
step 4, and 5.3).

Owns the order of the writes and their conditions. Each one holds only for the version that was read, so a second run
on another host stops at the first thing the other has changed. Refuses to undo: after a failure the notes are all
there, and the next run does the rest. Trio thread only; the caller shields it from cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import ConditionsUnsupported, LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.pipelines.gather import Inputs, LiveNote
from livememfs.pipelines.objects import put_new
from livememfs.pipelines.plan import Plan
from livememfs.records import keys
from livememfs.records.space import render_synthesis
from livememfs.store.base import IfMatch

log = structlog.get_logger("livememfs.pipelines")


@dataclass(frozen=True)
class Applied:
    """What happened to the notes after everything else was written.

    :removed: how many are gone
    :edited:  names of notes that somebody edited meanwhile, so they stay
    :failure: why the removal stopped early; None when it did not
    """

    removed: int
    edited: tuple[str, ...]
    failure: LiveMemError | None = None


async def apply_plan(
    replica: Replica, inputs: Inputs, plan: Plan, now: datetime, report: Callable[[str], None]
) -> Applied:
    """Write the plan. Any LiveMemError means that all notes are still there.

    :report: told `removing` before the first note goes

    Raises PreconditionFailed before the first write when something the plan builds on has changed already.
    """
    await _check_unchanged(replica, inputs, plan)
    for change in plan.changes:
        key = keys.bank_key(inputs.space, change.name)
        await _put_version(replica, key, change.content.encode(), change.etag)
    processed = len(plan.coverage.fates)
    synthesis = render_synthesis(plan.synthesis, now, processed, inputs.number)
    await _put_version(replica, keys.synthesis_key(inputs.space), synthesis, inputs.synthesis_etag)
    meta = inputs.meta.after_run(now, processed)
    await _put_version(replica, keys.meta_key(inputs.space), meta.render(), inputs.meta_etag)
    report("removing")
    return await _remove_notes(replica, [inputs.notes[number - 1] for number in plan.coverage.fates])


async def _check_unchanged(replica: Replica, inputs: Inputs, plan: Plan) -> None:
    """Most changes by others are older than our first write: seen here, they cost no half-written bank."""
    versions = {info.key: info.etag for info in await replica.walk(keys.bank_prefix(inputs.space))}
    for change in plan.changes:
        key = keys.bank_key(inputs.space, change.name)
        if versions.get(key) != change.etag:
            raise PreconditionFailed(key=key)
    for key, etag in (
        (keys.synthesis_key(inputs.space), inputs.synthesis_etag),
        (keys.meta_key(inputs.space), inputs.meta_etag),
    ):
        if await _version(replica, key) != etag:
            raise PreconditionFailed(key=key)


async def _version(replica: Replica, key: str) -> str | None:
    try:
        return (await replica.stat(key, fresh=True)).etag
    except ObjectMissing:
        return None


async def _put_version(replica: Replica, key: str, data: bytes, etag: str | None) -> None:
    """Replace exactly the version `etag`, or create the object for None. Raises PreconditionFailed.

    A store without conditions is looked at just before: as close as it lets one come.
    """
    if etag is None:
        await put_new(replica, key, data)
        return
    try:
        await replica.put(key, data, condition=IfMatch(etag))
    except ConditionsUnsupported:
        if await _version(replica, key) != etag:
            raise PreconditionFailed(key=key) from None
        await replica.put(key, data)


async def _remove_notes(replica: Replica, notes: list[LiveNote]) -> Applied:
    """Remove the versions that were read. A note that is gone already counts as removed."""
    edited: list[str] = []
    removed = 0

    async def remove(note: LiveNote) -> None:
        nonlocal removed
        try:
            await _delete_version(replica, note.key, note.etag)
        except PreconditionFailed:
            edited.append(note.name)
            return
        except ObjectMissing:
            pass
        removed += 1

    failure: LiveMemError | None = None
    try:
        await for_each(notes, remove)
    except LiveMemError as error:
        log.warning("a consolidated note could not be removed", reason=str(error))
        failure = error
    return Applied(removed, tuple(sorted(edited)), failure)


async def _delete_version(replica: Replica, key: str, etag: str) -> None:
    try:
        await replica.delete(key, condition=IfMatch(etag))
    except ConditionsUnsupported:
        if (await replica.stat(key, fresh=True)).etag != etag:
            raise PreconditionFailed(key=key) from None
        await replica.delete(key)
