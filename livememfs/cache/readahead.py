"""Reading ahead: who reads one small object after the other of a level finds the next ones there already.

Owns the guess: two reads in the order of the names open a window, which doubles as long as the guess is right. Refuses
to fetch anything for a listing alone or for a single read, what is large, and more than a window of what may not be
wanted. Trio thread only; `reads` does not await, the fetching is done by `run`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from livememfs.cache.levels import split_key
from livememfs.errors import LiveMemError

if TYPE_CHECKING:
    from livememfs.cache.levels import Level, Levels
    from livememfs.store.base import ObjectInfo

LARGEST = 1 << 16
FIRST_WINDOW = 4
LONGEST_WINDOW = 64
NEAR = 8
"""How many names a reader may leave out and still read in order: tools skip files by their names."""
AT_ONCE = 32
"""Half of the longest window. With more, the processor is what a reader waits for, 30 ms away from the bucket too."""
LEVELS = 16


@dataclass
class _Reader:
    order: list[str]
    last: str = ""
    window: int = 0
    fetched_to: int = 0


@dataclass(frozen=True)
class ReadaheadStatistics:
    """Objects fetched before anybody asked, and windows that were opened."""

    fetched: int
    windows: int


class Readahead:
    """`fetch(info)` brings one version's content here; `has(info)` says whether it is."""

    def __init__(self, fetch: Callable[[ObjectInfo], Awaitable[object]], has: Callable[[ObjectInfo], bool]) -> None:
        self._fetch = fetch
        self._has = has
        self._readers: OrderedDict[str, _Reader] = OrderedDict()
        self._wanted: OrderedDict[str, ObjectInfo] = OrderedDict()
        self._fetching: set[str] = set()
        self._woken = trio.Event()
        self._fetched = self._windows = 0

    def reads(self, key: str, levels: Levels, *, here: bool) -> None:
        """Somebody reads an object, or looks a file up, which brings what is small; `here`: its content is here."""
        prefix, name = split_key(key)
        level = levels.get(prefix)
        if level is not None:
            self.read(prefix, name, level, here=here)

    def read(self, prefix: str, name: str, level: Level, *, here: bool) -> None:
        """The same by the parts of the key. Called often, so it does little."""
        reader = self._readers.get(prefix)
        if reader is not None and reader.last == name:
            return  # it was looked up, and is opened now
        if reader is None:
            if here:
                return  # whoever reads what is here needs no help
            reader = self._readers[prefix] = _Reader(sorted(level.objects))
            if len(self._readers) > LEVELS:
                self._readers.popitem(last=False)
        position = bisect_left(reader.order, name)
        if not here and reader.order[position : position + 1] != [name]:  # it is new
            reader.order, reader.fetched_to = sorted(level.objects), 0
            position = bisect_left(reader.order, name)
        before = bisect_left(reader.order, reader.last)
        in_order = reader.last != "" and 0 < position - before <= NEAR
        reader.last = name
        if not in_order:
            reader.window = 0
            return
        self._windows += reader.window == 0
        reader.window = min(max(FIRST_WINDOW, reader.window * 2), LONGEST_WINDOW)
        self._want(prefix, level, reader, position + 1)

    def _want(self, prefix: str, level: Level, reader: _Reader, start: int) -> None:
        """Line up what the window holds and is not here."""
        end = min(start + reader.window, len(reader.order))
        if reader.fetched_to > end:
            reader.fetched_to = 0  # the reader went back
        for name in reader.order[max(start, reader.fetched_to) : end]:
            info = level.objects.get(name)
            known = info is None or info.key in self._fetching
            if info is not None and not known and 0 < info.size <= LARGEST and not self._has(info):
                self._wanted[prefix + name] = info
        reader.fetched_to = end
        if self._wanted:
            self._woken.set()

    async def run(self) -> None:
        """Fetch what is lined up, until cancelled."""
        limit = trio.Semaphore(AT_ONCE)
        async with trio.open_nursery() as nursery:
            while True:
                await self._woken.wait()
                self._woken = trio.Event()
                while self._wanted:
                    await limit.acquire()
                    _, info = self._wanted.popitem(last=False)
                    self._fetching.add(info.key)
                    nursery.start_soon(self._fetch_one, info, limit)

    async def _fetch_one(self, info: ObjectInfo, limit: trio.Semaphore) -> None:
        try:
            await self._fetch(info)
            self._fetched += 1
        except LiveMemError:
            pass  # whoever really wants it will hear why it cannot be had
        finally:
            self._fetching.discard(info.key)
            limit.release()

    def statistics(self) -> ReadaheadStatistics:
        """Counters, cheap."""
        return ReadaheadStatistics(self._fetched, self._windows)
