"""The replica: the only way in which everything above reaches objects.

Owns contents and writes; what is known of names is in `names`, and each other part has its attribute. Two ways to
write. `save`, `remove`, `restamp` and `move` are accepted on the local disk and return at once; the uploader brings
them to the bucket. `put`, `copy` and `delete` go through: when they return, the bucket has it. Refuses new bytes when
the disk, or the share of it that is ours, is full (`room`).

Trio thread only. Bodies without an `await` are critical sections.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs import errors
from livememfs.cache.beacon import Beacon
from livememfs.cache.blobs import Blobs
from livememfs.cache.catalog import Catalog
from livememfs.cache.changes import Change, Changes
from livememfs.cache.database import Database
from livememfs.cache.drafts import Drafts
from livememfs.cache.figures import ReplicaStatistics
from livememfs.cache.inbox import Inbox
from livememfs.cache.journal.barrier import Barrier
from livememfs.cache.journal.outcomes import Outcomes
from livememfs.cache.journal.steps import Journal
from livememfs.cache.largefile import LargeVersions
from livememfs.cache.levels import Level, above, split_key
from livememfs.cache.names import Names
from livememfs.cache.presence import Presence, knows
from livememfs.cache.readahead import Readahead
from livememfs.cache.room import Room
from livememfs.cache.unread import Unread
from livememfs.cache.upkeep import Upkeep
from livememfs.cache.uploader import Uploader
from livememfs.cache.watcher import Watcher
from livememfs.concurrency import AT_ONCE, Background, for_each
from livememfs.records.note import Order
from livememfs.store.base import Condition, IfMatch, ObjectInfo, Store, StoredObject
from livememfs.store.content import Content, FileContent, content_etag

if TYPE_CHECKING:
    from livememfs.cache.journal.operation import Operation

log = structlog.get_logger("livememfs.cache")

Listing = Level
DEFAULT_LISTING_TTL = 1.0
PERSIST_SECONDS = 0.5
PERSIST_PAUSE = 0.05
"""Between two steps of bringing to the disk what was read: whoever reads goes first."""
SMALL = 1 << 16
"""Content of up to this size comes with the answer to a question about its object."""
FETCHED_AT_ONCE = 16


class Replica:
    """A view of one bucket through one store, with a local state in `folder` (None: in memory).

    `on_conflict(key, copy)` hears of versions of ours that had to go beside another host's. `announce` names this
    process to other hosts, empty leaves them to find out; `poll_interval` None watches nobody. `run` must be running
    for anything accepted to reach the bucket. `unread` keeps what cannot be read, `background` the tasks.
    """

    def __init__(
        self,
        store: Store,
        *,
        folder: Path | None = None,
        cache_size: int = 1 << 30,
        cache_memory: int = 1 << 26,
        listing_ttl: float = DEFAULT_LISTING_TTL,
        host: str = "localhost",
        now_ns: Callable[[], int] = time.time_ns,
        on_conflict: Callable[[str, str], None] | None = None,
        announce: str = "",
        poll_interval: float | None = None,
        unread: Unread | None = None,
        background: Background | None = None,
    ) -> None:
        self.unread = unread or Unread()
        self.background = background or Background()
        self.database = self._database = Database(folder)
        self.identity = self._database.identity
        """What tells this local state from all others; the same for the process that takes it over after a crash."""
        self.after_crash = self._database.after_crash
        self.blobs = Blobs(self._database, max_bytes=cache_size, memory_bytes=cache_memory)
        self.journal = Journal(self._database, self.blobs, now_ns)
        self.catalog = Catalog(self._database)
        self.drafts = Drafts(self._database)
        self.inbox = Inbox(self._database)
        self.order = Order()
        self.store = store
        self.changes = Changes()
        self.names = Names(store, self.journal, self.catalog, self.changes, ttl=listing_ttl, forget=self.blobs.drop)
        self.presence = Presence(self.names)
        self.asking = self.names.asking
        self.outcomes = Outcomes(self.names, self.journal, self.blobs, self.catalog, self.changes, on_conflict)
        self.uploader = Uploader(store, self.journal, self.blobs, self.outcomes, host=host, unread=self.unread)
        self.room = Room(self._database, self.journal, self.blobs, cache_size)
        self.readahead = Readahead(self._bring, self.has)
        self.upkeep = Upkeep()
        name = f"{announce}-{self.identity}" if folder is not None else announce
        self.beacon = Beacon(store, name, partial(knows, self.names), self.upkeep)
        self.watcher = Watcher(self, poll_interval or 1.0, self.beacon, self.background, now_ns)
        if announce:
            self.outcomes.subscribe(self.beacon.changed)
        if poll_interval is not None:
            self.names.watch = self.watcher
            self.changes.subscribe(self.watcher.heard)
        self.large = LargeVersions(store, self.journal, self.blobs, self.asking)
        self._counts = {"writes": 0, "deletes": 0}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Upload, and keep on the disk what was read, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.asking.run)
            for name, work in (
                ("upload", self.uploader.run),
                ("cache", self._persist_now_and_then),
                ("beacon", self.beacon.run),
                ("watch", self.watcher.run),
                ("read ahead", self.readahead.run),
            ):
                nursery.start_soon(self.background.keep, name, work)
            task_status.started()

    async def _persist_now_and_then(self) -> None:
        while True:
            await trio.sleep(PERSIST_SECONDS)
            await self.persist()

    async def persist(self) -> None:
        """Bring to the disk what waits for that, in steps. A full disk costs the cache, nothing else."""
        try:
            left = True
            while left:
                left = self.blobs.persist() + self.catalog.flush() > 0
                await trio.sleep(PERSIST_PAUSE if left else 0)
            if self._database.wants_checkpoint:
                await trio.to_thread.run_sync(self._database.checkpoint)
            self._database.restore_reserve()
        except errors.NoSpace:
            self.blobs.make_room()
        except OSError as error:  # somebody has removed the folder: the bucket is still there
            log.warning("the cache cannot be written", reason=str(error))

    def close(self) -> None:
        """Give the folder to the next process. Nothing may be asked of the replica after that."""
        try:
            while self.blobs.persist() + self.catalog.flush():
                pass
        except errors.NoSpace as error:
            log.info("the cache was not kept", reason=str(error))
        self._database.close()

    # --- contents -----------------------------------------------------------------------------------------------

    async def read(self, key: str, *, fresh: bool = False) -> StoredObject:
        """The object's newest version. ObjectMissing when there is none.

        `fresh` is the bucket's word; without it, what was accepted here counts, and a version known to be current is
        not asked for.
        """
        if not fresh:
            info = await self.names.look(key)
            data = self.blobs.get(key, info.etag)
            if data is not None and info.meta is not None:
                return StoredObject(info, data)
            if self.journal.ops.newest(key) is not None:
                return StoredObject(info, await self.read_version(info))
        async with self.asking.single(("get", key)):
            return await self._get(key)

    async def _get(self, key: str) -> StoredObject:
        """Ask the bucket for an object's newest version."""
        try:
            found = await self.names.undisturbed(key, lambda: self.store.get(key), bulk=True)
        except errors.ObjectMissing:
            self.names.lost(key)
            raise
        self.blobs.put(key, found.info.etag, found.data)
        self.names.learn(found.info)
        return found

    async def read_many(self, wanted: Sequence[str], *, at_once: int = AT_ONCE) -> dict[str, StoredObject]:
        """The newest versions of objects, by key; those that are not there are left out.

        Much cheaper for many than `read`: the content that has to be asked for is not kept here, and takes no room from
        what somebody reads. What our own hand changes meanwhile may come as it was before. Raises what the store fails
        with.
        """
        found: dict[str, StoredObject] = {}
        for key in wanted:
            info = self.names.now(key)
            data = self.blobs.get(key, info.etag) if info is not None and info.meta is not None else None
            if info is not None and data is not None:
                found[key] = StoredObject(info, data)
        cold = [key for key in wanted if key not in found and self.journal.ops.newest(key) is None]
        for one in await self.asking.call(lambda: self.store.get_many(cold, at_once=at_once), bulk=True):
            found[one.info.key] = one
            now = self.names.now(one.info.key)
            if now is not None and now.meta is None and now.etag == one.info.etag:
                self.names.learn(one.info)  # or each of them would be asked for again when somebody looks at it

        async def read(key: str) -> None:
            with suppress(errors.ObjectMissing):
                found[key] = await self.read(key)

        await for_each([key for key in wanted if key not in found], read, at_once=at_once)
        return found

    async def read_version(self, info: ObjectInfo) -> bytes:
        """The content of exactly this version. PreconditionFailed or ObjectMissing when the store has it no more."""
        data = self.blobs.get(info.key, info.etag)
        self.readahead.reads(info.key, self.names.levels, here=data is not None)
        return data if data is not None else await self._bring(info)

    async def _bring(self, info: ObjectInfo) -> bytes:
        """The content of a version that is not here; who asks for the same at once shares the answer."""
        async with self.asking.single(("get", info.key)):
            data = self.blobs.get(info.key, info.etag)
            if data is None:
                data = await self._fetch(info)
        return data

    async def _fetch(self, info: ObjectInfo) -> bytes:
        op = self.journal.ops.newest(info.key)
        key = op.source if op is not None and op.kind == "copy" else info.key
        try:
            found = await self.asking.call(lambda: self.store.get(key, if_match=info.etag), bulk=True)
        except (errors.ObjectMissing, errors.PreconditionFailed):
            data = self.blobs.get(info.key, info.etag)
            if data is not None:
                return data  # the bytes came by another way meanwhile
            if key == info.key:
                raise
            # The copy was carried out meanwhile, and its source removed.
            found = await self.asking.call(lambda: self.store.get(info.key, if_match=info.etag), bulk=True)
        self.blobs.put(info.key, info.etag, found.data)
        if key == info.key and info.meta is None and self.names.now(info.key) is not None:
            self.names.learn(found.info)
        return found.data

    async def fetch(self, infos: list[ObjectInfo]) -> None:
        """Learn the metadata of objects, side by side; with it the content of small ones, which costs no more."""

        async def ask(key: str, size: int) -> None:
            async with self.asking.single(("get", key)) as first:
                now = self.names.now(key)
                if not first and now is not None and now.meta is not None:
                    return  # it came with the content that somebody else was waiting for
                try:
                    await (self._get(key) if size <= SMALL else self.names.head(key))
                except errors.ObjectMissing:
                    return

        wanted = [
            (info.key, info.size) for info in infos if info.meta is None and self.journal.ops.newest(info.key) is None
        ]
        if len(wanted) == 1 and wanted[0][1] <= SMALL:
            # An open that follows finds it here: without this, who reads in order would wait for one after the other.
            self.readahead.reads(wanted[0][0], self.names.levels, here=False)
        await for_each(wanted, lambda one: ask(*one), at_once=FETCHED_AT_ONCE)

    def has(self, info: ObjectInfo) -> bool:
        """Whether the content of this version is here."""
        return self.blobs.has(info.key, info.etag)

    # --- accepted here, uploaded later ----------------------------------------------------------------------------

    def save(
        self,
        key: str,
        data: Content,
        *,
        meta: Mapping[str, str],
        base: ObjectInfo | None,
        etag: str = "",
        by_caller: bool = True,
    ) -> ObjectInfo:
        """Accept new content; `base` is the version it replaces, None for a new key. Survives the process. NoSpace.

        `etag` is the content's, for callers who had it computed elsewhere; `by_caller` is told to subscribers. What
        another host makes of the key until the upload is settled then, and nobody's bytes are lost.
        """
        etag = etag or content_etag(data)
        now = self.names.now(key)
        if base is not None and now is not None and base.etag == etag == now.etag:
            return self.restamp(now, meta)  # identical bytes cost no upload
        self.room.expect(len(data), is_here=isinstance(data, FileContent))
        self._counts["writes"] += 1
        op = self.journal.put(key, data, etag, meta, base=base)
        info = self._accepted(op, by_caller=by_caller)
        # Joined with another host's: the writer goes on from its own bytes, and must not pass them for what there is.
        return info if op.origin is None else replace(info, etag=etag, size=len(data))

    def restamp(self, info: ObjectInfo, meta: Mapping[str, str]) -> ObjectInfo:
        """Accept other metadata for a version. NoSpace."""
        self._counts["writes"] += 1
        return self._accepted(self.journal.meta(info, meta))

    def remove(self, key: str, *, base: ObjectInfo | None, by_caller: bool = True) -> None:
        """Accept the removal of a version; None: of whatever is there. `by_caller` as in `save`. NoSpace."""
        self._counts["deletes"] += 1
        self._removed(key, self.journal.delete(key, base=base), by_caller=by_caller)

    def move(self, info: ObjectInfo, target: str, *, replaces: ObjectInfo | None) -> ObjectInfo:
        """Accept another key for a version. At each instant the bucket has it under one of the two names. NoSpace."""
        with self._database.atomic():
            op, removal = self._move(info, target, replaces)
        self._removed(info.key, removal)
        return self._accepted(op)

    def _move(self, info: ObjectInfo, target: str, replaces: ObjectInfo | None) -> tuple[Operation, Operation | None]:
        """The operations of a move, in the journal; names show nothing of it yet."""
        op = self.journal.move(info.key, target, base=replaces)
        if op is not None:
            return op, None
        data = self.blobs.content(info.key, info.etag)
        is_new = self.journal.has_bytes(info.key)
        # What is large is hashed when it is sent; until then it is what was accepted, if the bucket does not have it.
        etag = content_etag(data) if isinstance(data, bytes) else info.etag if is_new else ""
        if data is not None and (etag == info.etag or is_new):
            op = self.journal.put(target, data, etag, info.meta or {}, base=replaces, moved=True)
        else:
            # Only an MD5 tells whether these bytes came to harm on the disk; those of the bucket did not.
            op = self.journal.copy(info, target, base=replaces)
            if data is not None:
                self.blobs.put(target, info.etag, data)
        return op, self.journal.delete(info.key, base=info, after=op)

    def move_all(self, source: str, target: str, found: Sequence[ObjectInfo]) -> None:
        """Accept another prefix for all versions below one, in one step: a crash leaves all or nothing. NoSpace."""
        with self._database.atomic():
            keys = [target + info.key[len(source) :] for info in found]
            moved = [self._move(info, key, self.names.now(key)) for info, key in zip(found, keys, strict=True)]
        for info, (op, removal) in zip(found, moved, strict=True):
            self._removed(info.key, removal)
            self._accepted(op)
        folders = {split_key(info.key)[0] for info in found}
        folders |= {outer for folder in folders for outer in above(folder) if outer.startswith(source)}
        self.names.levels.vanish(source, folders, trio.current_time())

    def supersede(self, newer: ObjectInfo, data: bytes, older: ObjectInfo, kept: str, old: bytes) -> None:
        """Accept that an object takes another one's place: its own new content, and the other's last version under the
        key `kept`; the other goes once the bucket has that. In one step: a crash leaves all or nothing. NoSpace.

        For work that no file operation asked for: the kernel is told.
        """
        self.room.expect(len(data) + len(old))
        with self._database.atomic():
            history = self.journal.put(kept, old, content_etag(old), {}, base=self.names.now(kept))
            op = self.journal.put(newer.key, data, content_etag(data), newer.meta or {}, base=newer)
            removal = self.journal.delete(older.key, base=older, after=history)
        self._accepted(history, by_caller=False)
        self._accepted(op, by_caller=False)
        self._removed(older.key, removal, by_caller=False)

    def save_all(self, found: Mapping[str, bytes], also: Callable[[], None]) -> None:
        """Accept new contents of several keys, whatever they have now, together with `also`, which writes to the local
        state: a crash leaves all of it or nothing. NoSpace.

        For work that no file operation asked for: the kernel is told.
        """
        self.room.expect(sum(map(len, found.values())))
        with self._database.atomic():
            also()
            now = {key: self.names.now(key) for key in found}
            ops = [
                self.journal.put(
                    key, data, content_etag(data), (info.meta if info is not None else None) or {}, base=info
                )
                for (key, data), info in zip(found.items(), now.values(), strict=True)
            ]
        self._counts["writes"] += len(ops)
        for op in ops:
            self._accepted(op, by_caller=False)

    def _accepted(self, op: Operation, *, by_caller: bool = True) -> ObjectInfo:
        info = op.info()
        assert info is not None  # removals do not come here
        new = self.names.levels.lacks(op.key)
        self.names.ours(op.key, info)
        self.changes.publish(Change(op.key, "put", info.etag, "local", by_caller=by_caller, new=new))
        return info

    def _removed(self, key: str, op: Operation | None, *, by_caller: bool = True) -> None:
        left = self.journal.ops.newest(key) if op is None else None
        if left is not None:  # an edit that nobody here has seen was joined in: it wins, and stays in sight
            self.outcomes.joined(left)
            return
        if op is None:
            self.catalog.gone(key)
        self.names.ours(key, None)
        self.changes.publish(Change(key, "delete", "", "local", by_caller=by_caller))

    async def sync(self, key: str, *, remote: bool = False) -> None:
        """Have what was accepted of a key survive a power cut; `remote`: have it in the bucket. Raises why not."""
        op = self.journal.ops.newest(key)
        if op is None:
            return
        if remote:
            await Barrier(self.journal, [op]).expect()
            return
        path = self.blobs.sync(op.blob) if op.blob is not None else None
        await trio.to_thread.run_sync(_sync, path, self._database)

    def barrier(self, prefix: str = "", *, sees: Callable[[str], bool] = bool) -> Barrier:
        """What was accepted below `prefix` so far, to wait for, as far as somebody `sees(key)`."""
        return Barrier(
            self.journal, [op for op in self.journal.ops.all() if op.key.startswith(prefix) and sees(op.key)]
        )

    async def uploaded(self, prefix: str = "") -> None:
        """Wait until the bucket has what was accepted below `prefix` so far. StoreError when it refuses some of it."""
        await self.barrier(prefix).expect()

    # --- through to the bucket --------------------------------------------------------------------------------------

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """Write one object; when this returns, the bucket has it. PreconditionFailed when `condition` did not hold."""
        self._counts["writes"] += 1
        info = await self.asking.call(lambda: self.store.put(key, data, meta=meta, condition=condition), bulk=True)
        self.blobs.put(key, info.etag, data)
        self.names.settled(key, info, "local")
        self.outcomes.announce(key, new=False)
        return info

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """Copy on the server; see Store.copy. A copy onto itself changes metadata alone."""
        self._counts["writes"] += 1
        info = await self.asking.call(
            lambda: self.store.copy(source, target, meta=meta, condition=condition, known=known), bulk=True
        )
        data = self.blobs.content(source, info.etag)
        if data is not None:
            self.blobs.put(target, info.etag, data)
        self.names.settled(target, info, "local")
        self.outcomes.announce(target, new=False)
        return info

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """Remove one object. Without a condition a missing one is no error."""
        self._counts["deletes"] += 1
        await self.asking.call(lambda: self.store.delete(key, condition=condition), bulk=True)
        self.names.settled(key, None, "local")
        self.outcomes.announce(key, new=False)

    # --- the figures --------------------------------------------------------------------------------------------

    def statistics(self) -> ReplicaStatistics:
        """Counters, cheap."""
        since = self.asking.failing_since
        return ReplicaStatistics(
            levels=len(self.names.levels),
            known=self.names.levels.known,
            unkept=len(self.catalog),
            **self.names.counts,
            **self._counts,
            last_error=self.asking.last_error,
            failing_s=round(trio.current_time() - since, 1) if since is not None else None,
            contents=self.blobs.statistics(),
            journal=self.journal.statistics(),
            uploader=self.uploader.statistics(),
            watcher=self.watcher.statistics(),
            readahead=self.readahead.statistics(),
        )


def _sync(path: Path | None, database: Database) -> None:
    """Content first: an operation whose bytes are not there would be worse than none."""
    if path is not None:
        for part, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
            handle = os.open(part, flags)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    database.sync()
