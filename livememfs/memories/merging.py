"""Update by similarity: a new memory that says what another says takes its place (companion-memory, "Déduplication").

Owns which of two memories stays (the newer), what it takes over (subjects, links, the day it was first known), and the
link to what it replaced, whose last version stays in the history. Everything follows from the two memories alone, so
that two hosts that find the same pair do the same, and doing it twice changes nothing. No close waits for it. Refuses
to touch what ended, what was forgotten, and memories of two collections. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError, NotText, ObjectMissing
from livememfs.memories.storing import id_of
from livememfs.recall.likeness.alike import Alike, alike
from livememfs.recall.service import Recall
from livememfs.records import keys
from livememfs.records.memory import MAX_LINKS, Memory, sealed
from livememfs.store.base import ObjectInfo

log = structlog.get_logger("livememfs.memories")

RELATED = 0.85
"""A cosine above which two memories that do not state one fact are linked all the same (spacebot-memory-v2)."""
MOST_RELATED = 3
RECENT = timedelta(days=1)
"""What was written so lately may have been written while nobody was there to compare it."""
AGAIN_SECONDS = 30.0


@dataclass(frozen=True)
class MergingStatistics:
    """Memories compared, put in another's place, and linked since the start; those that wait; why the last failed."""

    judged: int
    merged: int
    related: int
    waiting: int
    last_error: str


@dataclass(frozen=True)
class _Version:
    """A memory as it is now."""

    info: ObjectInfo
    data: bytes
    memory: Memory

    @property
    def id(self) -> str:
        return id_of(self.info.key.rpartition("/")[2])

    def order(self) -> tuple[object, str]:
        """The later of two is the newer one; the same on every host."""
        return self.memory.updated_at, self.info.key


