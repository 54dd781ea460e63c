"""The watcher: finds out what other hosts did, so that names and versions need not be asked for again and again.

Owns what to look at; `pace` has how often. In a calm space, where no other host was found at work for some minutes, it
is one LIST, of the whole space where that fits on a page (`survey`), else of the hosts' beacons (`beacon`), which name
what has changed. Where others are at work, at most two LISTs for each interval: one shows the space's own records and
the beacons, the other shows notes newer than the last known one. For writers that leave no beacon, directories that
somebody has just looked into are listed every few seconds then, and everything known every few minutes. Refuses to
vouch for a space whose last look is older than the pause and a second. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.cache.watching.listening import CLOCK_SKEW, Listener
from livememfs.cache.watching.pace import IN_USE_SECONDS, Pace, Watched
from livememfs.cache.watching.survey import Survey
from livememfs.concurrency import Background
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.store.base import MAX_PAGE, ObjectInfo, list_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from livememfs.cache.beacon import Beacon
    from livememfs.cache.changes import Change
    from livememfs.cache.replica import Replica

log = structlog.get_logger("livememfs.cache")

FORGOTTEN_AFTER = 86_400.0
EVERYTHING_AFTER = 300.0
EVERYTHING_SELDOM = 1_800.0
"""The same for a calm space of which one LIST does not show all: it may take a LIST for each of many directories."""
ROOM = 200
"""Objects that must still fit on a page for new notes to be found there by everybody, until others have looked."""
LISTED_AGAIN = 3.0
"""Seconds after which a directory in use is listed again, for each page that it takes; in a calm space
`EVERYTHING_AFTER`."""
IN_USE = 30.0
"""Seconds for which a directory is in use after somebody has looked into it."""
IN_USE_AT_ONCE = 8
"""Directories of one space that are listed again by one look: those that were used last."""
USED_LAST = 64
"""Directories of all spaces that a look considers for this, those that were used last."""
ROOT_BELIEVED = 30.0
SPARE_NAMES = 32
"""Beacons and vectors that may have come since the last look."""


@dataclass(frozen=True)
class WatcherStatistics:
    """Spaces watched, looks, looks that failed, changes that others announced, and full looks."""

    spaces: int
    looks: int
    failures: int
    announced: int
    full: int


def _shows_work(key: str) -> bool:
    """Whether a change says that somebody is at work: counts of uses and vectors are written unasked, and folders of
    records come with our own beacon."""
    record = key.partition("/")[2].startswith("_")
    return not (record and (key.endswith("/") or keys.parse(key).kind == "index"))


class Watcher:
    """Watches the spaces in use. `interval` is in seconds; `beacon` is our own, not to be listened to."""

    def __init__(
        self, replica: Replica, interval: float, beacon: Beacon, background: Background, now_ns: Callable[[], int]
    ) -> None:
        self._background = background
        self._replica = replica
        self._interval = interval
        self._pace = Pace(interval)
        self._survey = Survey(replica.names, replica.journal)
        self._beacon = beacon
        self._listener = Listener(replica, beacon, self._stir, now_ns)
        self._spaces: dict[str, Watched] = {}
        self._in_use: dict[str, float] = {}
        """Directories, each with the moment when somebody looked into it, the last at the end."""
        self._woken = trio.Event()
        self._counts = {"looks": 0, "failures": 0}
        beacon.seen_anyway = self._sees_all
        replica.asking.on_failure = self._hurry

    # --- what the names ask (names.Watch) -----------------------------------------------------------------------

    def used(self, prefix: str) -> None:
        """Somebody looks at something below `prefix`."""
        space = prefix.partition("/")[0]
        if not space or space.startswith("_"):
            return
        now = trio.current_time()
        self._in_use.pop(prefix, None)
        self._in_use[prefix] = now
        known = self._spaces.get(space)
        if known is None:
            self._spaces[space] = Watched(used=now, due=now + self._interval, everything=now)
            self._woken.set()
            return
        idle = now - known.used
        known.used = now
        if idle >= IN_USE_SECONDS:
            known.due = min(known.due, now)
            self._woken.set()

    def probes(self, prefix: str) -> bool:
        """See names.Watch. The names of the root come from the same store as all others."""
        space = prefix.partition("/")[0]
        return any(state.looked != float("-inf") for name, state in self._spaces.items() if name == space or not prefix)

    def is_new(self, prefix: str) -> bool:
        """See names.Watch."""
        state = self._spaces.get(prefix.partition("/")[0])
        return state is not None and state.looked == float("-inf")

    def since(self, prefix: str) -> float:
        """See names.Watch."""
        now = trio.current_time()
        if not prefix:
            return (
                now - ROOT_BELIEVED if any(self._vouches(one, now) for one in self._spaces.values()) else float("inf")
            )
        state = self._spaces.get(prefix.partition("/")[0])
        return state.baseline if state is not None and self._vouches(state, now) else float("inf")

    def _vouches(self, state: Watched, now: float) -> bool:
        return state.is_space and now - state.looked <= self._pace.believed(calm=self._is_calm(state, now))

    def _is_calm(self, state: Watched, now: float) -> bool:
        """While the store fails, looks find out when it answers again, and what waits is sent then."""
        return state.is_calm(now) and self._replica.asking.failing_since is None

    async def catch_up(self, prefix: str) -> None:
        """See names.Watch."""
        space = prefix.partition("/")[0]
        state = self._spaces.get(space)
        if state is None or not state.is_space or self._vouches(state, trio.current_time()):
            return
        state.notes_next = True
        await self._replica.asking.patiently(lambda: self._look(space, state))

    def rest(self) -> None:
        """Take what was used so far for unused: it was met, and nobody is in it yet."""
        for state in self._spaces.values():
            state.used = trio.current_time() - IN_USE_SECONDS

    def heard(self, change: Change) -> None:
        """A subscriber of the stream of changes: a prefix that becomes a space is watched from now on."""
        space = change.key.partition("/")[0]
        state = self._spaces.get(space)
        if state is None:
            return
        if change.key == keys.meta_key(space):
            state.is_space = change.kind == "put"
        if change.origin == "remote" and change.key != self._beacon.key(space) and _shows_work(change.key):
            self._stir(state)

    def _stir(self, state: Watched) -> None:
        now = trio.current_time()
        state.stir(now, self._pace.pause(state, now, calm=False))
        self._woken.set()

    def _hurry(self) -> None:
        """The store began to fail: look at the old pace, or nobody would know when it answers again."""
        now = trio.current_time()
        for state in self._spaces.values():
            state.due = min(state.due, now + self._pace.pause(state, now, calm=False))
        self._woken.set()

    def _sees_all(self, space: str) -> bool:
        """Whether whoever watches a calm space finds each new note there without being told."""
        state = self._spaces.get(space)
        return state is not None and state.room >= ROOM and self._is_calm(state, trio.current_time())

    # --- looking ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at every space in use when it is due, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                now = trio.current_time()
                self._forget(now)
                for space, state in self._spaces.items():
                    if state.due <= now:
                        if state.looking is not None or self._replica.asking.is_listing(f"{space}/"):
                            state.due = now + self._pace.quick
                            continue  # whoever waits for names should not have to share the line with us
                        state.due = now + self._pause(state, now)
                        nursery.start_soon(self._background.once, "watch", partial(self._look_around, space, state))
                self._woken = trio.Event()
                with trio.move_on_at(min((state.due for state in self._spaces.values()), default=float("inf"))):
                    await self._woken.wait()

    def _pause(self, state: Watched, now: float) -> float:
        return self._pace.pause(state, now, calm=self._is_calm(state, now))

    def _forget(self, now: float) -> None:
        for space in [name for name, state in self._spaces.items() if now - state.used > FORGOTTEN_AFTER]:
            del self._spaces[space]
        while self._in_use and now - self._in_use[first := next(iter(self._in_use))] > IN_USE:
            del self._in_use[first]

    async def _look(self, space: str, state: Watched) -> None:
        """One look, by whoever comes first; who comes meanwhile waits for it. Raises nothing of the store's."""
        if state.looking is not None:
            await state.looking.wait()
            return
        state.looking = trio.Event()
        asked = trio.current_time()
        self._counts["looks"] += 1
        try:
            if state.baseline != float("inf") and self._is_calm(state, asked):
                await self._look_calmly(space, state, asked)
            else:
                await self._look_closely(space, state)
        except LiveMemError as error:
            self._counts["failures"] += 1
            log.debug("a look at others' changes failed", space=space, reason=str(error))
        else:
            state.looked = asked
            state.baseline = min(state.baseline, asked)
            state.due = max(state.due, asked + self._pause(state, trio.current_time()))
            self._replica.uploader.reachable()
        finally:
            state.looking.set()
            state.looking = None

    async def _look_closely(self, space: str, state: Watched) -> None:
        """Where another host is at work, or may be."""
        state.room = -1
        await self._look_at_records(space, state)
        if state.is_space:
            if state.notes_next:
                await self._look_at_new_notes(space, state)
            state.notes_next = not state.notes_next

    async def _look_calmly(self, space: str, state: Watched, now: float) -> None:
        """One LIST, of the whole space where that fits on a page."""
        did_fit = state.fits
        sees_all = state.is_space and (did_fit or now - state.surveyed >= EVERYTHING_AFTER)
        if sees_all:
            sees_all = await self._look_at_all(space, state, now)
        else:
            await self._look_at_records(space, state, briefly=True)
        if state.is_space and not sees_all and (did_fit or not state.is_calm(now)):
            await self._look_at_new_notes(space, state)  # as long as it did fit, nobody announced any

    async def _look_at_all(self, space: str, state: Watched, now: float) -> bool:
        """Whether that was all."""
        found = await self._survey.take(f"{space}/")
        state.surveyed = now
        if found.complete:
            state.fits, state.room, state.everything = True, MAX_PAGE - len(found.objects), now
            await self._take_in(space, state, found.objects, surveyed=True)
            return True
        state.fits, state.room = False, -1
        if found.objects[-1].key > f"{space}/{keys.CHANGES}0":
            await self._take_in(space, state, found.objects, briefly=True)
        else:
            await self._look_at_records(space, state, briefly=True)
        return False

    async def _look_around(self, space: str, state: Watched) -> None:
        """A look that nobody waits for may take longer."""
        await self._look(space, state)
        now = trio.current_time()
        if self._vouches(state, now):
            try:
                await self._look_at_everything(space, state, now)
                now = trio.current_time()
                again = EVERYTHING_AFTER if self._is_calm(state, now) else LISTED_AGAIN
                await self._look_at_what_is_in_use(f"{space}/", now, again)
            except LiveMemError as error:
                self._counts["failures"] += 1
                log.debug("a full look failed", space=space, reason=str(error))

    async def _look_at_records(self, space: str, state: Watched, *, briefly: bool = False) -> None:
        """`_meta.json`, `_rules.md`, `_synthesis.md` and the beacons: they all begin with an underscore.

        `briefly`: of a space with a long ledger only what stands before it, which is the beacons.
        """
        found, _ = await self._replica.names.hear(lambda: self._records(space, state, briefly))
        await self._take_in(space, state, found, briefly=briefly)

    async def _take_in(
        self, space: str, state: Watched, found: list[ObjectInfo], *, briefly: bool = False, surveyed: bool = False
    ) -> None:
        """What was heard of a space; `surveyed`: that is all of it, so that what beacons name is known."""
        meta = keys.meta_key(space)
        made_here = self._replica.journal.ops.newest(meta)
        if made_here is not None:
            state.is_space = made_here.kind != "delete"
        elif not briefly or any(info.key == meta for info in found):
            state.is_space = any(info.key == meta for info in found)
        changes = f"{space}/{keys.CHANGES}/"
        beacons = [info for info in found if info.key.startswith(changes) and info.key.endswith(".json")]
        await self._listener.listen(space, state, beacons, surveyed=surveyed)

    async def _records(self, space: str, state: Watched, briefly: bool) -> list[ObjectInfo]:
        """The beacons, on however many pages, and what comes after the ledger: a long one stands in between.

        Its runs are not for us, so where one was met, little more is asked for than what stood before it. `briefly`:
        nor is what comes after it, whose changes the beacons name.
        """
        store, beacons, ledger = self._replica.store, f"{space}/{keys.CHANGES}0", f"{space}/{keys.LEDGER}0"
        page = await store.list_page(f"{space}/_", limit=state.names_asked)
        found = list(page.objects)
        while page.next_token is not None and (not found or found[-1].key < beacons):
            page = await store.list_page(f"{space}/_", limit=MAX_PAGE, token=page.next_token)
            found += page.objects
        if page.next_token is None:
            state.names_asked = MAX_PAGE
            return found
        before = [info for info in found if info.key < f"{space}/{keys.LEDGER}/"]
        state.names_asked = min(len(before) + SPARE_NAMES, MAX_PAGE)
        if briefly:
            return before
        return before + list((await list_all(store, f"{space}/_", start_after=ledger)).objects)

    async def _look_at_new_notes(self, space: str, state: Watched) -> None:
        """Notes whose time is later than the newest known one's, less what clocks may differ."""
        prefix = keys.live_prefix(space)
        level = self._replica.names.levels.get(prefix)
        if level is None:
            return
        if not state.newest:
            state.newest = max((name for name in level.objects if name[:1].isdecimal()), default="")
        after = _earlier(state.newest)
        replica = self._replica

        async def ask() -> tuple[ObjectInfo, ...]:
            return (await list_all(replica.store, prefix, start_after=prefix + after)).objects

        found = await replica.names.hear_range(prefix, after, ask)
        if found:
            state.newest = max(state.newest, found[-1].key[len(prefix) :])

    async def _look_at_everything(self, space: str, state: Watched, now: float) -> None:
        """For writers that are not livememfs and leave no beacon; seldom where no other host is at work."""
        often = EVERYTHING_SELDOM if self._is_calm(state, now) else EVERYTHING_AFTER
        if now - state.everything < often or now - state.used >= EVERYTHING_AFTER:
            return
        state.everything = now
        await self._listener.relist(f"{space}/")

    async def _look_at_what_is_in_use(self, space: str, now: float, again: float) -> None:
        """For the same writers, in directories that somebody has just looked into."""
        names, due = self._replica.names, list[str]()
        for prefix, used in islice(reversed(self._in_use.items()), USED_LAST):  # a `find` uses very many
            level = names.levels.get(prefix) if prefix.startswith(space) and now - used <= IN_USE else None
            if level is not None:
                pages = 1 + len(level.objects) // MAX_PAGE
                due += [prefix] if now - level.confirmed >= again * pages else []
        for prefix in due[:IN_USE_AT_ONCE]:
            await names.refresh(prefix)

    def statistics(self) -> WatcherStatistics:
        """Counters, cheap."""
        return WatcherStatistics(spaces=len(self._spaces), **self._counts, **self._listener.counts)


def _earlier(name: str) -> str:
    """What sorts before the notes of the last minutes before the one named; before all when it names none."""
    parsed = keys.NoteName.parse(name)
    return "" if parsed is None else f"{parsed.timestamp - CLOCK_SKEW:%Y%m%dT%H%M%S}"
