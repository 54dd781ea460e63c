"""How often memories were used, on this machine and on all others: nothing is written when one is read.

Owns `{space}/_index/_uses/{host}.json`, one object a host, written now and then and at the end. A use is that a memory
was told to an agent, or its file was read. A crash costs the last minute of counts. Refuses to change any memory:
what it weighs follows from the counts when it is looked at (`Memory.effective`). Trio thread only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError, ObjectMissing
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.text.foreign import Unreadable, count, read_object

log = structlog.get_logger("livememfs.memories")

_NO_MOMENT = 253_402_300_800
"""Seconds since 1970 of the end of the year 9999: what is not below is told in another unit, or no moment."""
WRITTEN_SECONDS = 60.0
"""For so long counts wait to be written."""
READ_SECONDS = 600.0
"""How often the counts of others are read, of spaces in use."""
MOST_KEPT = 20_000
"""Memories of one space that counts are kept of, those used last."""
MOST_USES = 1_000_000_000
"""Of one memory by one host: no true count is larger, and sums of these can be reckoned with."""
Count = tuple[int, int]
"""How often, and when last in seconds since 1970."""


@dataclass(frozen=True)
class UsesStatistics:
    """Memories with a count of this host's, uses since the start, objects written and read."""

    counted: int
    uses: int
    written: int
    read: int


@dataclass
class _Space:
    """Counts of one space."""

    own: dict[str, Count] = field(default_factory=dict)
    loaded: bool = False  # what this host counted before it was started is in `own`
    others: dict[str, Count] = field(default_factory=dict)
    changed: bool = False
    read_at: float = float("-inf")


class Uses:
    """The counts of one bucket. `tell(counts)` hears sums that changed, by space and memory id."""

    def __init__(
        self, replica: Replica, clock: Clock, host: str, tell: Callable[[Mapping[tuple[str, str], Count]], None]
    ) -> None:
        self._replica, self._clock, self._host, self._tell = replica, clock, host, tell
        self._spaces: dict[str, _Space] = {}
        self._counts = {"uses": 0, "written": 0, "read": 0}
        replica.changes.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        """A space that is gone must not come back for the sake of its counts."""
        space = change.key.partition("/")[0]
        if change.kind == "delete" and change.key == keys.meta_key(space):
            self._spaces.pop(space, None)

    def count(self, space: str, ids: Sequence[str]) -> None:
        """Take note that memories were used: their ids, or keys."""
        if not ids:
            return
        state, now = self._spaces.setdefault(space, _Space()), int(self._clock.now().timestamp())
        names = [id_of(one.rpartition("/")[2]) for one in ids]
        for name in names:
            state.own[name] = (state.own.get(name, (0, 0))[0] + 1, now)
        state.changed = True
        self._counts["uses"] += len(names)
        self._tell({(space, name): self._sum(state, name) for name in names})

    def of(self, space: str, memory_id: str) -> tuple[int, datetime | None]:
        """How often a memory was used, on all machines that are known of, and when last."""
        state = self._spaces.get(space)
        times, last = self._sum(state, memory_id) if state is not None else (0, 0)
        return times, datetime.fromtimestamp(last, UTC) if last else None

    @staticmethod
    def _sum(state: _Space, name: str) -> Count:
        own, others = state.own.get(name, (0, 0)), state.others.get(name, (0, 0))
        return own[0] + others[0], max(own[1], others[1])

    async def opened(self, space: str) -> None:
        """A space is in use from now on: read what is known of its memories."""
        await self._read(space, self._spaces.setdefault(space, _Space()))

    async def _read(self, space: str, state: _Space) -> None:
        state.read_at = trio.current_time()
        try:
            found = await self._counts_of(space)
        except LiveMemError as error:
            log.info("uses of memories cannot be read", space=space, reason=str(error))
            return
        own = found.pop(keys.uses_key(space, self._host), {})
        if not state.loaded:
            state.own, state.loaded = _added(own, state.own), True
        others: dict[str, Count] = {}
        for counts in found.values():
            others = _added(others, counts)
        state.others = others
        self._tell({(space, name): self._sum(state, name) for name in {*state.own, *others}})

    async def _counts_of(self, space: str) -> dict[str, dict[str, Count]]:
        """What each host has counted, by the key of its object."""
        found: dict[str, dict[str, Count]] = {}
        level = await self._replica.names.listing(keys.uses_prefix(space))
        for key in [info.key for name, info in level.objects.items() if name.endswith(".json")]:
            with suppress(ObjectMissing):
                found[key] = await self._replica.unread.read(await self._replica.read(key), _parsed) or {}
                self._counts["read"] += 1
        return found

    async def run(self) -> None:
        """Write and read counts now and then, until cancelled."""
        while True:
            await trio.sleep(WRITTEN_SECONDS)
            for space, state in list(self._spaces.items()):
                if trio.current_time() - state.read_at >= READ_SECONDS or not state.loaded:
                    await self._read(space, state)
            self.write()

    def write(self) -> None:
        """Accept what was counted for the bucket."""
        for space, state in self._spaces.items():
            with self._replica.upkeep.writing(space) as may:
                if may and state.changed and state.loaded:
                    self._write(space, state)

    def _write(self, space: str, state: _Space) -> None:
        kept = sorted(state.own.items(), key=lambda one: (-one[1][1], one[0]))[:MOST_KEPT]
        data = (json.dumps({name: list(count) for name, count in sorted(kept)}) + "\n").encode()
        key = keys.uses_key(space, self._host)
        try:
            self._replica.save(key, data, meta={}, base=self._replica.names.now(key))
        except LiveMemError as error:
            log.info("uses of memories cannot be written", space=space, reason=str(error))
            return
        state.changed = False
        self._counts["written"] += 1

    def statistics(self) -> UsesStatistics:
        """Counters, cheap."""
        return UsesStatistics(sum(len(state.own) for state in self._spaces.values()), **self._counts)


def _parsed(data: bytes) -> dict[str, Count]:
    """Counts as they are written. A moment that cannot be is none. Raises Unreadable."""
    kept = islice(read_object(data).items(), MOST_KEPT)
    try:
        counts = {name: (count(times), count(last)) for name, (times, last) in kept}
    except (TypeError, ValueError):
        raise Unreadable("a count is no pair") from None
    return {name: (min(times, MOST_USES), last if last < _NO_MOMENT else 0) for name, (times, last) in counts.items()}


def _added(one: dict[str, Count], other: dict[str, Count]) -> dict[str, Count]:
    found = dict(one)
    for name, (times, last) in other.items():
        before = found.get(name, (0, 0))
        found[name] = before[0] + times, max(before[1], last)
    return found
