"""The two lists that tell a user what went wrong: `errors.ndjson` and `conflicts.ndjson`.

Owns the last lines of each, in memory. Refuses note bodies and secrets: a line names a path, never a content, and
what is private in a name is replaced, and so are characters that would steer a reader's terminal. Trio thread only.
"""

from __future__ import annotations

import errno
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.shown import harmless, without_login
from livememfs.text.privacy.redaction import redact
from livememfs.text.times import iso

KEPT = 1_000

Sees = Callable[[str], bool]


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
        self._errors: deque[tuple[str, str]] = deque(maxlen=KEPT)
        self._conflicts: deque[tuple[str, str]] = deque(maxlen=KEPT)
        self._count = self._conflict_count = 0

    def record(self, operation: str, path: str, error: LiveMemError) -> None:
        """One refusal or failure."""
        self._count += 1
        line = _line(
            time=iso(self._clock.now()),
            path=path,
            operation=operation,
            errno=errno.errorcode.get(error.errno, str(error.errno)),
            what=str(error),
            what_to_do=error.advice(),
        )
        self._errors.append((path, line))

    def conflict(self, path: str, copy: str, reason: str) -> None:
        """Both sides were kept: ours is now under `copy`."""
        self._conflict_count += 1
        self._conflicts.append((path, _line(time=iso(self._clock.now()), path=path, copy=copy, what=reason)))

    def errors(self, sees: Sees = lambda _: True) -> bytes:
        """The text of `errors.ndjson`: the lines whose path the reader `sees`."""
        return _encoded(line for path, line in self._errors if sees(path))

    def conflicts(self, sees: Sees = lambda _: True) -> bytes:
        """The text of `conflicts.ndjson`: the lines whose path the reader `sees`."""
        return _encoded(line for path, line in self._conflicts if sees(path))

    def statistics(self) -> ErrorLogStatistics:
        """Counters, cheap."""
        return ErrorLogStatistics(self._count, self._conflict_count, len(self._errors))


def _encoded(lines: Iterable[str]) -> bytes:
    # JSON has escapes for a name that is not UTF-8.
    return "".join(lines).encode("utf-8", "backslashreplace")


def _line(**fields: str) -> str:
    public = {name: redact(without_login(text)).text for name, text in fields.items()}
    return harmless(json.dumps(public, ensure_ascii=False)) + "\n"
