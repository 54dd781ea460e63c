"""Backups: copies of a space inside the bucket (data model 2 and 5, design rule 3).

Owns the removal of backups, and what `_meta.json` means in one: it is written last and removed first, so a backup with
it is complete, and one without it is torn. Making and listing can be imported from here, too, so that callers need one
module. Refuses to prune a backup that a person made; ordinary files and the ledger of a space are not copied.
Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import structlog

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import ObjectMissing
from livememfs.records import keys
from livememfs.records.metadata import META_BACKUP
from livememfs.spaces.backup_list import LATEST, Backup, find, is_automatic, list_backups, prefix_of_all
from livememfs.spaces.backup_make import create, create_as_read, each
from livememfs.spaces.export import Exported, Progress, export_prefix
from livememfs.spaces.objects import delete_directories

__all__ = [
    "KEPT",
    "LATEST",
    "META_BACKUP",
    "Backup",
    "create",
    "create_as_read",
    "delete",
    "download",
    "find",
    "list_backups",
    "prune",
]

log = structlog.get_logger("livememfs.spaces")

KEPT = 10
"""How many automatic backups of a space are kept."""


async def download(
    replica: Replica, space: str, stamp: str, path: Path, *, progress: Progress | None = None
) -> Exported:
    """Write a complete backup into one archive, its members named `{space}/{stamp}/...`. Raises as `spaces.export`."""
    backup = await find(replica, space, stamp, whole=True)
    return await export_prefix(replica, backup.prefix, path, below=f"{keys.BACKUPS}/", progress=progress)


async def prune(replica: Replica, space: str, keep: int = KEPT) -> list[str]:
    """Remove the oldest automatic backups beyond `keep`; their stamps. Torn ones stay: who made them is unknown."""
    prefix = prefix_of_all(space)
    automatic: list[str] = []

    async def look(stamp: str) -> None:
        with suppress(ObjectMissing):
            if is_automatic((await replica.names.stat(f"{prefix}{stamp}/{keys.META}", fresh=True)).meta or {}):
                automatic.append(stamp)

    await for_each(sorted((await replica.names.listing(prefix, fresh=True)).folders), look)
    gone = sorted(sorted(automatic, reverse=True)[keep:])
    for stamp in gone:
        await _remove(replica, keys.backup_prefix(space, stamp), None)
    return gone


async def delete(replica: Replica, space: str, stamp: str, *, progress: Progress | None = None) -> int:
    """Remove one backup, torn or not; returns how many objects were removed. Raises NotFound."""
    backup = await find(replica, space, stamp)
    return await _remove(replica, backup.prefix, progress)


async def _remove(replica: Replica, prefix: str, progress: Progress | None) -> int:
    """Remove all objects; `_meta.json` goes first, so that a removal that dies leaves a torn backup."""
    objects = await replica.names.walk(prefix)
    await replica.delete(prefix + keys.META)
    await each([item.key for item in objects if item.key != prefix + keys.META], replica.delete, progress)
    await delete_directories(replica, prefix)
    log.info("backup_removed", prefix=prefix)
    return len(objects)
