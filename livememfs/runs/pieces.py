"""Notes as they go into requests: whole, or in parts where a note is too long for one.

Owns where a long note is cut: before headings, else between paragraphs, else between lines. Refuses to cut a line: a
note with a line that fits no request counts as too long. A note in parts is covered when all its parts are. Pure; may
be called from any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from livememfs.runs.coverage import Coverage, Fate
from livememfs.runs.notes import LiveNote
from livememfs.text.outline import Outline
from livememfs.text.size import lines_of, tokens

PER_NOTE = 40
"""Tokens that a note costs besides its text: its number, time, author and tags."""


@dataclass(frozen=True)
class NotePiece:
    """A note, or a part of one.

    :number: of the note in its run, from 1
    :live:   the note, with this part as its text
    :size:   about how many tokens it costs in a request
    """

    number: int
    live: LiveNote
    size: int

    def cut(self, room: int) -> tuple[NotePiece, ...]:
        """Parts of at most `room` tokens each: the piece itself if it fits, none if a line of it is too long."""
        if self.size <= room:
            return (self,)
        texts = _cut(self.live.note.body, room - PER_NOTE)
        of = f" of {self.live.part}" if self.live.part else ""
        parts = (
            piece(self.number, replace(self.live, part=f"{at} of {len(texts)}{of}", new=None), text)
            for at, text in enumerate(texts, 1)
        )
        # The estimate of a text may be a little more than the sum of its lines, by which it was cut.
        return tuple(replace(part, size=min(part.size, room)) for part in parts)


def piece(number: int, live: LiveNote, text: str) -> NotePiece:
    """A note as a piece, with this text."""
    shown = live if text is live.note.body else replace(live, note=replace(live.note, body=text))
    return NotePiece(number, shown, tokens(text) + tokens(live.new or "") + PER_NOTE)


class Account:
    """What became of the notes of a run, collected piece by piece."""

    def __init__(self) -> None:
        self._fates: dict[int, list[Fate | None]] = {}
        self._too_long: dict[int, int] = {}
        self._limit = 0

    def add(self, batch: Sequence[NotePiece], coverage: Coverage) -> None:
        """Add the coverage of a reply to the pieces of its request, which it numbers from 1."""
        for at, sent in enumerate(batch, 1):
            self._fates.setdefault(sent.number, []).append(coverage.fates.get(at))

    def too_long(self, note: NotePiece, limit: int) -> None:
        """Add a note that fits no request of `limit` tokens, and cannot be cut."""
        self._too_long[note.number], self._limit = note.size, limit

    def coverage(self) -> Coverage:
        """The coverage of the notes of which every piece is covered."""
        whole = {
            number: _joined([fate for fate in fates if fate is not None])
            for number, fates in sorted(self._fates.items())
            if None not in fates and number not in self._too_long
        }
        return Coverage(whole, dict(sorted(self._too_long.items())), self._limit)


def _joined(fates: Sequence[Fate]) -> Fate:
    used = tuple(dict.fromkeys(name for fate in fates for name in fate.used_in))
    skipped = "; ".join(dict.fromkeys(fate.skipped for fate in fates if fate.skipped))
    return Fate(used) if used else Fate(skipped=skipped)


def _cut(text: str, room: int) -> list[str]:
    """The text in as few parts as its structure allows; none when a line is too long."""
    parts: list[str] = []
    part, size = "", 0
    for block, cost in _blocks(text, room):
        if cost > room:
            return []
        if part and size + cost > room:
            parts.append(part)
            part, size = "", 0
        part, size = part + block, size + cost
    return [*parts, part] if part else parts


def _blocks(text: str, room: int) -> Iterator[tuple[str, int]]:
    """Blocks of a text with their tokens: sections; of those over `room` the paragraphs, of those over it the lines."""
    outline = Outline(text)
    starts = sorted({0, *(section.start for section in outline.sections()), len(outline.lines)})
    for start, stop in pairwise(starts):
        section = "".join(outline.lines[start:stop])
        for paragraph in [section] if tokens(section) <= room else _paragraphs(section):
            cost = tokens(paragraph)
            if cost <= room:
                yield paragraph, cost
            else:
                yield from ((line, tokens(line)) for line in lines_of(paragraph))


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs with the blank lines after them."""
    paragraph = ""
    for line in lines_of(text):
        if line.strip() and paragraph.endswith("\n\n"):
            yield paragraph
            paragraph = ""
        paragraph += line
    if paragraph:
        yield paragraph
