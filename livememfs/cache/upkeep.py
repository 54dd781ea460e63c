"""A space's own records, and the end of the space: whoever writes them unasked stops before it is removed.

Owns who is at it. Beacons, counts of uses and vectors are written whenever there is something to write, and one that
arrives after `_meta.json` has gone leaves a prefix behind that is no space and shows as a directory. Refuses to know
what is written. Trio thread only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio


class Upkeep:
    """Who keeps up which space of one bucket, and which are being removed."""

    def __init__(self) -> None:
        self._writing: Counter[str] = Counter()
        self._removing: Counter[str] = Counter()
        self._left = trio.Event()
        self._after: list[Callable[[], None]] = []

    def after_removals(self, callback: Callable[[], None]) -> None:
        """Call `callback()` when a removal has ended: it may have failed, and what was left alone is to be written."""
        self._after.append(callback)

    @contextmanager
    def writing(self, space: str) -> Iterator[bool]:
        """Around a write of a space's own records; False: the space is being removed, so leave it alone."""
        if self._removing[space]:
            yield False
            return
        self._writing[space] += 1
        try:
            yield True
        finally:
            self._writing[space] -= 1
            self._left.set()
            self._left = trio.Event()

    @asynccontextmanager
    async def removing(self, space: str) -> AsyncIterator[None]:
        """Around the removal of a space: begins once nobody is writing, and meanwhile nobody starts."""
        self._removing[space] += 1
        try:
            while self._writing[space]:
                await self._left.wait()
            yield
        finally:
            self._removing[space] -= 1
            for callback in self._after:
                callback()
