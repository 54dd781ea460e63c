"""When a consolidation is too much to be carried out unseen: it would drop much of the bank.

Owns the limits and the sentences that a person is told. A note can tell a model to empty the bank, and an obedient one
gives its reasons; so what counts is what would be gone, not why. Refuses nothing: a run that is held waits for somebody
to accept it (`held`). Pure; may be called from any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from livememfs.text.outgoing import Outgoing, lines_that_say

FEW_LINES = 3
"""Fewer dropped lines than this are no share of a bank, however small the bank is."""


def too_much(
    before: Mapping[str, str], after: Mapping[str, str], lines: Sequence[Outgoing], limit: float
) -> tuple[str, ...]:
    """Why a run that makes one bank into the other is held, one sentence each; none: it is not.

    :limit: the part of the bank's lines that a run may drop
    """
    said = {name: len(lines_that_say(text)) for name, text in before.items()}
    dropped = Counter(line.file for line in lines if line.fate == "dropped")
    count, total = sum(dropped.values()), sum(said.values())
    reasons: list[str] = []
    emptied = count == total and sum(len(lines_that_say(text)) for text in after.values()) < total
    if count > total * limit and (count >= FEW_LINES or emptied):
        reasons.append(f"it would drop {count} of the bank's {total} lines, over the limit of {limit:.0%}")
    whole = [
        name for name in sorted(dropped) if dropped[name] == said[name] and _counts(said[name], after.get(name, ""))
    ]
    if whole:
        reasons.append(f"it would drop all that {', '.join(whole)} say{'s' if len(whole) == 1 else ''}")
    return tuple(reasons)


def _counts(said: int, after: str) -> bool:
    """Whether it matters that a file of so many lines says nothing of what it said."""
    return said >= FEW_LINES or len(lines_that_say(after)) < said
