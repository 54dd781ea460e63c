"""When a session is due to be observed: how long a batch waits for more events, and how long all wait for a model.

Owns four waits: a batch waits that is not full, a session after a failed call, all sessions while no model answers, and
all until the next day when the budget is spent. A session that has ended does not wait. When a session begins, the
events of the other sessions of its space do not wait either. All this is only in memory: after a restart all are due.
Trio thread only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import trio

from livememfs.cache.inbox import Standing
from livememfs.observing.known import SessionPlace
from livememfs.records.event import OBSERVED_KINDS

if TYPE_CHECKING:
    from livememfs.clock import Clock
    from livememfs.observing.ask import ObserveSettings

SMALL_WAITS = 6
"""How many times longer a batch that is not half full waits for more, while the agent is at work."""
STOP_GROWTH, STOP_MOST = 4.0, 3_600.0
"""How many times longer a batch that is not full waits after each further stop, and most seconds that it waits: without
this each short turn of a long conversation would cost a call.
"""
FREE_SECONDS = 1.0
"""The longest wait for more events where observing them costs nothing."""
RECORD_SECONDS = 0.5
"""How long the start of a session, its prompts and its end wait: for more, and while the agent gets its answer."""
OUTAGE_SECONDS, OUTAGE_MOST = 5.0, 3_600.0
LOOK_SECONDS = 600.0
"""Most seconds of a pause between two looks at the clock: it may be set while no event comes."""


class Due:
    """The waits of one observer. `free`: a call costs nothing."""

    def __init__(self, clock: Clock, settings: ObserveSettings, *, free: bool) -> None:
        self._clock, self._settings, self._free = clock, settings, free
        self._heard: dict[SessionPlace, float] = {}
        self._held: dict[SessionPlace, float] = {}
        self._asked: dict[SessionPlace, int] = {}  # the last prompt: a stop before it does not count any more
        # The last event that waited when another session began, and when that was.
        self._hurried: dict[SessionPlace, tuple[int, float]] = {}
        self._small: dict[SessionPlace, int] = {}  # batches after a stop that were not full
        self._outages = 0
        self._closed_until = -math.inf
        self.paused_until: datetime | None = None
        """When the budget of the next day lets it go on; None while it is not paused."""
        self._spent_on: date | None = None

    def heard(self, place: SessionPlace) -> None:
        """Something new came."""
        self._heard[place] = trio.current_time()

    def small(self, place: SessionPlace) -> None:
        """After a stop a batch was observed that was not full."""
        self._small[place] = self._small.get(place, 0) + 1

    def hold(self, place: SessionPlace, seconds: float) -> None:
        """A session waits so long."""
        self._held[place] = trio.current_time() + seconds

    def let_go(self, place: SessionPlace) -> None:
        """A session waits no more after a failure."""
        self._held.pop(place, None)

    def out(self) -> None:
        """No model answered: all wait, longer each time."""
        self._closed_until = trio.current_time() + min(OUTAGE_SECONDS * 2 ** min(self._outages, 20), OUTAGE_MOST)
        self._outages += 1

    def reached(self) -> None:
        """A model answered."""
        self._outages, self._closed_until = 0, -math.inf

    def pause(self) -> None:
        """All wait for the next UTC day."""
        now = self._clock.now().astimezone(UTC)
        tomorrow, self._spent_on = now + timedelta(days=1), now.date()
        self.paused_until = tomorrow.replace(hour=0, minute=0, second=0, microsecond=0)

    def is_paused(self) -> bool:
        """Whether the day's budget is spent."""
        return self._pause_ends() > -math.inf

    def _pause_ends(self) -> float:
        if self.paused_until is None:
            return -math.inf
        now = self._clock.now()
        # Also where a clock that was ahead was set back: the budget of its day is spent, that of today is not.
        if now.astimezone(UTC).date() != self._spent_on:
            self.paused_until = None
            return -math.inf
        return trio.current_time() + min((self.paused_until - now).total_seconds(), LOOK_SECONDS)

    def first(
        self, waits: Mapping[tuple[str, str], Mapping[str, Standing]], tries: Callable[[int], int]
    ) -> tuple[float, SessionPlace | None]:
        """The session that is due first, and when; `tries(event)` is how many calls an event was part of."""
        places = {SessionPlace(*ids): waiting for ids, waiting in waits.items()}
        for place, waiting in places.items():
            if "start" in waiting:
                self._begins(place, places)
        due = [(self._of(place, waiting, tries), place) for place, waiting in places.items()]
        return min(due, key=lambda moment_and_place: moment_and_place[0], default=(math.inf, None))

    def _begins(self, place: SessionPlace, places: Mapping[SessionPlace, Mapping[str, Standing]]) -> None:
        """A session begins or goes on: it can use what other sessions of its space left, so those are due now."""
        self._small.pop(place, None)
        for other, waiting in places.items():
            if other.space == place.space and other != place:
                self._hurried[other] = (
                    max(events.last for events in waiting.values()),
                    self._heard.get(place, -math.inf),
                )

    def _of(self, place: SessionPlace, waiting: Mapping[str, Standing], tries: Callable[[int], int]) -> float:
        heard, held = self._heard.get(place, -math.inf), self._held.get(place, -math.inf)
        if "prompt" in waiting:
            self._asked[place] = waiting["prompt"].last
        if "start" in waiting or "prompt" in waiting:
            return max(heard + RECORD_SECONDS, held)
        events = [waiting[kind] for kind in OBSERVED_KINDS if kind in waiting]
        last_hurried, began = self._hurried.get(place, (0, -math.inf))
        if self._is_full(events, tries):
            due = -math.inf
        elif "end" in waiting:
            due = heard + RECORD_SECONDS
        elif min(kind.first for kind in waiting.values()) <= last_hurried:
            due = began + RECORD_SECONDS  # the new session waits for its first answer: that comes first
        else:
            last = max([self._asked.get(place, 0), *(kind.last for kind in events)])
            stopped = "stop" in waiting and waiting["stop"].last > last
            due = heard + self._patience(place, sum(kind.number for kind in events), stopped=stopped)
        return max(due, held, self._closed_until, self._pause_ends())

    def _patience(self, place: SessionPlace, events: int, *, stopped: bool) -> float:
        """How long a batch that is not full waits for more."""
        settings = self._settings
        if stopped:
            waits = min(settings.stop_idle * STOP_GROWTH ** min(self._small.get(place, 0), 9), STOP_MOST)
        else:
            waits = settings.idle if events >= settings.batch // 2 else SMALL_WAITS * settings.idle
        return min(waits, FREE_SECONDS) if self._free else waits

    def _is_full(self, events: Sequence[Standing], tries: Callable[[int], int]) -> bool:
        if sum(kind.number for kind in events) >= self._settings.batch:
            return True
        if sum(kind.size for kind in events) >= self._settings.characters:
            return True
        # An event that was part of a call does not wait for more: the events to join it have come.
        return bool(events) and tries(min(kind.first for kind in events)) > 0
