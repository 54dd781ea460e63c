"""Hosts of one bucket in memory, for tests of what one sees of another's work, in virtual time."""

from __future__ import annotations

from livememfs.cache.replica import Replica
from livememfs.records import keys
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore

INTERVAL = 2.0
SOON = INTERVAL + 1.0
META = keys.meta_key("s")
NOTE = "s/live/20261122T0910{:02}_me_decision_0a1b2c{:02}.md"
CLOCK = ManualClock()


def _now_ns() -> int:
    return int(CLOCK.now().timestamp() * 1e9)


class Host:
    """One host of a bucket; `told` are the changes by others that it was told of."""

    def __init__(self, memory: MemoryStore, name: str, *, announces: bool = True) -> None:
        self.store = FaultyStore(memory)
        announce = name if announces else ""
        self.replica = Replica(self.store, host=name, announce=announce, poll_interval=INTERVAL, now_ns=_now_ns)
        self.told: list[tuple[str, str]] = []
        self.replica.changes.subscribe(
            lambda change: (
                self.told.append((change.kind, change.key))
                if change.origin == "remote" and keys.CHANGES not in change.key
                else None
            )
        )

    async def names(self, prefix: str) -> set[str]:
        level = await self.replica.names.listing(prefix)
        return {*level.objects, *level.folders} - {""}

    async def look_around(self) -> None:
        for prefix in ("s/", "s/live/", "s/folder/"):
            await self.names(prefix)

    async def put(self, key: str, data: bytes) -> None:
        self.replica.save(key, data, meta={}, base=self.replica.names.now(key))
        await self.replica.uploaded()
