"""Which runs of a space stand: those that no undo has taken back.

Owns the rule: an undo takes back the run that it names and all runs after it, and stands itself. Runs that do not
change the bank, such as digests, do not count. Refuses to read anything: the caller gives the entries, and may leave
out those that are missing or cannot be read. Pure; any thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from livememfs.records.ledger import Entry


def standing(entries: Iterable[Entry]) -> list[Entry]:
    """The runs that made the bank what it is, the newest first; undos are among them."""
    by_number = {entry.number: entry for entry in entries if entry.changes_bank}
    numbers = sorted(by_number)
    stands: list[Entry] = []
    at = len(numbers)
    while at:
        entry = by_number[numbers[at - 1]]
        stands.append(entry)
        # Go back to the run before this one; from an undo, to the run before the one that it takes back.
        at = min(at - 1, bisect_left(numbers, entry.undoes) if entry.kind == "undo" else at)
    return stands


def taken_back(entries: Iterable[Entry]) -> dict[int, int]:
    """The runs that were taken back, each with the undo that did it; of several undos, with the one that stands."""
    known = [entry for entry in entries if entry.changes_bank]
    undos = [entry for entry in standing(known) if entry.kind == "undo"]
    return {entry.number: undo.number for undo in undos for entry in known if undo.undoes <= entry.number < undo.number}


def last_standing(entries: Iterable[Entry]) -> int | None:
    """The last run that stands and is no undo: the one that an undo without a number takes back."""
    return next((entry.number for entry in standing(entries) if entry.kind != "undo"), None)
