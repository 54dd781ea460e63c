"""What a search found: hits, best first, and how.

Owns the values alone, so that whoever shows them, or has none, need not load what searches. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from livememfs.recall.index.record import Record

Strategy = Literal["strict", "words", "semantic", "hybrid"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found.

    :piece:   which of its pieces fits best
    :reasons: its rank in each list that has it, from 1
    :mark:    what became of the code that it speaks of; empty where nothing is to be said
    """

    record: Record
    piece: int
    score: float
    reasons: Mapping[str, int]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class RankedHit:
    """The answer: hits, best first, and how they were found."""

    hits: tuple[Hit, ...]
    strategy: Strategy
    candidates: int = 0
    remarks: tuple[str, ...] = ()
