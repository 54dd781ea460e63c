"""What stands in the bucket and cannot be read: counted, and told of once for each version.

Owns that memory, and passing such an object over. Refuses to look into objects: whoever knows their form brings the
reader. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from livememfs.concurrency import aside
from livememfs.store.base import StoredObject
from livememfs.text.foreign import Unreadable

log = structlog.get_logger("livememfs.cache")
T = TypeVar("T")

REMEMBERED = 4_096


@dataclass(frozen=True)
class UnreadStatistics:
    """Versions of objects since the start that could not be read."""

    versions: int


class Unread:
    """The unreadable objects of one bucket. `tell(key, reason)` hears of each version once."""

    def __init__(self, tell: Callable[[str, str], None] = lambda *_: None) -> None:
        self._tell = tell
        self._known: dict[tuple[str, str], None] = {}
        self._versions = 0

    async def read(self, found: StoredObject, parse: Callable[[bytes], T]) -> T | None:
        """What `parse` makes of an object, in a thread when it is large; None where that is Unreadable, which is taken
        note of.
        """
        try:
            return await aside(len(found.data), partial(parse, found.data))
        except Unreadable as error:
            self.note(found.info.key, found.info.etag, str(error))
            return None

    def note(self, key: str, etag: str, reason: str) -> None:
        """Take note of a version that was passed over."""
        if (key, etag) in self._known:
            return
        self._versions += 1
        self._known[key, etag] = None
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        log.info("an object cannot be read and is passed over", key=key, reason=reason)
        self._tell(key, reason)

    def statistics(self) -> UnreadStatistics:
        """Counters, cheap."""
        return UnreadStatistics(self._versions)
