"""The observer: what agents did becomes observations and summaries, in the background (claude-mem 3.3 to 3.5).

Owns what becomes of a batch, and how a failed call is met. An event is done with only when what came of it is in the
bucket, or a reply says why it is skipped; every other answer keeps it. Calls for one event are bounded: a batch that
cannot be observed is halved until the event that is to blame stands alone and is given up, kept, and named. Refuses to
keep anything in memory that a restart would miss. Trio thread only; one batch at a time.
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
from livememfs.observing import builtin as observe_builtin
from livememfs.observing.ask import WRONG, ObserverRequest, ObserveSettings
from livememfs.observing.due import Due
from livememfs.observing.known import Batch, SessionPlace, came_of, data_of, known_of, recorded, session_of
from livememfs.observing.prompt import SHOWN_CHARACTERS, Known
from livememfs.observing.reply import ObserverReply
from livememfs.records import keys
from livememfs.records.event import OBSERVED_KINDS, Event
from livememfs.records.session import Meter, Session, last_prompts
from livememfs.text.foreign import Unreadable

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.llm.base import ChatModel
    from livememfs.observing.parking import Parking

log = structlog.get_logger("livememfs.observing")

HEAL_SECONDS = 60.0
"""An event that was claimed so long ago by nobody who is still at it waits again (claude-mem 3.2)."""
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
    :paused_until:  when it goes on, once the day's budget is spent
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
    """The observer of one bucket, with `model` or without one. `failed(space, error)` hears of what went wrong."""

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
    ) -> None:
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
        self._locally = False  # it is the bucket or the disk that failed, and no model
        self._counts = {"refused": 0, "outages": 0}

    @property
    def model(self) -> str:
        """Who observes."""
        return self._asking.model.name if self._asking.model is not None else observe_builtin.NAME

    def wake(self, space: str, session: str) -> None:
        """There is something new."""
        self._due.heard(SessionPlace(space, session))
        self._wake.set()

    def again(self, space: str, session: str) -> None:
        """Somebody asks for what was given up of a session."""
        self._inbox.revive(space, session)
        self._due.let_go(SessionPlace(space, session))
        self.wake(space, session)

    def uploaded(self, key: str, _new: bool) -> None:
        """A subscriber of uploads: what came of events is in the bucket."""
        if key in self._expected:
            with suppress(errors.NoSpace):  # then `_confirm` says it, once there is room
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
        """Observe nothing more; what is being observed waits as it did before."""
        self._scope.cancel()
        await self._ended.wait()

    def leave(self) -> None:
        """What is not observed goes to the bucket. Called when all that was accepted is there, and nothing comes."""
        self._confirm()
        if self._parking is not None:
            self._parking.leave()

    async def _heal(self) -> None:
        while True:
            await trio.sleep(HEAL_SECONDS)
            with suppress(errors.NoSpace):  # a full disk is no reason to end; the next minute tries again
                if not self._busy and self._inbox.heal(self._now() - int(HEAL_SECONDS)):
                    self._wake.set()
                self._confirm()
                self._inbox.prune(self._now())

    def _confirm(self) -> None:
        """What the bucket has by now is done with; the rest is expected."""
        for key in self._inbox.unconfirmed():
            if self._replica.journal.ops.newest(key) is None:
                self._inbox.confirm(key)
            else:
                self._expected.add(key)

    async def _work(self, place: SessionPlace) -> None:
        """One step for one session. Whatever goes wrong must not cost the mount."""
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
            self._due.hold(place, HEAL_SECONDS + AGAIN_SECONDS)  # what it had claimed is given back by then
            self._went_wrong(place, errors.ObserverFailed(f"{type(error).__name__}: {error}"))
        finally:
            self._busy = False

    async def _record(self, place: SessionPlace) -> bool:
        """Write down how a session began and what was asked; whether there was any of it."""
        waiting = self._parsed(self._inbox.waiting(place.space, place.session, "start", "prompt"))
        if not waiting:
            return False
        found = await recorded(self._replica, place, waiting, self._clock.now())
        self._replica.save_all(found.objects, lambda: self._inbox.stored(found.stored))
        self._expected.update(found.stored)
        if self._locally:
            self._went_well()
        return True

    def _parsed(self, queued: Sequence[Queued]) -> list[tuple[Queued, Event]]:
        """The events of rows; a row that is none is given up, and stays."""
        found = []
        for one in queued:
            try:
                found.append((one, Event.from_json(one.line)))
            except Unreadable:
                self._inbox.fail([one], "it cannot be read")
        return found

    # --- one batch ----------------------------------------------------------------------------------------------

    async def _observe(self, place: SessionPlace) -> None:
        events = self._parsed(
            self._inbox.waiting(place.space, place.session, *OBSERVED_KINDS, most=self.settings.batch)
        )
        stops = self._inbox.waiting(place.space, place.session, *STOPS)
        chosen = self._chosen(events)
        standing = self._inbox.standing().get((place.space, place.session), {})
        ends = stops if len(chosen) == sum(standing[kind].number for kind in OBSERVED_KINDS if kind in standing) else []
        session = await session_of(self._replica, place, self._clock.now())
        if not chosen and not self._has_news(session):
            await self._nothing_new(place, session, stops)
            return
        claimed = {one.seq for one in self._inbox.claim([*(one for one, _ in chosen), *ends], self._now())}
        batch = Batch(
            place, [one for one in chosen if one[0].seq in claimed], [one for one in ends if one.seq in claimed]
        )
        try:
            await self._observe_batch(batch)
        except errors.LiveMemError:  # the store's: the model's are met where it is asked
            self._inbox.unclaim(batch.queued)
            raise
        except trio.Cancelled:
            self._inbox.unclaim(batch.queued)
            raise

    async def _nothing_new(self, place: SessionPlace, session: Session, stops: Sequence[Queued]) -> None:
        """There is nothing to sum up; a session that has ended is done all the same."""
        ended = any(one.kind == "end" for one in stops) and session.status == "active"
        if not ended or not await data_of(self._replica, place.key(keys.SESSION)):
            self._inbox.skip(stops, NOTHING_NEW)
            return
        done = replace(session, status="completed", updated_at=self._clock.now())
        self._replica.save_all({place.key(keys.SESSION): done.render()}, lambda: self._inbox.skip(stops, NOTHING_NEW))

    @staticmethod
    def _has_news(session: Session) -> bool:
        return session.observed + session.skipped > session.summed_up

    def _chosen(self, events: Sequence[tuple[Queued, Event]]) -> list[tuple[Queued, Event]]:
        """The next batch: after each failure half as many, so that one event cannot keep the others from being seen."""
        if not events:
            return []
        most = max(1, self.settings.batch >> events[0][0].tries)
        found: list[tuple[Queued, Event]] = []
        size = 0
        for one in events[:most]:
            size += min(one[0].size, SHOWN_CHARACTERS)
            if found and size > self.settings.characters:
                break
            found.append(one)
        return found

    async def _observe_batch(self, batch: Batch) -> None:
        session = await session_of(self._replica, batch.place, self._clock.now())
        answers = sum(event.kind == "said" for event in batch.events)
        known = await known_of(self._replica, batch.place, session, with_summary=bool(batch.stops), answers=answers)
        reply = await (self._ask(batch, known) if self._asking.model is not None else self._without_model(batch, known))
        if reply is None:
            return
        meter = self._unbilled.get(batch.place, Meter())
        session = await session_of(self._replica, batch.place, self._clock.now())  # another host may have been here
        found, left = came_of(batch, reply, session, model=self.model, meter=meter, now=self._clock.now())
        summed_up = reply.summary or reply.no_summary
        again = [] if summed_up else [one for one in batch.stops if not one.tries]
        given_up = [] if summed_up else [one for one in batch.stops if one.tries]

        def accept() -> None:
            self._inbox.stored(found.stored)
            for reason, events in found.skipped.items():
                self._inbox.skip(events, reason)
            self._inbox.skip(given_up, NO_SUMMARY_CAME)
            self._give_back([*left, *again], "the reply says nothing of it")

        self._replica.save_all(found.objects, accept)
        self._expected.update(key for key, events in found.stored.items() if events)
        self._unbilled.pop(batch.place, None)
        self._wrong.pop(batch.place, None)
        self._went_well()
        if any(one.kind == "stop" for one in batch.stops) and len(batch.tools) < self.settings.batch:
            self._due.small(batch.place)
        if left:
            self._wrong[batch.place] = "it left events out that stand in neither an observation nor a skip"

    async def _without_model(self, batch: Batch, known: Known) -> ObserverReply:
        reply = observe_builtin.observed(batch.events)
        if not batch.stops:
            return reply
        prompts = last_prompts(await data_of(self._replica, batch.place.key(keys.PROMPTS)), 1_000)
        titles = [*known.titles, *(one.title for one in reply.observations)]
        words = [event.text for event in batch.events if event.kind == "said" and not event.subagent]
        said = observe_builtin.summary(prompts, titles, words[-1] if words else "")
        return replace(reply, summary=said if any(said.values()) else None, no_summary=not any(said.values()))

    async def _ask(self, batch: Batch, known: Known) -> ObserverReply | None:
        """The reply to a batch; None when there is none that can be used, and then the batch was given back."""
        try:
            reply, meter = await self._asking.ask(
                batch.events,
                known,
                with_summary=bool(batch.stops),
                tries=max(one.tries for one in batch.queued),
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
        """A model answered: what was given up because none did is tried again."""
        self._due.reached()
        if self._inbox.revive(reason=UNREACHED):
            self._wake.set()

    def _refused(self, batch: Batch, reason: str) -> None:
        """An answer that is of no use: the batch is kept, and asked for in smaller parts after a while."""
        self._counts["refused"] += 1
        self._wrong[batch.place] = reason
        self._give_back(batch.queued, reason)
        tries = max(one.tries for one in batch.queued)
        self._due.hold(batch.place, min(AGAIN_SECONDS * 2**tries, AGAIN_MOST))
        self._went_wrong(batch.place, errors.ObserverFailed(f"a reply cannot be used: {reason}"))

    def _not_this(self, batch: Batch, error: errors.ModelError) -> None:
        """The endpoint turned a request down, or was too slow: a smaller one may do, and other sessions go on."""
        self._counts["outages"] += 1
        # Who was only slow may have been away altogether.
        self._give_back(batch.queued, UNREACHED if isinstance(error, errors.ModelTimedOut) else str(error))
        tries = max(one.tries for one in batch.queued)
        self._due.hold(batch.place, HEAL_SECONDS * 2**tries)
        self._went_wrong(batch.place, error)

    def _give_back(self, queued: Sequence[Queued], reason: str) -> None:
        """Have events wait again; those that were part of too many calls are given up."""
        self._inbox.release(queued, reason)
        spent = [one for one in queued if one.tries + 1 >= self.settings.tries]
        if spent:
            self._inbox.fail(spent, reason)

    def _out(self, batch: Batch, error: errors.ModelError) -> None:
        """No model: all wait, longer each time, and an event not for ever."""
        self._counts["outages"] += 1
        self._inbox.release(batch.queued, str(error), outage=True)
        spent = [one for one in batch.queued if one.outages + 1 >= self.settings.outages]
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
        """One line on what keeps the observer from its work; empty when nothing does."""
        if self._due.is_paused():
            return f"observing is paused: the day's budget of {self.settings.budget:,} tokens is spent"
        if self._failing_since is not None:
            since = f"{self._failing_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            return f"observing has been failing since {since}: {self._last_error}"
        return ""

    def statistics(self) -> ObserverStatistics:
        """Counters."""
        failing, paused = self._failing_since, self._due.paused_until if self._due.is_paused() else None
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
