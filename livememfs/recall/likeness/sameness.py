"""Whether a line says what another line says already, for hundreds of pairs in a few milliseconds.

Owns the two steps: vectors leave a handful of pairs, of which the words tell (see `likeness`). Refuses to judge by the
angle alone until it is beyond doubt, and by vectors of another length: a session may be older than the model. Any
thread, one turn each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livememfs.recall.index.vectors import Floats
from livememfs.recall.likeness.estimate import likeness
from livememfs.recall.turn.inject import Candidate, SameWords

LOOK = 0.6
"""A cosine below this says that two texts are about different things; of 153 alike pairs 146 are above."""
ROWS = 160
"""Room for what is usual: what a session was told last, and what one turn tells."""


def centred(vectors: Floats, prior: Floats | None) -> Floats:
    """Rows of length 1 relative to `prior`, the mean of any texts, again of length 1. Where that mean is unknown or of
    another length, the rows stay as they are.
    """
    if prior is None or len(prior) != vectors.shape[1]:
        return np.asarray(vectors, np.float32)
    moved = vectors - prior
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6), np.float32)


class Sameness:
    """See `Same`, for the methods too. `prior` is the mean of any texts by the model, `alike` the threshold."""

    def __init__(self, prior: Floats | None, alike: float) -> None:
        self._prior, self._alike = prior, alike
        self._words = SameWords()
        self._shown: dict[int, _Shown] = {}
        self._asked: tuple[Candidate, Floats] | None = None

    def show(self, others: Sequence[Candidate]) -> None:
        self._words.show(others)
        by_length: dict[int, list[Candidate]] = {}
        for other in others:
            if other.vector is not None:
                by_length.setdefault(len(other.vector), []).append(other)
        for length, candidates in by_length.items():
            if len(candidates) == 1 and self._asked is not None and self._asked[0] is candidates[0]:
                rows = self._asked[1]  # most are told at once when they were found to be new
            else:
                rows = centred(np.stack([other.vector for other in candidates]), self._prior)
            self._shown.setdefault(length, _Shown(length)).add(candidates, rows)

    def __call__(self, candidate: Candidate) -> bool:
        if self._words(candidate):
            return True
        shown = self._shown.get(len(candidate.vector)) if candidate.vector is not None else None
        if shown is None:
            return False
        row = centred(candidate.vector[None, :], self._prior)
        self._asked = candidate, row
        near = shown.rows[: len(shown.texts)] @ row[0]
        return any(
            shown.texts[at].id != candidate.id and self._are_alike(candidate, shown.texts[at], float(near[at]))
            for at in np.flatnonzero(near > LOOK)
        )

    def _are_alike(self, candidate: Candidate, other: Candidate, near: float) -> bool:
        return near > self._alike or likeness(candidate.text, other.text, near) > self._alike


class _Shown:
    """Candidates whose vectors have one length, side by side with those."""

    def __init__(self, length: int) -> None:
        self.texts: list[Candidate] = []
        self.rows: Floats = np.zeros((ROWS, length), np.float32)

    def add(self, candidates: Sequence[Candidate], rows: Floats) -> None:
        start, end = len(self.texts), len(self.texts) + len(candidates)
        if end > len(self.rows):
            self.rows = np.concatenate([self.rows[:start], np.zeros((end, self.rows.shape[1]), np.float32)])
        self.rows[start:end] = rows
        self.texts += candidates
