"""What every run knows of its space: the space's record and the notes that it takes.

Owns the choice of notes, and the base of what each kind of run works from. Refuses to read anything that only one kind
needs (see the kind's folder). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from livememfs.cache.replica import Replica
from livememfs.errors import NotFound, ObjectMissing, ObjectUnreadable
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.runs.notes import LiveNote
from livememfs.runs.options import KNOWN_TOKENS
from livememfs.runs.taken import remove, sift
from livememfs.store.base import StoredObject


@dataclass(frozen=True)
class NoteChoice:
    """Which notes a run takes.

    :max_notes: at most so many, the oldest ones
    :now:       when the run began
    :agent:     only notes whose front matter names exactly this agent
    :seal:      write the default rules when there are none, and remove late copies of notes that were taken before
                (False: change nothing, for a dry run)
    :ledger:    number of the last run in the ledger, 0 before the first
    :known:     tokens of known memories that a request may show (digests)
    """

    max_notes: int
    now: datetime
    agent: str | None = None
    seal: bool = False
    ledger: int = 0
    known: int = KNOWN_TOKENS

    def of(self, notes: Sequence[LiveNote]) -> tuple[tuple[LiveNote, ...], int]:
        """The notes that the run takes, of these, and how many are left over."""
        chosen = [live for live in notes if self.agent is None or live.note.agent == self.agent]
        return tuple(chosen[: self.max_notes]), max(0, len(chosen) - self.max_notes)


@dataclass(frozen=True)
class Inputs:
    """What a run of any kind knows of its space.

    :notes:      the notes of this run, oldest first; the model knows them by their number from 1
    :remaining:  how many more notes there are beyond the limit
    :unreadable: names in `live/` that are not UTF-8 text
    :ledger:     number of the last run in the ledger, 0 before the first
    :late:       names of late copies: notes that were taken before, and stored again by a late upload
    :now:        when the run began
    """

    space: str
    meta: Meta
    meta_etag: str
    notes: tuple[LiveNote, ...] = ()
    remaining: int = 0
    unreadable: tuple[str, ...] = ()
    ledger: int = 0
    late: tuple[str, ...] = ()
    now: datetime | None = None

    @property
    def number(self) -> int:
        """The number of this run in the ledger, from 1; no number is used twice, even if entries were removed."""
        return max(self.meta.ledger, self.ledger) + 1

    @property
    def consolidation(self) -> int:
        """Which consolidation of the space comes next, from 1: those of other programs count, undone ones do not."""
        return self.meta.consolidation_count + 1

    @property
    def size(self) -> int:
        """Characters of all texts."""
        return sum(len(live.note.body) for live in self.notes)


async def read_meta(replica: Replica, space: str) -> tuple[Meta, str]:
    """The space's record and its version. NotFound; ObjectUnreadable."""
    try:
        stored = await replica.read(keys.meta_key(space), fresh=True)
    except ObjectMissing:
        raise NotFound(path=f"space {space}") from None
    return parsed_meta(stored), stored.info.etag


def parsed_meta(stored: StoredObject) -> Meta:
    """The record of a space in an object. ObjectUnreadable."""
    try:
        return Meta.parse(stored.data)
    except ValueError as error:
        raise ObjectUnreadable(error, path=stored.info.key) from error


async def leave_out_late(
    replica: Replica, space: str, notes: Sequence[LiveNote], choice: NoteChoice
) -> tuple[list[LiveNote], tuple[str, ...]]:
    """The notes without late copies, and the names of those. A run removes them; a dry run does not."""
    sifted = await sift(replica, space, notes)
    if choice.seal:
        await remove(replica, sifted.late)
    return list(sifted.notes), tuple(live.name for live in sifted.late)
