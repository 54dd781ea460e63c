"""A fact of a text, and the keys by which facts are compared.

Owns the kinds of keys: equal facts have a key in common, however they are written. Refuses nothing. Pure; any thread.

`d:2026-11-23` `ym:2026-11` `md:11-23` `dd:23` `w:48` days, `t:14:30` times, `n:3.5` numbers, `b:60` without a unit,
`q:s:60` quantities, `v:2` and `r:12` versions and references, `p:a/b.py` and `u:` paths and addresses, `f:b.py` files
without a folder, `i:` and `x:` identifiers as they are written and without their punctuation, `~word` a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

WORD = "~"
"""How the key of a word begins. All words of one reading have to stand in the same text."""
_HARD = ("d:", "ym:", "md:", "r:", "v:", "p:", "u:")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands in a text.

    :text:     how it is written there
    :readings: what it may mean. The fact has a source when the sources have all keys of one reading
    :says:     every key that a source has by stating this fact: its own, and those of the shorter facts within it
    """

    text: str
    readings: tuple[tuple[str, ...], ...]
    says: tuple[str, ...]

    @property
    def is_hard(self) -> bool:
        """Whether the kind of fact leaves no doubt: a date, version, reference or path. A plain number may be a count,
        and a name with a digit in it may be a common name.
        """
        first = self.readings[0] if self.readings else ()
        return any(key.startswith(_HARD) or (key.startswith("n:") and key.count(".") > 1) for key in first)


def one(text: str, key: str, *within: str) -> Fact:
    """A fact with one reading."""
    return Fact(text, ((key,),), (key, *within))


def either(text: str, *keys: str) -> Fact:
    """A fact that may mean any one of these keys."""
    return Fact(text, tuple((key,) for key in keys), keys)


def any_of(text: str, facts: Sequence[Fact]) -> Fact:
    """A fact that may be any one of several facts."""
    return Fact(text, tuple(dict.fromkeys(reading for fact in facts for reading in fact.readings)), _said(facts))


def all_of(text: str, facts: Sequence[Fact]) -> Fact:
    """A fact that consists of several facts."""
    readings = product(*(fact.readings for fact in facts))
    return Fact(text, tuple(tuple(chain.from_iterable(each)) for each in readings), _said(facts))


def _said(facts: Sequence[Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for fact in facts for key in fact.says))


def number_key(digits: str) -> str:
    """The key of a number, without leading zeros. Zeros behind the point stay: `3.0` may be a version."""
    return f"n:{_plain(digits)}"


def bare_key(digits: str) -> str:
    """The key of a number without a unit: `60` may be any `60 s`."""
    plain = _plain(digits)
    return f"b:{plain.rstrip('0').rstrip('.') if '.' in plain else plain}"


def _plain(digits: str) -> str:
    whole, point, fraction = digits.partition(".")
    return f"{whole.lstrip('0') or '0'}{point}{fraction}"
