"""Merging: a new memory that states the same fact as another one, or corrects it, replaces it (companion-memory,
"Déduplication").

Owns which of two memories stays (the newer), what it takes over (subjects, links, the first date), and its link to the
other one, whose last version stays in the history. Where it is not sure that one corrects the other, both stay, and the
newer one is linked to what it contradicts. No memory takes the place of one of a higher class of trust, nor does one
vanish behind what the web said. The result depends on the two memories alone: two hosts that find
the same pair do the same, and a second merge changes nothing. No close waits for it. Refuses memories that ended or
were forgotten, and pairs from two collections. Trio thread only.
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
from livememfs.recall.likeness.contradiction import RELATION, stands
from livememfs.recall.likeness.correction import Verdict
from livememfs.recall.service import Recall
from livememfs.records import keys
from livememfs.records.memory import MAX_LINKS, Memory, sealed
from livememfs.records.trust import Trust, trust_of, with_trust
from livememfs.store.base import ObjectInfo
from livememfs.text.fields import read_list

log = structlog.get_logger("livememfs.memories")

RELATED = 0.85
"""A cosine above which two memories are linked although they do not state one fact (spacebot-memory-v2)."""
MOST_RELATED = 3
CORRECTS = "corrects"
"""The field of a memory with the names of those that it corrects, as whoever wrote it says."""
UNSURE = "unsure"
"""The field of a memory with the names of those that it was found to contradict by its words alone."""
RECENT = timedelta(days=1)
"""A memory that is not older may have been written while no host was there to compare it."""
AGAIN_SECONDS = 30.0


@dataclass(frozen=True)
class MergingStatistics:
    """Memories compared, merged, linked and found to contradict another since the start; those that wait; why the last
    comparison failed.
    """

    judged: int
    merged: int
    related: int
    contradicting: int
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

    @property
    def trust(self) -> Trust:
        return trust_of(self.info.meta, self.memory.said_of_trust)

    def order(self) -> tuple[object, str]:
        """The sort key by age; the same on every host."""
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
        self._counts = {"judged": 0, "merged": 0, "related": 0, "contradicting": 0}
        self._last_error = ""

    def heard(self, change: Change) -> None:
        """A subscriber of `changes`."""
        if change.kind != "put" or self._threshold >= 1 or keys.parse(change.key).kind != "memory":
            return
        if change.origin == "local" or self._is_new(change.key):
            self._wait_for([change.key])

    def _is_new(self, key: str) -> bool:
        """Whether another host may have just stored this memory; changes of older ones that host compares itself."""
        name = keys.MemoryName.parse(key.rpartition("/")[2])
        return name is None or name.timestamp >= self._clock.now() - RECENT

    def _wait_for(self, memory_keys: list[str]) -> None:
        self._waiting.update(dict.fromkeys(memory_keys))
        if self._waiting:
            self._idle = trio.Event() if self._idle.is_set() else self._idle
            self._work.set()

    async def opened(self, space: str) -> None:
        """A space is searched from now on: compare the memories that were written lately."""
        since = int((self._clock.now() - RECENT).timestamp() * 1e9)
        for collection in keys.COLLECTIONS:
            level = await self._replica.names.listing(f"{space}/{collection}/")
            lately = [info.key for info in level.objects.values() if info.modified_ns >= since]
            self._wait_for([key for key in lately if self._threshold < 1 and keys.parse(key).kind == "memory"])

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be compared, and nothing is being compared."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until nothing waits to be compared."""
        await self._idle.wait()

    async def run(self) -> None:
        """Compare new memories, until cancelled or stopped. May be run again after a failure."""
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
        """Stop comparing and accepting writes. Called before the last uploads are waited for. Memories that are not
        compared yet are when the space is searched again.
        """
        self._running.cancel()
        await self._ended.wait()

    async def _compare_next(self) -> None:
        key = next(iter(self._waiting))
        del self._waiting[key]  # a change during the comparison puts it back
        try:
            await self._judge(key)
            self._last_error = ""
        except LiveMemError as error:
            self._last_error = str(error)
            log.info("a memory was not compared with others", key=key, reason=str(error))
            self._waiting[key] = None
            await trio.sleep(AGAIN_SECONDS)
        except Exception as error:  # one memory that cannot be compared must not stop the others
            self._last_error = str(error) or type(error).__name__
            log.exception("a memory cannot be compared with others", key=key)

    async def _judge(self, key: str) -> None:
        mine = await self._version(key)
        if mine is None:
            return
        self._counts["judged"] += 1
        if await self._corrects_by_name(mine):
            return
        space, memory = keys.parse(key).space, mine.memory
        similar, _ = await alike(self._recall, space, memory.collection, memory.content.strip())
        others = [hit for hit in similar if hit.key != key]
        sure = Verdict.CORRECTS
        for hit in others:
            one_fact = hit.likeness > self._threshold
            if not one_fact and sure not in (hit.older, hit.newer):
                continue
            other = await self._version(hit.key)
            now = await self._version(key)
            if now is None or now.info.etag != mine.info.etag:
                self._wait_for([key])
                return
            # The index may be behind: only a memory that still has the text that was compared is merged.
            if other is None or other.memory.content.strip() != hit.text:
                continue
            older, newer = sorted((mine, other), key=_Version.order)
            if not _may_replace(newer.trust, older.trust):
                continue
            if one_fact or (hit.older if older is other else hit.newer) is sure:
                self._merge(older, newer)
                return
        await self._relate(mine, others)

    async def _corrects_by_name(self, mine: _Version) -> bool:
        """Merge what a memory itself says that it corrects: who wrote it knew both."""
        space, collection = keys.parse(mine.info.key).space, mine.memory.collection
        names = set(read_list(mine.memory.extra.get(CORRECTS)) or ())
        level = await self._replica.names.listing(f"{space}/{collection}/") if names else None
        for info in level.objects.values() if level is not None else ():
            older = await self._version(info.key) if id_of(info.key.rpartition("/")[2]) in names else None
            now = await self._version(mine.info.key) if older is not None else None
            if older is None or now is None or not _may_replace(mine.trust, older.trust):
                continue
            if older.order() < mine.order() and now.info == mine.info:
                self._merge(older, mine)
                return True
        return False

    async def _version(self, key: str) -> _Version | None:
        """A memory as it is now; None when it is gone, ended, forgotten, empty or unreadable."""
        if keys.has_ended(key, self._clock.now()):
            return None
        try:
            stored = await self._replica.read(key)
            parsed = keys.parse(key)
            collection, _, name = parsed.name.partition("/")
            memory = Memory.parse(stored.data, path=key, collection=collection, name=name)
        except (ObjectMissing, NotText):
            return None
        return _Version(stored.info, stored.data, memory) if memory.content.strip() and not memory.forgotten else None

    def _merge(self, older: _Version, newer: _Version) -> None:
        """Replace the older one by the newer. This is one step of the journal: a crash leaves all of it or nothing."""
        merged = merge(older.memory, newer.memory, older.id)
        trust = newer.trust if newer.trust is Trust.USER else min(older.trust, newer.trust)
        merged = replace(merged, extra=with_trust(merged.extra, trust))
        space, collection = keys.parse(older.info.key).space, older.memory.collection
        kept = keys.memory_history_key(space, collection, older.id, newer.memory.updated_at)
        self._replica.supersede(newer.info, sealed(merged, newer.info.key), older.info, kept, older.data)
        self._counts["merged"] += 1

    async def _relate(self, mine: _Version, others: list[Alike]) -> None:
        """Link a memory to older ones that it contradicts, and to those that are near to it without one fact."""
        unsure = [hit for hit in others if Verdict.CONTRADICTS in (hit.older, hit.newer)]
        near = [hit for hit in others if hit.near is not None and hit.near > RELATED and hit not in unsure]
        new: list[tuple[str, str]] = []
        for hit in (*unsure, *near[:MOST_RELATED]):
            other = await self._version(hit.key)
            if other is None:
                continue
            relation = RELATION if hit in unsure and other.memory.content.strip() == hit.text else "related_to"
            if other.order() > mine.order():
                # The link is in the newer one, on every host. That one does not know yet that this one was edited.
                if relation == RELATION and hit.newer is Verdict.CONTRADICTS:
                    self._link(other, [(RELATION, mine.id)])
            elif relation == RELATION and hit.older is Verdict.CONTRADICTS:
                new.append((RELATION, other.id))
            elif not _are_linked(mine, other):
                new.append(("related_to", other.id))
        now = await self._version(mine.info.key) if new else None
        if now is not None and now.info.etag == mine.info.etag:
            self._link(mine, new)

    def _link(self, newer: _Version, new: list[tuple[str, str]]) -> None:
        memory = newer.memory
        new = [link for link in new if link not in memory.links]
        if not new:
            return
        unsure = [name for relation, name in new if relation == RELATION]
        marked = {UNSURE: [*(read_list(memory.extra.get(UNSURE)) or ()), *unsure]} if unsure else {}
        links = (*memory.links, *new)[:MAX_LINKS]
        data = sealed(replace(memory, links=links, extra={**memory.extra, **marked}), newer.info.key)
        self._replica.save(newer.info.key, data, meta=newer.info.meta or {}, base=newer.info, by_caller=False)
        self._counts["contradicting"] += len(unsure)
        self._counts["related"] += len(new) - len(unsure)

    def statistics(self) -> MergingStatistics:
        """Counters, cheap."""
        return MergingStatistics(**self._counts, waiting=len(self._waiting), last_error=self._last_error)


