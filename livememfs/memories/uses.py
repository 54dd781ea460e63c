"""What telling was worth: how often each record was told, what that cost, and how often it was used, on all machines.

Owns `{space}/_index/_worth/{host}.json`, one object for each host, written every minute and at the end. Only a use
makes a memory weigh more (`Memory.effective`), a telling does not: what is told often would be told more often. Earlier
versions counted both as one, in `_uses/`; what they counted are tellings. A crash loses the last minute of counts.
Refuses to change any record, and to say what a use is (`observing/evidence.py`, and whoever opens a file). Trio thread
only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError, ObjectMissing
from livememfs.memories.opened import Opened
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.text.foreign import Unreadable, count, read_object

log = structlog.get_logger("livememfs.memories")

_NO_MOMENT = 253_402_300_800
"""The end of the year 9999 in seconds since 1970: a number that is not below it is no moment in seconds."""
WRITTEN_SECONDS = 60.0
"""Seconds that counts wait to be written."""
READ_SECONDS = 600.0
"""Seconds between two reads of other hosts' counts, in spaces that are in use."""
MOST_KEPT = 20_000
"""Most records of one space with a kept count; those that were used or told last."""
MOST_BYTES = 3 << 20
"""Of the object of one host: more would not be read."""
MOST_USES = 1_000_000_000
"""The largest count of one record by one host: a larger one is false, and sums must not overflow."""
LONGEST_NAME = 300
"""Characters of a record's name; one with a longer name has no count."""
_DIGEST = 9
"""Characters behind the name of a section of the bank, by which a session tells its versions apart."""


class Worth(NamedTuple):
    """What is known of one record; moments in seconds since 1970, 0 for never.

    :uses:    how often it was used, and when last
    :told:    how often it was told, and when last
    :tokens:  what these tellings cost in all, estimated
    """

    uses: int = 0
    used_at: int = 0
    told: int = 0
    told_at: int = 0
    tokens: int = 0

    @property
    def last(self) -> int:
        """When something was last known of it."""
        return max(self.used_at, self.told_at)

    def plus(self, other: Worth) -> Worth:
        """The sums, and the later moments."""
        return Worth(
            self.uses + other.uses,
            max(self.used_at, other.used_at),
            self.told + other.told,
            max(self.told_at, other.told_at),
            self.tokens + other.tokens,
        )


NOTHING = Worth()


@dataclass(frozen=True)
class UsesStatistics:
    """Records that this host has a count of; since the start: uses, tellings, objects written, objects read."""

    counted: int
    uses: int
    told: int
    written: int
    read: int


@dataclass
class _Space:
    """Counts of one space."""

    own: dict[str, Worth] = field(default_factory=dict)
    loaded: bool = False  # `own` has what this host counted before this start
    others: dict[str, Worth] = field(default_factory=dict)
    changed: bool = False
    read_at: float = float("-inf")

    def sum(self, name: str) -> Worth:
        return self.own.get(name, NOTHING).plus(self.others.get(name, NOTHING))


_UNREAD = _Space()


def name_of(record: str) -> str:
    """The name of a record in the counts, from its key, or from its id as a session knows it: a memory's id, and of
    anything else its path in the space, with the headings of a section of the bank. Empty for one that is too long.
    """
    _, _, path = record.partition("/")
    folder, _, name = path.partition("/")
    if folder in keys.COLLECTIONS or not path:
        return id_of((name or record).rpartition("/")[2])
    if folder == keys.BANK and path[-_DIGEST:].startswith("~"):
        path = path[:-_DIGEST]
    path = path.removesuffix(".md")
    return path if len(path) <= LONGEST_NAME else ""


