"""What one turn may tell, by the code that records speak of.

Owns that each record of a turn is checked once, all of them at once, and that the check is bounded (`workplaces`).
Refuses to decide what fits a message. Blocking: for a worker thread that the trio thread started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import trio

from livememfs.code.anchor import Claim
from livememfs.code.checking import PLAIN, CodeVerdict

if TYPE_CHECKING:
    from livememfs.code.workplaces import Workplaces
    from livememfs.recall.index.record import Record


def marked(text: str, mark: str) -> str:
    """A line with a mark behind it."""
    return f"{text} ({mark})" if mark else text


class ByCode:
    """The checks of one turn, in the first of these working directories that is in a repository. Without `workplaces`
    everything may be told.
    """

    def __init__(self, workplaces: Workplaces | None = None, folders: Sequence[str] = ()) -> None:
        self._workplaces, self._folders = workplaces, folders
        self._known: dict[str, CodeVerdict] = {}

    def judge(self, records: Iterable[Record]) -> bool:
        """CodeCheck those that were not checked yet, in this order; whether all of them may be told."""
        if self._workplaces is None:
            return True
        given = {record.ref: record for record in records}
        new = {ref: Claim.of_labels(record.labels) for ref, record in given.items() if ref not in self._known}
        claims = {ref: claim for ref, claim in new.items() if claim is not None}
        verdicts: Sequence[CodeVerdict] = ()
        if claims:
            verdicts = trio.from_thread.run(self._workplaces.verdicts, self._folders, list(claims.values()))
        self._known |= dict.fromkeys(new, PLAIN) | dict(zip(claims, verdicts, strict=True))
        return all(self._known[ref].is_told for ref in given)

    def of(self, record: Record) -> CodeVerdict:
        """What came of a record's check; one that was not checked is plain."""
        return self._known.get(record.ref, PLAIN)

    def told(self, record: Record) -> bool:
        """Whether a record may be told."""
        return self.of(record).is_told

    def mark(self, *records: Record) -> str:
        """What stands behind whose words they are, where some of these records are told in one line."""
        marks = dict.fromkeys(mark for record in records if (mark := self.of(record).mark))
        return f" ({'; '.join(marks)})" if marks else ""
