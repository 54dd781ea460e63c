"""The replica: the only way in which tree, pipelines and recall reach objects.

Owns what is known of the bucket (one level of names at a time, each object's version) and a bounded store of contents
by version. Writes go through: when `put` returns, the object is in the bucket. Refuses to invent: a name that has not
been confirmed within `listing_ttl` seconds is asked for again. While the store does not
answer, what was known stays true.

Trio thread only. Bodies without an `await` are critical sections; the store is awaited with no lock held, so two
callers may ask for the same thing at once and both get a true answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import trio

from livememfs import errors
from livememfs.cache.changes import Change, Changes
from livememfs.cache.contents import Contents, ContentsStatistics
from livememfs.concurrency import for_each
from livememfs.store.base import Condition, IfMatch, ObjectInfo, Store, StoredObject, list_all

T = TypeVar("T")

DEFAULT_LISTING_TTL = 1.0
MAX_LEVELS = 4_096
"""Levels of names kept; the oldest are forgotten and simply asked for again."""
HEADS_AT_ONCE = 16
OUTAGE_PAUSE = 10.0
"""Seconds for which a store that failed is not asked for names that are known: a reader pays for an outage once."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One level below a prefix: objects by their last name part, and the names of folders.

    `objects` maps `name` to what is known of `prefix + name`; `folders` holds names without a slash. The marker object
    of the folder itself (`prefix`) is under the empty name. A live view, not a copy, since a folder may have very many
    names: whoever awaits before being done with it takes its own copy first.
    """

    objects: Mapping[str, ObjectInfo]
    folders: AbstractSet[str]

    def __contains__(self, name: str) -> bool:
        return name in self.objects or name in self.folders


@dataclass(frozen=True)
class ReplicaStatistics:
    """Counters since the start, and what the cache of contents holds."""

    levels: int
    known: int
    listings: int
    listing_hits: int
    writes: int
    deletes: int
    last_error: str
    contents: ContentsStatistics


@dataclass(slots=True)
class _Level:
    objects: dict[str, ObjectInfo]
    folders: set[str]
    confirmed: float


class Replica:
    """A view of one bucket through one store."""

    def __init__(self, store: Store, *, cache_bytes: int = 1 << 28, listing_ttl: float = DEFAULT_LISTING_TTL) -> None:
        self.store = store
        self.changes = Changes()
        self._ttl = listing_ttl
        self._levels: dict[str, _Level] = {}
        self._contents = Contents(cache_bytes)
        self._meta: dict[str, ObjectInfo] = {}
        self._pending: dict[tuple[str, str], trio.Event] = {}
        self._listening: list[list[tuple[str, ObjectInfo | None]]] = []
        self._counts = {"listings": 0, "hits": 0, "writes": 0, "deletes": 0}
        self._last_error = ""
        self._asking_again = float("-inf")

    # --- names ----------------------------------------------------------------------------------------------

    async def listing(self, prefix: str, *, fresh: bool = False) -> Listing:
        """The names directly below `prefix` ("" or ending in "/"). `fresh` asks the store whatever is known.

        A store that does not answer is no reason to forget: then what was known last is given, unless `fresh`.
        """
        level = self._levels.get(prefix)
        if not fresh and level is not None and self._believes(level):
            self._counts["hits"] += 1
            return Listing(level.objects, level.folders)
        try:
            level = await self._ask(prefix, level, fresh=fresh)
        except (errors.Unreachable, errors.Throttled):
            self._asking_again = trio.current_time() + OUTAGE_PAUSE
            level = self._levels.get(prefix)
            if fresh or level is None:
                raise
        return Listing(level.objects, level.folders)

    def _believes(self, level: _Level) -> bool:
        now = trio.current_time()
        return now - level.confirmed < self._ttl or now < self._asking_again

    async def _ask(self, prefix: str, before: _Level | None, *, fresh: bool) -> _Level:
        """One request for one level at a time; who had to wait takes what the other one got."""
        async with self._single(("list", prefix)) as first:
            known = self._levels.get(prefix)
            if not first and known is not None and (known is not before or (not fresh and self._believes(known))):
                return known
            return await self._list(prefix)

    async def _list(self, prefix: str) -> _Level:
        """Ask the store for one level. What our own hand does while the store answers is applied on top."""
        asked = trio.current_time()
        meanwhile: list[tuple[str, ObjectInfo | None]] = []
        self._counts["listings"] += 1
        self._listening.append(meanwhile)
        try:
            with self._remembering():
                found = await list_all(self.store, prefix, delimiter="/")
        finally:
            self._listening = [other for other in self._listening if other is not meanwhile]
        objects = {info.key[len(prefix) :]: self._merged(info) for info in found.objects}
        folders = {folder[len(prefix) :].rstrip("/") for folder in found.prefixes}
        fresh = _Level(objects, folders - {""}, asked)
        before = self._levels.pop(prefix, None)
        self._levels[prefix] = fresh
        while len(self._levels) > MAX_LEVELS:
            self._levels.pop(next(iter(self._levels)))
        for key, info in meanwhile:
            self._apply(key, info)
        if before is not None:
            self._announce(prefix, before, fresh)
        return fresh

    def _merged(self, info: ObjectInfo) -> ObjectInfo:
        """What a LIST says of an object, with the user metadata that is already known of this very version."""
        known = self._meta.get(info.key)
        return known if known is not None and _same_version(known, info) else info

    def _announce(self, prefix: str, before: _Level, after: _Level) -> None:
        for name, info in after.objects.items():
            old = before.objects.get(name)
            if old is None or old.etag != info.etag:
                self.changes.publish(Change(prefix + name, "put", info.etag, "remote"))
        for name in before.objects.keys() - after.objects.keys():
            self._meta.pop(prefix + name, None)
            self.changes.publish(Change(prefix + name, "delete", "", "remote"))

    async def walk(self, prefix: str) -> list[ObjectInfo]:
        """Every object below `prefix`, asked for now, in the order of keys."""
        with self._remembering():
            found = await list_all(self.store, prefix)
        return [self._merged(info) for info in found.objects]

    # --- one object -----------------------------------------------------------------------------------------

    async def stat(self, key: str, *, fresh: bool = False) -> ObjectInfo:
        """What is known of one object, user metadata included. ObjectMissing when there is none."""
        if not fresh:
            parent, name = split_key(key)
            info = (await self.listing(parent)).objects.get(name)
            if info is None:
                raise errors.ObjectMissing(key=key)
            if info.meta is not None:
                return info
        return await self._head(key)

    async def _head(self, key: str) -> ObjectInfo:
        async with self._single(("head", key)):
            try:
                info = await self._undisturbed(key, lambda: self.store.head(key))
            except errors.ObjectMissing:
                self._forget(key, "remote")
                raise
            return self._learn(info)

    async def _undisturbed(self, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        """The store's answer about one object; asked again when our own hand was on it meanwhile, so none is older."""
        while True:
            meanwhile: list[tuple[str, ObjectInfo | None]] = []
            self._listening.append(meanwhile)
            try:
                with self._remembering():
                    answer = await ask()
            except errors.ObjectMissing:
                if all(changed != key for changed, _ in meanwhile):
                    raise
            else:
                if all(changed != key for changed, _ in meanwhile):
                    return answer
            finally:
                self._listening = [other for other in self._listening if other is not meanwhile]

    async def complete(self, infos: list[ObjectInfo]) -> list[ObjectInfo]:
        """The same objects with their user metadata, asked for side by side where it is not known.

        An object that went meanwhile is left out.
        """
        found: dict[str, ObjectInfo] = {info.key: info for info in infos if info.meta is not None}

        async def ask(key: str) -> None:
            try:
                found[key] = await self._head(key)
            except errors.ObjectMissing:
                return

        await for_each([info.key for info in infos if info.meta is None], ask, at_once=HEADS_AT_ONCE)
        return [found[info.key] for info in infos if info.key in found]

    async def read(self, key: str, *, fresh: bool = False) -> StoredObject:
        """The object's newest known version. ObjectMissing when there is none.

        `fresh` asks the store even when the version is believed to be current.
        """
        if not fresh:
            info = await self.stat(key)
            data = self._contents.get(key, info.etag)
            if data is not None:
                return StoredObject(info, data)
        async with self._single(("get", key)):
            try:
                found = await self._undisturbed(key, lambda: self.store.get(key))
            except errors.ObjectMissing:
                self._forget(key, "remote")
                raise
            self._contents.put(key, found.info.etag, found.data)
            return StoredObject(self._learn(found.info), found.data)

    async def read_version(self, info: ObjectInfo) -> bytes:
        """The content of exactly this version. PreconditionFailed or ObjectMissing when the store has it no more."""
        data = self._contents.get(info.key, info.etag)
        if data is None:
            with self._remembering():
                found = await self.store.get(info.key, if_match=info.etag)
            data = found.data
            self._contents.put(info.key, found.info.etag, data)
        return data

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """Write one object; when this returns, the bucket has it. PreconditionFailed when `condition` did not hold."""
        self._counts["writes"] += 1
        with self._remembering():
            info = await self.store.put(key, data, meta=meta, condition=condition)
        self._contents.put(key, info.etag, data)
        return self._place(info)

    async def copy(self, source: str, target: str, *, meta: Mapping[str, str] | None = None) -> ObjectInfo:
        """Copy on the server; `meta=None` keeps the metadata. A copy onto itself changes metadata alone."""
        self._counts["writes"] += 1
        with self._remembering():
            info = await self.store.copy(source, target, meta=meta)
        data = self._contents.get(source, info.etag)
        if data is not None:
            self._contents.put(target, info.etag, data)
        return self._place(info)

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """Remove one object. Without a condition a missing one is no error."""
        self._counts["deletes"] += 1
        with self._remembering():
            await self.store.delete(key, condition=condition)
        self._forget(key, "local")

    # --- the stream and the figures -------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback(change)` on the trio thread for each change from now on."""
        self.changes.subscribe(callback)

    def statistics(self) -> ReplicaStatistics:
        """Counters, cheap."""
        return ReplicaStatistics(
            levels=len(self._levels),
            known=sum(len(level.objects) for level in self._levels.values()),
            listings=self._counts["listings"],
            listing_hits=self._counts["hits"],
            writes=self._counts["writes"],
            deletes=self._counts["deletes"],
            last_error=self._last_error,
            contents=self._contents.statistics(),
        )

    # --- inside: no await below this line but in `_single` ----------------------------------------------------

    def _learn(self, info: ObjectInfo) -> ObjectInfo:
        """Take note of what the store just said of one object."""
        if info.meta is not None:
            self._meta[info.key] = info
        parent, name = split_key(info.key)
        level = self._levels.get(parent)
        if level is not None:
            old = level.objects.get(name)
            level.objects[name] = info
            if old is None or old.etag != info.etag:
                self.changes.publish(Change(info.key, "put", info.etag, "remote"))
        return info

    def _place(self, info: ObjectInfo) -> ObjectInfo:
        """Take note of our own write."""
        if info.meta is not None:
            self._meta[info.key] = info
        self._apply(info.key, info)
        for meanwhile in self._listening:
            meanwhile.append((info.key, info))
        self.changes.publish(Change(info.key, "put", info.etag, "local"))
        return info

    def _forget(self, key: str, origin: Literal["local", "remote"]) -> None:
        """Take note of an object that is gone."""
        parent, name = split_key(key)
        level = self._levels.get(parent)
        was_known = self._meta.pop(key, None) is not None or (level is not None and name in level.objects)
        self._contents.drop(key)
        self._apply(key, None)
        for meanwhile in self._listening:
            meanwhile.append((key, None))
        if origin == "local" or was_known:
            self.changes.publish(Change(key, "delete", "", origin))

    def _apply(self, key: str, info: ObjectInfo | None) -> None:
        """Put one object into every known level that it shows in, or take it out."""
        parent, name = split_key(key)
        level = self._levels.get(parent)
        if level is not None:
            if info is None:
                level.objects.pop(name, None)
            else:
                level.objects[name] = info
        while parent:
            parent, folder = split_key(parent[:-1])
            outer = self._levels.get(parent)
            if outer is None:
                continue
            if info is not None:
                outer.folders.add(folder)
            else:  # it may have been the last object below this folder: only a new LIST can tell
                outer.confirmed = float("-inf")

    @asynccontextmanager
    async def _single(self, what: tuple[str, str]) -> AsyncIterator[bool]:
        """One request for the same thing at a time; yields whether nobody else was asking."""
        first = True
        while (event := self._pending.get(what)) is not None:
            first = False
            await event.wait()
        event = self._pending[what] = trio.Event()
        try:
            yield first
        finally:
            del self._pending[what]
            event.set()

    def _remembering(self) -> _Remember:
        return _Remember(self)

    def remember_error(self, text: str) -> None:
        """Keep the store's last complaint for `status.json`; an empty text says that it answers again."""
        self._last_error = text
        if not text:
            self._asking_again = float("-inf")


class _Remember:
    """Around each store call: the last failure of the store itself stays readable in the statistics."""

    __slots__ = ("replica",)

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self.replica.remember_error("")
        elif isinstance(error, errors.Unreachable | errors.Throttled | errors.Denied | errors.BucketMissing):
            self.replica.remember_error(str(error))


def split_key(key: str) -> tuple[str, str]:
    """`("a/b/", "c")` for "a/b/c"; the prefix is "" at the top."""
    parent, slash, name = key.rpartition("/")
    return parent + slash, name


def _same_version(one: ObjectInfo, other: ObjectInfo) -> bool:
    # A change of metadata alone keeps the ETag and moves the time; stores round that time to a second in one of
    # LIST and HEAD and not always in the other.
    return one.etag == other.etag and abs(one.modified_ns - other.modified_ns) < 1_000_000_000
