"""What a space has, in the order of time: names alone, without reading an object where its name has its time.

Owns the position of each thing in a list. It sorts as the names of notes do, `20260220T140000_...`, so a page goes on
below the last position of the one before. A level of 100,000 names is sorted once for each of its versions. Trio thread
only; sorting happens in a thread.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from typing import TYPE_CHECKING, Any

import trio

from livememfs import errors
from livememfs.concurrency import A_NAME, aside
from livememfs.records import keys
from livememfs.records.ledger import CHANGES_BANK
from livememfs.runs import held
from livememfs.serve.web.cards import FeedItem, history_of, outline
from livememfs.text.times import parse_iso

if TYPE_CHECKING:
    from livememfs.records.ledger import Entry
    from livememfs.serve.web.site import Site
    from livememfs.store.base import ObjectInfo

KEPT_LEVELS = 64
SUMMARIES_SECONDS = 30.0
"""So long the summaries of a space are taken for known, where no change of one was heard of."""
SOURCES: dict[str, tuple[str, str]] = {
    "notes": (keys.LIVE, "note"),
    "memories": (keys.MEMORIES, "memory"),
    "self": (keys.SELF, "memory"),
    "goals": (keys.GOALS, "memory"),
    "observations": (keys.OBSERVATIONS, "observation"),
}
"""The folders of a space whose objects are shown in a list, each with what one of them is."""
OTHERS = ("summaries", "runs", "conflicts")
CHOICES = (*SOURCES, *OTHERS)


@dataclass(frozen=True)
class FolderNames:
    """The things in one folder: `dated` have their time in their name, which is their position, ascending; `others` are
    pairs of a position and a name, ascending.
    """

    dated: list[str]
    others: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.dated) + len(self.others)


def stamped(moment: datetime) -> str:
    """A moment as positions begin with it."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S}"


