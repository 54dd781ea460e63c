"""The two lists that tell a user what went wrong: `errors.ndjson` and `conflicts.ndjson`.

Owns the last lines of each, in memory. Refuses note bodies and secrets: a line names a path, never a content. Trio
thread only.
"""

from __future__ import annotations

import errno
import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs.records.space import iso

if TYPE_CHECKING:
    from livememfs.clock import Clock
    from livememfs.errors import LiveMemError

KEPT = 1_000


@dataclass(frozen=True)
class ErrorLogStatistics:
    """Lines written since the mount, and how many of them are kept."""

    errors: int
    conflicts: int
    kept: int


class ErrorLog:
    """Lines for `.livememfs/`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._errors: deque[str] = deque(maxlen=KEPT)
        self._conflicts: deque[str] = deque(maxlen=KEPT)
        self._count = self._conflict_count = 0

    def record(self, operation: str, path: str, error: LiveMemError) -> None:
        """One refusal or failure."""
        self._count += 1
        self._errors.append(
            _line(
                time=iso(self._clock.now()),
                path=path,
                operation=operation,
                errno=errno.errorcode.get(error.errno, str(error.errno)),
                what=str(error),
                what_to_do=error.advice(),
            )
        )

    def conflict(self, path: str, copy: str, reason: str) -> None:
        """Both sides were kept: ours is now under `copy`."""
        self._conflict_count += 1
        self._conflicts.append(_line(time=iso(self._clock.now()), path=path, copy=copy, what=reason))

    def errors(self) -> bytes:
        """The text of `errors.ndjson`."""
        return "".join(self._errors).encode()

    def conflicts(self) -> bytes:
        """The text of `conflicts.ndjson`."""
        return "".join(self._conflicts).encode()

    def statistics(self) -> ErrorLogStatistics:
        """Counters, cheap."""
        return ErrorLogStatistics(self._count, self._conflict_count, len(self._errors))


def _line(**fields: str) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
