"""The schedules of one mount: consolidations and digests that start by themselves.

Owns when they are started. A host that wants to start a run first writes so into the book that all hosts read (`book`):
of several hosts with the same schedule only one runs. Starts one run at a time, and looks at the day's tokens before
each. Refuses to poll the bucket, to stop what a user asked for, and to start again what cannot succeed: a failure puts
the next run off, and notes that a run has left start no other. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.schedule import DigestSchedule, Schedule
from livememfs.records.schedule_book import Book
from livememfs.runs import held
from livememfs.runs.options import RunKind, RunOptions
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import STATES
from livememfs.runs.schedule.book import ScheduleMemory
from livememfs.runs.schedule.space import Scheduled
from livememfs.spaces.describe import is_space
from livememfs.text.times import iso

log = structlog.get_logger("livememfs.runs")

LOOK_EVERY = 60.0
"""Most seconds between two looks at the wall clock: it may be set, and machines sleep."""
PAUSE = 0.5
"""Seconds between two looks: notes often come many at a time."""


@dataclass(frozen=True)
class ScheduleStatistics:
    """Spaces with a schedule; runs that it started, by how they ended; times that another host was faster."""

    spaces: int
    ok: int
    partial: int
    held: int
    error: int
    others: int


class Scheduler:
    """Starts runs by a schedule. `zone`: time zone of the hours of consolidations, None: that of the machine;
    `digest_zone`: of the hours of digests.

    `on_failed(space, reason, what_to_do)` is called for each run that failed. `heard` must be subscribed to changes.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        consolidations: RunQueue,
        schedule: Schedule,
        *,
        host: str = "",
        zone: tzinfo | None = None,
        digests: DigestSchedule | None = None,
        digest_zone: tzinfo | None = None,
        on_failed: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._consolidations = consolidations
        self._schedule = schedule
        self._host = f"{host}/{replica.identity}"
        self._on_failed = on_failed
        now = clock.now()
        self._spaces = [
            Scheduled(kind, name, times, of_hours, now, now)
            for kind, spaces, of_hours in (
                *((("digest", digests.spaces, digest_zone),) if digests is not None else ()),
                ("consolidation", schedule.spaces, zone),
            )
            for name, times in spaces.items()
        ]
        self._memory = ScheduleMemory(replica, clock)
        self._woken = trio.Event()
        self._stopping = False
        self._idle = trio.CancelScope()
        self._at_rest = trio.Event()
        self._ended = dict.fromkeys(STATES, 0)
        self._others = 0

    # --- the task -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start what is due, until `stop`."""
        known, self._at_rest = False, trio.Event()
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
        states = [state for state in self._spaces if state.name == parsed.space]
        if states and parsed.kind in ("note", "meta"):
            for state in states:
                state.heard = self._clock.now()
            self._woken.set()

    def stop(self) -> None:
        """Start nothing more. A run at work goes on until the queue ends it (`drain`)."""
        self._stopping = True
        self._idle.cancel()

    async def stopped(self) -> None:
        """Wait, after `stop`, until the end of the last run is written down."""
        await self._at_rest.wait()

    # --- looking --------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What `status.json` shows."""
        return {
            "daily_tokens": self._schedule.daily_tokens,
            "tokens_today": self._memory.book.used(self._clock.now()),
            "spaces": self._described("consolidation"),
            "digests": self._described("digest"),
        }

    def statistics(self) -> ScheduleStatistics:
        """Counters, cheap."""
        return ScheduleStatistics(len(self._spaces), **self._ended, others=self._others)

    def _described(self, kind: RunKind) -> dict[str, dict[str, Any]]:
        return {state.name: self._describe(state) for state in self._spaces if state.kind == kind}

    def _describe(self, state: Scheduled) -> dict[str, Any]:
        past = state.past(self._memory.book)
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
        """Read the book. For a space that is not in it, the hours before now count as served."""
        now = self._clock.now()

        def first_seen(book: Book) -> Book | None:
            by_hours = [state for state in self._spaces if state.kind == "consolidation" and state.schedule.at]
            new = [state.name for state in by_hours if not state.past(book).served]
            for name in new:
                book = book.with_past(name, replace(book.past(name), served=now))
            return book if new else None

        return await self._memory.update(first_seen) is not None

    async def _look(self) -> list[Scheduled]:
        """Find out when each space is due, and return those that are due now, the one that is due for longest first.

        Digests come before consolidations, which remove the notes that a digest reads.
        """
        for state in self._spaces:
            state.held = ""
            await state.count(self._replica, self._clock)
            self._find_next(state)
        now = self._clock.now()
        due = [state for state in self._spaces if state.next.is_due(now)]
        return sorted(due, key=lambda state: (state.kind != "digest", state.next.when or now))

    def _find_next(self, state: Scheduled) -> None:
        book, now = self._memory.book, self._clock.now()
        state.look(book, now, spent=self._is_spent(book, now))

    def _is_spent(self, book: Book, now: datetime) -> bool:
        limit = self._schedule.daily_tokens
        return limit > 0 and book.used(now) >= limit

    def _patience(self) -> float:
        now = self._clock.now()
        moments = [state.next.when for state in self._spaces if state.next.when and state.next.when > now]
        return min([LOOK_EVERY, *((moment - now).total_seconds() for moment in moments)])

    # --- running --------------------------------------------------------------------------------------------

    async def _attend_to(self, due: list[Scheduled]) -> bool:
        """Run the first of these spaces that nothing holds back; whether there was one."""
        for state in due:
            if await self._attend(state):
                return True
        return False

    async def _attend(self, state: Scheduled) -> bool:
        """Run a space that is due; False when something holds it back."""
        try:
            if not await is_space(self._replica, state.name):
                state.held = "there is no such space"
                return False
        except LiveMemError as error:
            state.held = f"the store does not answer: {error}"
            return False
        if self._consolidations.is_busy(state.name):
            state.held = "a run is at work already"
            return False
        if state.kind == "digest" and not await self._has_new_notes(state):
            return False
        if await self._waits_for_a_person(state) or not await self._claim(state):
            return False
        state.held, state.running = "", True
        try:
            await self._follow(state)
        finally:
            state.running = False
        return True

    async def _waits_for_a_person(self, state: Scheduled) -> bool:
        """Whether a plan for the same notes is held: another run would cost as much again and bring nothing new."""
        try:
            plan = await held.current(self._replica, state.name)
        except LiveMemError:
            return False
        known = {(note.key.rpartition("/")[2], note.etag) for note in (*plan.removes, *plan.keeps)} if plan else set()
        if plan is None or plan.kind != state.kind or not state.notes <= known:
            return False
        state.held = f"run {plan.number} is held, and waits for a person to accept it"
        return True

    async def _has_new_notes(self, state: Scheduled) -> bool:
        """Whether there still is something to digest: other hosts may have digested it."""
        state.forget()
        await state.count(self._replica, self._clock)
        self._find_next(state)
        return not state.held and state.next.is_due(self._clock.now())

    async def _claim(self, state: Scheduled) -> bool:
        """Write for all hosts that this one starts the run; False when it is not due any more, or the store fails."""

        def claim(book: Book) -> Book | None:
            now = self._clock.now()
            due = state.when(book, now, spent=self._is_spent(book, now))
            if not due.is_due(now):
                return None
            begun = replace(state.past(book), started=now, why=due.why, host=self._host, state="", tokens=0)
            return book.with_past(state.name, begun, state.kind)

        written = await self._memory.update(claim)
        if written is None:
            state.held = "the store does not answer"
        elif not written:
            self._others += 1
        return bool(written) and not self._stopping

    async def _follow(self, state: Scheduled) -> None:
        before, newest = state.notes, self._consolidations.latest(state.name, state.kind)
        ticket = self._consolidations.touch(state.name, RunOptions(kind=state.kind))
        result: dict[str, Any] = {}
        async for value in self._consolidations.wait(state.name, ticket, state.kind):
            result = value
        if result["state"] != "error" and not result["notes_processed"]:
            state.left = before
            state.forget()
        elif state.kind == "digest":
            state.forget()
        # A run that a user had asked for, and that this request joined, does not count against the schedule's tokens.
        self._remember(state, result, int(result["llm_tokens_used"]) if ticket > newest else 0)
        await self._memory.settle()

    def _remember(self, state: Scheduled, result: dict[str, Any], tokens: int) -> None:
        past = replace(state.past(self._memory.book), state=result["state"], tokens=tokens, ended=self._clock.now())
        if result["state"] != "error":
            past = replace(past, failures=0, served=past.started)
        elif not self._stopping:
            past = replace(past, failures=past.failures + 1)
            self._on_failed(state.name, result["reason"], result["what_to_do"])
        self._ended[result["state"]] += 1
        self._memory.owe(state.name, past, tokens, state.kind)
