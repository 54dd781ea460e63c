"""The entries of a ledger as they are read for people: all of them, side by side, and none of them fatal.

Owns what is an entry among a space's objects, and what happens to one that cannot be understood: it is reported and
passed over. Refuses to carry anything out (`runs/apply` does, and there a damaged entry is fatal). Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import structlog

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo

log = structlog.get_logger("livememfs.spaces")

Report = Callable[[int, str], None]
"""Told of an entry that cannot be read: its number, and why."""

_NAME = re.compile(r"([0-9]{8})(\.[a-z]+)")


def log_it(number: int, problem: str) -> None:
    """The report of whoever has nothing better to do with it."""
    log.warning("an entry of the ledger cannot be read", number=number, reason=problem)


async def runs(replica: Replica, space: str, *, report: Report = log_it) -> list[Entry]:
    """The runs of a space with all they wrote, the newest first, asked for now."""
    infos = entries_in(await replica.names.walk(keys.ledger_prefix(space)))
    found = await read_all(replica, infos, report)
    return [entry for number in reversed(infos) if (entry := found[number]) is not None]


def entries_in(infos: Iterable[ObjectInfo]) -> dict[int, ObjectInfo]:
    """The entries among some objects by number, ascending."""
    return _numbered(infos, ".json")


def digests_in(infos: Iterable[ObjectInfo]) -> list[int]:
    """The numbers of the digests whose memories are stored, ascending; see `keys.stored_key`."""
    return list(_numbered(infos, ".digest"))


def held_in(infos: Iterable[ObjectInfo]) -> list[int]:
    """The numbers of the plans that wait for a person, ascending; see `keys.held_key`."""
    return list(_numbered(infos, ".held"))


def is_entry(name: str) -> bool:
    """Whether an object of this name in a ledger is an entry."""
    return _number(name, ".json") > 0


def _numbered(infos: Iterable[ObjectInfo], suffix: str) -> dict[int, ObjectInfo]:
    found = {number: info for info in infos if (number := _number(keys.parse(info.key).name, suffix))}
    return dict(sorted(found.items()))


def _number(name: str, suffix: str) -> int:
    """The number in a name with this suffix; 0 for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and match[2] == suffix else 0


async def read_all(replica: Replica, infos: Mapping[int, ObjectInfo], report: Report) -> dict[int, Entry | None]:
    """These entries, read side by side; None for one that cannot be understood, which is reported."""
    found: dict[int, Entry | None] = {}

    async def look(number: int) -> None:
        try:
            found[number] = parsed(await content(replica, infos[number]))
        except ValueError as error:
            replica.unread.note(infos[number].key, infos[number].etag, str(error))
            report(number, str(error))
            found[number] = None

    await for_each(infos, look)
    return found


def parsed(data: bytes | None) -> Entry:
    """The entry in an object; None stands for one that is gone. Raises ValueError."""
    if data is None:
        raise ValueError("it is gone")
    return Entry.parse(data)
