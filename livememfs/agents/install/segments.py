"""Insertions into a text, so that exactly they can be removed again.

Owns `Segment`, one insertion. Between its pieces there may be text of others: for example, a comma goes before
somebody's comment and the rest behind it. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Segment:
    """One insertion.

    :at:     the place of its first piece, in characters: before the insertion in the text without it, afterwards in the
             text with all insertions
    :pieces: the texts there, in order; true marks ours, false a text that existed before
    """

    at: int
    pieces: tuple[tuple[bool, str], ...]

    @property
    def text(self) -> str:
        """The whole text from the first piece to the last."""
        return "".join(text for _, text in self.pieces)

    @property
    def kept(self) -> str:
        """The text of it that is not ours."""
        return "".join(text for ours, text in self.pieces if not ours)

    def cut(self, text: str, at: int) -> str:
        """`text` without our pieces of the segment, which begins at `at`."""
        return text[:at] + self.kept + text[at + len(self.text) :]


def inserted(text: str, segments: Iterable[Segment]) -> tuple[str, tuple[Segment, ...]]:
    """The text with all segments, and the segments with their places in it."""
    result, position, placed = "", 0, []
    for segment in sorted(segments, key=lambda segment: segment.at):
        result += text[position : segment.at]
        placed.append(replace(segment, at=len(result)))
        result += segment.text
        position = segment.at + len(segment.kept)
    return result + text[position:], tuple(placed)


def taken_out(text: str, segments: Sequence[Segment]) -> str:
    """The text before the insertion; `text` must be unchanged since."""
    for segment in sorted(segments, key=lambda segment: segment.at, reverse=True):
        text = segment.cut(text, segment.at)
    return text


def found_and_taken_out(text: str, segments: Sequence[Segment], allowed: Callable[[str, str], bool]) -> str:
    """A text that was changed since, without the segments that are still in it word for word.

    Of several places the one nearest to the insertion is cut. `allowed` checks the text before and after each cut.
    """
    for segment in segments:
        places = [
            match.start() for match in re.finditer(f"(?={re.escape(segment.text)})", text)
        ]  # also overlapping ones
        if not places:
            continue
        without = segment.cut(text, min(places, key=lambda place: abs(place - segment.at)))
        if allowed(text, without):
            text = without
    return text


def decoded(data: bytes) -> str:
    """Any bytes as text; `encoded` gives the same bytes back."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text from `decoded`."""
    return text.encode("utf-8", "surrogateescape")


def digest(text: str) -> str:
    """SHA-256 of the bytes, in hexadecimal."""
    return hashlib.sha256(encoded(text)).hexdigest()


def newline_of(text: str) -> str:
    """The line end of a text, taken from its first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
