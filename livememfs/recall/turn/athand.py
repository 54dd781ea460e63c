"""What can be read at once, where the index has not read it yet: the newest of a space, scored by words alone.

Owns which objects those are, that reading them ends in time, and a score that needs nothing but the texts: the share of
a message's words that a text has, where rare words count for more. Refuses to be thorough, which is the index's task:
of a large space it reads the newest. Reading is for the trio thread; the rest is pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.concurrency import the_one
from livememfs.errors import LiveMemError
from livememfs.recall.index.reader import is_indexed, records_of
from livememfs.recall.index.words import content_words
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.recall.index.record import Record
    from livememfs.store.base import StoredObject

log = structlog.get_logger("livememfs.recall")

MOST = 200
"""Objects of one folder that are looked at, the newest."""
AT_ONCE = 16
"""Objects read side by side, of each folder."""
WITHIN = timedelta(days=1), timedelta(days=30)
"""How far back names are listed at first; then, if there were few, further back. A folder may have a million."""
PAGE = 1_000
_FOLDERS = (keys.LIVE, *keys.COLLECTIONS, keys.BANK, *(f"{keys.AGENTS}/{agent}" for agent in keys.ADOPTED))
_SAME_FROM = 5
"""Words that share so many first letters count as one word: decided, decides."""


@dataclass
class AtHand:
    """What was read so far: `objects` counts it, `some` is set with the first. `whole`: nothing was left out."""

    records: list[Record] = field(default_factory=list)
    objects: int = 0
    whole: bool = False
    some: trio.Event = field(default_factory=trio.Event)


async def read_newest(replica: Replica, space: str, wanted: Sequence[str] | None, now: datetime, into: AtHand) -> None:
    """Read the newest objects of a space into `into`, until cancelled: of those `wanted`, or of all there are."""
    left = []
    try:
        async with trio.open_nursery() as nursery:

            async def read(prefix: str) -> None:
                left.append(await _read_folder(replica, prefix, wanted, now, into))

            for folder in _FOLDERS:
                nursery.start_soon(read, f"{space}/{folder}/")
        into.whole = not any(left)
    except Exception as failure:  # the answer is then made of what the index has
        error = the_one(failure) if isinstance(failure, ExceptionGroup) else failure
        if isinstance(error, LiveMemError):
            log.info("what is new cannot be read", space=space, reason=str(error))
        else:
            log.error("reading what is new failed", space=space, exc_info=failure)
    into.some.set()


async def _read_folder(
    replica: Replica, prefix: str, wanted: Sequence[str] | None, now: datetime, into: AtHand
) -> bool:
    """Read the newest objects of one folder; whether some were left out."""
    is_timed = not prefix.endswith(f"/{keys.BANK}/") and not keys.is_adopted(prefix)
    known = replica.names.levels.get(prefix)
    at_once = wanted if wanted is not None else [info.key for info in known.objects.values()] if known else None
    stages = (None,) if not is_timed or at_once is not None else (*WITHIN, None)
    seen: set[str] = set()
    for back in stages:
        listed, more = (at_once, False) if at_once is not None else await _listed(replica, prefix, now, back)
        indexed = {key for key in listed if key.startswith(prefix) and is_indexed(key)}
        new = sorted(indexed - seen, key=lambda key: key.rpartition("/")[2], reverse=True)
        chosen = new[: MOST - len(seen)]
        seen.update(chosen)
        for start in range(0, len(chosen), AT_ONCE):
            objects = await replica.read_many(chosen[start : start + AT_ONCE], at_once=AT_ONCE)
            into.records += await trio.to_thread.run_sync(_records, tuple(objects.values()))
            into.objects += len(objects)
            into.some.set()
        if len(seen) >= MOST:
            return more or len(new) > len(chosen)
    return False


def _records(objects: Iterable[StoredObject]) -> list[Record]:
    return [record for stored in objects for record in records_of(stored)]


async def _listed(replica: Replica, prefix: str, now: datetime, back: timedelta | None) -> tuple[list[str], bool]:
    """The keys of one folder, back to some time, and whether there are more. Names begin with their time, except in the
    bank and those of agents' own files.
    """
    accepted = [op.key for op in replica.journal.ops.all() if op.kind != "delete"]
    after = f"{prefix}{now - back:%Y%m%dT%H%M%S}" if back is not None else ""
    page = await replica.store.list_page(prefix, start_after=after, limit=PAGE)
    return [*accepted, *(info.key for info in page.objects)], back is not None or page.next_token is not None


# --- words --------------------------------------------------------------------------------------------------------


def fitting(message: str, records: Sequence[Record]) -> list[tuple[Record, float]]:
    """The records that have words of a message, best first, with scores from 0 to 1."""
    stems = set(_stems(message))
    having = [stems.intersection(_stems(f"{record.title}\n{record.text}")) for record in records]
    counts = Counter(chain.from_iterable(having))
    weights = {stem: math.log(1 + (len(records) + 1) / (counts[stem] + 1)) for stem in stems}
    whole = sum(weights.values())
    scored = [
        (record, sum(map(weights.__getitem__, has)) / whole) for record, has in zip(records, having, strict=True) if has
    ]
    return sorted(scored, key=lambda pair: (-pair[1], -pair[0].created, pair[0].ref))


def excerpt(text: str, message: str, size: int) -> str:
    """The lines of a text that say most of what a message asks for, in their order; all of a short one."""
    lines = [bare for line in text.splitlines() if (bare := bare_line(line))]
    if sum(map(len, lines)) <= size:
        return "\n".join(lines)
    stems = set(_stems(message))
    order = sorted(range(len(lines)), key=lambda at: (-len(stems.intersection(_stems(lines[at]))), at))
    chosen: set[int] = set()
    for at in order:
        if size >= len(lines[at]) or not chosen:
            chosen.add(at)
            size -= len(lines[at])
    return "\n".join(lines[at] for at in sorted(chosen))


def bare_line(line: str) -> str:
    """A line of Markdown without what stands before its text: lists and quotations say the same without."""
    return line.strip().lstrip("#>*-+ \t").strip()


def _stems(text: str) -> Iterable[str]:
    return (word[:_SAME_FROM] if word.isalpha() else word for word in content_words(text))
