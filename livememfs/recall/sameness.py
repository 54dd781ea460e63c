"""Whether a line says what another line says already, for hundreds of pairs in a few milliseconds.

Owns the two steps: vectors leave a handful of pairs, of which the words tell (see `likeness`). Refuses to judge by the
angle alone until it is beyond doubt, and by vectors of another length: a session may be older than the model. Any
thread, one turn each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livememfs.recall.inject import Candidate, same_words
from livememfs.recall.likeness import likeness
from livememfs.recall.vectors import Floats

LOOK = 0.6
"""A cosine below this says that two texts are about different things; of 153 alike pairs 146 are above."""


class Sameness:
    """Vectors of one model; `prior` is the mean of any texts by it, `alike` the threshold."""

    def __init__(self, prior: Floats | None, alike: float) -> None:
        self._prior, self._alike = prior, alike
        self._centred: dict[str, Floats | None] = {}

    def __call__(self, one: Candidate, others: Sequence[Candidate]) -> bool:
        """Whether one of the others says the same."""
        if same_words(one, others):
            return True
        mine = self._vector(one)
        if mine is None:
            return False
        pairs = ((other, self._vector(other)) for other in others)
        compared = [(other, vector) for other, vector in pairs if vector is not None and len(vector) == len(mine)]
        if not compared:
            return False
        near = np.stack([vector for _, vector in compared]) @ mine
        return any(
            float(near[at]) > self._alike or likeness(one.text, compared[at][0].text, float(near[at])) > self._alike
            for at in np.flatnonzero(near > LOOK)
        )

    def _vector(self, one: Candidate) -> Floats | None:
        if one.id not in self._centred:
            vector = one.vector
            if vector is not None and self._prior is not None and len(vector) == len(self._prior):
                centred = vector - self._prior
                vector = centred / max(float(np.linalg.norm(centred)), 1e-6)
            self._centred[one.id] = vector
        return self._centred[one.id]
