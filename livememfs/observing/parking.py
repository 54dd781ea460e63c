"""Events that are not observed when a mount ends: the bucket keeps them, so that the local state may go.

Owns `_system/events/{host}-{identity}.ndjson`, written at the end of a mount and taken up by the next one of the same
machine: its own by the same local state, another's when that is gone. Whoever removes the object has the events, and
nobody else observes them, unless the answer to that removal is lost: then they may be observed twice, and never not at
all. Lines that cannot be read stay in the bucket. Refuses to look at an event. Trio thread only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.errors import ConditionsUnsupported, InvalidName, LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.event import Event, storable
from livememfs.records.names import check_space_name
from livememfs.store.base import IfMatch
from livememfs.text.foreign import Unreadable, build, read_object

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.store.base import StoredObject

log = structlog.get_logger("livememfs.observing")

AGAIN_SECONDS = 30.0
ELSEWHERE = "observed from another local state of this machine"


@dataclass(frozen=True)
class _Parked:
    """A line: an event, as it stood in the local state, and the space that it belongs to."""

    space: str
    event: str


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
        # Whole, since another machine's name may begin with this one's.
        self._ours = re.compile(re.escape(self._prefix) + r"[0-9a-f]{8}\.ndjson")
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
        level = await self._replica.names.listing(keys.parked_prefix())
        keys_there = [info.key for info in level.objects.values()]
        there = [key for key in keys_there if key == self._own or self._ours.fullmatch(key)]
        if self._own not in there:
            self._taken_elsewhere()
        for key in there:
            await self._take(key)

    def _taken_elsewhere(self) -> None:
        """Another state took what this one had left while it was not in use, and has it now. What was captured since
        is nobody else's.
        """
        self._inbox.skip(self._inbox.left_behind(), ELSEWHERE)
        self._inbox.park("")

    async def _take(self, key: str) -> None:
        """The events of one object become ours, and the object goes."""
        if self._replica.journal.ops.newest(key) is not None:  # ours, and nobody else has seen it yet
            self._inbox.park("")
            self._replica.remove(key, base=self._replica.names.now(key))
            return
        try:
            found = await self._replica.read(key, fresh=True)
        except ObjectMissing:
            if key == self._own:
                self._taken_elsewhere()
            return
        added: list[tuple[str, str, str]] = []
        if key == self._own and self._inbox.parked():
            # Before the removal: were its answer lost, the missing object would say that another state has them.
            self._inbox.park("")
        else:
            added, unread = self._added(found)
            if unread and not await self._keep(key, unread):
                return
        await self._remove(key, found.info.etag, added)

    async def _remove(self, key: str, etag: str, added: list[tuple[str, str, str]]) -> None:
        """Remove an object that was taken; whoever was faster has its events."""
        try:
            await self._replica.delete(key, condition=IfMatch(etag))
        except ConditionsUnsupported:
            await self._replica.delete(key)
        except (PreconditionFailed, ObjectMissing):  # somebody was faster
            self._inbox.forget(added)
            return
        self._taken += len(added)

    async def _keep(self, key: str, unread: bytes) -> bool:
        """Have lines that cannot be read stay in the bucket; whether the object they came from may go.

        Their object is named after them: writing it again changes nothing, and no state ends by writing over it.
        """
        kept = f"{self._prefix}{blake2b(unread, digest_size=4).hexdigest()}.ndjson"
        if kept != key:
            await self._replica.put(kept, unread)
        return kept != key

    def _added(self, found: StoredObject) -> tuple[list[tuple[str, str, str]], bytes]:
        """Accept the events of an object, those that are not known; which they were, and the lines that are none."""
        added, unread = [], []
        for line in filter(None, found.data.split(b"\n")):  # a text has more ends of lines than a file
            try:
                parked = build(_Parked, storable(read_object(line)))
                check_space_name(parked.space)
                event = Event.from_json(parked.event)
            except (Unreadable, InvalidName) as error:
                self._replica.unread.note(found.info.key, found.info.etag, f"an event in it is none: {error}")
                unread.append(line + b"\n")
                continue
            at = int(event.at.timestamp())
            if self._inbox.add(parked.space, event.session, event.id, event.kind, parked.event, at=at):
                added.append((parked.space, event.session, event.id))
        return added, b"".join(unread)

    def leave(self) -> None:
        """Accept for the bucket what is unfinished. Called once nothing is observed or captured any more."""
        waiting = self._inbox.unfinished()
        self._left = len(waiting)
        if not waiting:
            return
        lines = (json.dumps({"space": one.space, "event": one.line}, ensure_ascii=False) + "\n" for one in waiting)
        data = "".join(lines).encode("utf-8", "replace")
        self._replica.save(self._own, data, meta={}, base=self._replica.names.now(self._own))
        self._inbox.park(self._own)

    def statistics(self) -> ParkingStatistics:
        """Counters."""
        return ParkingStatistics(self._left, self._taken)