def _may_replace(newer: Trust, older: Trust) -> bool:
    """Whether a memory of one class takes the place of one of another. What the web said would hide an agent's words:
    what takes its place has its class. The user's own words replace anything.
    """
    return newer is Trust.USER or (newer >= older and (older > Trust.WEB or newer is older))


def _are_linked(one: _Version, other: _Version) -> bool:
    return other.id in {name for _, name in one.memory.links} or one.id in {name for _, name in other.memory.links}


def contradicts(newer: Memory, older: Memory, name: str) -> bool:
    """Whether the newer is linked to the older, by that name, as what it contradicts, and the words still say so. Who
    linked them by hand takes it back by hand.
    """
    if (RELATION, name) not in newer.links:
        return False
    found_by_words = name in (read_list(newer.extra.get(UNSURE)) or ())
    return not found_by_words or stands(older.content, newer.content)


def merge(older: Memory, newer: Memory, older_id: str) -> Memory:
    """The newer memory with what it takes over from the older one, which it replaces."""
    given = (*newer.links, *(link for link in older.links if link[1] != older_id))
    links = (("updates", older_id), *(link for link in given if link != (RELATION, older_id)))
    return replace(
        newer,
        source=newer.source or older.source,
        subjects=tuple(dict.fromkeys((*older.subjects, *newer.subjects))),
        created_at=min(older.created_at, newer.created_at),
        links=tuple(dict.fromkeys(links))[:MAX_LINKS],
    )
