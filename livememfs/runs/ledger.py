"""The ledger in the bucket: reading it, committing a run, and the steps of carrying one out (design rule 4).

To put the entry, under a number that has none, is the commit: before it nothing has changed; after it the run will be
carried out (`apply`), by this host or by another one that finds the entry. Owns how each object is written and each
note removed, so that a second attempt changes nothing. Refuses to overwrite what others wrote meanwhile: their version
is kept under another name. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import structlog

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside, for_each
from livememfs.errors import (
    LeaseLost,
    LiveMemError,
    ObjectMissing,
    ObjectUnreadable,
    PreconditionFailed,
    Throttled,
    Unreachable,
)
from livememfs.records import keys
from livememfs.records.ledger import Entry, NoteEntry, Write
from livememfs.records.space import Meta
from livememfs.spaces.entries import digests_in, entries_in
from livememfs.spaces.objects import delete_version, keep_beside, put_new, put_version
from livememfs.store.base import StoredObject
from livememfs.text.foreign import Unreadable

log = structlog.get_logger("livememfs.runs")

TRIES = 5
"""Attempts of a write while others keep changing the object."""


@dataclass(frozen=True)
class Applied:
    """What happened to the notes of a run, which are removed last.

    :removed: how many are gone
    :edited:  names of notes that stay, because somebody edited them meanwhile
    :failure: why the removal stopped early; None when it did not
    """

    removed: int
    edited: tuple[str, ...]
    failure: LiveMemError | None = None


async def numbers(replica: Replica, space: str) -> list[int]:
    """The numbers of a space's runs, ascending, as the bucket lists them now."""
    return list(entries_in(await replica.names.walk(keys.ledger_prefix(space))))


async def read(replica: Replica, space: str, number: int) -> Entry:
    """One run. ObjectMissing, and ObjectUnreadable for an entry that cannot be understood."""
    return await parsed(await replica.read(keys.ledger_key(space, number), fresh=True))


async def parsed(stored: StoredObject) -> Entry:
    """The run, or the held plan, in an object. ObjectUnreadable."""
    try:
        return await aside(len(stored.data), partial(Entry.parse, stored.data))
    except Unreadable as error:
        raise ObjectUnreadable(error, path=stored.info.key) from error


async def newest(replica: Replica, space: str) -> Entry | None:
    """The last run of a space; None before the first."""
    taken = await numbers(replica, space)
    return await read(replica, space, taken[-1]) if taken else None


async def newest_digest(replica: Replica, space: str) -> Entry | None:
    """The last digest of a space whose memories are stored, of any host; None before the first."""
    digests = digests_in(await replica.names.walk(keys.ledger_prefix(space)))
    return await read(replica, space, digests[-1]) if digests else None


async def commit(replica: Replica, entry: Entry) -> None:
    """Put the entry: from here on the run counts. LeaseLost when another run has its number; nothing has changed then.

    Raises the store's failure when it is not known whether the entry is there; if it is, the next run of the space
    carries it out.
    """
    key = keys.ledger_key(entry.space, entry.number)
    try:
        await put_new(replica, key, entry.render())
    except PreconditionFailed:
        if await _is_ours(replica, key, entry):
            return  # the answer to an earlier attempt was lost
        raise LeaseLost("another run was committed meanwhile", path=entry.space) from None
    except (Unreachable, Throttled):
        if not await _is_ours(replica, key, entry):
            raise


async def _is_ours(replica: Replica, key: str, entry: Entry) -> bool:
    with suppress(ObjectMissing):
        return (await replica.read(key, fresh=True)).data == entry.render()
    return False


async def write_objects(replica: Replica, entry: Entry) -> None:
    """Write and remove the objects that an entry names, in its order, unless that was done before."""
    if not await _is_written(replica, entry):
        for write in entry.writes:
            await _write(replica, entry, write)


async def _is_written(replica: Replica, entry: Entry) -> bool:
    """Whether all objects are written: `_meta.json`, with the number of the run, is the last of the writes."""
    try:
        meta = Meta.parse((await replica.read(keys.meta_key(entry.space), fresh=True)).data)
    except (ObjectMissing, ValueError):
        return False
    return meta.ledger >= entry.number


# --- one object -----------------------------------------------------------------------------------------------------


async def _write(replica: Replica, entry: Entry, write: Write) -> None:
    key = f"{entry.space}/{write.key}"
    if write.removes:
        await _remove(replica, entry, key, write)
        return
    data = (write.content or "").encode("utf-8", "backslashreplace")
    if write.copy:
        data = (await replica.read(write.copy, fresh=True)).data
    before = write.before  # the version that the run has read; no other one may be overwritten
    for _ in range(TRIES):
        try:
            await put_version(replica, key, data, before, write.meta)
            return
        except PreconditionFailed:
            there = await _there(replica, key)
        if there is not None and there.data == data:
            return  # an earlier attempt wrote it, here or on the host that died
        if there is not None and there.info.etag != before:
            data = await _keep_theirs(replica, entry, there, data)
        before = there.info.etag if there is not None else None
    raise PreconditionFailed(key=key)


async def _remove(replica: Replica, entry: Entry, key: str, write: Write) -> None:
    there = await _there(replica, key)
    if there is None:
        return
    if write.before is not None and there.info.etag != write.before:
        await _keep_theirs(replica, entry, there, b"")
    with suppress(ObjectMissing):
        await delete_version(replica, key, there.info.etag)


async def _there(replica: Replica, key: str) -> StoredObject | None:
    try:
        return await replica.read(key, fresh=True)
    except ObjectMissing:
        return None


async def _keep_theirs(replica: Replica, entry: Entry, there: StoredObject, ours: bytes) -> bytes:
    """Keep a version that somebody without the lease wrote meanwhile, under another name. Returns what to write.

    A space has only one `_meta.json`: theirs is written again, with our figures.
    """
    key = there.info.key
    if key == keys.meta_key(entry.space):
        with suppress(ValueError):
            return _joined_meta(Meta.parse(there.data), Meta.parse(ours), entry).render()
        return ours
    kept = await keep_beside(replica, there, f"{entry.number:08d}")
    log.warning("a file of the bank was changed during a run; that version is kept beside it", key=key, kept=kept)
    return ours


def _joined_meta(theirs: Meta, ours: Meta, entry: Entry) -> Meta:
    """Their record with our run in it: an undo sets the figures back, an edit leaves them, another run is counted."""
    if entry.kind == "undo":
        return theirs.with_figures(ours, entry.number)
    if entry.kind == "edit":
        return replace(theirs, ledger=entry.number)
    last = max(filter(None, (theirs.last_consolidation, ours.last_consolidation)), default=entry.committed_at)
    return theirs.after_run(last, len(entry.removes), entry.number)


async def remove_notes(replica: Replica, notes: tuple[NoteEntry, ...]) -> Applied:
    """Remove the versions that the run has read. A note that is gone already counts as removed."""
    edited: list[str] = []
    removed = 0

    async def remove(note: NoteEntry) -> None:
        nonlocal removed
        try:
            await delete_version(replica, note.key, note.etag)
        except ObjectMissing:
            pass
        except PreconditionFailed:
            if await _there(replica, note.key) is not None:
                edited.append(keys.parse(note.key).name)
                return
        removed += 1

    failure: LiveMemError | None = None
    try:
        await for_each(notes, remove)
    except LiveMemError as error:
        log.warning("a consolidated note could not be removed", reason=str(error))
        failure = error
    return Applied(removed, tuple(sorted(edited)), failure)
