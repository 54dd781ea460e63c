"""A clock that moves only when told to.

Owns one moment. Implements `livememfs.clock.Clock`; may be read from any thread, is moved from one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)
"""The first moment of a ManualClock, unless another one is given."""


class ManualClock:
    """Time for tests: `now()` stays where it is until `advance` or `set` moves it."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """The current moment, aware, in UTC."""
        return self._now

    def advance(self, seconds: float = 0.0, **parts: float) -> datetime:
        """Move on by seconds and by any other part `timedelta` knows (`days=1`); the new moment."""
        self._now += timedelta(seconds=seconds, **parts)
        return self._now

    def set(self, moment: datetime) -> None:
        """Make `moment` (aware) the current one; it may be earlier."""
        self._now = moment.astimezone(UTC)
