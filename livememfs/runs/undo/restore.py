"""Bringing a backup back: a space made as it was.

Owns the order: what the space has is backed up first, `_meta.json` is written last, so a new prefix is a space only
when all of it is there. A space that is there is restored over under its lease, after what is committed there was
carried out: no run is at work meanwhile, and none is finished over it later. Refuses torn backups, and to remove what
is in no backup. Trio thread only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress

import structlog

from livememfs.cache.removals import Removals, ids_of
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import for_each
from livememfs.errors import (
    AlreadyExists,
    ConditionsUnsupported,
    NotEmpty,
    ObjectMissing,
    ObjectUnreadable,
    PreconditionFailed,
)
from livememfs.records import keys
from livememfs.records.metadata import META_BACKUP, META_MADE, META_OP, META_SHA256
from livememfs.records.names import check_space_name
from livememfs.records.space import Meta
from livememfs.runs.apply import finish_open
from livememfs.spaces.backup_list import Backup, content_of, find, is_content, record_of
from livememfs.spaces.backup_make import copy_aside, each
from livememfs.spaces.counts import put_right
from livememfs.spaces.export import Progress
from livememfs.spaces.lease import Leases
from livememfs.spaces.objects import delete_version, keep_beside, put_new
from livememfs.store.base import IfAbsent, IfMatch, ObjectInfo, StoredObject

log = structlog.get_logger("livememfs.spaces")

TRIES = 10
"""Times that somebody may be faster, before it is given up."""
OF_ONE_VERSION = frozenset({META_BACKUP, META_OP, META_MADE, META_SHA256})
"""User metadata of a backup's `_meta.json` that the restored one does not inherit."""


@dataclasses.dataclass(frozen=True)
class Restored:
    """What a restore did.

    :space:   whose backup it was
    :stamp:   which one
    :target:  the space that is now as the backup was
    :objects: written
    :removed: of the former state, because the backup has none under their names
    :saved:   stamp of the automatic backup of the former state; None when there was no space
    """

    space: str
    stamp: str
    target: str
    objects: int
    removed: int = 0
    saved: str | None = None