class SpaceOrder:
    """The positions of what the spaces of a site have."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sorted: OrderedDict[str, tuple[object, FolderNames]] = OrderedDict()
        self._summaries: dict[str, tuple[float, list[FeedItem]]] = {}

    def heard(self, kind: str, space: str) -> None:
        """Something of this kind has changed."""
        if kind == "summary":
            self._summaries.pop(space, None)

    async def names(self, space: str, folder: str) -> FolderNames:
        """The things in a folder of a space, the oldest first; a live list, which must not be changed."""
        prefix = f"{space}/{folder}/"
        level = await self._site.context.replica.names.listing(prefix)
        known = self._sorted.get(prefix)
        if known is None or known[0] != level.serial:
            serial, objects = level.serial, dict(level.objects)
            known = (serial, await aside(len(objects) * A_NAME, partial(_sorted, objects)))
            self._sorted[prefix] = known
            while len(self._sorted) > KEPT_LEVELS:
                self._sorted.popitem(last=False)
        self._sorted.move_to_end(prefix)
        return known[1]

    async def newest(self, space: str, choice: str, before: str, most: int, type_: str = "") -> list[FeedItem]:
        """The newest things of one of CHOICES below a position, the newest first. `type_`: only of this type."""
        if choice == "summaries":
            return [] if type_ else _below(await self._summaries_of(space), before, most)
        if choice == "runs":
            return await self._runs(space, before, most, type_) if type_ in ("", *CHANGES_BANK) else []
        if choice == "conflicts":
            return [] if type_ else _below(self._conflicts(space), before, most)
        folder, kind = SOURCES[choice]
        names = await self.names(space, folder)
        now = self._site.context.clock.now()
        find = partial(_newest, names, before, most, partial(_is_shown, kind, type_, now))
        found = await aside(len(names) * A_NAME if type_ else 0, find)
        return [FeedItem(at, space, kind, f"{folder}/{name}") for at, name in found]

    async def _summaries_of(self, space: str) -> list[FeedItem]:
        known = self._summaries.get(space)
        if known is None or trio.current_time() > known[0] + SUMMARIES_SECONDS:
            prefix = f"{space}/{keys.SESSIONS}/"
            infos = await self._site.context.replica.names.walk(prefix, local=True)
            known = (trio.current_time(), sorted(_summaries(space, infos), reverse=True))
            self._summaries[space] = known
        return known[1]

    async def _runs(self, space: str, before: str, most: int, kind: str) -> list[FeedItem]:
        """Runs have numbers, and those are in the order of time. `kind`: only those, empty for all."""
        items: list[FeedItem] = []
        for number in reversed(list(await (await history_of(self._site, space)).of_all_kinds())):
            entry = await outline(self._site, space, number)
            item = _run_item(space, entry) if entry is not None and kind in ("", entry.kind) else None
            if item is not None and (not before or item.at < before):
                items.append(item)
            if len(items) == most:
                break
        return items

    async def held(self, space: str) -> Entry | None:
        """The plan that waits to be accepted."""
        with suppress(errors.LiveMemError):
            return await held.current(self._site.context.replica, space)
        return None

    def _conflicts(self, space: str) -> list[FeedItem]:
        lines = self._site.context.errors.conflicts(lambda path: path.strip("/").partition("/")[0] == space)
        items = []
        for number, line in enumerate(lines.decode("utf-8", "replace").splitlines()):
            value: dict[str, Any] = json.loads(line)
            with suppress(ValueError):
                at = f"{stamped(parse_iso(value['time']))}_conflict_{number:04}"
                items.append(FeedItem(at, space, "conflict", f"conflicts/{number}", value))
        return items[::-1]


def _run_item(space: str, entry: Entry) -> FeedItem:
    return FeedItem(
        f"{stamped(entry.committed_at)}_run_{entry.number:08}", space, "run", f"{keys.LEDGER}/{entry.number}"
    )


def _summaries(space: str, infos: list[ObjectInfo]) -> Iterator[FeedItem]:
    for info in infos:
        if info.key.endswith(f"/{keys.SUMMARY}") and keys.parse(info.key).kind == "session":
            key = info.key.removeprefix(f"{space}/")
            at = datetime.fromtimestamp(info.modified_ns // 1_000_000_000, UTC)
            yield FeedItem(f"{stamped(at)}_summary_{key.split('/')[1]}", space, "summary", key)


def _sorted(objects: dict[str, ObjectInfo]) -> FolderNames:
    """Files of Markdown. One whose name has no time stands where it was last changed."""
    # The names of notes come first and alone: there may be 100,000, in an order that is almost the right one.
    dated = [name for name in objects if name[8:9] == "T" and name < ":" and name.endswith(".md")]
    dated.sort()
    others = []
    if len(dated) < len(objects):
        known = frozenset(dated)
        for name, info in objects.items():
            if name not in known and name.endswith(".md") and name[0] != ".":
                at = datetime.fromtimestamp(info.modified_ns // 1_000_000_000, UTC)
                others.append((f"{stamped(at)}_{name}", name))
    return FolderNames(dated, sorted(others))


def _newest(names: FolderNames, before: str, most: int, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    dated = _last(names.dated, bisect_left(names.dated, before) if before else len(names.dated), most, fits)
    end = bisect_left(names.others, (before,)) if before else len(names.others)
    others = [pair for pair in names.others[:end] if fits(pair[1])]
    return nlargest(most, [*((name, name) for name in dated), *others])


def _last(names: list[str], end: int, most: int, fits: Callable[[str], bool]) -> list[str]:
    """The last names before an index that fit, at most so many."""
    found: list[str] = []
    for index in range(end - 1, -1, -1):
        if fits(names[index]):
            found.append(names[index])
            if len(found) == most:
                break
    return found


def _is_shown(kind: str, type_: str, now: datetime, name: str) -> bool:
    """Whether a name is that of a thing of this kind and type, as far as the name says it."""
    if kind == "note":
        if not type_:
            return True
        note = keys.NoteName.parse(name) if f"_{type_}_" in name else None
        return note is not None and note.category == type_
    if kind == "memory" and keys.has_ended(name, now):
        return False
    if kind == "memory" and not type_:
        return True
    named = keys.MemoryName.parse(name)
    return named is not None and type_ in ("", named.type)


def _below(items: list[FeedItem], before: str, most: int) -> list[FeedItem]:
    return [item for item in items if not before or item.at < before][:most]
