"""What time it is, as a value that is passed in.

Owns the one protocol through which any layer learns the wall-clock time. Nothing below `app` calls `datetime.now`
itself, so a test can stand still (see `livememfs.testing.ManualClock`). Durations and deadlines use trio's clock.
May be called from any thread.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Anything that can tell the time."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        return datetime.now(UTC)
