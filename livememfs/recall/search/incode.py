"""Marks on what was found, by the code that it speaks of: nothing is left out, since somebody asked for it.

Owns that each hit is checked where agents of its space work. Refuses to wait for git. Trio thread only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs.code.anchor import Claim
from livememfs.code.workplaces import FOR_A_PAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livememfs.code.workplaces import Workplaces
    from livememfs.recall.search.found import Hit
    from livememfs.recall.service import SearchAnswer


async def marked(code: Workplaces | None, answer: SearchAnswer) -> SearchAnswer:
    """The answer, with a mark on each hit whose code has changed, is gone, or is on a branch that is not merged."""
    hits = answer.found.hits
    claims = {place: Claim.of_labels(hit.record.labels) for place, hit in enumerate(hits)}
    claimed = {place: claim for place, claim in claims.items() if claim is not None}
    if code is None or not claimed:
        return answer
    marks: dict[int, str] = {}
    for space in sorted({hits[place].record.space for place in claimed}):
        mine = [place for place in claimed if hits[place].record.space == space]
        found = await code.verdicts(code.folders(space), [claimed[place] for place in mine], FOR_A_PAGE)
        marks |= {place: verdict.mark for place, verdict in zip(mine, found, strict=True) if verdict.mark}
    return replace(answer, found=replace(answer.found, hits=_with(hits, marks))) if marks else answer


def _with(hits: Sequence[Hit], marks: dict[int, str]) -> tuple[Hit, ...]:
    return tuple(replace(hit, mark=marks.get(place, "")) for place, hit in enumerate(hits))
