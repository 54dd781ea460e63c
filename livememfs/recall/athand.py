"""What can be read at once, where the index has not read it yet: the newest of a space, scored by words alone.

Owns which objects those are, that reading them ends in time, and a score that needs nothing but the texts: the share of
a message's words that a text has, rare words counting for more. Refuses to be thorough, which is the index's task: of a
large space it looks at the newest. Reading is for the trio thread; the rest is pure.
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
from livememfs.recall.reader import is_indexed, records_of
from livememfs.recall.words import content_words
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.recall.record import Record
    from livememfs.store.base import StoredObject

log = structlog.get_logger("livememfs.recall")

MOST = 200
"""Objects of one folder that are looked at, the newest."""
AT_ONCE, READ_FIRST = 32, 32
"""Objects read side by side; and those of each folder that are read before any others."""
WITHIN = timedelta(days=30), timedelta(days=1)
"""How far back names are asked for first, and where those are too many."""
PAGE = 1_000
_FOLDERS = (keys.LIVE, *keys.COLLECTIONS, keys.BANK)
_SAME_FROM = 5
"""Letters of a word from which on it is one word with others that begin so: decided, decides."""


@dataclass
class AtHand:
    """What was read so far. `whole`: nothing was left out."""

    records: list[Record] = field(default_factory=list)
    objects: int = 0
    whole: bool = False


async def read_newest(replica: Replica, space: str, wanted: Sequence[str] | None, now: datetime, into: AtHand) -> None:
    """Read the newest objects of a space into `into`, until cancelled: of those `wanted`, or of all there are."""
    try:
        found: list[list[str]] = []
        if wanted is not None:
            found = [[key for key in wanted if key.startswith(f"{space}/{folder}/")] for folder in _FOLDERS]
        else:
            async with trio.open_nursery() as nursery:
                for folder in _FOLDERS:
                    nursery.start_soon(_names, replica, f"{space}/{folder}/", now, found)
        newest = [sorted(some, key=_name, reverse=True)[:MOST] for some in found]
        first, rest = (list(chain(*(some[part] for some in newest))) for part in _PARTS)
        for start in range(0, len(first) + len(rest), AT_ONCE):
            some = (first + rest)[start : start + AT_ONCE]
            objects = await replica.read_many(some, at_once=AT_ONCE)
            into.records += await trio.to_thread.run_sync(_records, tuple(objects.values()))
            into.objects += len(objects)
        into.whole = all(len(some) <= MOST for some in found)
    except* LiveMemError as group:
        log.info("what is new cannot be read", space=space, reason=str(the_one(group)))


def _records(objects: Iterable[StoredObject]) -> list[Record]:
    return [record for one in objects for record in records_of(one)]


_PARTS = slice(0, READ_FIRST), slice(READ_FIRST, None)


def _name(key: str) -> str:
    return key.rpartition("/")[2]


async def _names(replica: Replica, prefix: str, now: datetime, into: list[list[str]]) -> None:
    """The keys of one folder, at least the newest; names begin with the time, but for those of the bank."""
    known = replica.known(prefix)
    if known is not None:
        found = [info.key for info in known.objects.values()]
    else:
        accepted = [op.key for op in replica.journal.all() if op.kind != "delete" and op.key.startswith(prefix)]
        found = [*await _listed(replica, prefix, now), *accepted]
    into.append([key for key in dict.fromkeys(found) if is_indexed(key)])


async def _listed(replica: Replica, prefix: str, now: datetime) -> list[str]:
    found: list[str] = []
    for back in WITHIN if not prefix.endswith(f"/{keys.BANK}/") else ():
        page = await replica.store.list_page(prefix, start_after=f"{prefix}{now - back:%Y%m%dT%H%M%S}", limit=PAGE)
        found = [info.key for info in page.objects] or found
        if page.next_token is None:
            break
    if len(found) >= MOST:
        return found
    return [info.key for info in (await replica.store.list_page(prefix, limit=PAGE)).objects]


# --- words --------------------------------------------------------------------------------------------------------


def fitting(message: str, records: Sequence[Record]) -> list[tuple[Record, float]]:
    """The records that have words of a message, best first, with scores from 0 to 1."""
    asked = set(_stems(message))
    having = [asked.intersection(_stems(f"{one.title}\n{one.text}")) for one in records]
    counts = Counter(chain.from_iterable(having))
    weights = {stem: math.log(1 + (len(records) + 1) / (counts[stem] + 1)) for stem in asked}
    whole = sum(weights.values())
    scored = [
        (one, sum(map(weights.__getitem__, has)) / whole) for one, has in zip(records, having, strict=True) if has
    ]
    return sorted(scored, key=lambda one: (-one[1], -one[0].created, one[0].ref))


def excerpt(text: str, message: str, size: int) -> str:
    """The lines of a text that say most of what a message asks for, in their order; all of a short one."""
    lines = [bare for line in text.splitlines() if (bare := bare_line(line))]
    if sum(map(len, lines)) <= size:
        return "\n".join(lines)
    asked = set(_stems(message))
    order = sorted(range(len(lines)), key=lambda at: (-len(asked.intersection(_stems(lines[at]))), at))
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
