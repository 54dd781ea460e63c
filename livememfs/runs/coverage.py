"""The coverage of a run (design rule 3): which notes it used, in which files, and which notes it skipped, and why.

Owns the form of the coverage, and when a run is held for it. A note that is not in it stays. Pure; may be called from
any thread.
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

    :fates:    what became of each note that the reply names
    :too_long: notes that fit no request, with their estimated tokens
    :limit:    tokens that a request has for notes; 0 when no note is too long
    """

    fates: dict[int, Fate]
    too_long: Mapping[int, int] = field(default_factory=dict)
    limit: int = 0

    def missing(self, count: int) -> list[int]:
        """The numbers, of `count` notes, that the coverage does not have."""
        known = {*self.fates, *self.too_long}
        return [number for number in range(1, count + 1) if number not in known]


def words(text: str) -> set[str]:
    """The words of a text that tell it from others: with four characters or more, or a digit; case is folded."""
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG_ENOUGH or _DIGIT.search(word)}


def skips_all(coverage: Coverage, notes: int) -> tuple[str, ...]:
    """The reason to hold a run that skips all of many notes; empty for any other run."""
    fates = coverage.fates.values()
    if notes < SKIPPED_NOTES or len(fates) < notes or any(fate.used_in for fate in fates):
        return ()
    return (f"it would skip all of its {notes} notes",)
