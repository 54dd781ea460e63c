"""How much fits into a request: an estimate of tokens, and notes in batches that fit a model's context window.

Owns both figures' arithmetic. Refuses to cut a note or to drop one: what does not fit even alone is named, for the
caller to report and to keep. Pure; may be called from any thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from livememfs.errors import ContextTooSmall

CHARS_PER_TOKEN = 4.0


@dataclass(frozen=True)
class Batches:
    """Notes by their position from 0; each is in exactly one of the two.

    :batches:   positions that go into one request together, none of them empty, in order
    :too_large: positions of notes that do not fit a request of their own
    """

    batches: tuple[range, ...]
    too_large: tuple[int, ...]


def estimate(text: str, chars_per_token: float = CHARS_PER_TOKEN) -> int:
    """About how many tokens a text is, rounded up. Raises ValueError unless `chars_per_token` is positive."""
    if not (chars_per_token > 0 and math.isfinite(chars_per_token)):
        raise ValueError(f"{chars_per_token} characters in a token")
    return math.ceil(len(text) / chars_per_token)


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
