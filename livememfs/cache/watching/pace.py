"""The pace of the watcher: how often a space is looked at, and for how long what a look has shown is believed.

Owns what is known of each space that is watched, and both questions. A space is calm while no change by another host
was found there for some minutes: then it is looked at only every few seconds. Refuses to look (`watcher` does), and to
take a store that does not answer for a calm one. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from livememfs.store.base import MAX_PAGE

if TYPE_CHECKING:
    import trio

    from livememfs.cache.beacon import Announcement

SLACK = 1.0
"""Seconds beyond the pause for which a look is vouched for."""
IN_USE_SECONDS = 60.0
"""A space is in use for so long after somebody accessed it."""
BACK_OFF = ((IN_USE_SECONDS, 0.75), (600.0, 4.0), (3_600.0, 15.0), (float("inf"), 30.0))
"""Up to this many seconds after the last use, this many intervals between two looks.

In use, three looks at the records and beacons fall into two intervals, and every other one is at new notes as well:
two requests an interval, with which an edit shows after three quarters of one and a note after one and a half.
"""
CALM_INTERVALS = 5.0
CALM_SECONDS = 10.0
"""A calm space is looked at every five intervals, but at least so often, unless the interval is longer."""
STIRRED_SECONDS = 330.0
"""For so long after another host's change a space is not calm: a little longer than between two full looks."""


@dataclass
class Watched:
    """One space: when it was used, looked at and stirred by another host, and what its looks have shown.

    :fits: whether one LIST shows all of it, as far as is known
    :room: how many more objects the last look could have shown; negative: it did not show all
    """

    used: float
    due: float
    everything: float
    surveyed: float = float("-inf")
    looked: float = float("-inf")
    baseline: float = float("inf")
    stirred: float = float("-inf")
    is_space: bool = True
    fits: bool = True
    room: int = -1
    beacons: dict[str, str] = field(default_factory=dict)
    heard: dict[str, Announcement | None] = field(default_factory=dict)
    newest: str = ""
    looking: trio.Event | None = None
    notes_next: bool = True
    names_asked: int = MAX_PAGE

    def is_calm(self, now: float) -> bool:
        """Whether no other host seems to be at work there."""
        return now - self.stirred >= STIRRED_SECONDS

    def stir(self, now: float, pause: float) -> None:
        """Take note of another host's change: the next look is at the old pace, and shows notes as well."""
        if self.is_calm(now):
            self.due = min(self.due, now + pause)
            self.notes_next = True
        self.stirred, self.fits, self.room = now, True, -1


class Pace:
    """Pauses between looks. `interval` is the watcher's, in seconds."""

    def __init__(self, interval: float) -> None:
        self.quick = interval * BACK_OFF[0][1]
        self._interval = interval
        self._calm = max(interval, min(CALM_INTERVALS * interval, CALM_SECONDS))

    def pause(self, state: Watched, now: float, *, calm: bool) -> float:
        """Seconds between two looks."""
        idle = now - state.used
        pause = self._interval * next(factor for limit, factor in BACK_OFF if idle < limit)
        return max(pause, self._calm) if calm else pause

    def believed(self, *, calm: bool) -> float:
        """Seconds for which a look is vouched for."""
        return (self._calm if calm else self._interval) + SLACK
