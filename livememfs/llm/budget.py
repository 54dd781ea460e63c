"""How much fits into a request: notes in batches that fit a model's context window.

Owns that arithmetic. Refuses to cut a note or to drop one: what does not fit even alone is named, for the
caller to report and to keep. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from livememfs.errors import ContextTooSmall


@dataclass(frozen=True)
class Batches:
    """Notes by their position from 0; each is in exactly one of the two.

    :batches:   positions that go into one request together, none of them empty, in order
    :too_large: positions of notes that do not fit a request of their own
    """

    batches: tuple[range, ...]
    too_large: tuple[int, ...]


def at_most(estimated: int) -> int:
    """Tokens that a text may have of which so many are estimated: the estimate is a quarter off at most.

    Whoever fills a request up counts with these, else it is one that an endpoint refuses.
    """
    return estimated + -(-estimated // 4)


def split(sizes: Sequence[int], fixed: int, window: int, reply: int) -> Batches:
    """Notes of these sizes as the fewest batches in their order, all figures in tokens.

    :fixed:  what each request holds besides notes: rules, synthesis, bank
    :window: the model's whole context
    :reply:  what is set aside for the answer

    A batch ends before a note that is too large, so that each is a run of notes without a gap. Raises ContextTooSmall
    when `fixed` and `reply` leave no room, ValueError for a negative figure.
    """
    if min(fixed, window, reply, *sizes) < 0:
        raise ValueError("a size is negative")
    room = window - fixed - reply
    if room < 0:
        raise ContextTooSmall(window=window, fixed=fixed, reply=reply)
    batches: list[range] = []
    too_large: list[int] = []
    start = used = 0
    for position, size in enumerate(sizes):
        if used + size <= room:
            used += size
            continue
        if start < position:
            batches.append(range(start, position))
        if size > room:
            too_large.append(position)
            start, used = position + 1, 0
        else:
            start, used = position, size
    if start < len(sizes):
        batches.append(range(start, len(sizes)))
    return Batches(tuple(batches), tuple(too_large))
