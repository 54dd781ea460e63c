"""Listening: what other hosts' beacons say, and finding out what became of what they name.

Owns the reading of beacons that moved, and the new look at known levels for who missed something. Refuses to say when
(`watcher` does). Trio thread only.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from livememfs.cache.beacon import COMMANDS, Announcement
from livememfs.cache.levels import split_key
from livememfs.cache.watching.pace import STIRRED_SECONDS
from livememfs.concurrency import for_each
from livememfs.errors import ObjectMissing
from livememfs.text.foreign import RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from livememfs.cache.beacon import Beacon
    from livememfs.cache.replica import Replica
    from livememfs.cache.watching.pace import Watched
    from livememfs.store.base import ObjectInfo

CLOCK_SKEW = timedelta(minutes=5)
"""How far another host's clock may be behind for its new notes to be seen at once."""
ASKED_ONE_BY_ONE = 8
"""Up to this many changed objects of one level are asked for; of more, the level is listed."""
RELISTED = 64
BEACONS_READ_FIRST = 32


class Listener:
    """Listens to all beacons but our own. `stir(state)`: another host is at work there."""

    def __init__(
        self, replica: Replica, beacon: Beacon, stir: Callable[[Watched], None], now_ns: Callable[[], int]
    ) -> None:
        self._replica = replica
        self._beacon = beacon
        self._stir = stir
        self._now_ns = now_ns
        self.counts = {"announced": 0, "full": 0}

    async def listen(self, space: str, state: Watched, beacons: list[ObjectInfo], *, surveyed: bool) -> None:
        """Read the beacons that moved, and look at what they name."""
        moved = [
            info for info in beacons if state.beacons.get(info.key) != info.etag and info.key != self._beacon.key(space)
        ]
        first = state.baseline == float("inf")
        if any(not first or self._is_young(info) for info in moved):
            self._stir(state)
        changed: set[str] = set()
        everything = False
        read: dict[str, Announcement | None] = {}

        async def listen(info: ObjectInfo) -> None:
            read[info.key] = await self._read(info)

        chosen = moved[:BEACONS_READ_FIRST] if first else moved
        await for_each(chosen, listen)
        for info in chosen:
            told = read[info.key]
            missed: list[str] | None = []
            if told is not None:  # of one that was not there before, everything is news
                missed = told.since(state.heard.get(info.key)) if info.key in state.beacons else told.all()
            if not first and missed is None:
                everything = True
            elif not first and missed:
                changed.update(missed)
        if everything and not surveyed:
            await self.relist(f"{space}/")
        elif changed:
            self.counts["announced"] += len(changed)
            await self._look_at(changed)
        state.heard |= read  # only now: what failed half-way is read again, and is news then as well
        state.beacons |= {info.key: info.etag for info in moved}

    def _is_young(self, info: ObjectInfo) -> bool:
        """Whether a mount has announced something a moment ago, and need not announce its next notes."""
        age = abs(self._now_ns() - info.modified_ns) / 1e9
        return age < STIRRED_SECONDS + CLOCK_SKEW.total_seconds() and not info.key.endswith(f"{COMMANDS}.json")

    async def _read(self, info: ObjectInfo) -> Announcement | None:
        """A beacon. None for what is gone, and for what is none: that is not even fetched when it is too large."""
        replica = self._replica
        if info.size > RECORD_BYTES:
            replica.unread.note(info.key, info.etag, f"it has {info.size:,} bytes")
            return None
        try:
            found = await replica.asking.call(lambda: replica.store.get(info.key))
        except ObjectMissing:
            return None
        return await replica.unread.read(found, Announcement.parse)

    async def _look_at(self, changed: set[str]) -> None:
        """Find out what became of objects, level by level. Levels that nobody looked at need nothing."""
        by_level: defaultdict[str, list[str]] = defaultdict(list)
        for key in changed:
            parent, _ = split_key(key)
            while parent and self._replica.names.levels.get(parent) is None:
                parent, key = split_key(parent[:-1])[0], parent  # a folder may have come or gone one level up
            by_level[parent].append(key)
        for level, found in by_level.items():
            if len(found) <= ASKED_ONE_BY_ONE and all(split_key(key)[0] == level for key in found):
                await self._replica.names.look_again(found)
            else:
                await self._replica.names.refresh(level)

    async def relist(self, prefix: str) -> None:
        """Ask for the known levels below a prefix that were asked for last; doubt what is too much, or not come to."""
        self.counts["full"] += 1
        levels = self._replica.names.levels.below(prefix)
        asked: set[str] = set()
        try:
            for level in levels[-RELISTED:]:
                await self._replica.names.refresh(level)
                asked.add(level)
        finally:
            for level in levels:
                if level not in asked:
                    self._replica.names.doubt(level)
