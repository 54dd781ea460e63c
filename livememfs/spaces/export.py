"""A space, or any other prefix, as one archive file (data model 5, `space_export`).

Owns which objects go in, and their order. Promises no consistent state of a space that changes meanwhile: each object
is whole, and the set is what was listed. Trio thread only; the file is written in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, UsageError
from livememfs.spaces.archive import ArchiveWriter, archive_format, unpackable
from livememfs.spaces.describe import require_space
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo

Progress = Callable[[int, int], None]
"""Called after each object with how many are done, and how many there are."""


@dataclass(frozen=True)
class Exported:
    """An archive that was written: where, how many objects, its size in bytes, and the keys that were left out, since
    no file can have their name.
    """

    target: Path
    objects: int
    size: int
    left_out: tuple[str, ...] = ()


async def export(replica: Replica, space: str, target: Path, *, progress: Progress | None = None) -> Exported:
    """Write all objects of a space into one archive, `.tar.gz` or `.zip` by the target's name.

    Members have the keys as names, in the order of keys. The file appears when it is complete. Objects that are removed
    meanwhile are left out.

    Raises NotFound, UsageError for the target, LiveMemError when it cannot be written.
    """
    archive_format(target)
    await require_space(replica, space)
    return await export_prefix(replica, f"{space}/", target, progress=progress)


async def export_prefix(
    replica: Replica, prefix: str, target: Path, *, below: str = "", progress: Progress | None = None
) -> Exported:
    """The same for all objects below any prefix; `below` is the part of it that is cut off the members' names."""
    archive_format(target)
    if not await trio.to_thread.run_sync(target.parent.is_dir):
        raise UsageError(f"there is no directory {target.parent}")
    objects = [item for item in await replica.names.walk(prefix) if not item.key.endswith("/")]
    try:
        return await _write_archive(replica, objects, target, below, progress)
    except OSError as error:
        raise LiveMemError(f"{target} cannot be written: {error.strerror or error}") from error


async def _write_archive(
    replica: Replica, objects: list[ObjectInfo], target: Path, below: str, progress: Progress | None
) -> Exported:
    writer = await trio.to_thread.run_sync(ArchiveWriter, target)
    good = unpackable(item.key.removeprefix(below) for item in objects)
    written = 0
    try:
        for done, item in enumerate(objects, start=1):
            name = item.key.removeprefix(below)
            data = await content(replica, item) if name in good else None
            if data is not None:
                await trio.to_thread.run_sync(writer.add, name, data, _modified(item))
                written += 1
            if progress:
                progress(done, len(objects))
        size = await trio.to_thread.run_sync(writer.finish)
    except BaseException:
        writer.abandon()
        raise
    left_out = tuple(item.key for item in objects if item.key.removeprefix(below) not in good)
    return Exported(target, written, size, left_out)


def _modified(item: ObjectInfo) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=item.modified_ns // 1000)
