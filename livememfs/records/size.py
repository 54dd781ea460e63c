"""How much of a model's attention a text takes, and what fits into so much.

Owns the estimate: no tokenizer, which would be another for each model. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

CHARACTERS_A_TOKEN = 4
_LATIN = "\u0370"
"""Where the letters end of which several make a token."""


def tokens(text: str) -> int:
    """Roughly what a text costs a model: a token is about four characters, or one where letters are not Latin."""
    narrow = len(text) if text.isascii() else sum(character < _LATIN for character in text)
    return -(-narrow // CHARACTERS_A_TOKEN) + len(text) - narrow


class Budget:
    """So many tokens for the parts of one answer. A part that does not fit leaves room for smaller ones after it."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def takes(self, *texts: str, at_any_cost: bool = False) -> bool:
        """Whether there is room for a part made of these texts, which is spent then."""
        cost = sum(map(tokens, texts))
        if cost > self.left and not at_any_cost:
            return False
        self.left -= cost
        return True


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends. Only a line feed ends one: what else Python divides at is text."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def first_lines(lines: Sequence[str], budget: Budget) -> int:
    """How many of the first lines there is room for, one at least."""
    for count, line in enumerate(lines):
        if not budget.takes(line, at_any_cost=not count):
            return count
    return len(lines)
