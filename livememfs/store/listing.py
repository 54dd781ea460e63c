"""Paging and folding of keys, for the stores that list by themselves.

Owns the listing rules of S3 (order, prefix, delimiter, common prefixes, continuation) over any ordered source of keys.
Refuses I/O: the source does it. Any thread may call it; a source belongs to one call.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from livememfs.errors import StoreError
from livememfs.store.base import MAX_PAGE

_LAST = chr(0x10FFFF)


class KeySource(Protocol):
    """Keys in ascending order, each once, that can leap forward."""

    def __iter__(self) -> Iterator[str]:
        """The keys not below the present bound."""
        ...

    def skip_to(self, bound: str) -> None:
        """From now on leave out every key below `bound`; never called with a lower bound than before."""
        ...


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """One `list_page` call in plain values."""

    prefix: str = ""
    delimiter: str = ""
    start_after: str = ""
    token: str | None = None
    limit: int = MAX_PAGE

    def first_bound(self) -> str:
        """The lowest key this page may show."""
        if self.token is None:
            return max(self.prefix, self.start_after + "\0" if self.start_after else "")
        kind, name = self.token[:1], self.token[1:]
        if kind == "k":
            return name + "\0"
        if kind == "p":
            return after_prefix(name)
        raise StoreError(f"not a continuation token: {self.token!r}", key=self.prefix)

    def folded(self, key: str) -> str | None:
        """The common prefix this key disappears in, or None when it is shown itself."""
        if not self.delimiter:
            return None
        end = key.find(self.delimiter, len(self.prefix))
        return None if end < 0 else key[: end + len(self.delimiter)]


@dataclass(slots=True)
class KeyPage:
    """What a page shows, still without the objects' figures."""

    keys: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    next_token: str | None = None


def page_of(source: KeySource, request: ListingRequest) -> KeyPage:
    """Cut one page from a source. Raises StoreError for a token that no page gave."""
    page = KeyPage()
    limit = min(max(request.limit, 1), MAX_PAGE)
    last = ""
    source.skip_to(request.first_bound())
    for key in source:
        if not key.startswith(request.prefix):
            break
        if len(page.keys) + len(page.prefixes) == limit:
            page.next_token = last
            break
        common = request.folded(key)
        if common is None:
            page.keys.append(key)
            last = "k" + key
        else:
            page.prefixes.append(common)
            last = "p" + common
            source.skip_to(after_prefix(common))
    return page


def after_prefix(prefix: str) -> str:
    """The smallest string above everything that starts with `prefix`; `prefix` holds something below U+10FFFF."""
    stem = prefix.rstrip(_LAST)
    return stem[:-1] + chr(ord(stem[-1]) + 1)


class SortedKeys:
    """A KeySource over keys that are sorted already."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._at = 0

    def __iter__(self) -> Iterator[str]:
        while self._at < len(self._keys):
            self._at += 1
            yield self._keys[self._at - 1]

    def skip_to(self, bound: str) -> None:
        """Leap to the first key that is not below `bound`."""
        self._at = bisect_left(self._keys, bound, lo=self._at)
