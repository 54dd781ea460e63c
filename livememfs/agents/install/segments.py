"""What was inserted into a text, so that it can be taken out again and nothing else with it.

Owns `Segment`, one insertion. It may have text of others between its pieces: a comma goes before somebody's comment and
the rest behind it. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Segment:
    """One insertion.

    :at:     where its first piece stands, in characters: in the text without it while it is planned, else in the text
             with all insertions
    :pieces: what stands there, in order; true marks what is ours, false what was there before
    """

    at: int
    pieces: tuple[tuple[bool, str], ...]

    @property
    def text(self) -> str:
        """All that stands from the first piece to the last."""
        return "".join(text for _, text in self.pieces)

    @property
    def kept(self) -> str:
        """The part of it that is not ours."""
        return "".join(text for ours, text in self.pieces if not ours)

    def cut(self, text: str, at: int) -> str:
        """`text` without the pieces that are ours; the segment stands there at `at`."""
        return text[:at] + self.kept + text[at + len(self.text) :]


def inserted(text: str, segments: Iterable[Segment]) -> tuple[str, tuple[Segment, ...]]:
    """The text with all of them, and the segments with their places in that text."""
    result, position, placed = "", 0, []
    for segment in sorted(segments, key=lambda one: one.at):
        result += text[position : segment.at]
        placed.append(replace(segment, at=len(result)))
        result += segment.text
        position = segment.at + len(segment.kept)
    return result + text[position:], tuple(placed)


def taken_out(text: str, segments: Sequence[Segment]) -> str:
    """The text before the insertion, of the text exactly as it was after it."""
    for segment in sorted(segments, key=lambda one: one.at, reverse=True):
        text = segment.cut(text, segment.at)
    return text


def found_and_taken_out(text: str, segments: Sequence[Segment], allowed: Callable[[str, str], bool]) -> str:
    """A text that was edited since, without those segments that still stand in it word for word.

    Of several places the nearest to where it was put is taken. `allowed` is given the text before and after each cut.
    """
    for segment in segments:
        places = _places(text, segment.text)
        if not places:
            continue
        without = segment.cut(text, min(places, key=lambda place: abs(place - segment.at)))
        if allowed(text, without):
            text = without
    return text


def _places(text: str, part: str) -> list[int]:
    places, place = [], text.find(part)
    while place >= 0:
        places.append(place)
        place = text.find(part, place + 1)
    return places


def decoded(data: bytes) -> str:
    """Bytes as text from which the same bytes can be had again, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of such a text."""
    return text.encode("utf-8", "surrogateescape")


def digest(text: str) -> str:
    """SHA-256 of the bytes, in hexadecimal."""
    return hashlib.sha256(encoded(text)).hexdigest()


def newline_of(text: str) -> str:
    """How lines end in it: as the first does."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
