"""Contents by version, in memory, bounded.

Owns the bytes of objects that were read or written lately, by key and ETag: immutable, so nothing here is ever stale,
only forgotten. Refuses what is larger than an eighth of the bound. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class ContentsStatistics:
    """What the cache holds and how often it was of use."""

    objects: int
    bytes: int
    hits: int
    misses: int


class Contents:
    """A least-recently-used map from (key, etag) to bytes, one version per key."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._held: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    def get(self, key: str, etag: str) -> bytes | None:
        """The bytes of exactly this version, or None."""
        held = self._held.get(key)
        if held is None or held[0] != etag:
            self._misses += 1
            return None
        self._hits += 1
        self._held.move_to_end(key)
        return held[1]

    def put(self, key: str, etag: str, data: bytes) -> None:
        """Keep this version and forget any other of the same key."""
        self.drop(key)
        if len(data) > self._max // 8:
            return
        self._held[key] = (etag, data)
        self._bytes += len(data)
        while self._bytes > self._max:
            _, (_, oldest) = self._held.popitem(last=False)
            self._bytes -= len(oldest)

    def drop(self, key: str) -> None:
        """Forget this key."""
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held[1])

    def statistics(self) -> ContentsStatistics:
        """Counters, cheap."""
        return ContentsStatistics(len(self._held), self._bytes, self._hits, self._misses)
