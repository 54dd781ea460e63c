"""Consolidations that nobody asks for: the schedules of one mount.

Owns when they are started. Whoever wants to start a run first writes that it does, where all hosts of the bucket look
(`schedule_memory`), so of several hosts with the same schedule one runs. Starts one at a time, and looks at the day's
tokens before each. Refuses to poll the bucket, to stop what a user asked for, and to start again what cannot succeed:
a failure puts the next run off, and notes that a run has left alone start no other. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.levels import Level
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.pipelines.describe import is_space
from livememfs.pipelines.queue import Consolidations
from livememfs.pipelines.schedule_memory import Memory
from livememfs.pipelines.triggers import Next, Waiting, next_run
from livememfs.records import keys
from livememfs.records.names import is_litter
from livememfs.records.schedule import Schedule, SpaceSchedule
from livememfs.records.schedule_book import Book
from livememfs.records.times import iso

log = structlog.get_logger("livememfs.pipelines")

LOOK_EVERY = 60.0
"""Longest time, in seconds, for which the clock on the wall is not looked at: it may be set, and machines sleep."""
PAUSE = 0.5
"""Between two looks: notes often come many at a time."""
WATCHED_ANEW = 21_600.0
"""A space that nobody looks at for a day is watched no more, so it is looked at now and then."""


@dataclass(frozen=True)
class ScheduleStatistics:
    """Spaces with a schedule; runs that it started, by how they ended; times that another host was faster."""

    spaces: int
    ok: int
    partial: int
    error: int
    others: int


@dataclass(eq=False)
class _Space:
    """One space with a schedule. Notes are (name, etag); those in `left` were not taken by a run and start no other."""

    name: str
    schedule: SpaceSchedule
    heard: datetime
    waiting: Waiting = field(default_factory=Waiting)
    notes: frozenset[tuple[str, str]] = frozenset()
    left: frozenset[tuple[str, str]] = frozenset()
    serial: int = 0
    listed: float = float("-inf")
    next: Next = field(default_factory=Next)
    held: str = ""
    running: bool = False


class Scheduler:
    """Starts runs by a schedule. `zone`: of its hours, None for the machine's own.

    `on_failed(space, reason, what_to_do)` hears of each run that failed. `heard` must be subscribed to the changes.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        consolidations: Consolidations,
        schedule: Schedule,
        *,
        host: str = "",
        zone: tzinfo | None = None,
        on_failed: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._consolidations = consolidations
        self._schedule = schedule
        self._host = f"{host}/{replica.identity}"
        self._zone = zone
        self._on_failed = on_failed
        self._spaces = {name: _Space(name, one, clock.now()) for name, one in schedule.spaces.items()}
        self._memory = Memory(replica, clock)
        self._woken = trio.Event()
        self._stopping = False
        self._idle = trio.CancelScope()
        self._at_rest = trio.Event()
        self._ended = {"ok": 0, "partial": 0, "error": 0}
        self._others = 0

    # --- the task -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start what is due, until `stop`."""
        known = False
        try:
            while not self._stopping:
                self._woken, self._idle = trio.Event(), trio.CancelScope()
                known = known or await self._begin()
                await self._memory.settle()
                if known and await self._attend_to(await self._look()):
                    continue
                with self._idle:
                    with trio.move_on_after(self._patience()):
                        await self._woken.wait()
                    await trio.sleep(PAUSE)
        finally:
            self._at_rest.set()

    def heard(self, change: Change) -> None:
        """A subscriber of the stream of changes: a note may make a run due."""
        parsed = keys.parse(change.key)
        state = self._spaces.get(parsed.space)
        if state is not None and parsed.kind in ("note", "meta"):
            state.heard = self._clock.now()
            self._woken.set()

    def stop(self) -> None:
        """Start nothing more. A run that is at work is ended by whoever ends the consolidations."""
        self._stopping = True
        self._idle.cancel()

    async def stopped(self) -> None:
        """Wait until the last run is written down, after `stop`."""
        await self._at_rest.wait()

    # --- looking --------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What `status.json` shows."""
        return {
            "daily_tokens": self._schedule.daily_tokens,
            "tokens_today": self._memory.book.used(self._clock.now()),
            "spaces": {name: self._describe(state) for name, state in self._spaces.items()},
        }

    def statistics(self) -> ScheduleStatistics:
        """Counters, cheap."""
        return ScheduleStatistics(len(self._spaces), **self._ended, others=self._others)

    def _describe(self, state: _Space) -> dict[str, Any]:
        past = self._memory.book.past(state.name)
        return {
            "notes": state.waiting.notes,
            "running": state.running,
            "next_run": iso(state.next.when) if state.next.when else None,
            "next_why": state.next.why,
            "held_back_by": state.next.held_by or state.held,
            "last_run": iso(past.started) if past.started else None,
            "last_why": past.why,
            "last_state": past.state,
            "last_tokens": past.tokens,
            "last_host": past.host.partition("/")[0],
            "failures": past.failures,
        }

    async def _begin(self) -> bool:
        """Learn what was remembered. The hours of a schedule that nobody has seen yet count from now on."""
        now = self._clock.now()

        def first_seen(book: Book) -> Book | None:
            new = [one.name for one in self._spaces.values() if one.schedule.at and not book.past(one.name).served]
            for name in new:
                book = book.with_past(name, replace(book.past(name), served=now))
            return book if new else None

        return await self._memory.update(first_seen) is not None

    async def _look(self) -> list[_Space]:
        """Find out when each space is due; those that are, the longest due first."""
        for state in self._spaces.values():
            state.held = ""
            await self._count(state)
            state.next = self._next(state, self._memory.book, self._clock.now())
        now = self._clock.now()
        due = [state for state in self._spaces.values() if state.next.is_due(now)]
        return sorted(due, key=lambda one: one.next.when or now)

    def _next(self, state: _Space, book: Book, now: datetime) -> Next:
        limit = self._schedule.daily_tokens
        spent = limit > 0 and book.used(now) >= limit
        past = book.past(state.name)
        return next_run(state.schedule, state.waiting, past, spent=spent, now=now, zone=self._zone)

    def _patience(self) -> float:
        """Seconds until the next look."""
        now = self._clock.now()
        moments = [one.next.when for one in self._spaces.values() if one.next.when and one.next.when > now]
        return min([LOOK_EVERY, *((moment - now).total_seconds() for moment in moments)])

    async def _count(self, state: _Space) -> None:
        """Count the notes again if any came, changed or went."""
        prefix, asked = keys.live_prefix(state.name), trio.current_time()
        level = self._replica.known(prefix)
        if level is None or asked - state.listed > WATCHED_ANEW:
            try:
                level = await self._replica.listing(prefix)
            except LiveMemError as error:
                state.held = f"its notes cannot be listed: {error}"
                return
            state.listed = asked
        if level.serial != state.serial:
            state.serial = level.serial
            self._take_in(state, prefix, level)

    def _take_in(self, state: _Space, prefix: str, level: Level) -> None:
        notes = [name for name in level.objects if keys.parse(prefix + name).kind == "note" and not is_litter(name)]
        found = {name: level.objects[name] for name in notes}
        state.notes = frozenset((name, info.etag) for name, info in found.items())
        state.left &= state.notes
        new = [info.modified_ns for name, info in found.items() if (name, info.etag) not in state.left]
        written = datetime.fromtimestamp(max(new) // 1_000_000_000, UTC) if new else None
        if written is not None and written > self._clock.now():
            written = state.heard  # a store whose clock is ahead must not put the run off
        state.waiting = Waiting(len(new), written)

    # --- running --------------------------------------------------------------------------------------------

    async def _attend_to(self, due: list[_Space]) -> bool:
        """Run the first of these that nothing holds back; whether there was one."""
        for state in due:
            if await self._attend(state):
                return True
        return False

    async def _attend(self, state: _Space) -> bool:
        """Run a space that is due; False when something holds it back."""
        try:
            if not await is_space(self._replica, state.name):
                state.held = "there is no such space"
                return False
        except LiveMemError as error:
            state.held = f"the store does not answer: {error}"
            return False
        if self._consolidations.status(state.name)["state"] in ("queued", "running"):
            state.held = "a run is at work already"
            return False
        if not await self._claim(state):
            return False
        state.held, state.running = "", True
        try:
            await self._follow(state)
        finally:
            state.running = False
        return True

    async def _claim(self, state: _Space) -> bool:
        """Tell all hosts that this one starts the run; False when there is no need any more, or no way."""

        def claim(book: Book) -> Book | None:
            now = self._clock.now()
            found = self._next(state, book, now)
            if not found.is_due(now):
                return None
            begun = replace(book.past(state.name), started=now, why=found.why, host=self._host, state="", tokens=0)
            return book.with_past(state.name, begun)

        written = await self._memory.update(claim)
        if written is None:
            state.held = "the store does not answer"
        elif not written:
            self._others += 1
        return bool(written) and not self._stopping

    async def _follow(self, state: _Space) -> None:
        """The run itself."""
        before, newest = state.notes, self._consolidations.latest(state.name)
        ticket = self._consolidations.touch(state.name)
        result: dict[str, Any] = {}
        async for value in self._consolidations.wait(state.name, ticket):
            result = value
        if result["state"] != "error" and not result["notes_processed"]:
            state.left, state.serial = before, 0
        # A run that somebody else had asked for, and that ours has joined, would have cost the same.
        self._remember(state.name, result, int(result["llm_tokens_used"]) if ticket > newest else 0)
        await self._memory.settle()

    def _remember(self, space: str, result: dict[str, Any], tokens: int) -> None:
        past = replace(self._memory.book.past(space), state=result["state"], tokens=tokens, ended=self._clock.now())
        if result["state"] != "error":
            past = replace(past, failures=0, served=past.started)
        elif not self._stopping:
            past = replace(past, failures=past.failures + 1)
            self._on_failed(space, result["reason"], result["what_to_do"])
        self._ended[result["state"]] += 1
        self._memory.owe(space, past, tokens)
