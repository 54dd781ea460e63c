"""Restoring a backup: a space becomes as it was.

Owns the order: the space is backed up first, and `_meta.json` is written last, so a new prefix becomes a space only
when all of it is there. An existing space is restored under its lease, after its open run was carried out: no run is at
work meanwhile, and none is finished later and overwrites what was restored. Refuses incomplete backups, and to remove
what is in no backup. Trio thread only.
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
from livememfs.records.metadata import META_ABOUT, META_BACKUP, META_MADE, META_OP, META_SHA256
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
"""Attempts to write an object that others keep changing."""
OF_ONE_VERSION = frozenset({META_ABOUT, META_BACKUP, META_OP, META_MADE, META_SHA256})
"""User metadata that belongs to one version of an object: a restored one does not inherit it."""


@dataclasses.dataclass(frozen=True)
class Restored:
    """What a restore did.

    :space:   the space of the backup, and its `stamp`
    :target:  the space that is now as the backup
    :objects: how many were written
    :removed: how many were removed, because the backup has none under their names
    :saved:   stamp of the automatic backup that was made first; None when there was no space
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
    """Make a space, the backup's own or the one that `to` names, as the backup.

    An existing space is changed only with `replace`, under its lease, and backed up first. Sealed rules stay when the
    backup has none. A restore that was interrupted can be repeated. Raises NotFound, InvalidName, AlreadyExists,
    LiveMemError for an incomplete backup, and NotEmpty when a prefix that is no space has other objects where those of
    the backup would go.
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
    record = await _record_of(replica, backup, target)
    wanted = await _wanted(replica, backup)
    await _expect_room(replica, target, wanted)
    await each(wanted, lambda name: _copy(replica, wanted[name].key, f"{target}/{name}"), progress)
    await _put_record(replica, *record, target, new=True)
    return _restored(backup, target, wanted)


async def _restore_over(
    replica: Replica, clock: Clock, backup: Backup, target: str, progress: Progress | None
) -> Restored:
    """Replace what a space has by a backup; the caller holds the lease."""
    record = await _record_of(replica, backup, target)
    wanted = await _wanted(replica, backup)
    saved, before = await copy_aside(replica, clock, target, automatic=True, progress=progress)
    versions = {item.key: item.etag for item in before}
    await each(wanted, lambda name: _copy_over(replica, wanted[name], f"{target}/{name}", versions), progress)
    removed = await _remove_others(replica, target, before, wanted)
    await _put_record(replica, *record, target, new=False)
    return _restored(backup, target, wanted, removed, saved.stamp)


async def _wanted(replica: Replica, backup: Backup) -> dict[str, ObjectInfo]:
    """The objects of a backup that are restored, by their names in the space."""
    named = {item.key.removeprefix(backup.prefix): item for item in await replica.names.walk(backup.prefix)}
    return {name: item for name, item in named.items() if is_content(name)}


def _restored(
    backup: Backup, target: str, wanted: Mapping[str, ObjectInfo], removed: int = 0, saved: str | None = None
) -> Restored:
    log.info("backup_restored", space=backup.space, stamp=backup.stamp, target=target)
    return Restored(backup.space, backup.stamp, target, len(wanted) + 1, removed, saved)


async def _copy(replica: Replica, source: str, target: str) -> None:
    await replica.copy(source, target, meta=await _marks(replica, source, target))


async def _marks(replica: Replica, source: str, target: str) -> dict[str, str] | None:
    """User metadata of a restored object; None: that of `source`.

    A note loses the ids of its write: by these a run would take it for a late copy of a note, and remove it.
    """
    if not keys.is_note(target):
        return None
    meta = (await replica.names.stat(source, fresh=True)).meta or {}
    return {name: value for name, value in meta.items() if name not in (META_OP, META_MADE)}


async def _copy_over(replica: Replica, item: ObjectInfo, target: str, versions: Mapping[str, str]) -> None:
    """Replace the version that was backed up by `item`; a version that was written since is kept under another name."""
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
            before = await _keep_theirs(replica, item, target)
            if before == item.etag:
                return
    raise PreconditionFailed(key=target)


async def _keep_theirs(replica: Replica, item: ObjectInfo, target: str) -> str | None:
    """Keep what stands at `target` under another name, and return its ETag: that of `item` when it is the copy already,
    None when nothing is there.
    """
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
    """NotEmpty when the target has other objects than an interrupted restore of the same backup leaves."""
    for item in await content_of(replica, target):
        name = item.key.removeprefix(f"{target}/")
        ours = wanted.get(name)
        if keys.parse(item.key).kind != "keep" and (ours is None or (ours.etag, ours.size) != (item.etag, item.size)):
            raise NotEmpty(path=target, detail=f"{name} stands where the backup would go")


async def _remove_others(
    replica: Replica, target: str, before: list[ObjectInfo], wanted: Mapping[str, ObjectInfo]
) -> int:
    """Remove what the backup does not have, only in the versions that were backed up: later ones are in no backup."""
    kept = {f"{target}/{name}" for name in (*wanted, keys.RULES)}
    others = [item for item in before if item.key not in kept and keys.parse(item.key).kind != "keep"]
    removed = 0
    removals = Removals(replica.store, replica.unread)

    async def remove(item: ObjectInfo) -> None:
        nonlocal removed
        with suppress(ObjectMissing, PreconditionFailed):
            if keys.is_note(item.key):  # its writer may upload it again, if the answer was lost
                meta = (await replica.names.stat(item.key, fresh=True)).meta or {}
                await removals.leave_trace(item.key, ids_of(meta), meta.get(META_SHA256, ""))
            await delete_version(replica, item.key, item.etag)
            removed += 1

    await for_each(others, remove)
    return removed


async def _record_of(replica: Replica, backup: Backup, target: str) -> tuple[StoredObject, Meta | None]:
    """A backup's `_meta.json`. ObjectUnreadable for one that cannot be parsed, if the name in it has to be changed."""
    stored = await replica.read(backup.prefix + keys.META, fresh=True)
    try:
        return stored, Meta.parse(stored.data)
    except ValueError as error:
        if target != backup.space:
            raise ObjectUnreadable(error, path=stored.info.key) from error
    return stored, None


async def _put_record(replica: Replica, stored: StoredObject, record: Meta | None, target: str, *, new: bool) -> None:
    """Write `_meta.json`, with the target's name in it. AlreadyExists when somebody made that space meanwhile.

    The number of the last run stays that of the target: a number of its ledger must not be used twice.
    """
    data = stored.data
    if record is not None:
        changed = dataclasses.replace(record, space_id=target, ledger=0)
        if not new and (last := await _last_number(replica, target)):
            if target == record.space_id:
                record = await put_right(replica, target, record, before=record.consolidation_count + 1)
            changed = dataclasses.replace(record, space_id=target, ledger=last)
        data = data if changed == record else changed.render()
    meta = {name: value for name, value in (stored.info.meta or {}).items() if name not in OF_ONE_VERSION}
    if not new:
        await replica.put(keys.meta_key(target), data, meta=meta)
        return
    try:
        await put_new(replica, keys.meta_key(target), data, meta=meta)
    except PreconditionFailed:
        raise AlreadyExists(path=target) from None


async def _last_number(replica: Replica, space: str) -> int:
    """The number of the last run by the record of a space; 0 when the record has none."""
    with suppress(ObjectMissing, ValueError):
        return Meta.parse((await replica.read(keys.meta_key(space), fresh=True)).data).ledger
    return 0
