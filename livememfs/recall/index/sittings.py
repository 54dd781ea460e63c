"""Which notes stand beside each other, worked out from their times alone, for many notes at once.

Owns the rules (what is beside a moment, which notes a change touches), over lists in memory: one query for each note
would take longer than everything else. `RecordTable` has the same rules in SQL, for few notes. Pure; any thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from livememfs.recall.index.record import Record

NEIGHBOURS = 2
"""Notes before and after one that were written in the same sitting, and count as its context."""
HEARD = 400
"""Characters of a note that count beside another. A long one begins with what it is about, and whole it would hide what
the other says.
"""
SITTING_SECONDS = 1_800
"""Two notes further apart than this have nothing to say about each other."""
AT_ONCE = 64
"""Notes of one second that are looked at anew when one of them comes or goes."""

Place = tuple[str, int]
"""A space and a moment."""
_LAST = 1 << 63


class Sittings:
    """The notes of some spaces around some moments, as pairs of time and number, in that order."""

    def __init__(self, notes: Iterable[tuple[str, int, int]]) -> None:
        self._notes: dict[str, list[tuple[int, int]]] = {}
        for space, created, record in sorted(notes):
            self._notes.setdefault(space, []).append((created, record))

    def beside(self, place: Place, count: int) -> list[int]:
        """The notes around a moment, `count` to each side and one at it, in the order of time."""
        notes, moment = self._notes.get(place[0], []), place[1]
        at = bisect_left(notes, (moment, -1))
        before = notes[max(at - count, bisect_left(notes, (moment - SITTING_SECONDS, -1))) : at]
        after = notes[at : min(at + count + 1, bisect_right(notes, (moment + SITTING_SECONDS, _LAST)))]
        return [record for _, record in (*before, *after)]

    def touched(self, place: Place) -> set[int]:
        """The notes that may have another context or meaning when one comes or goes here."""
        notes, moment = self._notes.get(place[0], []), place[1]
        first, last = bisect_left(notes, (moment, -1)), bisect_right(notes, (moment, _LAST))
        end = min(last + NEIGHBOURS + 1, bisect_right(notes, (moment + SITTING_SECONDS, _LAST)))
        at_once = [record for _, record in (*notes[max(first, last - AT_ONCE) : last], *notes[last:end])]
        return {*self.beside(place, NEIGHBOURS + 1), *at_once}

    def before(self, place: Place, record: int) -> int | None:
        """The note just before one in the same sitting."""
        notes, moment = self._notes.get(place[0], []), place[1]
        at = bisect_left(notes, (moment, record))
        return notes[at - 1][1] if at and notes[at - 1][0] >= moment - SITTING_SECONDS else None


def context_of(record: Record, around: Sequence[Record]) -> list[Record]:
    """The notes around a note (in the order of time, without itself) as its context: the beginning of each, and once
    more of the one just before and the one just after, since a question stands beside its answer.
    """
    at = bisect_left(around, record.created, key=lambda note: note.created)
    return [replace(note, pieces=(note.text[:HEARD],)) for note in (*around, *around[max(at - 1, 0) : at + 1])]


def windows(places: Iterable[Place]) -> tuple[Sequence[str], Sequence[int], Sequence[int]]:
    """Spans of time that hold whatever matters to a change at these places, as columns of space, start and end."""
    spans: list[list[int]] = []
    spaces: list[str] = []
    for space, moment in sorted(places):
        low, high = moment - 2 * SITTING_SECONDS, moment + 2 * SITTING_SECONDS
        if spaces and spaces[-1] == space and low <= spans[-1][1]:
            spans[-1][1] = high
        else:
            spaces.append(space)
            spans.append([low, high])
    return spaces, [low for low, _ in spans], [high for _, high in spans]
