"""Notes that wait in `live/` for long: their agent is gone, or nobody consolidates.

Owns which notes are old: by the time in their names, else by when they were written. Refuses to decide what becomes of
them. Trio thread only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from livememfs.cache.replica import Replica
from livememfs.records import keys
from livememfs.runs.upkeep.gc import Finding
from livememfs.store.base import ObjectInfo


@dataclass(frozen=True)
class OldNotes:
    """The old notes of one space; at least one."""

    space: str
    notes: tuple[ObjectInfo, ...]

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(info.size for info in self.notes)

    @property
    def agents(self) -> dict[str, int]:
        """How many each agent wrote, by the names of the notes; "" for a name that does not say."""
        names = (keys.NoteName.parse(keys.parse(info.key).name) for info in self.notes)
        return dict(Counter(name.agent if name is not None else "" for name in names))

    def findings(self) -> list[Finding]:
        """They as garbage, to be removed."""
        why = "it waits for a run for long"
        return [Finding("old", self.space, info.key, _written(info), why, (info,)) for info in self.notes]


async def find_old(replica: Replica, spaces: Sequence[str], cutoff: datetime) -> list[OldNotes]:
    """The notes of these spaces that are older than `cutoff`, by space."""
    found = []
    for space in spaces:
        infos = await replica.names.walk(keys.live_prefix(space))
        old = tuple(info for info in infos if keys.parse(info.key).kind == "note" and _written(info) < cutoff)
        if old:
            found.append(OldNotes(space, old))
    return found


def _written(info: ObjectInfo) -> datetime:
    name = keys.NoteName.parse(keys.parse(info.key).name)
    return name.timestamp if name is not None else datetime.fromtimestamp(info.modified_ns / 1_000_000_000, UTC)
