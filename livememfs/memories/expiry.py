"""Removing memories at the second at which they end.

Owns the known end times: those in the names of memories that were listed or changed. What is shown does not depend on
it: every reader sees the end in the name (see `keys.MemoryName`). It removes the objects, which also makes the kernel
forget them. Refuses to list anything. Trio thread only.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError, ObjectMissing
from livememfs.records import keys

log = structlog.get_logger("livememfs.memories")

LOOK_SECONDS = 60.0
"""Most seconds between two looks at the clock: it may be set while the daemon sleeps."""
AGAIN = timedelta(seconds=30)


@dataclass(frozen=True)
class ExpiryStatistics:
    """Memories whose end is known and still to come, and those removed since the start."""

    waiting: int
    removed: int


class Expiry:
    """The memories of one bucket that end, by their end."""

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self._replica, self._clock = replica, clock
        self._ends: list[tuple[datetime, str]] = []
        self._known: set[str] = set()
        self._sooner = trio.Event()
        self._removed = 0

    def heard(self, change: Change) -> None:
        """Take note of a change: a subscriber of `changes`."""
        if change.kind == "put":
            self.note([change.key])

    def note(self, listed: Iterable[str]) -> None:
        """Take note of keys. Only those of memories that end count."""
        for key in listed:
            ends = _end_of(key)
            if ends is not None and key not in self._known:
                self._known.add(key)
                heapq.heappush(self._ends, (ends, key))
                self._sooner.set()

    async def run(self) -> None:
        """Remove what has ended, until cancelled."""
        while True:
            while self._ends and self._ends[0][0] <= self._clock.now():
                _, key = heapq.heappop(self._ends)
                self._known.discard(key)
                await self._remove(key)
            self._sooner = trio.Event()
            left = (self._ends[0][0] - self._clock.now()).total_seconds() if self._ends else LOOK_SECONDS
            with trio.move_on_after(min(max(left, 0.0), LOOK_SECONDS)):
                await self._sooner.wait()

    async def _remove(self, key: str) -> None:
        try:
            info = await self._replica.names.look(key)
            self._replica.remove(key, base=info)
            self._removed += 1
        except ObjectMissing:
            return
        except LiveMemError as error:
            log.info("what has ended could not be removed", key=key, reason=str(error))
            self._known.add(key)
            heapq.heappush(self._ends, (self._clock.now() + AGAIN, key))

    def statistics(self) -> ExpiryStatistics:
        """Counters, cheap."""
        return ExpiryStatistics(len(self._ends), self._removed)


def _end_of(key: str) -> datetime | None:
    """When the memory of this key ends; None for any other key."""
    if "_until_" not in key:
        return None
    parsed = keys.parse(key)
    name = keys.MemoryName.parse(parsed.name.rpartition("/")[2]) if parsed.kind == "memory" else None
    return name.expires_at if name is not None else None
