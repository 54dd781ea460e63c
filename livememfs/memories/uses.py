"""Counts of how often memories were used, on all machines; reading a memory writes nothing at once.

Owns `{space}/_index/_uses/{host}.json`, one object for each host, written every minute and at the end. A memory is used
when it is told to an agent, or its file is read. A crash loses the last minute of counts. Refuses to change any memory:
its weight is computed from the counts when it is needed (`Memory.effective`). Trio thread only.
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
"""The end of the year 9999 in seconds since 1970: a number that is not below it is no moment in seconds."""
WRITTEN_SECONDS = 60.0
"""Seconds that counts wait to be written."""
READ_SECONDS = 600.0
"""Seconds between two reads of other hosts' counts, in spaces that are in use."""
MOST_KEPT = 20_000
"""Most memories of one space with a kept count; those that were used last."""
MOST_USES = 1_000_000_000
"""The largest count of one memory by one host: a larger one is false, and sums must not overflow."""
Count = tuple[int, int]
"""How often, and when for the last time, in seconds since 1970."""


@dataclass(frozen=True)
class UsesStatistics:
    """Memories that this host has a count of; since the start: uses, objects written, objects read."""

    counted: int
    uses: int
    written: int
    read: int


@dataclass
class _Space:
    """Counts of one space."""

    own: dict[str, Count] = field(default_factory=dict)
    loaded: bool = False  # `own` has what this host counted before this start
    others: dict[str, Count] = field(default_factory=dict)
    changed: bool = False
    read_at: float = float("-inf")


class Uses:
    """The counts of one bucket. `tell(counts)` is called with changed sums, by space and memory id."""

    def __init__(
        self, replica: Replica, clock: Clock, host: str, tell: Callable[[Mapping[tuple[str, str], Count]], None]
    ) -> None:
        self._replica, self._clock, self._host, self._tell = replica, clock, host, tell
        self._spaces: dict[str, _Space] = {}
        self._counts = {"uses": 0, "written": 0, "read": 0}
        replica.changes.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        """Forget the counts of a removed space: to write them would make its prefix again."""
        space = change.key.partition("/")[0]
        if change.kind == "delete" and change.key == keys.meta_key(space):
            self._spaces.pop(space, None)

    def count(self, space: str, ids: Sequence[str]) -> None:
        """Take note that memories were used: their ids, or keys."""
        if not ids:
            return
        state, now = self._spaces.setdefault(space, _Space()), int(self._clock.now().timestamp())
        names = [id_of(name.rpartition("/")[2]) for name in ids]
        for name in names:
            state.own[name] = (state.own.get(name, (0, 0))[0] + 1, now)
        state.changed = True
        self._counts["uses"] += len(names)
        self._tell({(space, name): self._sum(state, name) for name in names})

    def of(self, space: str, memory_id: str) -> tuple[int, datetime | None]:
        """How often a memory was used on all known machines, and when for the last time."""
        state = self._spaces.get(space)
        times, last = self._sum(state, memory_id) if state is not None else (0, 0)
        return times, datetime.fromtimestamp(last, UTC) if last else None

    @staticmethod
    def _sum(state: _Space, name: str) -> Count:
        own, others = state.own.get(name, (0, 0)), state.others.get(name, (0, 0))
        return own[0] + others[0], max(own[1], others[1])

    async def opened(self, space: str) -> None:
        """A space is in use from now on: read its counts."""
        await self._read(space, self._spaces.setdefault(space, _Space()))

    async def _read(self, space: str, state: _Space) -> None:
        state.read_at = trio.current_time()
        try:
            by_host = await self._counts_of(space)
        except LiveMemError as error:
            log.info("uses of memories cannot be read", space=space, reason=str(error))
            return
        own = by_host.pop(keys.uses_key(space, self._host), {})
        if not state.loaded:
            state.own, state.loaded = _added(own, state.own), True
        others: dict[str, Count] = {}
        for counts in by_host.values():
            others = _added(others, counts)
        state.others = others
        self._tell({(space, name): self._sum(state, name) for name in {*state.own, *others}})

    async def _counts_of(self, space: str) -> dict[str, dict[str, Count]]:
        """The counts of each host, by the key of its object."""
        by_host: dict[str, dict[str, Count]] = {}
        level = await self._replica.names.listing(keys.uses_prefix(space))
        for key in [info.key for name, info in level.objects.items() if name.endswith(".json")]:
            with suppress(ObjectMissing):
                by_host[key] = await self._replica.unread.read(await self._replica.read(key), _parsed) or {}
                self._counts["read"] += 1
        return by_host

    async def run(self) -> None:
        """Write and read counts every minute, until cancelled."""
        while True:
            await trio.sleep(WRITTEN_SECONDS)
            for space, state in list(self._spaces.items()):
                if trio.current_time() - state.read_at >= READ_SECONDS or not state.loaded:
                    await self._read(space, state)
            self.write()

    def write(self) -> None:
        """Accept the counts for the bucket."""
        for space, state in self._spaces.items():
            with self._replica.upkeep.writing(space) as may:
                if may and state.changed and state.loaded:
                    self._write(space, state)

    def _write(self, space: str, state: _Space) -> None:
        kept = sorted(state.own.items(), key=lambda item: (-item[1][1], item[0]))[:MOST_KEPT]
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
    """The counts in an object. A moment that cannot be true becomes 0. Raises Unreadable."""
    kept = islice(read_object(data).items(), MOST_KEPT)
    try:
        counts = {name: (count(times), count(last)) for name, (times, last) in kept}
    except (TypeError, ValueError):
        raise Unreadable("a count is no pair") from None
    return {name: (min(times, MOST_USES), last if last < _NO_MOMENT else 0) for name, (times, last) in counts.items()}


def _added(one: dict[str, Count], other: dict[str, Count]) -> dict[str, Count]:
    sums = dict(one)
    for name, (times, last) in other.items():
        before = sums.get(name, (0, 0))
        sums[name] = before[0] + times, max(before[1], last)
    return sums
