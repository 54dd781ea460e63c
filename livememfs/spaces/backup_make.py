"""Making a backup: a space's records, bank and notes copied aside on the server.

Owns the order: the sentinel of its `live/` claims a stamp, `_meta.json` comes last. Refuses to clean up after a
failure: what is there is listed as torn. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar
from urllib.parse import quote

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import for_each
from livememfs.errors import NotFound, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.metadata import META_ABOUT, META_BACKUP
from livememfs.spaces.backup_list import AUTOMATIC, Backup, content_of, prefix_of_all, record_of
from livememfs.spaces.export import Progress
from livememfs.spaces.objects import put_new, wait_for_notes
from livememfs.store.base import ObjectInfo

T = TypeVar("T")
MOST_ABOUT = 1_000
"""Most bytes of a line about a backup, percent-encoded, which is the longest form that a store sends."""

log = structlog.get_logger("livememfs.spaces")


async def create(
    replica: Replica, clock: Clock, space: str, *, automatic: bool, progress: Progress | None = None, about: str = ""
) -> Backup:
    """Copy a space's records, bank and notes, on the server. Raises NotFound, TimedOut. `about`: a line for people.

    Each object is whole; the set is what was listed, without what was removed meanwhile. A crash leaves a torn backup.
    """
    backup, _ = await copy_aside(replica, clock, space, automatic=automatic, progress=progress, about=about)
    return backup


async def create_as_read(replica: Replica, clock: Clock, space: str, read: Mapping[str, str]) -> Backup:
    """An automatic backup, with the notes as they were read (key: ETag): one may have been edited since."""
    backup, listed = await copy_aside(replica, clock, space, automatic=True, progress=None)
    now = {item.key: item for item in listed}
    for key, etag in read.items():
        item = now.get(key)
        if item is None or item.etag == etag:
            continue
        with suppress(ObjectMissing, PreconditionFailed):  # this machine does not have its bytes any more
            data = await replica.read_version(replace(item, etag=etag))
            kept = backup.prefix + item.key[len(space) + 1 :]
            await replica.put(kept, data, meta=(await replica.names.stat(kept)).meta)
    return backup


async def copy_aside(
    replica: Replica, clock: Clock, space: str, *, automatic: bool, progress: Progress | None, about: str = ""
) -> tuple[Backup, list[ObjectInfo]]:
    """A backup, and the versions in the space that were listed for it."""
    record = await record_of(replica, space)
    if record is None:
        raise NotFound(path=space)
    await wait_for_notes(replica, space)
    stamp = await _claim(replica, clock, space)
    prefix, sentinel = keys.backup_prefix(space, stamp), keys.keep_key(space, keys.LIVE)
    sources = [item for item in await content_of(replica, space) if item.key != sentinel]  # `_claim` has written it
    sizes: list[int] = []

    async def copy(item: ObjectInfo) -> None:
        with suppress(ObjectMissing):
            sizes.append((await replica.copy(item.key, prefix + item.key[len(space) + 1 :], known=item)).size)

    await each(sources, copy, progress)
    kept = dict(record.meta or {})
    marked = {name: value for name, value in kept.items() if name not in (META_BACKUP, META_ABOUT)}
    marked |= {META_BACKUP: AUTOMATIC} if automatic else {}
    marked |= {META_ABOUT: line} if (line := _that_fits(about)) else {}
    last = await replica.copy(record.key, prefix + keys.META, meta=None if marked == kept else marked)
    log.info("backup_made", space=space, stamp=stamp, automatic=automatic)
    return Backup(space, stamp, len(sizes) + 2, sum(sizes) + last.size, automatic, complete=True, about=line), sources


def _that_fits(about: str) -> str:
    """As much of a line as user metadata has room for, whatever its characters: S3 takes 2 kB of all together."""
    line = " ".join(about.split())
    while len(quote(line)) > MOST_ABOUT:
        line = line[:-1]
    return line


async def _claim(replica: Replica, clock: Clock, space: str) -> str:
    """A free stamp, of this second or a later one. To write its sentinel, which must be new, is what claims it."""
    taken = (await replica.names.listing(prefix_of_all(space), fresh=True)).folders
    moment = clock.now()
    while True:
        stamp = keys.backup_stamp(moment)
        if stamp not in taken:
            with suppress(PreconditionFailed):
                await put_new(replica, keys.keep_key(f"{keys.BACKUPS}/{space}/{stamp}", keys.LIVE), b"")
                return stamp
        moment += timedelta(seconds=1)


async def each(items: Collection[T], work: Callable[[T], Awaitable[None]], progress: Progress | None) -> None:
    """Do `work` for all items side by side; report progress after each."""
    done = 0

    async def work_on(item: T) -> None:
        nonlocal done
        await work(item)
        done += 1
        if progress:
            progress(done, len(items))

    await for_each(items, work_on)
