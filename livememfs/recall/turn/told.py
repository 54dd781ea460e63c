"""What each session was told, on every mount of a bucket: one small object a session, which all of them read and write.

Owns `{space}/sessions/{session}/told.json`: when it is read and written, and when two versions of one session are
joined (`inject.ToldSession.join`). An answer waits for a read for a moment at most, and never for a write. Refuses to
fail: a session whose object is lost, or cannot be read or written, may be told something again. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.recall.turn.inject import ToldSession
from livememfs.records import keys
from livememfs.store.base import IfAbsent, IfMatch

log = structlog.get_logger("livememfs.recall")

FIRST, AGAIN = 0.3, 0.1
"""Seconds that an answer waits for the bucket, from the request on: for a session that is new here, and for others."""
FRESH = 2.0
"""What was read counts as fresh for so many seconds; a session in use is read no more often."""
PAUSE, RETRY = 5.0, 60.0
"""Seconds between two writes of one session, and after one that failed."""
FLUSHED_WITHIN = 5.0
OPEN_SESSIONS = 256
ATTEMPTS = 5
"""Attempts to write when others write the same object at the same moment."""


@dataclass(eq=False)
class Kept:
    """One session here.

    :lock:     held by every task that uses or changes `session`
    :theirs:   what was read from the bucket and is not in `session` yet, and its version
    :changed:  `session` has what the bucket lacks
    :reason:   why the last write failed
    """

    space: str
    key: str
    session: ToldSession = field(default_factory=ToldSession)
    lock: trio.Lock = field(default_factory=trio.Lock)
    asked_at: float = float("-inf")
    reading: trio.Event | None = None
    theirs: tuple[ToldSession, str] | None = None
    etag: str = ""
    loaded: bool = False
    changed: bool = False
    due: float = float("-inf")
    writer: trio.Lock = field(default_factory=trio.Lock)
    reason: str = ""

    def take(self) -> None:
        """Join what was read into `session`. The caller holds the lock."""
        if self.theirs is None:
            return
        (theirs, self.etag), self.theirs = self.theirs, None
        if not self.loaded and self.session.forgotten:  # here, before the count of the bucket was known
            self.session.forgotten += theirs.forgotten
        self.loaded = True
        self.session.join(theirs)


class ToldSessions:
    """What the sessions of one bucket were told. Without `run`, they are in memory alone."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._nursery: trio.Nursery | None = None
        self._sessions: dict[tuple[str, str], Kept] = {}
        self._counts = {"told_read": 0, "told_written": 0, "unkept": 0}

    async def run(self) -> None:
        """Read and write in the background, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                for kept in self._sessions.values():
                    if kept.changed:
                        self._nursery.start_soon(self._write_later, kept)
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def of(self, space: str, session: str, fresh: float = FRESH) -> Kept:
        """A session. It is read from the bucket, unless that was begun less than `fresh` seconds ago."""
        kept = self._sessions.pop((space, session), None)
        if kept is None:
            kept = Kept(space, keys.session_key(space, keys.session_slug(session), keys.TOLD))
        self._sessions[space, session] = kept  # at the end: those used last stay
        while len(self._sessions) > OPEN_SESSIONS:
            old = next(iter(self._sessions.values()))
            if old.changed or old.lock.locked() or old.writer.locked():
                break
            del self._sessions[next(iter(self._sessions))]
        now = trio.current_time()
        due = now - kept.asked_at >= fresh and kept.reading is None and not self._replica.asking.pausing
        if self._nursery is not None and due:
            kept.asked_at, kept.reading = now, trio.Event()
            self._nursery.start_soon(self._read, kept)
        return kept

    async def caught_up(self, kept: Kept, patience: float | None = None) -> None:
        """Join what the bucket says of a session, if it answers soon enough. The caller holds the lock."""
        if kept.reading is not None:
            seconds = patience if patience is not None else AGAIN if kept.loaded else FIRST
            with trio.move_on_at(kept.asked_at + seconds):
                await kept.reading.wait()
        kept.take()

    def changed(self, kept: Kept) -> None:
        """Have what a session was told written to the bucket soon."""
        was, kept.changed = kept.changed, True
        if self._nursery is not None and not was:
            self._nursery.start_soon(self._write_later, kept)

    async def forget(self, space: str, session: str) -> None:
        """Have every mount tell a session everything again: it lost what it knew."""
        kept = self.of(space, session)
        async with kept.lock:
            await self.caught_up(kept)
            if kept.session.told or not kept.loaded:
                kept.session.forget(kept.session.forgotten + 1)
                self.changed(kept)

    async def flush(self) -> None:
        """Write what waits, before the end; not for long."""
        with trio.move_on_after(FLUSHED_WITHIN):
            for kept in [kept for kept in self._sessions.values() if kept.changed]:
                await self._write(kept)

    # --- the bucket ---------------------------------------------------------------------------------------------

    async def _read(self, kept: Kept) -> None:
        try:
            kept.theirs = await self._get(kept)
        except LiveMemError as error:
            log.debug("what a session was told cannot be read", key=kept.key, reason=str(error))
        finally:
            if kept.reading is not None:
                kept.reading.set()
                kept.reading = None

    async def _get(self, kept: Kept) -> tuple[ToldSession, str]:
        replica = self._replica
        self._counts["told_read"] += 1
        try:
            stored = await replica.store.get(kept.key)
        except ObjectMissing:
            return ToldSession(), ""
        return await replica.unread.read(stored, ToldSession.parse) or ToldSession(), stored.info.etag

    async def _write_later(self, kept: Kept) -> None:
        while kept.changed:
            await trio.sleep_until(kept.due)
            await self._write(kept)

    async def _write(self, kept: Kept) -> None:
        """Write a session, together with what others wrote meanwhile."""
        async with kept.writer:
            kept.due = trio.current_time() + PAUSE
            try:
                for _ in range(ATTEMPTS):
                    if not kept.changed or await self._put(kept):
                        break
            except LiveMemError as error:
                self._counts["unkept"] += 1
                kept.changed, kept.reason, kept.due = True, str(error), trio.current_time() + RETRY

    async def _put(self, kept: Kept) -> bool:
        """Put what is known now; False where another mount wrote it meanwhile: then that is read, to be joined."""
        async with kept.lock:
            kept.take()
            data, kept.changed = kept.session.render(), False
        condition = IfMatch(kept.etag) if kept.etag else IfAbsent()
        with self._replica.upkeep.writing(kept.space) as may:
            if not may or not await self._is_there(kept.space):
                return True
            try:
                info = await self._replica.store.put(kept.key, data, condition=condition)
            except PreconditionFailed:
                kept.theirs, kept.changed = await self._get(kept), True
                return False
        kept.etag, kept.reason = info.etag, ""
        self._counts["told_written"] += 1
        return True

    async def _is_there(self, space: str) -> bool:
        """Whether a space exists: a removed one must not come back because of this object."""
        try:
            await self._replica.names.stat(keys.meta_key(space))
        except ObjectMissing:
            return False
        return True

    def statistics(self) -> dict[str, int]:
        """Objects read and written, writes that failed, and sessions that are open, since the start."""
        return {**self._counts, "sessions": len(self._sessions)}