class Uses:
    """The counts of one bucket. `tell(counts)` is called with changed sums of uses, by space and memory id."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        host: str,
        tell: Callable[[Mapping[tuple[str, str], tuple[int, int]]], None],
    ) -> None:
        self._replica, self._clock, self._host, self._tell = replica, clock, host, tell
        self._spaces: dict[str, _Space] = {}
        self._opened = Opened()
        self._counts = {"uses": 0, "told": 0, "written": 0, "read": 0}
        replica.changes.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        """Forget the counts of a removed space: to write them would make its prefix again."""
        space = change.key.partition("/")[0]
        if change.kind == "delete" and change.key == keys.meta_key(space):
            self._spaces.pop(space, None)

    def count(self, space: str, records: Sequence[str]) -> None:
        """Take note that records were used: their ids, or keys."""
        names = self._add(space, [(record, Worth(1, self._now)) for record in records])
        self._counts["uses"] += len(names)
        if names:
            state = self._spaces[space]
            self._tell({(space, name): state.sum(name)[:2] for name in names})

    def opened_by(self, pid: int, space: str, key: str, find: Callable[[int], int] = int) -> None:
        """Take note that a process opened the file of a record: a use, unless many are opened (see `Opened`).
        `find(pid)`: the reader that it belongs to; 0 for none.
        """
        now = trio.current_time()
        self._count_opened()
        if reader := self._opened.reader(pid, now, find):
            self._opened.note(reader, space, key, now)

    def _count_opened(self) -> None:
        for space, key in self._opened.rested(trio.current_time()):
            self.count(space, [key])

    def told(self, space: str, costs: Iterable[tuple[str, int]]) -> None:
        """Take note that records were told: their ids, or keys, and how many tokens each took."""
        now = self._now
        self._counts["told"] += len(self._add(space, [(record, Worth(0, 0, 1, now, cost)) for record, cost in costs]))

    @property
    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def _add(self, space: str, more: Sequence[tuple[str, Worth]]) -> list[str]:
        names = [(name, worth) for record, worth in more if (name := name_of(record))]
        if names:
            state = self._spaces.setdefault(space, _Space())
            _join(state.own, names)
            state.changed = True
        return [name for name, _ in names]

    def of(self, space: str, record: str) -> Worth:
        """What is known of a record on all known machines, by its id or key."""
        self._count_opened()
        state = self._spaces.get(space)
        return state.sum(name_of(record)) if state is not None else NOTHING

    def all(self, space: str) -> dict[str, Worth]:
        """What is known of every record of a space, by `name_of`."""
        self._count_opened()
        state = self._spaces.get(space)
        sums = dict(state.own) if state is not None else {}
        _join(sums, state.others.items() if state is not None else ())
        return sums

    def spaces(self) -> list[str]:
        """The spaces that are in use here."""
        return sorted(self._spaces)

    async def known(self, space: str) -> None:
        """Read the counts of a space, unless that was tried."""
        if self._spaces.get(space, _UNREAD).read_at == float("-inf"):
            await self.opened(space)

    async def opened(self, space: str) -> None:
        """A space is in use from now on: read its counts."""
        await self._read(space, self._spaces.setdefault(space, _Space()))

    async def _read(self, space: str, state: _Space) -> None:
        state.read_at = trio.current_time()
        try:
            by_host = await self._counts_of(space, keys.worth_prefix(space), _parsed)
            before = await self._counts_of(space, keys.worth_prefix(space, keys.USES), _parsed_before)
        except LiveMemError as error:
            log.info("what records were worth cannot be read", space=space, reason=str(error))
            return
        own = by_host.pop(keys.worth_key(space, self._host), {})
        if not state.loaded:
            _join(state.own, own.items())
            state.loaded = True
        state.others = {}
        for counts in (*by_host.values(), *before.values()):
            _join(state.others, counts.items())
        sums = ((name, state.sum(name)) for name in {*state.own, *state.others})
        self._tell({(space, name): worth[:2] for name, worth in sums if worth.uses})

    async def _counts_of(
        self, space: str, prefix: str, parse: Callable[[bytes], dict[str, Worth]]
    ) -> dict[str, dict[str, Worth]]:
        """The counts of each host, by the key of its object."""
        by_host: dict[str, dict[str, Worth]] = {}
        level = await self._replica.names.listing(prefix)
        for key in [info.key for name, info in level.objects.items() if name.endswith(".json")]:
            with suppress(ObjectMissing):
                by_host[key] = await self._replica.unread.read(await self._replica.read(key), parse) or {}
                self._counts["read"] += 1
        return by_host

    async def run(self) -> None:
        """Write and read counts every minute, until cancelled."""
        while True:
            await trio.sleep(WRITTEN_SECONDS)
            for space, state in list(self._spaces.items()):
                if trio.current_time() - state.read_at >= READ_SECONDS or not state.loaded:
                    await self._read(space, state)
            self.write()

    def write(self) -> None:
        """Accept the counts for the bucket."""
        self._count_opened()
        for space, state in self._spaces.items():
            with self._replica.upkeep.writing(space) as may:
                if may and state.changed and state.loaded:
                    self._write(space, state)

    def _write(self, space: str, state: _Space) -> None:
        key = keys.worth_key(space, self._host)
        try:
            self._replica.save(key, _rendered(state.own), meta={}, base=self._replica.names.now(key))
        except LiveMemError as error:
            log.info("what records were worth cannot be written", space=space, reason=str(error))
            return
        state.changed = False
        self._counts["written"] += 1

    def statistics(self) -> UsesStatistics:
        """Counters, cheap."""
        return UsesStatistics(sum(len(state.own) for state in self._spaces.values()), **self._counts)


Shown = dict[str, int | datetime | None]


def shown(worth: Worth) -> Shown:
    """What is known of a record, for programs: counts, and moments or None."""
    return {
        "uses": worth.uses,
        "used_at": moment(worth.used_at),
        "told": worth.told,
        "told_at": moment(worth.told_at),
        "told_tokens": worth.tokens,
    }


def moment(seconds: int) -> datetime | None:
    """A moment of a count; None for never."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _rendered(counts: Mapping[str, Worth]) -> bytes:
    """The object of one host: as many of the last counts as it may have."""
    latest = sorted(counts.items(), key=lambda item: (-item[1].last, item[0]))[:MOST_KEPT]
    lines, room = [], MOST_BYTES
    for name, worth in latest:
        line = f"{json.dumps(name)}: {json.dumps([*worth])}"
        room -= len(line) + 2
        if room < 0:
            break
        lines.append(line)
    return ("{" + ", ".join(sorted(lines)) + "}\n").encode()


