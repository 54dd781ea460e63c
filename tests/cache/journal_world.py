"""What tests of the journal share: a machine with a disk, in front of a bucket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import trio

from livememfs import errors
from livememfs.cache.database import Database
from livememfs.cache.replica import Replica
from livememfs.store.base import ObjectInfo, list_all
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

KEY = "space/file.txt"


class Machine:
    """A machine with a disk, in front of a bucket. `conflicts` are those it reported."""

    def __init__(self, folder: Path, memory: MemoryStore | None = None, host: str = "here") -> None:
        self.memory = memory or MemoryStore(ManualClock())
        self.store = FaultyStore(self.memory)
        self.folder = folder
        self.host = host
        self.conflicts: list[tuple[str, str]] = []

    def replica(self) -> Replica:
        return Replica(
            RetryingStore(self.store),
            folder=self.folder,
            host=self.host,
            on_conflict=lambda key, copy: self.conflicts.append((key, copy)),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Replica]:
        """A process; at the end of the block it is gone, as after kill -9, with what it had not committed."""
        replica = self.replica()
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(replica.run)
                yield replica
                nursery.cancel_scope.cancel()
        finally:
            replica._database.close()  # without `close`, which would keep what only the memory has

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[Replica]:
        """A process whose uploader never gets to run, gone at the end of the block."""
        replica = self.replica()
        try:
            yield replica
        finally:
            replica._database.close()

    async def bucket(self) -> dict[str, bytes]:
        found = await list_all(self.memory, "")
        return {info.key: (await self.memory.get(info.key)).data for info in found.objects}


def full(database: Database) -> AbstractContextManager[object]:
    """A disk on which nothing can be written."""
    return patch.object(database, "atomic", side_effect=errors.NoSpace("the disk is full"))


def unreachable() -> errors.Unreachable:
    return errors.Unreachable("reset", endpoint="the bucket")


def save(replica: Replica, data: bytes, base: ObjectInfo | None = None, key: str = KEY) -> ObjectInfo:
    return replica.save(key, data, meta={}, base=base)


async def tried_in_vain(replica: Replica) -> None:
    """Wait until the file was sent, no answer came, and it waits again."""
    while (op := replica.journal.ops.newest(KEY)) is None or op.in_flight or not op.tries:
        await trio.sleep(0.01)


async def lose_the_answer(machine: Machine, replica: Replica) -> None:
    """The next upload arrives, its answer is lost, and nothing is answered from then on until `plan` is None."""
    arrived = False

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        nonlocal arrived
        if arrived:
            return Fault(before=unreachable())
        arrived = asked.verb == "put"
        return Fault(after=unreachable()) if arrived else None

    machine.store.plan = plan
    await tried_in_vain(replica)
