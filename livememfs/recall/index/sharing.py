"""The portable part of the index: vectors in the bucket, so that what one machine has embedded no other must.

Owns `{space}/_index/{model}/`: reading what others have put there, putting there what was embedded here, and keeping it
in few objects without what nobody needs any more. All of it is derived: whatever is lost, damaged or written twice here
costs somebody the computing of a vector again, so hosts need no lease, and a failure is never more than a remark.
Refuses to compute vectors and to delay an answer. Trio thread only; what blocks runs in worker threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import for_each
from livememfs.errors import LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.recall.index.local import Index
from livememfs.recall.index.prior import MEANINGS as PRIOR_MEANINGS
from livememfs.recall.index.recordfile import is_damage
from livememfs.recall.index.segments import MOST_ROWS, SUFFIX, BadSegment, name_of, parse, render
from livememfs.recall.index.vectors import ONE
from livememfs.records import keys
from livememfs.store.base import IfAbsent, ObjectInfo, list_all

log = structlog.get_logger("livememfs.recall")

QUIET_SECONDS = 15.0
"""For so long new vectors wait for more of them."""
MANY = 4_096
"""So many do not wait."""
AGAIN_SECONDS = 300.0
"""After a failure: whoever may not write there will not be allowed to in a second either."""
LOOK_SECONDS = 30.0
"""While much has to be embedded, somebody else may be embedding the same: how often that is looked for."""
READ_AT_ONCE = 8
MERGED_AT = 8
"""Segments of a size that become one of the next."""
KEPT = timedelta(hours=1)
"""For so long a vector may be there for a note that this machine has not heard of yet."""


@dataclass(frozen=True)
class SharingStatistics:
    """Counters since the start.

    :read, written:   vectors
    :segments:        objects written
    :merged, removed: objects that became part of another one; that nobody needed
    :unreadable:      objects that are no segments of this model
    """

    read: int
    written: int
    segments: int
    merged: int
    removed: int
    unreadable: int
    waiting: int
    last_error: str


class Sharing:
    """The vectors of one bucket, by one model. `wants` and `embedded` say what there is to do; `run` does it.

    `complete(space)` says whether the index has all of a space: only then is it known what nobody needs.
    """

    def __init__(self, replica: Replica, clock: Clock, index: Index, complete: Callable[[str], bool]) -> None:
        self._replica, self._clock, self._index, self._complete = replica, clock, index, complete
        self._wanted: dict[str, None] = {}
        self._known: set[str] = set()
        self._missed: dict[str, None] = {}
        self._loaded = trio.Event()
        self._loaded.set()
        self._work, self._fresh, self._many = trio.Event(), trio.Event(), trio.Event()
        self._waiting: dict[str, set[bytes]] = {}
        self._unplaced: set[bytes] = set()
        self._unreadable: set[str] = set()
        self._looked = float("-inf")
        self._flushing = trio.Lock()
        self._counts = dict.fromkeys(("read", "written", "segments", "merged", "removed"), 0)
        self._last_error = ""

    # --- what there is to do --------------------------------------------------------------------------------------

    def wants(self, space: str) -> None:
        """Have a space's vectors read, and what is only here written."""
        if space not in self._known:
            self._wanted[space] = None
            self._loaded = trio.Event() if self._loaded.is_set() else self._loaded
            self._work.set()

    def forget(self) -> None:
        """The index was made anew: what is in the bucket counts as not read."""
        self._known.clear()

    def look_again(self) -> None:
        """Much has to be embedded: see whether others have done it meanwhile. Costs nothing when done just now."""
        if trio.current_time() - self._looked >= LOOK_SECONDS:
            self._looked = trio.current_time()
            for space in self._known:
                self._wanted[space] = None
            if self._wanted:
                self._loaded = trio.Event() if self._loaded.is_set() else self._loaded
                self._work.set()

    def embedded(self, meanings: Iterable[bytes]) -> None:
        """These were computed here."""
        self._unplaced.update(meanings)
        self._fresh.set()
        if len(self._unplaced) >= MANY:
            self._many.set()

    async def settled(self) -> None:
        """Wait until everything that is wanted was read, or could not be."""
        await self._loaded.wait()

    # --- reading --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read and write until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_now_and_then)
            while True:
                await self._work.wait()
                self._work = trio.Event()
                for space in list(self._wanted):
                    await self._read_space(space)
                    del self._wanted[space]
                if not self._wanted:
                    self._loaded.set()

    async def _read_space(self, space: str) -> None:
        try:
            await self._read_new(space)
            if space not in self._known:
                self._known.add(space)
                await self._find_unwritten(space)
            self._missed.pop(space, None)
        except Exception as error:  # an index that cannot be shared is still an index
            self._missed[space] = None
            self._failed(space, error)

    async def _read_new(self, space: str) -> list[ObjectInfo]:
        """Read the segments that are not known here; which there are."""
        prefix = keys.index_prefix(space, self._index.model)
        there = {info.key[len(prefix) :]: info for info in (await list_all(self._replica.store, prefix)).objects}
        there = {name: info for name, info in there.items() if name.endswith(SUFFIX) and "/" not in name}
        known = await trio.to_thread.run_sync(self._segments, space)
        new = [name for name in there if name not in known and prefix + name not in self._unreadable]
        await for_each(new, lambda name: self._read(space, prefix, name), at_once=READ_AT_ONCE)
        if gone := known.keys() - there.keys():
            await trio.to_thread.run_sync(self._index.forget_segments, space, gone)
        if new and self._index.prior is None:
            await trio.to_thread.run_sync(self._expect)
        return [info for name, info in there.items() if prefix + name not in self._unreadable]

    async def _read(self, space: str, prefix: str, name: str) -> None:
        try:
            found = await self._replica.store.get(prefix + name)
        except ObjectMissing:
            return  # merged with others meanwhile
        try:
            meanings, eight = await trio.to_thread.run_sync(parse, name, found.data, self._index.model)
        except BadSegment as error:
            self._unreadable.add(prefix + name)
            self._replica.unread.note(prefix + name, found.info.etag, str(error))
            return
        await trio.to_thread.run_sync(self._index.take_segment, space, name, meanings, eight)
        self._counts["read"] += len(meanings)

    def _expect(self) -> None:
        """The mean of any texts follows from their vectors, when somebody has embedded them."""
        rows = self._packed(PRIOR_MEANINGS)
        if rows.keys() == PRIOR_MEANINGS:
            eight = np.frombuffer(b"".join(rows.values()), np.int8).reshape(len(rows), -1)
            self._index.expect((eight.mean(axis=0) / ONE).astype(np.float32))

    async def _find_unwritten(self, space: str) -> None:
        """What was computed here before the process ended, and nobody has written since."""

        def unwritten() -> set[bytes]:
            known: set[bytes] = set().union(*self._segments(space).values())
            return set(self._packed(self._needed(space) - known))

        found = await trio.to_thread.run_sync(unwritten)
        if found - PRIOR_MEANINGS:
            self._waiting.setdefault(space, set()).update(found)
            self._fresh.set()

    def _segments(self, space: str) -> dict[str, set[bytes]]:
        return self._index.table.segments(self._index.model, space)

    def _needed(self, space: str) -> set[bytes]:
        """The meanings that whoever mounts a space needs: of its pieces, and of any texts."""
        return self._index.table.meanings_of(space) | PRIOR_MEANINGS

    def _packed(self, meanings: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors of these meanings as they are kept, of those that there are."""
        return self._index.table.eights(self._index.model, list(meanings))

    # --- writing --------------------------------------------------------------------------------------------------

    async def _write_now_and_then(self) -> None:
        while True:
            await self._fresh.wait()
            with trio.move_on_after(QUIET_SECONDS):
                await self._many.wait()
            if not await self.flush():
                await trio.sleep(AGAIN_SECONDS)

    async def flush(self) -> bool:
        """Write what was computed here; whether the bucket took it."""
        async with self._flushing:
            self._fresh, self._many = trio.Event(), trio.Event()
            for space in list(self._missed):
                await self._read_space(space)
            try:
                await self._place()
            except Exception as error:
                self._failed("", error)
                return False
            complete = not self._missed
            for space in list(self._waiting):
                try:
                    with self._replica.upkeep.writing(space) as may:
                        if may:
                            await self._write_space(space)
                except Exception as error:
                    self._failed(space, error)
                    complete = False
            if not complete:
                self._fresh.set()
            return complete

    async def _place(self) -> None:
        """Find out in which spaces those are that were computed since."""
        unplaced, self._unplaced = self._unplaced, set()
        if not unplaced:
            return
        for space, meanings in (await trio.to_thread.run_sync(self._index.table.spaces_of, list(unplaced))).items():
            if space in self._known:  # of any other, it is found out when it becomes known
                self._waiting.setdefault(space, set()).update(meanings)

    async def _write_space(self, space: str) -> None:
        waiting = self._waiting[space]
        try:
            await self._replica.names.stat(keys.meta_key(space))
        except ObjectMissing:
            self._waiting.pop(space)  # a removed space must not come back for the sake of its vectors
            return
        known = await trio.to_thread.run_sync(self._segments, space)
        missing = waiting.difference(*known.values())
        if not any(found >= PRIOR_MEANINGS for found in known.values()):
            missing |= PRIOR_MEANINGS
        vectors = await trio.to_thread.run_sync(self._packed, missing)
        if vectors.keys() - PRIOR_MEANINGS:
            await self._write(space, vectors)
        waiting -= missing | set().union(*known.values())
        if not waiting:
            self._waiting.pop(space, None)
        await self._tidy(space)
        self._last_error = ""

    async def _write(self, space: str, vectors: Mapping[bytes, bytes]) -> list[str]:
        """Put vectors into the bucket; the names of the segments."""
        names = []
        meanings = sorted(vectors)
        for start in range(0, len(meanings), MOST_ROWS):
            rows = {meaning: vectors[meaning] for meaning in meanings[start : start + MOST_ROWS]}
            data = await trio.to_thread.run_sync(render, self._index.model, rows)
            name = name_of(data)
            with suppress(PreconditionFailed):  # the same vectors: the same object
                key = keys.index_prefix(space, self._index.model) + name
                await self._replica.store.put(key, data, condition=IfAbsent())
            await trio.to_thread.run_sync(self._index.wrote_segment, space, name, rows)
            self._counts["segments"] += 1
            self._counts["written"] += len(rows)
            names.append(name)
        return names

    # --- few objects ----------------------------------------------------------------------------------------------

    async def _tidy(self, space: str) -> None:
        """Make few segments of many, and drop what nobody needs. What is new stands before what is old goes."""
        if not self._complete(space) or not await trio.to_thread.run_sync(self._is_untidy, space):
            return
        there = await self._read_new(space)
        known = await trio.to_thread.run_sync(self._segments, space)
        wanted = await trio.to_thread.run_sync(self._needed, space)
        before = (self._clock.now() - KEPT).timestamp() * 1e9
        ages = {info.key.rpartition("/")[2]: info.modified_ns for info in there}
        old = {name for name in known if 0 < ages.get(name, 0) < before}
        chosen = _to_merge(known) | {name for name in old if len(known[name] & wanted) * 2 < len(known[name])}
        if not chosen:
            return
        kept: set[bytes] = set()
        for name in chosen:
            kept |= known[name] & wanted if name in old else known[name]
        kept = kept.difference(*(known[name] for name in known.keys() - chosen))
        vectors = await trio.to_thread.run_sync(self._packed, kept)
        written = await self._write(space, vectors) if vectors else []
        gone = chosen.difference(written)
        for name in gone:
            await self._replica.store.delete(keys.index_prefix(space, self._index.model) + name)
        await trio.to_thread.run_sync(self._index.forget_segments, space, gone)
        self._counts["merged" if written else "removed"] += len(gone)

    def _is_untidy(self, space: str) -> bool:
        known = self._segments(space)
        if _to_merge(known):
            return True
        wanted = self._needed(space)
        return any(len(found & wanted) * 2 < len(found) for found in known.values())

    def _failed(self, space: str, error: Exception) -> None:
        if not isinstance(error, LiveMemError) and not is_damage(error):  # the next question has it made anew
            log.error("sharing vectors failed", space=space, exc_info=error)
        elif str(error) != self._last_error:
            log.info("vectors are not shared", space=space, reason=str(error))
        self._last_error = str(error) or type(error).__name__

    def statistics(self) -> SharingStatistics:
        """Counters, cheap."""
        waiting = len(self._unplaced) + sum(len(found) for found in self._waiting.values())
        return SharingStatistics(
            **self._counts, unreadable=len(self._unreadable), waiting=waiting, last_error=self._last_error
        )


def _to_merge(known: Mapping[str, set[bytes]]) -> set[str]:
    """Those of which there are so many of a size that they become one, and all that are smaller."""
    sizes: dict[int, list[str]] = {}
    for name, found in known.items():
        if len(found) * 2 <= MOST_ROWS:
            sizes.setdefault(len(oct(len(found))), []).append(name)
    full = [size for size, names in sizes.items() if len(names) >= MERGED_AT]
    return {name for size, names in sizes.items() if full and size <= max(full) for name in names}
