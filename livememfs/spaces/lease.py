"""The lease of a space: one runner at a time among all hosts (design section 3, rule 4).

Owns `_system/leases/{space}.json`: who holds the lease, until when, and a fence, a number that grows with every new
holder. The holder renews it; a holder that could not renew it for too long has lost it and must not commit. A process
that waits takes the lease over when it has seen no change of the object for `SECONDS` by its own watch: the holder has
died then. So two hosts' clocks need not agree. Refuses nobody who waits long enough. Trio thread only.

To a store without conditions a process writes, waits for `SETTLE` seconds and reads again: if it finds itself there, it
has the lease. Two that write at the very end of that time may both believe so; then only one of them gets the number of
its run in the ledger.
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
from livememfs.text.foreign import build, read_object
from livememfs.text.times import iso

log = structlog.get_logger("livememfs.spaces")

SECONDS = 60.0
"""How long a lease lasts without a renewal."""
RENEWED_EVERY = SECONDS / 4
GIVEN_UP_AFTER = SECONDS * 3 / 4
"""A holder that could not renew its lease for so long stops, well before another one may start."""
LOOKED_AT_EVERY = 1.0
SETTLE = 2.0
RELEASE_SECONDS = 5.0


@dataclass(frozen=True)
class _Record:
    """The content of the object. `released`: nobody holds the lease."""

    holder: str
    fence: int
    released: bool = False

    @classmethod
    def parse(cls, data: bytes) -> _Record:
        """Raises Unreadable."""
        return build(cls, read_object(data))


_UNKNOWN = _Record("", 0)
"""An object that cannot be read may be a lease that is held: it is taken over like that of a dead host."""


class HeldLease:
    """A lease that this process holds."""

    def __init__(self, leases: Leases, space: str, fence: int, etag: str, renewed: float) -> None:
        self.space = space
        self.fence = fence
        self._leases = leases
        self._etag = etag
        self._renewed = renewed
        self._renewing = trio.Lock()
        self._lost = ""

    async def check(self) -> None:
        """Renew it now. LeaseLost when another process has it, or when the store fails."""
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
        """Hold it for another `SECONDS`. PreconditionFailed when it is not ours any more, and the store's failures."""
        async with self._renewing:  # two at once: one would take the other's write for another host's
            started = trio.current_time()
            self._etag = await self._write(released=False)
            # From before the request: others may have begun to wait as soon as the store had it.
            self._renewed = started

    async def _write(self, *, released: bool) -> str:
        """Replace the version that we wrote last. PreconditionFailed when another process has written since."""
        try:
            return (await self._leases.write(self.space, self.fence, self._etag, released=released)).etag
        except PreconditionFailed:
            # An earlier renewal may have been stored, although its answer was lost or its caller was cancelled.
            etag = await self._leases.etag_of(self.space, self.fence)
            return (await self._leases.write(self.space, self.fence, etag, released=released)).etag

    async def keep(self) -> None:
        """Renew it until it is lost; runs as a task beside the work."""
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
        """Let it expire, as after a crash: there is no time to give it back."""
        self._lost = "it was abandoned"

    async def release(self) -> None:
        """Give it back, so that others need not wait until it expires."""
        async with self._renewing:
            if self._lost:
                return
            with suppress(LiveMemError):
                await self._write(released=True)


class Leases:
    """The leases of one process. `holder` names it alone, also after a restart: the former process is dead then."""

    def __init__(self, replica: Replica, clock: Clock, holder: str, nursery: Starts) -> None:
        self._replica = replica
        self._nursery = nursery
        self._clock = clock
        self._holder = holder
        self._waits = self._takeovers = self._held = 0
        # The object names the process only: two tasks of this one wait for each other here.
        self._turns: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)

    @asynccontextmanager
    async def hold(self, space: str) -> AsyncIterator[HeldLease]:
        """Hold the lease of a space; waits until it is free. Raises the store's failures."""
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
        """Wait until the lease is free or its holder is dead, and take it."""
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
        """The lease; None when another process was faster."""
        fence = (record.fence if record else 0) + 1
        started = trio.current_time()
        try:
            info = await self.write(space, fence, etag, released=False)
        except (PreconditionFailed, ConflictRetry):
            return None
        if record is not None and not self._is_free(record):
            self._takeovers += 1
            log.info("the lease of a dead host is taken over", space=space, holder=record.holder)
        return HeldLease(self, space, fence, info.etag, started)

    async def _read(self, space: str) -> tuple[_Record | None, str]:
        replica, key = self._replica, keys.lease_key(space)
        try:
            stored = await replica.asking.call(lambda: replica.store.get(key))
        except ObjectMissing:
            return None, ""
        return await replica.unread.read(stored, _Record.parse) or _UNKNOWN, stored.info.etag

    async def etag_of(self, space: str, fence: int) -> str:
        """The version of the lease with our name and this fence. PreconditionFailed when the lease is another's."""
        record, etag = await self._read(space)
        if record is None or (record.holder, record.fence) != (self._holder, fence):
            raise PreconditionFailed(key=keys.lease_key(space))
        return etag

    async def write(self, space: str, fence: int, etag: str, *, released: bool) -> ObjectInfo:
        """Replace the version `etag`; empty: there is none. PreconditionFailed, and the store's failures."""
        key, store = keys.lease_key(space), self._replica.store
        until = self._clock.now() + timedelta(seconds=SECONDS)
        # `expires_at` is for people who look into the bucket: it is never read.
        value = {"holder": self._holder, "fence": fence, "released": released, "expires_at": iso(until, exact=True)}
        # `at` makes each content differ: by a new ETag others see that the holder is alive.
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
    """Leases that are held now, looks at one that another process held, leases taken over from dead hosts."""

    held: int
    waits: int
    takeovers: int
