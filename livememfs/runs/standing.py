"""Which runs of a space still stand, now that some were taken back.

Owns what an undo does to the account: it takes back the run it names and all after it, and stands itself. Digests are
no part of the account: an undo leaves memories alone. Refuses to read anything: the entries are given. Entries that are
missing or cannot be read are passed over. Pure; any thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from livememfs.records.ledger import Entry


def standing(entries: Iterable[Entry]) -> list[Entry]:
    """The runs that made the bank what it is, the newest first; undos are among them, digests are not."""
    by_number = {entry.number: entry for entry in entries if entry.kind != "digest"}
    numbers = sorted(by_number)
    found: list[Entry] = []
    at = len(numbers)
    while at:
        entry = by_number[numbers[at - 1]]
        found.append(entry)
        # What was before a run is the run before it; what was before an undo, the run before the one it names.
        at = min(at - 1, bisect_left(numbers, entry.undoes) if entry.kind == "undo" else at)
    return found


def taken_back(entries: Iterable[Entry]) -> dict[int, int]:
    """The runs that do not stand, each with the undo by which it fell; of several, the one that still counts."""
    known = [entry for entry in entries if entry.kind != "digest"]
    undos = [entry for entry in standing(known) if entry.kind == "undo"]
    return {entry.number: undo.number for undo in undos for entry in known if undo.undoes <= entry.number < undo.number}


def last_standing(entries: Iterable[Entry]) -> int | None:
    """The run that an undo takes back when it is not told which: the last consolidation that stands."""
    return next((entry.number for entry in standing(entries) if entry.kind == "consolidation"), None)
