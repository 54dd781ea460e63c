"""Parking: events that are not observed when a mount ends go to the bucket, so that the local state may be deleted.

Owns `_system/events/{host}-{identity}.ndjson`, written at the end of a mount. The next mount of the same machine takes
it up, even if it has another local state. The mount that removes the object observes its events; no other one does. If
the answer to the removal is lost, events may be observed twice, but none is lost. Lines that cannot be read stay in the
bucket. Refuses to look at what an event says. Trio thread only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.errors import ConditionsUnsupported, InvalidName, LiveMemError, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.event import Event, storable
from livememfs.records.names import check_space_name
from livememfs.spaces.objects import put_new
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
    """One line of the object: an event as the local state had it, and its space."""

    space: str
    event: str


@dataclass(frozen=True)
class ParkingStatistics:
    """Events since the start: put into the bucket, and taken up from there."""

    left: int
    taken: int


class Parking:
    """The parked events of one machine. `host` is its name, in a form that a key may have."""

    def __init__(self, replica: Replica, host: str) -> None:
        self._replica, self._inbox = replica, replica.inbox
        self._prefix = f"{keys.parked_prefix()}{host}-"
        self._own = f"{self._prefix}{replica.identity}.ndjson"
        # The whole name is matched, since another machine's name may begin with this one's.
        self._ours = re.compile(re.escape(self._prefix) + r"[0-9a-f]{8}\.ndjson")
        self._left = self._taken = 0

    async def take_up(self) -> None:
        """Take up what earlier mounts of this machine parked; tries again until the bucket answers."""
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
        names = [info.key for info in level.objects.values()]
        ours = [key for key in names if key == self._own or self._ours.fullmatch(key)]
        if self._own not in ours:
            self._taken_elsewhere()
        for key in ours:
            await self._take(key)

    def _taken_elsewhere(self) -> None:
        """Skip what this state had parked: another state has taken it. What was captured since is still this one's."""
        self._inbox.skip(self._inbox.left_behind(), ELSEWHERE)
        self._inbox.park("")

    async def _take(self, key: str) -> None:
        """Accept the events of one object into the inbox, and remove the object."""
        if self._replica.journal.ops.newest(key) is not None:  # our own upload is still under way: the inbox has it all
            self._inbox.park("")
            self._replica.remove(key, base=self._replica.names.now(key))
            return
        try:
            stored = await self._replica.read(key, fresh=True)
        except ObjectMissing:
            if key == self._own:
                self._taken_elsewhere()
            return
        added: list[tuple[str, str, str]] = []
        if key == self._own and self._inbox.parked():
            # The mark goes before the removal. If the answer to the removal were lost, the next mount would find a mark
            # without an object, believe that another state has the events, and skip them.
            self._inbox.park("")
        else:
            added, unread = self._added(stored)
            if unread and not await self._keep(key, unread):
                return
        await self._remove(key, stored.info.etag, added)

    async def _remove(self, key: str, etag: str, added: list[tuple[str, str, str]]) -> None:
        """Remove an object that was taken up. If another mount was faster, its events are forgotten here."""
        try:
            await self._replica.delete(key, condition=IfMatch(etag))
        except ConditionsUnsupported:
            await self._replica.delete(key)
        except (PreconditionFailed, ObjectMissing):
            self._inbox.forget(added)
            return
        self._taken += len(added)

    async def _keep(self, key: str, unread: bytes) -> bool:
        """Keep lines that cannot be read in the bucket; whether the object that they came from may be removed.

        Their object is named by their hash: to write it again changes nothing, and no state overwrites it at its end.
        """
        kept = f"{self._prefix}{blake2b(unread, digest_size=4).hexdigest()}.ndjson"
        if kept != key:
            await self._replica.put(kept, unread)
        return kept != key

    def _added(self, stored: StoredObject) -> tuple[list[tuple[str, str, str]], bytes]:
        """Accept the new events of an object. Returns which they are, and the lines that cannot be read."""
        added, unread = [], []
        # Not `splitlines`: it also splits at characters that may stand within an event.
        for line in filter(None, stored.data.split(b"\n")):
            try:
                parked = build(_Parked, storable(read_object(line)))
                check_space_name(parked.space)
                event = Event.from_json(parked.event)
            except (Unreadable, InvalidName) as error:
                self._replica.unread.note(stored.info.key, stored.info.etag, f"an event in it is none: {error}")
                unread.append(line + b"\n")
                continue
            at = int(event.at.timestamp())
            if self._inbox.add(parked.space, event.session, event.id, event.kind, parked.event, at=at):
                added.append((parked.space, event.session, event.id))
        return added, b"".join(unread)

    def leave(self) -> None:
        """Park the unfinished events. Called when nothing is observed or captured any more."""
        unfinished = self._inbox.unfinished()
        self._left = len(unfinished)
        if not unfinished:
            return
        lines = (json.dumps({"space": row.space, "event": row.line}, ensure_ascii=False) + "\n" for row in unfinished)
        data = "".join(lines).encode("utf-8", "replace")
        self._replica.save(self._own, data, meta={}, base=self._replica.names.now(self._own))
        self._inbox.park(self._own)

    async def bring(self, space: str, tag: str, events: Sequence[Event]) -> None:
        """Park events that did not come through the inbox; the next mount of this machine takes them up.

        `tag` is eight hexadecimal digits, the same for the same events: what is parked already is not parked again.
        """
        with suppress(PreconditionFailed):
            await put_new(self._replica, f"{self._prefix}{tag}.ndjson", b"".join(_line(space, each) for each in events))

    def statistics(self) -> ParkingStatistics:
        """Counters."""
        return ParkingStatistics(self._left, self._taken)


def _line(space: str, event: Event) -> bytes:
    """A line of the object."""
    parked = {"space": space, "event": event.to_json()}
    return (json.dumps(parked, ensure_ascii=False) + "\n").encode("utf-8", "replace")
