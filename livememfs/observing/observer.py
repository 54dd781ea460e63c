"""The observer: what agents did becomes observations and summaries, in the background (claude-mem 3.3 to 3.5).

Owns what happens to a batch, and what a failed call leads to. An event is finished only when its result is in the
bucket, or when a reply says why it is skipped; after every other answer it waits again. The calls for one event are
limited: a batch that cannot be observed is halved until the event at fault is alone; that event is given up, but it
stays in the inbox with the reason. Refuses to keep in memory what a restart must not lose. Trio thread only; one batch
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs import errors
from livememfs.cache.inbox import InboxStatistics, Queued, Spent
from livememfs.concurrency import Background
from livememfs.memories.proposals import wanted
from livememfs.observing import builtin as observe_builtin
from livememfs.observing.ask import WRONG, ObserverRequest, ObserveSettings
from livememfs.observing.corrections import judged_by_words, with_earlier, with_the_older
from livememfs.observing.due import Due
from livememfs.observing.incode import claimed
from livememfs.observing.known import Batch, SessionPlace, came_of, data_of, known_of, recorded, session_of
from livememfs.observing.prompt import SHOWN_CHARACTERS, Known
from livememfs.observing.proposing import propose
from livememfs.observing.reply import ObserverReply
from livememfs.records import keys
from livememfs.records.event import OBSERVED_KINDS, Event
from livememfs.records.origin import trust_of_event
from livememfs.records.session import Meter, Session, last_prompts
from livememfs.records.trust import Trust
from livememfs.text.foreign import Unreadable

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.code.workplaces import Workplaces
    from livememfs.llm.base import ChatModel
    from livememfs.observing.parking import Parking

log = structlog.get_logger("livememfs.observing")

HEAL_SECONDS = 60.0
"""An event that was claimed longer ago than this, and is not being observed, waits again (claude-mem 3.2)."""
AGAIN_SECONDS, AGAIN_MOST = 2.0, 300.0
UNREACHED = "the model could not be reached"
NO_SUMMARY_CAME = "no summary came"
NOTHING_NEW = "nothing new to sum up"
STOPS = ("stop", "end")
"""Events that ask for a summary."""


@dataclass(frozen=True)
class ObserverStatistics:
    """Events since the local state began; calls since the start; what was spent today.

    :model:         who observes; `builtin` without a model
    :failing_since: when the observer began to fail; empty while it does not
    :paused_until:  when it goes on, if the day's budget is spent
    """

    events: InboxStatistics
    model: str
    calls: int
    refused: int
    outages: int
    today: Spent
    budget: int
    failing_since: str
    last_error: str
    paused_until: str


class Observer:
    """The observer of one bucket, with `model` or without one. `failed(space, error)` is called for each failure."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        model: ChatModel | None,
        settings: ObserveSettings | None = None,
        *,
        failed: Callable[[str, errors.LiveMemError], None] = lambda *_: None,
        parking: Parking | None = None,
        background: Background | None = None,
        code: Workplaces | None = None,
    ) -> None:
        self._code = code
        self._background = background or Background()
        self._replica, self._inbox, self._clock = replica, replica.inbox, clock
        self.settings, self._failed = settings or ObserveSettings(), failed
        self._parking = parking
        self._asking = ObserverRequest(replica.inbox, clock, model, self.settings)
        self._wake = trio.Event()
        self._due = Due(clock, self.settings, free=model is None)
        self._wrong: dict[SessionPlace, str] = {}
        self._unbilled: dict[SessionPlace, Meter] = {}
        self._expected: set[str] = set()
        self._busy = False
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        self._failing_since: datetime | None = None
        self._last_error = ""
        self._locally = False  # the last failure was of the bucket or the disk, not of a model
        self._counts = {"refused": 0, "outages": 0}

    @property
    def model(self) -> str:
        """Who observes."""
        return self._asking.model.name if self._asking.model is not None else observe_builtin.NAME

    @property
    def parking(self) -> Parking | None:
        """Where events wait for a mount."""
        return self._parking

    def wake(self, space: str, session: str) -> None:
        """A session has something new."""
        self._due.heard(SessionPlace(space, session))
        self._wake.set()

    def again(self, space: str, session: str) -> None:
        """Try again what was given up of a session: somebody asked for it."""
        self._inbox.revive(space, session)
        self._due.let_go(SessionPlace(space, session))
        self.wake(space, session)

    def uploaded(self, key: str, _new: bool) -> None:
        """A subscriber of uploads: an object that events led to is in the bucket."""
        if key in self._expected:
            with suppress(errors.NoSpace):  # `_confirm` does it later, when there is room
                self._inbox.confirm(key)
            self._expected.discard(key)

    # --- the loop -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Observe until cancelled."""
        self._replica.outcomes.subscribe(self.uploaded)
        try:
            with self._scope:
                await self._background.keep("observer", self._run)
        finally:
            self._ended.set()

    async def _run(self) -> None:
        if self._parking is not None:
            await self._parking.take_up()
        with suppress(errors.NoSpace):  # as in `_heal`
            self._confirm()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._heal)
            while True:
                self._wake = trio.Event()
                moment, place = self._due.first(self._inbox.standing(SHOWN_CHARACTERS), self._inbox.tries)
                if place is not None and moment <= trio.current_time():
                    await self._work(place)
                    continue
                with trio.move_on_at(moment):
                    await self._wake.wait()

    async def stop(self) -> None:
        """Stop observing. The events of a batch that is under way wait as before."""
        self._scope.cancel()
        await self._ended.wait()

    def leave(self) -> None:
        """Park the events that are not observed. Called when all accepted is uploaded and capture has ended."""
        self._confirm()
        if self._parking is not None:
            self._parking.leave()

    async def _heal(self) -> None:
        while True:
            await trio.sleep(HEAL_SECONDS)
            with suppress(errors.NoSpace):  # a full disk must not end the loop; the next minute tries again
                if not self._busy and self._inbox.heal(self._now() - int(HEAL_SECONDS)):
                    self._wake.set()
                self._confirm()
                self._inbox.prune(self._now())

    def _confirm(self) -> None:
        """Finish the events whose objects the bucket has by now; expect the other objects (`uploaded`)."""
        for key in self._inbox.unconfirmed():
            if self._replica.journal.ops.newest(key) is None:
                self._inbox.confirm(key)
            else:
                self._expected.add(key)

    async def _work(self, place: SessionPlace) -> None:
        """One step for one session. No failure here may end the mount."""
        self._busy = True
        try:
            if not await self._record(place):
                await self._observe(place)
        except errors.LiveMemError as error:
            self._due.hold(place, AGAIN_SECONDS * 4)
            self._went_wrong(place, error)
            self._locally = True
        except Exception as error:
            log.exception("observing failed", space=place.space)
            self._due.hold(place, HEAL_SECONDS + AGAIN_SECONDS)  # `_heal` has given back its claimed events by then
            self._went_wrong(place, errors.ObserverFailed(f"{type(error).__name__}: {error}"))
        finally:
            self._busy = False

    async def _record(self, place: SessionPlace) -> bool:
        """Write down how a session began and its prompts. False when there was nothing to write."""
        waiting = self._parsed(self._inbox.waiting(place.space, place.session, "start", "prompt"))
        if not waiting:
            return False
        outcome = await recorded(self._replica, place, waiting, self._clock.now())
        self._replica.save_all(outcome.objects, lambda: self._inbox.stored(outcome.stored))
        self._expected.update(outcome.stored)
        if self._locally:
            self._went_well()
        return True

    def _parsed(self, queued: Sequence[Queued]) -> list[tuple[Queued, Event]]:
        """Rows with their events. A row that cannot be read is given up, and stays in the inbox."""
        parsed = []
        for row in queued:
            try:
                parsed.append((row, Event.from_json(row.line)))
            except Unreadable:
                self._inbox.fail([row], "it cannot be read")
        return parsed

    # --- one batch ----------------------------------------------------------------------------------------------

    async def _observe(self, place: SessionPlace) -> None:
        events = self._parsed(
            self._inbox.waiting(place.space, place.session, *OBSERVED_KINDS, most=self.settings.batch)
        )
        stops = self._inbox.waiting(place.space, place.session, *STOPS)
        chosen = _next_batch(events, self.settings)
        # A summary is asked for only together with the last events: it must not be made from a part of them.
        standing = self._inbox.standing().get((place.space, place.session), {})
        last = len(chosen) == sum(standing[kind].number for kind in OBSERVED_KINDS if kind in standing)
        ends = stops if last and not (chosen and _is_from_outside(chosen[0][1])) else []
        session = await session_of(self._replica, place, self._clock.now())
        if not chosen and session.observed + session.skipped <= session.summed_up:
            await self._nothing_new(place, session, stops)
            return
        claimed = {row.seq for row in self._inbox.claim([*(row for row, _ in chosen), *ends], self._now())}
        batch = Batch(
            place,
            [(row, event) for row, event in chosen if row.seq in claimed],
            [row for row in ends if row.seq in claimed],
        )
        try:
            await self._observe_batch(batch)
        except (errors.LiveMemError, trio.Cancelled):  # the store failed; `_ask` handles what a model fails with
            self._inbox.unclaim(batch.queued)
            raise

    async def _nothing_new(self, place: SessionPlace, session: Session, stops: Sequence[Queued]) -> None:
        """Skip stops with nothing to sum up; a session that has ended is completed all the same."""
        ended = any(row.kind == "end" for row in stops) and session.status == "active"
        if not ended or not await data_of(self._replica, place.key(keys.SESSION)):
            self._inbox.skip(stops, NOTHING_NEW)
            return
        done = replace(session, status="completed", updated_at=self._clock.now())
        self._replica.save_all({place.key(keys.SESSION): done.render()}, lambda: self._inbox.skip(stops, NOTHING_NEW))

    async def _observe_batch(self, batch: Batch) -> None:
        session = await session_of(self._replica, batch.place, self._clock.now())
        answers = sum(event.kind == "said" for event in batch.events)
        known = await known_of(self._replica, batch.place, session, with_summary=bool(batch.stops), answers=answers)
        known = await with_earlier(self._replica, batch.place.space, batch.events, known)
        reply = await (self._ask(batch, known) if self._asking.model is not None else self._without_model(batch, known))
        if reply is None:
            return
        meter = self._unbilled.get(batch.place, Meter())
        asks = await wanted(self._replica, batch.place.space)
        session = await session_of(self._replica, batch.place, self._clock.now())  # another host may have been here
        code = await claimed(self._code, batch, reply)
        now = self._clock.now()
        outcome, left = came_of(batch, reply, session, known, model=self.model, meter=meter, now=now, code=code)
        await with_the_older(self._replica, batch.place.space, outcome.objects)
        if asks:
            outcome = await propose(self._replica, batch.place, outcome, self.model, now)
        # A reply without a summary: its stops are tried once more, then given up.
        unanswered = [] if reply.summary or reply.no_summary else batch.stops
        again = [row for row in unanswered if not row.tries]
        given_up = [row for row in unanswered if row.tries]

        def accept() -> None:
            self._inbox.stored(outcome.stored)
            for reason, events in outcome.skipped.items():
                self._inbox.skip(events, reason)
            self._inbox.skip(given_up, NO_SUMMARY_CAME)
            self._give_back([*left, *again], "the reply says nothing of it")

        # One transaction: a crash must not leave objects whose events are observed a second time, or the reverse.
        self._replica.save_all(outcome.objects, accept)
        self._expected.update(key for key, events in outcome.stored.items() if events)
        self._unbilled.pop(batch.place, None)
        self._wrong.pop(batch.place, None)
        self._went_well()
        if any(row.kind == "stop" for row in batch.stops) and len(batch.tools) < self.settings.batch:
            self._due.small(batch.place)
        if left:
            self._wrong[batch.place] = "it left events out that stand in neither an observation nor a skip"

    async def _without_model(self, batch: Batch, known: Known) -> ObserverReply:
        reply = observe_builtin.observed(batch.events)
        reply = replace(reply, observations=await judged_by_words(reply.observations, known.earlier))
        if not batch.stops:
            return reply
        prompts = last_prompts(await data_of(self._replica, batch.place.key(keys.PROMPTS)), 1_000)
        titles = [*known.titles, *(draft.title for draft in reply.observations)]
        words = [event.text for event in batch.events if event.kind == "said" and not event.subagent]
        summary = observe_builtin.summary(prompts, titles, words[-1] if words else "")
        is_empty = not any(summary.values())
        return replace(reply, summary=None if is_empty else summary, no_summary=is_empty)

    async def _ask(self, batch: Batch, known: Known) -> ObserverReply | None:
        """The reply to a batch; None when no reply can be used: the batch is given back then."""
        try:
            reply, meter = await self._asking.ask(
                batch.events,
                known,
                with_summary=bool(batch.stops),
                tries=max(row.tries for row in batch.queued),
                wrong=self._wrong.get(batch.place, ""),
            )
        except errors.BudgetSpent as error:
            self._inbox.unclaim(batch.queued)
            self._due.pause()
            self._failed(batch.place.space, error)
            return None
        except (errors.RequestRefused, errors.ModelTimedOut) as error:
            self._not_this(batch, error)
            return None
        except errors.ModelError as error:
            self._out(batch, error)
            return None
        self._unbilled[batch.place] = self._unbilled.get(batch.place, Meter()).plus(meter)
        if meter.calls:
            self._reached()
        if reply.verdict != "ok":
            self._refused(batch, WRONG[reply.verdict])
            return None
        return reply

    def _reached(self) -> None:
        """A model answered: events that were given up because no model answered are tried again."""
        self._due.reached()
        if self._inbox.revive(reason=UNREACHED):
            self._wake.set()

    def _refused(self, batch: Batch, reason: str) -> None:
        """The answer is of no use: the batch waits for a while, and is asked for in smaller parts."""
        self._counts["refused"] += 1
        self._wrong[batch.place] = reason
        self._give_back(batch.queued, reason)
        tries = max(row.tries for row in batch.queued)
        self._due.hold(batch.place, min(AGAIN_SECONDS * 2**tries, AGAIN_MOST))
        self._went_wrong(batch.place, errors.ObserverFailed(f"a reply cannot be used: {reason}"))

    def _not_this(self, batch: Batch, error: errors.ModelError) -> None:
        """The endpoint turned a request down, or was too slow: a smaller one may work, and other sessions go on."""
        self._counts["outages"] += 1
        # A timeout may mean an outage: as `UNREACHED` the events are tried again when a model answers (`_reached`).
        self._give_back(batch.queued, UNREACHED if isinstance(error, errors.ModelTimedOut) else str(error))
        tries = max(row.tries for row in batch.queued)
        self._due.hold(batch.place, HEAL_SECONDS * 2**tries)
        self._went_wrong(batch.place, error)

    def _give_back(self, queued: Sequence[Queued], reason: str) -> None:
        """Let events wait again; give up those that were part of too many calls."""
        self._inbox.release(queued, reason)
        spent = [row for row in queued if row.tries + 1 >= self.settings.tries]
        if spent:
            self._inbox.fail(spent, reason)

    def _out(self, batch: Batch, error: errors.ModelError) -> None:
        """No model was reached: all wait, longer each time; an event that met too many outages is given up."""
        self._counts["outages"] += 1
        self._inbox.release(batch.queued, str(error), outage=True)
        spent = [row for row in batch.queued if row.outages + 1 >= self.settings.outages]
        if spent:
            self._inbox.fail(spent, UNREACHED)
        self._due.out()
        self._went_wrong(batch.place, error)

    # --- how it is ----------------------------------------------------------------------------------------------

    def _went_wrong(self, place: SessionPlace, error: errors.LiveMemError) -> None:
        self._locally = False
        self._failing_since = self._failing_since or self._clock.now()
        self._last_error = str(error)
        self._failed(place.space, error)

    def _went_well(self) -> None:
        self._failing_since, self._last_error, self._locally = None, "", False

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def trouble(self) -> str:
        """One line that says why nothing is observed; empty when the observer works."""
        if self._due.is_paused():
            return f"observing is paused: the day's budget of {self.settings.budget:,} tokens is spent"
        if self._failing_since is not None:
            since = f"{self._failing_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            return f"observing has been failing since {since}: {self._last_error}"
        return ""

    def statistics(self) -> ObserverStatistics:
        """Counters."""
        failing = self._failing_since
        paused = self._due.paused_until if self._due.is_paused() else None
        return ObserverStatistics(
            events=self._inbox.statistics(),
            model=self.model,
            calls=self._asking.calls,
            **self._counts,
            today=self._asking.spent_today(),
            budget=self.settings.budget,
            failing_since=failing.isoformat(timespec="seconds") if failing is not None else "",
            last_error=self._last_error,
            paused_until=paused.isoformat() if paused is not None else "",
        )


def _next_batch(events: Sequence[tuple[Queued, Event]], settings: ObserveSettings) -> list[tuple[Queued, Event]]:
    """The events of the next call. After each failure half as many, so that one bad event cannot block the others.

    What is from the web has calls of its own, before the others: no page has a say in what is written of other events,
    nor in a summary.
    """
    outside = [pair for pair in events if _is_from_outside(pair[1])]
    events = outside or events
    chosen: list[tuple[Queued, Event]] = []
    size = 0
    for row, event in events[: max(1, settings.batch >> events[0][0].tries) if events else 0]:
        size += min(row.size, SHOWN_CHARACTERS)
        if chosen and size > settings.characters:
            break
        chosen.append((row, event))
    return chosen


def _is_from_outside(event: Event) -> bool:
    return trust_of_event(event) is Trust.WEB