def _parsed(data: bytes) -> dict[str, Worth]:
    """The counts in an object. A moment that cannot be true becomes 0. Raises Unreadable."""
    found: dict[str, Worth] = {}
    for name, values in islice(read_object(data).items(), MOST_KEPT):
        if not isinstance(values, list) or len(values) < len(NOTHING):  # a later version may count more
            raise Unreadable("a count is not of five numbers")
        uses, used_at, told, told_at, cost = map(count, values[: len(NOTHING)])
        found[name] = _possible(Worth(uses, used_at, told, told_at, cost))
    return found


def _parsed_before(data: bytes) -> dict[str, Worth]:
    """The same of an object of an earlier version, whose pairs count tellings. Raises Unreadable."""
    kept = islice(read_object(data).items(), MOST_KEPT)
    try:
        pairs = {name: (count(times), count(last)) for name, (times, last) in kept}
    except (TypeError, ValueError):
        raise Unreadable("a count is no pair") from None
    return {name: _possible(Worth(0, 0, times, last)) for name, (times, last) in pairs.items()}


def _possible(worth: Worth) -> Worth:
    uses, used_at, told, told_at, cost = worth
    used_at, told_at = (at if at < _NO_MOMENT else 0 for at in (used_at, told_at))
    return Worth(min(uses, MOST_USES), used_at, min(told, MOST_USES), told_at, min(cost, MOST_USES))


def _join(sums: dict[str, Worth], more: Iterable[tuple[str, Worth]]) -> None:
    for name, worth in more:
        sums[name] = sums.get(name, NOTHING).plus(worth)
