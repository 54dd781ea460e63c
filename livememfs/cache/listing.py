"""One level of the bucket, in as little time as it takes.

Owns the choice between one LIST after the other and several side by side. Side by side needs keys whose order is known
before they are heard: those of notes begin with their time. Refuses to do it where it would cost more requests than it
saves time: a level of a few pages is listed in order. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import trio

from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.store.base import MAX_PAGE, ObjectInfo, Page, Store

Named = tuple[str, ObjectInfo]
"""An object by its name on the level."""
Meanwhile = list[tuple[str, ObjectInfo | None]]
"""What became of objects while an answer was on its way; None: it went."""
Heard = Callable[[Sequence[Named]], None]
"""Told of a page of objects while more pages are to come."""

STREAMS = 4
WORTH_IT = 20
"""From this many pages on."""
SURE_FROM = 5
"""Pages that were heard before anything is divided: most levels that look endless after one page end soon."""
WORTH_DIVIDING = 2
"""What is left of one stream, in pages, before another one takes half of it: the cut costs each a part of a page."""


def _nobody(_: Sequence[Named]) -> None:
    """Nobody wants to know before the end."""


async def list_level(store: Store, prefix: str, heard: Heard = _nobody) -> tuple[list[Named], set[str]]:
    """The objects in the order of their names, and the folders, directly below `prefix`. Raises the store's errors.

    Where there is more than one page, `heard` is called with the objects of each as it arrives, in no certain order.
    """
    first = await store.list_page(prefix, delimiter="/")
    streams = _Streams(store, prefix, first, heard)
    if first.next_token is not None:
        heard(streams.first.objects)
        at_once = STREAMS if streams.worth_it() else 1
        await for_each(range(at_once), streams.work, at_once=at_once)
    return streams.found()


@dataclass(slots=True)
class _Part:
    """The keys above `start`, up to `end` (None: of the level), which is the moment `until`."""

    objects: list[Named]
    start: str
    end: str | None
    until: datetime
    token: str | None = None


class _Streams:
    """One level, in parts that are listed side by side. Whoever has no part takes half of what is left of another's.

    Nobody knows how notes are spread over time, so a part may turn out to be empty: then it costs one request, and the
    other's end has come nearer by half.
    """

    def __init__(self, store: Store, prefix: str, first: Page, heard: Heard) -> None:
        self._store, self._prefix, self._heard = store, prefix, heard
        self._cut = len(prefix)
        self._prefixes = set(first.prefixes)
        self.first = _Part(self._named(first.objects), "", None, datetime.now(UTC), first.next_token)
        self._new: list[_Part] = [self.first]
        self._active: list[_Part] = []
        self._parts = [self.first]
        self._news = trio.Event()
        self._pages = 1

    def worth_it(self) -> bool:
        """Whether there seem to be very many, and notes only."""
        stamped = sum(_moment(name) is not None for name, _ in self.first.objects)
        return not self._prefixes and stamped >= MAX_PAGE // 2 and _left(self.first) >= WORTH_IT

    def found(self) -> tuple[list[Named], set[str]]:
        """Everything that was heard."""
        parts = sorted(self._parts, key=lambda part: part.start)
        folders = {prefix[self._cut :].rstrip("/") for prefix in self._prefixes}
        return [named for part in parts for named in part.objects], folders

    async def work(self, _: int) -> None:
        """Take part after part until nothing is left to take."""
        while True:
            part = self._new.pop() if self._new else self._half()
            if part is not None:
                await self._list(part)
            elif self._active:
                await self._news.wait()
            else:
                return

    async def _list(self, part: _Part) -> None:
        self._active.append(part)
        token, more = part.token, True
        while more:
            page = await self._store.list_page(self._prefix, delimiter="/", start_after=part.start, token=token)
            self._pages += 1
            end, token = part.end, page.next_token  # the end may have come nearer meanwhile
            mine = self._named(page.objects if end is None else [info for info in page.objects if info.key <= end])
            more = token is not None and len(mine) == len(page.objects)
            part.objects += mine
            self._prefixes.update(page.prefixes)
            self._heard(mine)
            self._tell()
        self._active.remove(part)
        self._tell()

    def _tell(self) -> None:
        """Wake whoever waits for something to take."""
        self._news.set()
        self._news = trio.Event()

    def _half(self) -> _Part | None:
        """The second half of what takes longest, as a part of its own; None while nothing is worth it."""
        part = max(self._active, key=_left, default=None)
        if part is None or self._pages < SURE_FROM or _left(part) < WORTH_DIVIDING:
            return None
        last, info = part.objects[-1]
        at = _moment(last) or part.until
        middle = at + (part.until - at) / 2
        cut = f"{self._prefix}{middle:%Y%m%dT%H%M%S}"
        if cut <= info.key or (part.end is not None and cut >= part.end):
            return None  # all in one second
        half = _Part([], cut, part.end, part.until)
        part.end, part.until = cut, middle
        self._parts.append(half)
        return half

    def _named(self, infos: Sequence[ObjectInfo]) -> list[Named]:
        cut = self._cut
        return [(info.key[cut:], info) for info in infos]


def _left(part: _Part) -> float:
    """How many more pages a part seems to have, if it goes on as it did."""
    # The sentinel comes before all notes and tells no time.
    began = next(filter(None, (_moment(name) for name, _ in part.objects[:2])), None)
    at = _moment(part.objects[-1][0]) if part.objects else None
    if began is None or at is None:
        return 0.0
    density = len(part.objects) / max((at - began).total_seconds(), 1.0)
    return density * (part.until - at).total_seconds() / MAX_PAGE


def _moment(name: str) -> datetime | None:
    parsed = keys.NoteName.parse(name)
    return parsed.timestamp if parsed else None


class Listen:
    """Around a question: what our own hand does to objects meanwhile."""

    __slots__ = ("heard", "listening")

    def __init__(self, listening: list[Meanwhile]) -> None:
        self.listening = listening
        self.heard: Meanwhile = []

    def __enter__(self) -> Meanwhile:
        self.listening.append(self.heard)
        return self.heard

    def __exit__(self, *_: object) -> None:
        self.listening[:] = [other for other in self.listening if other is not self.heard]


def answered(key: str, info: ObjectInfo | None, listing: list[Meanwhile]) -> None:
    """Of one object, the answer to a question about it counts more than a LIST that is on its way.

    Else a LIST that began before would take a name away which the watcher was told of, and give it back later. If it
    began after, whoever made what it has seen announces that.
    """
    for meanwhile in listing:
        meanwhile.append((key, info))
