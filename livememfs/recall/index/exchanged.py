"""What goes in and out of an index, whatever keeps it: pieces and questions, records and links.

Owns the types that every engine shares. Refuses to know any engine: a mount that uses a server need not load tantivy or
SQLite. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from livememfs.errors import LiveMemError
from livememfs.recall.index.record import Record
from livememfs.recall.index.words import Language

TEXT_WEIGHT = 3
"""How often a piece's text counts, beside its context."""
MAX_TERMS = 64
"""Terms of one question that are looked for; somebody has pasted a page if there are more."""


class Damaged(LiveMemError):
    """The files of an index cannot be read; it has to be made anew."""


@dataclass
class Repairs:
    """What was repaired since an index was opened: parts made anew, how often a step was done again."""

    rebuilt: list[str] = field(default_factory=list)
    redone: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A text with what one may filter by.

    :context: texts that stood beside it
    :labels:  as `field:value`
    """

    number: int
    language: Language
    text: str
    context: str
    space: str
    kind: str
    type: str
    agent: str
    created: int
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restriction:
    """Which pieces may be found. Empty fields restrict nothing.

    :fields:  pairs of field (`space`, `kind`, `type`, `agent`, `label`) and the values one of which it must have
    :without: the same for values it must not have
    :numbers: the only pieces, where the filter had to be worked out elsewhere
    """

    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    without: tuple[tuple[str, tuple[str, ...]], ...] = ()
    after: int | None = None
    before: int | None = None
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What to look for: words, of which any may be there, phrases that must, words and phrases that must not."""

    words: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as it stands in the table."""

    id: int
    record: Record


@dataclass(frozen=True, slots=True)
class Linked:
    """A link between two records, seen from one of them.

    :of:      the record it was asked of
    :to:      the other one; `piece` is its first piece
    :forward: whether it is the link of the record that was asked of, and not of the other
    """

    of: int
    to: int
    relation: str
    forward: bool
    piece: int
