"""The clock, passed in as a value.

Owns the protocol by which every layer gets the wall-clock time. Nothing below `app` calls `datetime.now`, so a test can
stop the time (see `livememfs.testing.ManualClock`). Durations and deadlines use trio's clock.
May be called from any thread.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Any source of the current time."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        return datetime.now(UTC)
