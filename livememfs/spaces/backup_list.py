"""Listing backups and what they hold (data model 2).

Owns the marks of a backup: `_meta.json`, without which it is torn (incomplete), and the word in that object's metadata
that says that it was made automatically. Refuses to change anything. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, NotFound, ObjectMissing
from livememfs.records import keys
from livememfs.records.metadata import META_ABOUT, META_BACKUP
from livememfs.store.base import ObjectInfo

LATEST = "latest"
"""Stands for the stamp of a space's newest complete backup."""
AUTOMATIC = "automatic"


@dataclass(frozen=True)
class Backup:
    """One backup; `bytes` in all its objects. `complete`: it can be restored; of a torn one nobody knows who wanted it.

    `objects` counts everything below its prefix, sentinels too; `about` is what the person wrote who asked for it.
    """

    space: str
    stamp: str
    objects: int
    bytes: int
    automatic: bool
    complete: bool
    about: str = ""

    @property
    def prefix(self) -> str:
        """Where its objects are, with the slash."""
        return keys.backup_prefix(self.space, self.stamp)


def prefix_of_all(space: str) -> str:
    """`_backups/{space}/`. NotFound for what cannot be a space: with a slash it would name a part of a backup."""
    if not space or "/" in space or space.startswith("_"):
        raise NotFound(path=space)
    return f"{keys.BACKUPS}/{space}/"


async def list_backups(replica: Replica, space: str | None = None) -> list[Backup]:
    """The backups of one space, or of all spaces, removed ones too: by space, the oldest first."""
    objects = await objects_of_backups(replica, space)
    records = {backup: keys.backup_prefix(*backup) + keys.META for backup in objects}
    listed = [item for backup, items in objects.items() for item in items if item.key == records[backup]]
    marks = {item.key: item.meta or {} for item in await replica.names.complete(listed)}
    return [_backup(*backup, objects[backup], marks.get(records[backup])) for backup in sorted(objects)]


async def objects_of_backups(replica: Replica, space: str | None) -> dict[tuple[str, str], list[ObjectInfo]]:
    """The objects of the same backups, by space and stamp."""
    objects: dict[tuple[str, str], list[ObjectInfo]] = {}
    for item in await replica.names.walk(f"{keys.BACKUPS}/" if space is None else prefix_of_all(space)):
        parsed = keys.parse(item.key)
        stamp, slash, _ = parsed.name.partition("/")
        if parsed.kind == "backup" and stamp and slash:
            objects.setdefault((parsed.space, stamp), []).append(item)
    return objects


def _backup(space: str, stamp: str, objects: list[ObjectInfo], marks: Mapping[str, str] | None) -> Backup:
    size = sum(item.size for item in objects)
    of_it = marks or {}
    about = of_it.get(META_ABOUT, "")
    return Backup(space, stamp, len(objects), size, is_automatic(of_it), complete=marks is not None, about=about)


def is_automatic(marks: Mapping[str, str]) -> bool:
    """Whether the metadata of a backup's `_meta.json` says that nobody asked for it."""
    return marks.get(META_BACKUP) == AUTOMATIC


async def find(replica: Replica, space: str, stamp: str, *, whole: bool = False) -> Backup:
    """One backup, by its stamp or as `latest`. Raises NotFound; with `whole`, LiveMemError for a torn one."""
    backups = await list_backups(replica, space)
    fitting = [backup for backup in backups if (backup.complete if stamp == LATEST else backup.stamp == stamp)]
    if not fitting:
        raise NotFound(path=f"backup {stamp} of {space}")
    if whole and not fitting[-1].complete:
        raise LiveMemError(f"backup {stamp} of {space} is incomplete: without its {keys.META}, some of it is missing")
    return fitting[-1]


def is_content(name: str) -> bool:
    """Whether an object of this name in a space goes into a backup and comes back from one, apart from `_meta.json`."""
    return name in (keys.RULES, keys.SYNTHESIS) or name.startswith((f"{keys.BANK}/", f"{keys.LIVE}/"))


async def content_of(replica: Replica, space: str) -> list[ObjectInfo]:
    """Those objects of a space, asked for now."""
    top = await replica.names.listing(f"{space}/", fresh=True)
    objects = [top.objects[name] for name in (keys.RULES, keys.SYNTHESIS) if name in top.objects]
    for prefix in (keys.bank_prefix(space), keys.live_prefix(space)):
        objects += await replica.names.walk(prefix)
    return objects


async def record_of(replica: Replica, space: str) -> ObjectInfo | None:
    """A space's `_meta.json` with its metadata, asked for now; None when the prefix is no space."""
    try:
        return await replica.names.stat(keys.meta_key(space), fresh=True)
    except ObjectMissing:
        return None