async def restore_backup(
    replica: Replica,
    clock: Clock,
    leases: Leases,
    space: str,
    stamp: str,
    *,
    to: str | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> Restored:
    """Make a space, the backup's own or the one named by `to`, as the backup was.

    A space that is there is changed only with `replace`, under its lease, and backed up first. Sealed rules stay when
    the backup has none. A restore that dies can be made again. Raises NotFound, InvalidName, AlreadyExists,
    LiveMemError for a torn backup, and NotEmpty when a prefix that is no space has other objects where the backup's
    would go.
    """
    backup = await find(replica, space, stamp, whole=True)
    target = space if to is None else to
    if target != space:
        check_space_name(target)
    if await record_of(replica, target) is None:
        return await _restore_new(replica, backup, target, progress)
    if not replace:
        raise AlreadyExists(path=target)
    async with leases.hold(target):
        await finish_open(replica, clock, target)
        return await _restore_over(replica, clock, backup, target, progress)


async def _restore_new(replica: Replica, backup: Backup, target: str, progress: Progress | None) -> Restored:
    """Make a space that is not there."""
    record = await _record_of(replica, backup, target)
    wanted = await _wanted(replica, backup)
    await _expect_room(replica, target, wanted)
    await each(wanted, lambda name: _copy(replica, wanted[name].key, f"{target}/{name}"), progress)
    await _put_record(replica, *record, target, new=True)
    return _restored(backup, target, wanted)


async def _restore_over(
    replica: Replica, clock: Clock, backup: Backup, target: str, progress: Progress | None
) -> Restored:
    """Put a backup in place of what a space has; the caller holds its lease."""
    record = await _record_of(replica, backup, target)
    wanted = await _wanted(replica, backup)
    saved, before = await copy_aside(replica, clock, target, automatic=True, progress=progress)
    versions = {item.key: item.etag for item in before}
    await each(wanted, lambda name: _copy_over(replica, wanted[name], f"{target}/{name}", versions), progress)
    removed = await _remove_others(replica, target, before, wanted)
    await _put_record(replica, *record, target, new=False)
    return _restored(backup, target, wanted, removed, saved.stamp)


async def _wanted(replica: Replica, backup: Backup) -> dict[str, ObjectInfo]:
    """What a backup brings back, by the names in a space."""
    named = {_name(item, backup.prefix): item for item in await replica.names.walk(backup.prefix)}
    return {name: item for name, item in named.items() if is_content(name)}


def _restored(
    backup: Backup, target: str, wanted: Mapping[str, ObjectInfo], removed: int = 0, saved: str | None = None
) -> Restored:
    log.info("backup_restored", space=backup.space, stamp=backup.stamp, target=target)
    return Restored(backup.space, backup.stamp, target, len(wanted) + 1, removed, saved)


async def _copy(replica: Replica, source: str, target: str) -> None:
    await replica.copy(source, target, meta=await _marks(replica, source, target))


async def _marks(replica: Replica, source: str, target: str) -> dict[str, str] | None:
    """User metadata of what comes back: a note must not pass for a late upload of what was taken. None: as it is."""
    if not keys.is_note(target):
        return None
    found = (await replica.names.stat(source, fresh=True)).meta or {}
    return {name: value for name, value in found.items() if name not in (META_OP, META_MADE)}


async def _copy_over(replica: Replica, item: ObjectInfo, target: str, versions: Mapping[str, str]) -> None:
    """Put an object in place of the version that was copied aside; one that was written since is kept beside it."""
    before = versions.get(target)
    meta = await _marks(replica, item.key, target)
    for _ in range(TRIES):
        condition = IfMatch(before) if before is not None else IfAbsent()
        try:
            await replica.copy(item.key, target, meta=meta, condition=condition)
            return
        except ConditionsUnsupported:
            await replica.copy(item.key, target, meta=meta)
            return
        except PreconditionFailed:
            before = await _made_way(replica, item, target)
            if before == item.etag:
                return
    raise PreconditionFailed(key=target)


async def _made_way(replica: Replica, item: ObjectInfo, target: str) -> str | None:
    """Keep what stands at `target`; its version, that of `item` when it is the copy already, None for nothing."""
    try:
        there = await replica.read(target, fresh=True)
    except ObjectMissing:
        return None
    if there.info.size == item.size and there.data == (await replica.read(item.key)).data:
        return item.etag  # the answer of the copy was lost
    kept = await keep_beside(replica, there, "restored")
    log.warning("an object was changed during a restore; that version is kept beside it", key=target, kept=kept)
    return there.info.etag


async def _expect_room(replica: Replica, target: str, wanted: Mapping[str, ObjectInfo]) -> None:
    """What a restore that died has left is written again; what else is there belongs to somebody. NotEmpty."""
    for item in await content_of(replica, target):
        name = _name(item, f"{target}/")
        mine = wanted.get(name)
        if keys.parse(item.key).kind != "keep" and (mine is None or (mine.etag, mine.size) != (item.etag, item.size)):
            raise NotEmpty(path=target, detail=f"{name} stands where the backup would go")


async def _remove_others(
    replica: Replica, target: str, before: list[ObjectInfo], wanted: Mapping[str, ObjectInfo]
) -> int:
    """Remove what the backup does not have, in the versions that were backed up: what came since is in no backup."""
    kept = {f"{target}/{name}" for name in (*wanted, keys.RULES)}
    others = [item for item in before if item.key not in kept and keys.parse(item.key).kind != "keep"]
    removed = 0
    removals = Removals(replica.store, replica.unread)

    async def remove(item: ObjectInfo) -> None:
        nonlocal removed
        with suppress(ObjectMissing, PreconditionFailed):
            if keys.is_note(item.key):  # its writer may not have heard that it is stored
                meta = (await replica.names.stat(item.key, fresh=True)).meta or {}
                await removals.leave_trace(item.key, ids_of(meta), meta.get(META_SHA256, ""))
            await delete_version(replica, item.key, item.etag)
            removed += 1

    await for_each(others, remove)
    return removed


async def _record_of(replica: Replica, backup: Backup, target: str) -> tuple[StoredObject, Meta | None]:
    """A backup's `_meta.json`. LiveMemError when it cannot be read and would have to be, to get another name."""
    found = await replica.read(backup.prefix + keys.META, fresh=True)
    try:
        return found, Meta.parse(found.data)
    except ValueError as error:
        if target != backup.space:
            raise ObjectUnreadable(error, path=found.info.key) from error
    return found, None


async def _put_record(replica: Replica, found: StoredObject, record: Meta | None, target: str, *, new: bool) -> None:
    """Write `_meta.json`, with the target's name in it. AlreadyExists when somebody made that space meanwhile.

    The ledger stays with its space: a number that was used there must not be given again.
    """
    data = found.data
    if record is not None:
        changed = dataclasses.replace(record, space_id=target, ledger=0)
        if not new and (last := await _last_number(replica, target)):
            if target == record.space_id:
                record = await put_right(replica, target, record, before=record.consolidation_count + 1)
            changed = dataclasses.replace(record, space_id=target, ledger=last)
        data = data if changed == record else changed.render()
    meta = {name: value for name, value in (found.info.meta or {}).items() if name not in OF_ONE_VERSION}
    if not new:
        await replica.put(keys.meta_key(target), data, meta=meta)
        return
    try:
        await put_new(replica, keys.meta_key(target), data, meta=meta)
    except PreconditionFailed:
        raise AlreadyExists(path=target) from None


async def _last_number(replica: Replica, space: str) -> int:
    """The last run that wrote the record of a space; 0 when it does not say."""
    with suppress(ObjectMissing, ValueError):
        return Meta.parse((await replica.read(keys.meta_key(space), fresh=True)).data).ledger
    return 0


def _name(item: ObjectInfo, prefix: str) -> str:
    return item.key[len(prefix) :]