class Merging:
    """Compares memories of one bucket as they are written, by any host. `threshold`: above it, one fact; 1: never."""

    def __init__(self, replica: Replica, clock: Clock, recall: Recall, threshold: float) -> None:
        self._replica, self._clock, self._recall, self._threshold = replica, clock, recall, threshold
        self._waiting: dict[str, None] = {}
        self._work, self._idle = trio.Event(), trio.Event()
        self._idle.set()
        self._running, self._ended = trio.CancelScope(), trio.Event()
        self._ended.set()
        self._counts = {"judged": 0, "merged": 0, "related": 0}
        self._last_error = ""

    def heard(self, change: Change) -> None:
        """A subscriber of `changes`."""
        if change.kind != "put" or self._threshold >= 1 or keys.parse(change.key).kind != "memory":
            return
        if change.origin == "local" or self._is_new(change.key):
            self._wait_for([change.key])

    def _is_new(self, key: str) -> bool:
        """Whether another host may be storing it now; what it does to older ones, it compares by itself."""
        name = keys.MemoryName.parse(key.rpartition("/")[2])
        return name is None or name.timestamp >= self._clock.now() - RECENT

    def _wait_for(self, found: list[str]) -> None:
        self._waiting.update(dict.fromkeys(found))
        if self._waiting:
            self._idle = trio.Event() if self._idle.is_set() else self._idle
            self._work.set()

    async def opened(self, space: str) -> None:
        """A space is searched from now on: look at what was written lately."""
        since = int((self._clock.now() - RECENT).timestamp() * 1e9)
        for collection in keys.COLLECTIONS:
            level = await self._replica.names.listing(f"{space}/{collection}/")
            lately = [info.key for info in level.objects.values() if info.modified_ns >= since]
            self._wait_for([key for key in lately if self._threshold < 1 and keys.parse(key).kind == "memory"])

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be compared, and nothing is being."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until nothing waits to be compared."""
        await self._idle.wait()

    async def run(self) -> None:
        """Compare what was written, until cancelled or stopped. May be run again when it has failed."""
        self._ended = trio.Event()
        try:
            if self._running.cancel_called:
                return
            with trio.CancelScope() as self._running:
                while True:
                    await self._work.wait()
                    while self._waiting:
                        await self._recall.quiet()
                        await self._compare_next()
                    self._work = trio.Event()
                    self._idle.set()
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Begin nothing more, and accept nothing more: before what was accepted is waited for. What has not been
        compared by then is when the space is asked something again.
        """
        self._running.cancel()
        await self._ended.wait()

    async def _compare_next(self) -> None:
        key = next(iter(self._waiting))
        del self._waiting[key]  # what changes while it is compared is compared again
        try:
            await self._judge(key)
            self._last_error = ""
        except LiveMemError as error:
            self._last_error = str(error)
            log.info("a memory was not compared with others", key=key, reason=str(error))
            self._waiting[key] = None
            await trio.sleep(AGAIN_SECONDS)
        except Exception as error:  # one memory that cannot be compared must not cost the others
            self._last_error = str(error) or type(error).__name__
            log.exception("a memory cannot be compared with others", key=key)

    async def _judge(self, key: str) -> None:
        mine = await self._version(key)
        if mine is None:
            return
        self._counts["judged"] += 1
        space, memory = keys.parse(key).space, mine.memory
        found, _ = await alike(self._recall, space, memory.collection, memory.content.strip())
        others = [one for one in found if one.key != key]
        for one in others:
            if one.likeness <= self._threshold:
                break
            other = await self._version(one.key)
            now = await self._version(key)
            if now is None or now.info.etag != mine.info.etag:
                self._wait_for([key])
                return
            if other is not None and other.memory.content.strip() == one.text:
                self._merge(*sorted((mine, other), key=_Version.order))
                return
        await self._relate(mine, others)

    async def _version(self, key: str) -> _Version | None:
        """A memory as it is now; None when there is none that counts."""
        if keys.has_ended(key, self._clock.now()):
            return None
        try:
            found = await self._replica.read(key)
            parsed = keys.parse(key)
            collection, _, name = parsed.name.partition("/")
            memory = Memory.parse(found.data, path=key, collection=collection, name=name)
        except (ObjectMissing, NotText):
            return None
        return _Version(found.info, found.data, memory) if memory.content.strip() and not memory.forgotten else None

    def _merge(self, older: _Version, newer: _Version) -> None:
        """Have the newer one take the place of the older. One step of the journal: a crash leaves all or nothing."""
        merged = merge(older.memory, newer.memory, older.id)
        space, collection = keys.parse(older.info.key).space, older.memory.collection
        kept = keys.memory_history_key(space, collection, older.id, newer.memory.updated_at)
        self._replica.supersede(newer.info, sealed(merged, newer.info.key), older.info, kept, older.data)
        self._counts["merged"] += 1

    async def _relate(self, mine: _Version, others: list[Alike]) -> None:
        """Link a memory to those it is near to without saying the same."""
        near = [one for one in others if one.near is not None and one.near > RELATED]
        known = {name for _, name in mine.memory.links}
        new: list[tuple[str, str]] = []
        for one in near[:MOST_RELATED]:
            other = await self._version(one.key)
            if other is None or other.id in known or mine.id in {name for _, name in other.memory.links}:
                continue
            if other.order() < mine.order():  # the newer one has the link, whoever finds the pair
                new.append(("related_to", other.id))
        now = await self._version(mine.info.key) if new else None
        if now is not None and now.info.etag == mine.info.etag:
            linked = replace(mine.memory, links=(*mine.memory.links, *new)[:MAX_LINKS])
            data, info = sealed(linked, mine.info.key), mine.info
            self._replica.save(info.key, data, meta=info.meta or {}, base=info, by_caller=False)
            self._counts["related"] += len(new)

    def statistics(self) -> MergingStatistics:
        """Counters, cheap."""
        return MergingStatistics(**self._counts, waiting=len(self._waiting), last_error=self._last_error)


def merge(older: Memory, newer: Memory, older_id: str) -> Memory:
    """The newer memory with what it takes over from the one whose place it takes."""
    links = (("updates", older_id), *newer.links, *(link for link in older.links if link[1] != older_id))
    return replace(
        newer,
        subjects=tuple(dict.fromkeys((*older.subjects, *newer.subjects))),
        created_at=min(older.created_at, newer.created_at),
        links=tuple(dict.fromkeys(links))[:MAX_LINKS],
    )
