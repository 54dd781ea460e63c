"""When a consolidation is held for a person: it would drop much of the bank.

Owns the limits and the sentences of the reason. A note can tell a model to empty the bank, and a model that obeys gives
reasons; so only what would be gone counts, not why. Refuses nothing: a held run waits for a person to accept it
(`held`). Pure; may be called from any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from livememfs.text.outgoing import Outgoing, lines_that_say

FEW_LINES = 3
"""Fewer dropped lines than this never count, however small the bank is."""


def too_much(
    before: Mapping[str, str], after: Mapping[str, str], lines: Sequence[Outgoing], limit: float
) -> tuple[str, ...]:
    """The reasons to hold a run that changes the bank from `before` to `after`, one sentence each; empty: none.

    :limit: the part of the bank's lines that a run may drop
    """
    sizes = {name: len(lines_that_say(text)) for name, text in before.items()}
    dropped = Counter(line.file for line in lines if line.fate == "dropped")
    count, total = sum(dropped.values()), sum(sizes.values())
    reasons: list[str] = []
    emptied = count == total and sum(len(lines_that_say(text)) for text in after.values()) < total
    if count > total * limit and (count >= FEW_LINES or emptied):
        reasons.append(f"it would drop {count} of the bank's {total} lines, over the limit of {limit:.0%}")
    whole = [
        name for name in sorted(dropped) if dropped[name] == sizes[name] and _counts(sizes[name], after.get(name, ""))
    ]
    if whole:
        reasons.append(f"it would drop all that {', '.join(whole)} say{'s' if len(whole) == 1 else ''}")
    return tuple(reasons)


def _counts(lines: int, after: str) -> bool:
    """Whether it counts that a file loses all of its `lines`: it has many, or gets fewer in their place."""
    return lines >= FEW_LINES or len(lines_that_say(after)) < lines
