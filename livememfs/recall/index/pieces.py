"""The texts of a record as they are found: what the text index takes of each, and what its vector is made of.

Owns what stands beside a piece's own words: who said it and when, and what was said around it. Refuses to know where
records are kept. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from livememfs.recall.index.exchanged import Piece
from livememfs.recall.index.record import Record, digest
from livememfs.recall.index.words import language_of

DAY = 86_400
SHORT = 400
"""Characters of a note that may need the one before it to be understood."""


@dataclass(frozen=True, slots=True)
class PieceText:
    """What the vector of a piece is made of: the piece itself and, where something was said just before it in the same
    sitting, that as well. An answer often makes sense only after its question.
    """

    own: str
    before: str = ""
    """As the vector of that note is made of it, so that a model reads it once."""
    meaning: bytes = b""
    """What the vector is kept under."""

    def known(self) -> PieceText:
        """With the meaning that follows from the texts."""
        return replace(self, meaning=digest(f"{self.own}\0{self.before}"))


def spoken(record: Record, text: str) -> str:
    """A text as it is embedded and found: with who said it and when, which is half of what people ask by."""
    return f"{record.agent} ({_day(record.created // DAY)}): {text}" if record.kind == "live" else text


@lru_cache(1_024)
def _day(number: int) -> str:
    """A day as people write it; `number` of them after 1970 began."""
    moment = datetime.fromtimestamp(number * DAY, UTC)
    return f"{moment.day} {moment:%B %Y}"


def text_of(record: Record, part: int, before: Record | None) -> PieceText:
    """What the vector of a piece is made of; `before`: the note just before it in the same sitting."""
    own = spoken(record, record.pieces[part])
    if before is None or len(own) > SHORT:
        return PieceText(own).known()
    return PieceText(own, spoken(before, before.text)).known()


def piece_of(number: int, record: Record, part: int, beside: Iterable[Record]) -> Piece:
    """A piece as the text index takes it; `beside`: the notes around it in the same sitting."""
    text = record.pieces[part]
    heading = f"{record.title}\n" if record.title and part else ""
    return Piece(
        number=number,
        language=language_of(text),
        text=heading + spoken(record, text),
        context="\n".join(spoken(other, other.text) for other in beside),
        space=record.space,
        kind=record.kind,
        type=record.type,
        agent=record.agent,
        created=record.created,
        labels=tuple(f"{name}:{value.casefold()}" for name, value in record.labels),
    )
