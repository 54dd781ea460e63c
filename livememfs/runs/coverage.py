"""What became of the notes of a run (design rule 3): which it used, where, and which it left out, why.

Owns the form of that account, and when a run is held for it. A note of which nothing is said stays. Pure; may be called
from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

SKIPPED_NOTES = 5
"""A run that skips all of at least so many notes is held."""
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"[0-9]")
_LONG_ENOUGH = 4


@dataclass(frozen=True)
class Fate:
    """What became of one note: the files it was used in, or the reason why it was skipped."""

    used_in: tuple[str, ...] = ()
    skipped: str = ""


@dataclass(frozen=True)
class Coverage:
    """What became of the notes, by number from 1.

    :fates:    the notes that are accounted for
    :too_long: notes that fit no request, with about how many tokens they are
    :limit:    tokens of a note that a request has room for, where some are too long
    """

    fates: dict[int, Fate]
    too_long: Mapping[int, int] = field(default_factory=dict)
    limit: int = 0

    def missing(self, count: int) -> list[int]:
        """The numbers of the `count` notes that a reply was to account for and did not."""
        known = {*self.fates, *self.too_long}
        return [number for number in range(1, count + 1) if number not in known]


def words(text: str) -> set[str]:
    """The words of a text that say something: four characters or more, or with a digit; without case."""
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG_ENOUGH or _DIGIT.search(word)}


def skips_all(coverage: Coverage, notes: int) -> tuple[str, ...]:
    """Why a run is held that uses none of many notes."""
    fates = coverage.fates.values()
    if notes < SKIPPED_NOTES or len(fates) < notes or any(fate.used_in for fate in fates):
        return ()
    return (f"it would skip all of its {notes} notes",)
