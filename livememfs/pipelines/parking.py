"""Events that are not observed when a mount ends: the bucket keeps them, so that the local state may go.

Owns `_system/events/{host}-{identity}.ndjson`, written at the end of a mount and taken up by the next one of the same
machine: its own by the same local state, another's when that is gone. Whoever removes the object has the events, and
nobody else observes them. Refuses to look at an event. Trio thread only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.errors import ConditionsUnsupported, LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.store.base import IfMatch

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica

log = structlog.get_logger("livememfs.pipelines")

AGAIN_SECONDS = 30.0
ELSEWHERE = "observed from another local state of this machine"


@dataclass(frozen=True)
class ParkingStatistics:
    """Events since the start: left in the bucket, and taken up from there."""

    left: int
    taken: int


class Parking:
    """The parked events of one machine. `host` may stand in a key."""

    def __init__(self, replica: Replica, host: str) -> None:
        self._replica, self._inbox = replica, replica.inbox
        self._prefix = f"{keys.parked_prefix()}{host}-"
        self._own = f"{self._prefix}{replica.identity}.ndjson"
        self._left = self._taken = 0

    async def take_up(self) -> None:
        """Have what earlier mounts of this machine left; asks again until the bucket answers."""
        while True:
            try:
                await self._take_up()
            except LiveMemError as error:
                log.info("events of earlier mounts cannot be looked for", reason=str(error))
                await trio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _take_up(self) -> None:
        level = await self._replica.listing(keys.parked_prefix())
        there = [info.key for info in level.objects.values() if info.key.startswith(self._prefix)]
        if self._inbox.parked() and self._own not in there:
            # Another state took them while this one was not in use, and they are its own now.
            self._inbox.skip(self._inbox.unfinished(), ELSEWHERE)
        for key in there:
            await self._take(key)
        self._inbox.park("")

    async def _take(self, key: str) -> None:
        """The events of one object become ours, and the object goes."""
        if self._replica.journal.newest(key) is not None:  # ours, and nobody else has seen it yet
            self._replica.remove(key, base=self._replica.now(key))
            return
        try:
            found = await self._replica.read(key, fresh=True)
        except ObjectMissing:
            return
        added = [] if key == self._own else self._added(found.data)
        try:
            await self._replica.delete(key, condition=IfMatch(found.info.etag))
        except ConditionsUnsupported:
            await self._replica.delete(key)
        except (PreconditionFailed, ObjectMissing):  # somebody was faster
            self._inbox.forget(added)
            return
        self._taken += len(added)

    def _added(self, data: bytes) -> list[tuple[str, str, str]]:
        """Accept the events of an object, those that are not known; which they were."""
        added = []
        for line in data.decode("utf-8", "replace").split("\n"):  # a text has more ends of lines than a file
            if not line:
                continue
            try:
                value = json.loads(line)
                space, event = str(value["space"]), Event.from_json(value["event"])
            except (ValueError, TypeError, KeyError):
                log.warning("an event of an earlier mount cannot be read", key=self._own)
                continue
            at = int(event.at.timestamp())
            if self._inbox.add(space, event.session, event.id, event.kind, value["event"], at=at):
                added.append((space, event.session, event.id))
        return added

    def leave(self) -> None:
        """Accept for the bucket what is unfinished. Called once nothing is observed or captured any more."""
        waiting = self._inbox.unfinished()
        self._left = len(waiting)
        if not waiting:
            return
        lines = (json.dumps({"space": one.space, "event": one.line}, ensure_ascii=False) + "\n" for one in waiting)
        data = "".join(lines).encode("utf-8", "replace")
        self._replica.save(self._own, data, meta={}, base=self._replica.now(self._own))
        self._inbox.park(self._own)

    def statistics(self) -> ParkingStatistics:
        """Counters."""
        return ParkingStatistics(self._left, self._taken)
