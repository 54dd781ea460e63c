"""The lease of a space: one runner at a time, on whatever host (design section 3, rule 4).

Owns `_system/leases/{space}.json`: who holds it, until when, and a fencing number that grows with every change of
hands. A holder renews it; one that could not for too long has lost it and must not commit. A holder that has died is
taken over when its object has not changed for the time of a lease, by the watch of whoever waits: two hosts' clocks
need not agree. Refuses nothing to whoever waits long enough. Trio thread only.

A store without conditions is written to, left alone for `SETTLE` seconds and read again: whoever finds itself there
has the lease. Two that write at the very end of that time can both believe it; the ledger's number is their last guard.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import Starts
from livememfs.errors import (
    ConditionsUnsupported,
    ConflictRetry,
    LeaseLost,
    LiveMemError,
    ObjectMissing,
    PreconditionFailed,
)
from livememfs.records import keys
from livememfs.store.base import IfAbsent, IfMatch, ObjectInfo
from livememfs.text.foreign import Unreadable, build, moment, read_object
from livememfs.text.times import iso

log = structlog.get_logger("livememfs.spaces")

SECONDS = 60.0
"""How long a lease is good for without being renewed."""
RENEWED_EVERY = SECONDS / 4
GIVEN_UP_AFTER = SECONDS * 3 / 4
"""A holder that could not renew it for so long stops, well before anybody else may start."""
LOOKED_AT_EVERY = 1.0
SETTLE = 2.0
RELEASE_SECONDS = 5.0


@dataclass(frozen=True)
class _Record:
    """What the object says. `released`: nobody holds it."""

    holder: str
    fence: int
    released: bool = False
    expires_at: str = ""

    @classmethod
    def parse(cls, data: bytes) -> _Record:
        """Raises Unreadable."""
        return build(cls, read_object(data))


_UNKNOWN = _Record("", 0)
"""What cannot be read may be somebody's: it is taken over like a dead host's, when nothing has changed for a while."""


class HeldLease:
    """A lease that we hold."""

    def __init__(self, leases: Leases, space: str, fence: int, etag: str, renewed: float) -> None:
        self.space = space
        self.fence = fence
        self._leases = leases
        self._etag = etag
        self._renewed = renewed
        self._renewing = trio.Lock()
        self._lost = ""

    async def check(self) -> None:
        """Renew it now. LeaseLost when somebody else has it, or when that cannot be found out in time."""
        if self._lost:
            raise LeaseLost(self._lost, path=self.space)
        try:
            await self.renew()
        except PreconditionFailed:
            self._lost = "another host has taken the lease over"
            raise LeaseLost(self._lost, path=self.space) from None
        except LiveMemError as error:
            raise LeaseLost(f"the lease could not be renewed: {error}", path=self.space) from error

    async def renew(self) -> None:
        """Have it for another `SECONDS`. PreconditionFailed when it is ours no more, and what the store fails with."""
        async with self._renewing:  # a second one under way would take the first for another host's
            asked = trio.current_time()
            self._etag = await self._write(released=False)
            self._renewed = asked

    async def _write(self, *, released: bool) -> str:
        """Write it in place of what we wrote last. PreconditionFailed when somebody else has written since."""
        try:
            return (await self._leases.write(self.space, self.fence, self._etag, released=released)).etag
        except PreconditionFailed:
            # A renewal may have happened although its answer was lost, or nobody waited for it any more.
            etag = await self._leases.etag_of(self.space, self.fence)
            return (await self._leases.write(self.space, self.fence, etag, released=released)).etag

    async def keep(self) -> None:
        """Renew it again and again, until it is lost; runs beside the work."""
        while not self._lost:
            await trio.sleep(RENEWED_EVERY)
            try:
                await self.renew()
            except PreconditionFailed:
                self._lost = "another host has taken the lease over"
            except LiveMemError as error:
                if trio.current_time() - self._renewed > GIVEN_UP_AFTER:
                    self._lost = f"the lease could not be renewed: {error}"
        log.warning("the lease of a space is lost", space=self.space, reason=self._lost)

    def abandon(self) -> None:
        """Leave it to its end, as a crash would: there is no time to give it back."""
        self._lost = "it was abandoned"

    async def release(self) -> None:
        """Give it back, so that nobody needs to wait for its end."""
        async with self._renewing:
            if self._lost:
                return
            with suppress(LiveMemError):
                await self._write(released=True)


class Leases:
    """The leases of one process. `holder` is its alone; the same after a restart that proves the former dead."""

    def __init__(self, replica: Replica, clock: Clock, holder: str, nursery: Starts) -> None:
        self._replica = replica
        self._nursery = nursery
        self._clock = clock
        self._holder = holder
        self._waits = self._takeovers = self._held = 0
        # The object says only which process holds it: within this one, whoever comes second waits here.
        self._turns: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)

    @asynccontextmanager
    async def hold(self, space: str) -> AsyncIterator[HeldLease]:
        """Hold the lease of a space; waits until it can be had. What the store fails with is raised."""
        async with self._turns[space]:
            held = await self.acquire(space)
            self._held += 1
            beside = trio.CancelScope()

            async def keep() -> None:
                with beside:
                    await held.keep()

            self._nursery.start_soon(keep)
            try:
                yield held
            finally:
                beside.cancel()
                self._held -= 1
                with trio.move_on_after(RELEASE_SECONDS, shield=True):
                    await held.release()

    async def acquire(self, space: str) -> HeldLease:
        """Wait until the lease can be had, and take it."""
        seen, since = "", trio.current_time()
        while True:
            record, etag = await self._read(space)
            if etag != seen:
                seen, since = etag, trio.current_time()
            if record is None or self._is_free(record) or trio.current_time() - since >= SECONDS:
                held = await self._take(space, record, etag)
                if held is not None:
                    return held
                continue
            self._waits += 1
            await trio.sleep(LOOKED_AT_EVERY)

    def _is_free(self, record: _Record) -> bool:
        return record.released or record.holder == self._holder

    async def _take(self, space: str, record: _Record | None, etag: str) -> HeldLease | None:
        """Ours, or None when somebody else was faster."""
        fence = (record.fence if record else 0) + 1
        asked = trio.current_time()
        try:
            info = await self.write(space, fence, etag, released=False)
        except (PreconditionFailed, ConflictRetry):
            return None
        if record is not None and not self._is_free(record):
            self._takeovers += 1
            log.info("the lease of a dead host is taken over", space=space, holder=record.holder)
        return HeldLease(self, space, fence, info.etag, asked)

    async def _read(self, space: str) -> tuple[_Record | None, str]:
        replica, key = self._replica, keys.lease_key(space)
        try:
            found = await replica.asking.call(lambda: replica.store.get(key))
        except ObjectMissing:
            return None, ""
        return await replica.unread.read(found, _Record.parse) or _UNKNOWN, found.info.etag

    async def etag_of(self, space: str, fence: int) -> str:
        """The version of the lease that we hold under this number. PreconditionFailed when it is another's."""
        record, etag = await self._read(space)
        if record is None or (record.holder, record.fence) != (self._holder, fence):
            raise PreconditionFailed(key=keys.lease_key(space))
        return etag

    async def write(self, space: str, fence: int, etag: str, *, released: bool) -> ObjectInfo:
        """Write the object in place of the version `etag` (empty: of none). PreconditionFailed, and the store's."""
        key, store = keys.lease_key(space), self._replica.store
        until = self._clock.now() + timedelta(seconds=SECONDS)
        value = {"holder": self._holder, "fence": fence, "released": released, "expires_at": iso(until, exact=True)}
        data = json.dumps({**value, "at": round(trio.current_time(), 6)}).encode()
        condition = IfMatch(etag) if etag else IfAbsent()
        try:
            return await self._replica.asking.call(lambda: store.put(key, data, condition=condition))
        except ConditionsUnsupported:
            pass
        record, now = await self._read(space)
        if now != etag:
            raise PreconditionFailed(key=key)
        await self._replica.asking.call(lambda: store.put(key, data))
        if record is None or record.holder != self._holder:
            await trio.sleep(SETTLE)
        return ObjectInfo(key, await self.etag_of(space, fence), len(data), 0)

    def statistics(self) -> LeaseStatistics:
        """Counters, cheap."""
        return LeaseStatistics(self._held, self._waits, self._takeovers)


@dataclass(frozen=True)
class LeaseStatistics:
    """Leases held now, looks at a lease that another host had, leases taken over from the dead."""

    held: int
    waits: int
    takeovers: int


def expires(data: bytes) -> str:
    """When a lease ends by its holder's clock, for people to read; empty when nobody holds it."""
    with suppress(Unreadable):
        record = _Record.parse(data)
        return "" if record.released or moment(record.expires_at) is None else record.expires_at
    return ""
