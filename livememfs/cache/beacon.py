"""The beacon: how a host tells the others what a LIST of new notes cannot show them.

Owns `{space}/_changes/{host}.json`: a number that grows by one with each change and the keys changed last. Writing is
put off a little, so that many changes make one object. Refuses to announce what every poller finds by itself (counts
of uses, and new notes, but for the first one after minutes in which others may have looked at beacons alone), and to
matter: a beacon that is lost costs the others some minutes, until they look at everything again. Trio thread only.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import uuid4

import structlog
import trio

from livememfs.cache.upkeep import Upkeep
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.store.base import Store
from livememfs.text.foreign import build, read_object

log = structlog.get_logger("livememfs.cache")

WAIT = 0.1
"""Seconds for which an announcement waits for the next one."""
RETRY = 5.0
QUIET = 240.0
"""Seconds after which a new note is announced again: whoever heard the last announcement looks at notes until then."""
COMMANDS = "-commands"
"""What ends the name of a host that is no mount; it announces all it does."""
REMEMBERED = 512
"""Keys in one beacon. Who missed more than these looks at everything again."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """One beacon as it was read. `recent` are (number, key), the last one last.

    :epoch: names the writer's process, and its time with this space
    """

    epoch: str
    number: int
    recent: tuple[tuple[int, str], ...]

    @classmethod
    def parse(cls, data: bytes) -> Announcement:
        """Raises Unreadable for anything that is no beacon."""
        value = read_object(data)
        found = build(cls, {**value, "number": value.get("seq")})
        return replace(found, recent=found.recent[-REMEMBERED:])

    def all(self) -> list[str] | None:
        """All keys that this process ever changed; None when some of them cannot be told any more."""
        return [key for _, key in self.recent] if len(self.recent) == self.number else None

    def since(self, seen: Announcement | None) -> list[str] | None:
        """The keys changed after `seen`; None when some of them cannot be told."""
        if seen is None or seen.epoch != self.epoch:
            return None
        missing = [key for number, key in self.recent if number > seen.number]
        return missing if len(missing) == self.number - seen.number else None


@dataclass
class _Space:
    epoch: str = field(default_factory=lambda: uuid4().hex[:12])  # a space that is made again counts anew
    recent: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    number: int = 0
    waiting: bool = False
    announced: float = float("-inf")


class Beacon:
    """The announcements of one process. `host` must be its alone; `is_there(key)` says whether an object, or
    anything below a prefix, is known to be there."""

    def __init__(self, store: Store, host: str, is_there: Callable[[str], bool], upkeep: Upkeep) -> None:
        self._store = store
        self._host = host
        self._is_there = is_there
        self._upkeep = upkeep
        self._spaces: dict[str, _Space] = {}
        self._changed = trio.Event()
        self._written = 0
        self.seen_anyway: Callable[[str], bool] = bool
        """Whether all others find new notes in a space by themselves, however long nobody announced anything."""
        upkeep.after_removals(self.wake)

    def key(self, space: str) -> str:
        """Where this process announces what it changed in a space."""
        return f"{space}/{keys.CHANGES}/{self._host}.json"

    def changed(self, key: str, new: bool) -> None:
        """Take note of a change that the bucket has. `new`: there was nothing under the key before."""
        parsed = keys.parse(key)
        space = parsed.space
        if not space or space.startswith("_") or (new and parsed.kind == "note" and self._is_found(space)):
            return
        if parsed.kind == "index":
            return  # counts of uses: every host writes its own each minute, and the LIST of the beacons shows them
        if parsed.kind == "backup":
            return  # nobody watches backups, and a beacon for them would bring back the prefix of a removed space
        if key == keys.meta_key(space) and not self._is_there(key):
            self._spaces.pop(space, None)  # the space is gone, and must not come back for the sake of its beacon
            return
        state = self._spaces.setdefault(space, _Space())
        state.number += 1
        state.recent.append((state.number, key))
        state.waiting = True
        state.announced = trio.current_time()
        self.wake()

    def _is_found(self, space: str) -> bool:
        """Whether all others find a new note by themselves."""
        state = self._spaces.get(space)
        return self.seen_anyway(space) or (state is not None and trio.current_time() - state.announced < QUIET)

    def wake(self) -> None:
        """Have what waits written."""
        self._changed.set()

    async def run(self) -> None:
        """Write what there is to announce, until cancelled. What a run that failed has left is written first."""
        self.wake()
        while True:
            await self._changed.wait()
            await trio.sleep(WAIT)
            self._changed = trio.Event()
            if not await self.flush():
                await trio.sleep(RETRY)
                self.wake()

    async def flush(self) -> bool:
        """Write it now; whether all of it was written."""
        complete = True
        for space, state in list(self._spaces.items()):
            if state.waiting and self._spaces.get(space) is state:  # not removed while others were written
                complete &= await self._write(space, state)
        return complete

    async def _write(self, space: str, state: _Space) -> bool:
        with self._upkeep.writing(space) as may:
            if not may:
                return True  # should it stay after all, `wake` is called
            if not self._is_there(f"{space}/"):
                self._spaces.pop(space, None)  # all of it was removed: the beacon alone would bring it back
                return True
            state.waiting = False
            value = {"epoch": state.epoch, "seq": state.number, "recent": list(state.recent)}
            try:
                await self._store.put(self.key(space), json.dumps(value, ensure_ascii=False).encode())
                self._written += 1
            except LiveMemError as error:
                log.info("a change could not be announced", space=space, reason=str(error))
                state.waiting = True
                return False
        return True
