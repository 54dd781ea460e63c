"""What is reached from memories that fit a question, by the links between them: the list `graph` of a search.

Owns the walk: from the memories in which the words of the question stand, along links both ways, at most two steps,
each memory visited once and by its best way. Links to what is not there lead nowhere. Refuses to decide how much the
list weighs beside the others (`search` does). Blocking; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from livememfs.recall.index.engine import Engine
from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.index.record import Brief
from livememfs.records.keys import COLLECTIONS

STEPS = 2
SEEDS = 10
"""Memories that a walk begins at, those that fit best."""
LINKS = 200
"""Links looked at in one step, each way: of one that thousands are linked to, the newest."""
NEAR = 0.5
"""So much of the best score by words a memory needs to begin at: one common word is no reason to follow its links."""
DECAY = 0.5
"""What is left of a score at the second step."""
FORWARD: Mapping[str, float] = {
    "related_to": 0.8, "updates": 0.6, "contradicts": 0.8, "caused_by": 0.9, "result_of": 0.9, "part_of": 0.7,
}  # fmt: skip
"""How much of a score goes along a link."""
BACKWARD: Mapping[str, float] = {**FORWARD, "updates": 1.0}
"""The same against its direction: what has been updated leads to what holds now."""

Fits = Callable[[int], bool]


def walk(index: Engine, seeds: Mapping[int, float], where: Restriction, fits: Fits) -> list[tuple[int, int, float]]:
    """Records that are reached from `seeds` (scores by record), with their first pieces and scores, best first.

    `fits(piece)` says whether one may be shown; what may not is not gone through either.
    """
    visited, reached = set(seeds), list[tuple[int, int, float]]()
    edge = dict(seeds)
    for step in range(STEPS):
        best: dict[int, tuple[float, int]] = {}
        for link in index.linked(sorted(edge), where, LINKS) if edge else ():
            score = edge[link.of] * (FORWARD if link.forward else BACKWARD).get(link.relation, 0.0) * DECAY**step
            if link.to not in visited and fits(link.piece) and score > best.get(link.to, (0.0, 0))[0]:
                best[link.to] = score, link.piece
        visited |= best.keys()
        reached += [(record, piece, score) for record, (score, piece) in best.items()]
        edge = {record: score for record, (score, _) in best.items()}
    return sorted(reached, key=lambda hit: (-hit[2], -hit[0]))


def seeds_of(hits: Iterable[tuple[Brief, float]]) -> dict[int, float]:
    """Where to begin: of hits by words, those that come near the best, with their scores as shares of it.

    Notes are among them, which lead nowhere, so that what is linked does not come before a note that fits better. Empty
    when no memory is.
    """
    best: dict[int, tuple[float, Brief]] = {}
    for brief, score in hits:
        if score > best.get(brief.id, (0.0, brief))[0]:
            best[brief.id] = score, brief
    order = sorted(best.items(), key=lambda hit: (-hit[1][0], -hit[0]))[:SEEDS]
    top = order[0][1][0] if order else 0.0
    near = {record: (score, brief) for record, (score, brief) in order if score >= NEAR * top}
    if not any(brief.kind in COLLECTIONS for _, brief in near.values()):
        return {}
    return {record: score / top for record, (score, _) in near.items()}
