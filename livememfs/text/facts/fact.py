"""A fact of a text, and the keys that facts are compared by.

Owns the vocabulary of keys: equal facts have a key in common, whatever their form. Refuses nothing. Pure; any thread.

`d:2026-11-23` `ym:2026-11` `md:11-23` `dd:23` `w:48` days, `t:14:30` times, `n:3.5` numbers, `b:60` without a unit,
`q:s:60` quantities, `v:2` and `r:12` versions and references, `p:a/b.py` and `u:` paths and addresses, `f:b.py` files
without a folder, `i:` and `x:` identifiers as they are written and without their punctuation, `~word` a word of the one
text that has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WORD = "~"
"""A key that begins so is a word; those of one reading have to be in one text."""
_HARD = ("d:", "ym:", "md:", "r:", "v:", "p:", "u:")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands in a text.

    :text:     how it is written there
    :readings: what has to be known for it to be known: all keys of any one of them
    :says:     every key that is known once this is: what it says, and the shorter things within it
    """

    text: str
    readings: tuple[tuple[str, ...], ...]
    says: tuple[str, ...]

    @property
    def is_hard(self) -> bool:
        """Whether it is of a kind that is made up or not: dates, versions, references, paths. A bare number may be a
        count, and a name with a digit in it a common one.
        """
        first = self.readings[0] if self.readings else ()
        return any(key.startswith(_HARD) or (key.startswith("n:") and key.count(".") > 1) for key in first)


def one(text: str, key: str, *within: str) -> Fact:
    """A fact with one reading."""
    return Fact(text, ((key,),), (key, *within))


def any_of(text: str, facts: Iterable[Fact]) -> Fact:
    """What may be read as any one of several facts."""
    found = list(facts)
    return Fact(
        text,
        tuple(dict.fromkeys(reading for fact in found for reading in fact.readings)),
        tuple(dict.fromkeys(key for fact in found for key in fact.says)),
    )


def all_of(text: str, facts: Iterable[Fact]) -> Fact:
    """What is known once all of several facts are."""
    readings: list[tuple[str, ...]] = [()]
    found = list(facts)
    for fact in found:
        readings = [(*before, *reading) for before in readings for reading in fact.readings]
    return Fact(text, tuple(readings), tuple(dict.fromkeys(key for fact in found for key in fact.says)))


def number_key(digits: str) -> str:
    """Zeros before a number say nothing, those behind its point do: `3.0` is a version as often as a number."""
    return f"n:{_plain(digits)}"


def bare_key(digits: str) -> str:
    """The number where no unit stands beside it: `60` may be any `60 s`."""
    plain = _plain(digits)
    return f"b:{plain.rstrip('0').rstrip('.') if '.' in plain else plain}"


def _plain(digits: str) -> str:
    whole, point, fraction = digits.partition(".")
    return f"{whole.lstrip('0') or '0'}{point}{fraction}"
