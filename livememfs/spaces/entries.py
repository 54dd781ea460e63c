"""Reading all entries of a ledger for people, side by side; a damaged entry is no error.

Owns which objects of a space are entries, and what happens to an entry that cannot be read: it is reported and left
out. Refuses to carry anything out (`runs/apply` does, and there a damaged entry is fatal). Trio thread only.
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
"""Called for an entry that cannot be read, with its number and the reason."""

_NAME = re.compile(r"([0-9]{8})(\.[a-z]+)")


def log_it(number: int, problem: str) -> None:
    """The default report: a log message."""
    log.warning("an entry of the ledger cannot be read", number=number, reason=problem)


async def runs(replica: Replica, space: str, *, report: Report = log_it) -> list[Entry]:
    """The runs of a space with all they wrote, the newest first, as the bucket has them now."""
    infos = entries_in(await replica.names.walk(keys.ledger_prefix(space)))
    entries = await read_all(replica, infos, report)
    return [entry for number in reversed(infos) if (entry := entries[number]) is not None]


def entries_in(infos: Iterable[ObjectInfo]) -> dict[int, ObjectInfo]:
    """The entries among some objects by number, ascending."""
    return _numbered(infos, ".json")


def digests_in(infos: Iterable[ObjectInfo]) -> list[int]:
    """The numbers of the digests whose memories are stored, ascending; see `keys.stored_key`."""
    return list(_numbered(infos, ".digest"))


def held_in(infos: Iterable[ObjectInfo]) -> list[int]:
    """The numbers of the held plans, ascending; see `keys.held_key`."""
    return list(_numbered(infos, ".held"))


def is_entry(name: str) -> bool:
    """Whether the object of this name in a ledger is an entry."""
    return _number(name, ".json") > 0


def _numbered(infos: Iterable[ObjectInfo], suffix: str) -> dict[int, ObjectInfo]:
    numbered = {number: info for info in infos if (number := _number(keys.parse(info.key).name, suffix))}
    return dict(sorted(numbered.items()))


def _number(name: str, suffix: str) -> int:
    """The number in a name with this suffix; 0 for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and match[2] == suffix else 0


async def read_all(replica: Replica, infos: Mapping[int, ObjectInfo], report: Report) -> dict[int, Entry | None]:
    """These entries, read side by side; None for one that cannot be read, which is reported."""
    entries: dict[int, Entry | None] = {}

    async def look(number: int) -> None:
        try:
            entries[number] = parsed(await content(replica, infos[number]))
        except ValueError as error:
            replica.unread.note(infos[number].key, infos[number].etag, str(error))
            report(number, str(error))
            entries[number] = None

    await for_each(infos, look)
    return entries


def parsed(data: bytes | None) -> Entry:
    """The entry in an object; None stands for one that is gone. Raises ValueError."""
    if data is None:
        raise ValueError("it is gone")
    return Entry.parse(data)
