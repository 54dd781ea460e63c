"""A Markdown text as lines and a tree of headings, for reading.

Owns finding a heading by its path, and which lines are its own. Refuses a path that names no heading, or several.
Pure; any thread may call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from livememfs.text.edits import EditRefused
from livememfs.text.headings import (
    Heading,
    Section,
    front_matter_lines,
    is_blank,
    normal,
    scan,
    shown_path,
    split_lines,
    tree,
)

_SHOWN_PATHS = 20


class Outline:
    """A text, its lines and its headings. Immutable."""

    def __init__(self, text: str) -> None:
        lines, above = split_lines(text), front_matter_lines(text)
        scanned = scan(lines[above:])
        self._set(lines, above, [heading.moved(above) for heading in scanned.headings], scanned.open_end)

    def _set(self, lines: list[str], above: int, headings: list[Heading], open_end: bool) -> None:
        """:open_end: whether a fence or a comment is never closed, so that text added at the end would belong to it"""
        self.lines, self.open_end = lines, open_end
        self._above, self._headings = above, headings
        self.root = tree(headings, above, len(lines))

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    # --- looking --------------------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """Every heading, in the order of the text."""
        return [section for section in self.root.walk() if section is not self.root]

    def find(self, path: Sequence[str]) -> Section:
        """The one heading at a path. Raises EditRefused when there is none, or more than one."""
        sections = self._at(path)
        if len(sections) > 1:
            raise EditRefused(f"the heading {shown_path(path)} is there {len(sections)} times")
        if not sections:
            raise EditRefused(f"there is no heading {shown_path(path)}; there are {self._known()}")
        return sections[0]

    def _at(self, path: Sequence[str]) -> list[Section]:
        sections = [self.root]
        for title in map(normal, path):
            sections = [child for section in sections for child in section.children if child.title == title]
        return sections

    def _known(self) -> str:
        sections = self.sections()
        paths = ", ".join(shown_path(section.path) for section in sections[:_SHOWN_PATHS])
        more = len(sections) - _SHOWN_PATHS
        return (paths + (f" and {more} more" if more > 0 else "")) or "none"

    def duplicates(self) -> list[tuple[str, ...]]:
        """Paths that more than one heading has."""
        return [path for path, count in self._counts.items() if count > 1]

    @cached_property
    def _counts(self) -> Counter[tuple[str, ...]]:
        return Counter(section.path for section in self.sections())

    @cached_property
    def newline(self) -> str:
        """The line end that most lines have."""
        ends = Counter(line[len(line.rstrip("\r\n")) :] for line in self.lines)
        return max(("\n", "\r\n", "\r"), key=lambda end: ends[end])

    # --- lines ----------------------------------------------------------------------------------------------------

    def _own_lines(self, section: Section) -> range:
        """The section's own lines, without the blank ones around them."""
        start, stop = section.body, self._last_line(section.body, section.own_end)
        while start < stop and is_blank(self.lines[start]):
            start += 1
        return range(start, stop)

    def _last_line(self, start: int, stop: int) -> int:
        """The number behind the last line of `[start, stop)` that is not blank."""
        while stop > start and is_blank(self.lines[stop - 1]):
            stop -= 1
        return stop

    def _gap(self, place: int) -> list[str]:
        """The blank line that has to stand before new lines at a place; none where one stands already."""
        return [self.newline] if place > 0 and not is_blank(self.lines[place - 1]) else []
