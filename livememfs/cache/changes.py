"""The one stream of changes: each object that appears, changes or goes is one `Change`.

Owns the list of subscribers. Refuses to know them: a subscriber is a plain function, called on the trio thread in the
order of subscription, which must neither block nor raise for reasons of its own (one that raises is logged and kept).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog

log = structlog.get_logger("livememfs.cache")

REMEMBERED = 1_000
"""How many of the last changes are kept for `changes.ndjson`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object appeared, changed or went.

    `origin` is "local" for our own hand and "remote" for any other; `etag` is empty for a deletion. `by_caller` says
    that it was made by a file operation, whose caller knows; `new` that nothing was known under this key before.
    """

    key: str
    kind: Literal["put", "delete"]
    etag: str
    origin: Literal["local", "remote"]
    by_caller: bool = False
    new: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class ChangesStatistics:
    """Counters since the mount: changes published, subscribers, failures of subscribers."""

    published: int
    subscribers: int
    failures: int


class Changes:
    """The stream. Trio thread only."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Change], None]] = []
        self._published = 0
        self._failures = 0
        self.recent: deque[Change] = deque(maxlen=REMEMBERED)

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` for each change from now on."""
        self._subscribers.append(callback)

    def unsubscribe(self, callback: Callable[[Change], None]) -> None:
        """Call it no more."""
        self._subscribers.remove(callback)

    def publish(self, change: Change) -> None:
        """Tell everyone."""
        self._published += 1
        self.recent.append(change)
        for callback in list(self._subscribers):
            try:
                callback(change)
            except Exception:  # a broken subscriber must not undo the change it was told about
                self._failures += 1
                log.exception("a subscriber failed on a change", key=change.key)

    def statistics(self) -> ChangesStatistics:
        """Counters, cheap."""
        return ChangesStatistics(self._published, len(self._subscribers), self._failures)
