"""The portable part of the index: vectors in the bucket, so that each text is embedded by one machine only.

Owns `{space}/_index/{model}/`: reading what others have put there, putting there what was embedded here, and keeping it
in few objects without vectors that nobody needs any more. All of it is derived: if something is lost, damaged or
written twice, some vectors are computed again, so hosts need no lease, and a failure is never more than a remark.
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
from livememfs.recall.embed.prior import MEANINGS as PRIOR_MEANINGS
from livememfs.recall.index.local import Index
from livememfs.recall.index.recordfile import is_damage
from livememfs.recall.index.segments import MOST_ROWS, SUFFIX, BadSegment, name_of, parse, render
from livememfs.recall.index.vectors import ONE
from livememfs.records import keys
from livememfs.store.base import IfAbsent, ObjectInfo, list_all

log = structlog.get_logger("livememfs.recall")

QUIET_SECONDS = 15.0
"""New vectors wait so long for more of them."""
MANY = 4_096
"""So many new vectors do not wait."""
AGAIN_SECONDS = 300.0
"""After a failure: a host without the right to write will not get it within a second."""
LOOK_SECONDS = 30.0
"""How often the bucket is read while much has to be embedded: another host may be embedding the same."""
READ_AT_ONCE = 8
MERGED_AT = 8
"""So many segments of one size are merged to one of the next size."""
KEPT = timedelta(hours=1)
"""A younger segment is not dropped: it may be for notes that this machine has not heard of yet."""


@dataclass(frozen=True)
class SharingStatistics:
    """Counters since the start.

    :read, written:   vectors
    :segments:        objects written
    :merged, removed: objects that became part of another one; objects that nobody needed
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

    `complete(space)` says whether the index has all of a space: only then it is known which vectors nobody needs.
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
        """Have a space's vectors read, and those written that the bucket lacks."""
        if space not in self._known:
            self._want([space])

    def _want(self, spaces: Iterable[str]) -> None:
        self._wanted.update(dict.fromkeys(spaces))
        if self._wanted:
            self._loaded = trio.Event() if self._loaded.is_set() else self._loaded
            self._work.set()

    def forget(self) -> None:
        """The index was made anew: every space has to be read again."""
        self._known.clear()

    def look_again(self) -> None:
        """Much has to be embedded: read what others have embedded meanwhile, unless that was done just now."""
        if trio.current_time() - self._looked >= LOOK_SECONDS:
            self._looked = trio.current_time()
            self._want(self._known)

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
        """Read the segments that are not known here; returns all that the bucket has."""
        prefix = keys.index_prefix(space, self._index.model)
        infos = {info.key[len(prefix) :]: info for info in (await list_all(self._replica.store, prefix)).objects}
        infos = {name: info for name, info in infos.items() if name.endswith(SUFFIX) and "/" not in name}
        known = await trio.to_thread.run_sync(self._segments, space)
        new = [name for name in infos if name not in known and prefix + name not in self._unreadable]
        await for_each(new, lambda name: self._read(space, prefix, name), at_once=READ_AT_ONCE)
        if gone := known.keys() - infos.keys():
            await trio.to_thread.run_sync(self._index.forget_segments, space, gone)
        if new and not self._index.expects():
            await trio.to_thread.run_sync(self._expect)
        return [info for name, info in infos.items() if prefix + name not in self._unreadable]

    async def _read(self, space: str, prefix: str, name: str) -> None:
        try:
            stored = await self._replica.store.get(prefix + name)
        except ObjectMissing:
            return  # merged with others meanwhile
        try:
            meanings, eight = await trio.to_thread.run_sync(parse, name, stored.data, self._index.model)
        except BadSegment as error:
            self._unreadable.add(prefix + name)
            self._replica.unread.note(prefix + name, stored.info.etag, str(error))
            return
        await trio.to_thread.run_sync(self._index.take_segment, space, name, meanings, eight)
        self._counts["read"] += len(meanings)

    def _expect(self) -> None:
        """Compute the mean of any texts, if another host has embedded them."""
        rows = self._packed(PRIOR_MEANINGS)
        if rows.keys() == PRIOR_MEANINGS:
            eight = np.frombuffer(b"".join(rows.values()), np.int8).reshape(len(rows), -1)
            self._index.expect((eight.mean(axis=0) / ONE).astype(np.float32))

    async def _find_unwritten(self, space: str) -> None:
        """Find vectors that an earlier process computed here and that the bucket lacks."""

        def unwritten() -> set[bytes]:
            known: set[bytes] = set().union(*self._segments(space).values())
            return set(self._packed(self._needed(space) - known))

        meanings = await trio.to_thread.run_sync(unwritten)
        if meanings - PRIOR_MEANINGS:
            self._waiting.setdefault(space, set()).update(meanings)
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
        """Write what was computed here; whether all of it could be written."""
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
        """Find out to which spaces the vectors belong that were computed since the last time."""
        unplaced, self._unplaced = self._unplaced, set()
        if not unplaced:
            return
        for space, meanings in (await trio.to_thread.run_sync(self._index.table.spaces_of, list(unplaced))).items():
            if space in self._known:  # for any other, `_find_unwritten` does it
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
        if not any(meanings >= PRIOR_MEANINGS for meanings in known.values()):
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
        """Make few segments of many, and drop vectors that nobody needs. The new segment is written before the old ones
        are deleted, so that a crash between loses nothing.
        """
        if not self._complete(space) or not await trio.to_thread.run_sync(self._is_untidy, space):
            return
        infos = await self._read_new(space)
        known = await trio.to_thread.run_sync(self._segments, space)
        wanted = await trio.to_thread.run_sync(self._needed, space)
        before = (self._clock.now() - KEPT).timestamp() * 1e9
        ages = {info.key.rpartition("/")[2]: info.modified_ns for info in infos}
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
        return any(len(meanings & wanted) * 2 < len(meanings) for meanings in known.values())

    def _failed(self, space: str, error: Exception) -> None:
        if not isinstance(error, LiveMemError) and not is_damage(error):  # the next question has it made anew
            log.error("sharing vectors failed", space=space, exc_info=error)
        elif str(error) != self._last_error:
            log.info("vectors are not shared", space=space, reason=str(error))
        self._last_error = str(error) or type(error).__name__

    def statistics(self) -> SharingStatistics:
        """Counters, cheap."""
        waiting = len(self._unplaced) + sum(len(meanings) for meanings in self._waiting.values())
        return SharingStatistics(
            **self._counts, unreadable=len(self._unreadable), waiting=waiting, last_error=self._last_error
        )


def _to_merge(known: Mapping[str, set[bytes]]) -> set[str]:
    """Those of which there are so many of a size that they become one, and all that are smaller."""
    sizes: dict[int, list[str]] = {}
    for name, meanings in known.items():
        if len(meanings) * 2 <= MOST_ROWS:
            sizes.setdefault(len(oct(len(meanings))), []).append(name)
    full = [size for size, names in sizes.items() if len(names) >= MERGED_AT]
    return {name for size, names in sizes.items() if full and size <= max(full) for name in names}
