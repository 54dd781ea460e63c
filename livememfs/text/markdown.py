"""Edits of a Markdown text that change only the parts they name.

Owns what an edit does to the lines below a heading. Refuses an edit whose heading is missing or there twice, and an
edit whose content would change how the rest of the file is read: an open fence, an open comment, a heading above its
place, a heading that takes over others, front matter. Works on whole lines: every line that no edit names keeps its
bytes, with its line end; only a last line without a line end gets one when a line follows it. Pure; any thread may call
it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from livememfs.text.edits import Edit, EditRefused
from livememfs.text.headings import (
    BOM,
    Heading,
    Section,
    front_matter_lines,
    is_blank,
    normal,
    scan,
    shown_path,
    split_lines,
)
from livememfs.text.outline import Outline

MAX_LEVEL = 6

_ATX = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t\r\n]|$)")

_Titles = list[tuple[int, str]]
"""Levels and titles of headings, in order."""


class Document(Outline):
    """A text that can be edited. Immutable: each edit makes another one."""

    # --- editing --------------------------------------------------------------------------------------------------

    def edited(self, edit: Edit) -> Document:
        """The document after one edit. Raises EditRefused."""
        marks = len(self.text) - len(self.text.lstrip(BOM))
        if marks:  # byte order marks belong to the file, and not to the first heading
            return Document(self.text[:marks] + Document(self.text[marks:]).edited(edit).text)
        if edit.op == "add":
            return self._added(edit)
        section = self.find(edit.heading)
        if edit.op in ("rename", "delete") and section is self.root:
            raise EditRefused(f"a {edit.op} names a heading")
        if edit.op == "rename":
            return self._renamed(section, edit)
        if edit.op == "delete":
            if section.children and not edit.deep:
                raise EditRefused(
                    f'the heading {shown_path(edit.heading)} has others below it; with "deep" they are deleted too'
                )
            return self._spliced(section.start, section.end, [], [])
        content, titles = self._content(edit.content, above=section.level)
        if edit.op == "replace":
            return self._replaced(section, content, titles, deep=edit.deep)
        return (self._appended if edit.op == "append" else self._prepended)(section, content, titles)

    def _replaced(self, section: Section, content: list[str], titles: _Titles, *, deep: bool) -> Document:
        if not deep:
            _refuse_takeover(section, titles)
        stop = section.end if deep else section.own_end
        return self._spliced(section.body, stop, [*self._gap(section.body), *content], titles)

    def _appended(self, section: Section, content: list[str], titles: _Titles) -> Document:
        self._refuse_open(section.own_end)
        _refuse_takeover(section, titles)
        own = self._own_lines(section)
        gap = [] if own and _goes_on(self.lines[own.start : own.stop], content[0]) else self._gap(own.stop)
        return self._spliced(own.stop, own.stop, [*gap, *content], titles)

    def _prepended(self, section: Section, content: list[str], titles: _Titles) -> Document:
        own = self._own_lines(section)
        if titles and own:
            raise EditRefused("headings in the content of a prepend would take over the text that is there")
        _refuse_takeover(section, titles)
        start = own.start
        return self._spliced(start, start, [*self._gap(start), *content], titles)

    def _added(self, edit: Edit) -> Document:
        """A new heading below another one. Where the heading exists already, the content is appended to it."""
        if not edit.heading:
            raise EditRefused("an add names the new heading last in its path")
        *above, title = edit.heading
        if self._at(edit.heading):
            if is_blank(edit.content):
                raise EditRefused(f"the heading {shown_path(edit.heading)} is there already, and the content is empty")
            return self.edited(replace(edit, op="append"))
        parent = self.find(above)
        level = parent.children[-1].level if parent.children else parent.level + 1
        if level > MAX_LEVEL:
            raise EditRefused(f"nothing goes below the heading {shown_path(above)}, which has level {MAX_LEVEL}")
        self._refuse_open(parent.end)
        content, titles = ([], []) if is_blank(edit.content) else self._content(edit.content, above=level)
        place = self._last_line(parent.body, parent.end)
        new = [f"{'#' * level} {_title(title)}{self.newline}", *([self.newline, *content] if content else [])]
        return self._spliced(place, place, [*self._gap(place), *new], [(level, normal(title)), *titles])

    def _renamed(self, section: Section, edit: Edit) -> Document:
        title = _title(edit.content)
        lines = self.lines[section.start : section.body]
        first = lines[0].rstrip("\r\n")
        end = lines[0][len(first) :]
        marks = _ATX.match(first)
        if marks is not None and len(lines) == 1:
            new = [f"{marks[0]} {title}{_closing(first[marks.end() :])}{end}"]
        else:  # underlined: the line below stays
            new = [f"{title}{end}", lines[-1]]
        return self._spliced(section.start, section.body, new, [(section.level, title)], apart=False)

    # --- putting it together --------------------------------------------------------------------------------------

    def _spliced(self, start: int, stop: int, new: list[str], titles: _Titles, *, apart: bool = True) -> Document:
        """The document with `new` in place of the lines `[start, stop)`. `new` has exactly the headings `titles`.

        Only the part that the change can affect is parsed again: from the heading before it to the heading behind it.

        :apart: put a blank line between the new lines and the lines that follow. Raises EditRefused.
        """
        before = [heading for heading in self._headings if heading.start < start]
        after = [heading for heading in self._headings if heading.start >= stop]
        lines = _joined(
            self._head(start, stop, new), [*new, *self._gap_below(start, stop, new, apart)], self.lines[stop:]
        )
        by = len(lines) - len(self.lines)
        first = before[-1].start if before else self._above
        part = lines[first : (after[0].body if after else len(self.lines)) + by]
        scanned = scan(part)
        expected = [*_titles(before[-1:]), *titles, *_titles(after[:1])]
        if _titles(scanned.headings) != expected or (after and scanned.headings[-1].body != len(part)):
            raise EditRefused("the lines after it would be read as something else, or its headings as none")
        self._check_next(stop, scanned.blocks, by - first)
        if scanned.open_end and not self.open_end:
            raise EditRefused("it leaves a fence or comment open")
        moved = [heading.moved(first) for heading in scanned.headings]
        headings = [*before[:-1], *moved, *(heading.moved(by) for heading in after[1:])]
        made = self._made(lines, headings, self.open_end if after else scanned.open_end)
        if titles:
            self._check_titles(made)
        return made

    def _head(self, start: int, stop: int, new: list[str]) -> list[str]:
        """The lines before a change. The last one gets a line end, so that no text is added to that line."""
        head = self.lines[:start]
        if head and (new or stop < len(self.lines)) and not head[-1].endswith(("\n", "\r")):
            head[-1] += self.newline
        return head

    def _gap_below(self, start: int, stop: int, new: list[str], apart: bool) -> list[str]:
        """The blank line between the new lines (for a deletion: the lines before it) and the lines that follow."""
        if not apart or stop == len(self.lines) or is_blank(self.lines[stop]):
            return []
        if not new:  # a heading with `#` stands by itself; an underlined one would take in the lines above it
            return [] if _ATX.match(self.lines[stop]) else self._gap(start)
        return [] if is_blank(new[-1]) or _goes_on(new, self.lines[stop]) else [self.newline]

    def _check_next(self, stop: int, blocks: frozenset[int], by: int) -> None:
        """Refuse where the text behind a change no longer begins a block, or an item, of its own."""
        kept = next((number for number in range(stop, len(self.lines)) if not is_blank(self.lines[number])), None)
        if kept is None or kept + by in blocks:
            return
        end = next((heading.start for heading in self._headings if heading.start > kept), len(self.lines))
        if 0 in scan(self.lines[kept:end]).blocks:  # a link definition is never a block
            raise EditRefused("it would join the lines after it to its own")

    def _made(self, lines: list[str], headings: list[Heading], open_end: bool) -> Document:
        """The edited document. Refuses it where its first lines have become front matter or a byte order mark."""
        made = Document.__new__(Document)
        made._set(lines, self._above, headings, open_end)
        if not self._above and lines and lines[0].startswith("---") and front_matter_lines(made.text):
            raise EditRefused("it would make the beginning of the file front matter")
        if lines and lines[0].startswith(BOM):
            raise EditRefused("it would begin the file with a byte order mark")
        return made

    def _check_titles(self, made: Document) -> None:
        """Refuse a new heading whose path another heading already has."""
        for path in made.duplicates():
            if 0 < self._counts[path] < made._counts[path]:
                raise EditRefused(f"the heading {shown_path(path)} is there already")

    # --- the parts of an edit -------------------------------------------------------------------------------------

    def _content(self, content: str, *, above: int) -> tuple[list[str], _Titles]:
        """The content as lines with this document's line ends, without blank lines around them; and their headings."""
        lines = [line.rstrip("\r\n") for line in split_lines(content.lstrip(BOM))]
        filled = [number for number, line in enumerate(lines) if not is_blank(line)]
        if not filled:
            raise EditRefused("its content is empty")
        made = [line + self.newline for line in lines[filled[0] : filled[-1] + 1]]
        scanned = scan(made)
        if scanned.open_end:
            raise EditRefused("its content leaves a fence or comment open")
        if any(heading.level <= above for heading in scanned.headings):
            raise EditRefused(
                f"its content has a heading of level {above} or above, which would end the place it goes to"
            )
        return made, _titles(scanned.headings)

    def _refuse_open(self, end: int) -> None:
        if self.open_end and end == len(self.lines):
            raise EditRefused("the file ends in a fence or comment that is not closed")


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text after all edits, made one after the other. Raises EditRefused with the number of the edit."""
    document = Document(text)
    for number, edit in enumerate(edits, 1):
        try:
            document = document.edited(edit)
        except EditRefused as error:
            raise EditRefused(f"edit {number} ({edit.op}): {error}") from None
    return document.text


def _titles(headings: Sequence[Heading]) -> _Titles:
    return [(heading.level, heading.title) for heading in headings]


def _title(title: str) -> str:
    """The title as a heading of one line can have it. Raises EditRefused."""
    made = normal(title)
    if not made or _titles(scan([f"# {made}\n"]).headings) != [(1, made)]:
        raise EditRefused(f"{title!r:.80} is no title of a heading")
    return made


def _closing(rest: str) -> str:
    """The `#` marks that close a heading, with the blanks before them; empty where there are none."""
    bare = rest.rstrip(" \t").rstrip("#")
    closed = len(bare) < len(rest.rstrip(" \t")) and bare.endswith((" ", "\t"))
    return rest[len(bare.rstrip(" \t")) :] if closed else ""


def _refuse_takeover(section: Section, titles: _Titles) -> None:
    """Refuse new headings in a section's own text that rank above the headings below the section."""
    if section.children and any(level < section.children[0].level for level, _ in titles):
        raise EditRefused(f"a heading in its content would take over those below {shown_path(section.path)}")


def _goes_on(before: Sequence[str], after: str) -> bool:
    """Whether the next line belongs to the same list as the lines before it, so that no blank line goes between."""
    if not _LIST_ITEM.match(after):
        return False
    for line in reversed(before):
        if is_blank(line) or _LIST_ITEM.match(line):
            return not is_blank(line)
        if not line.startswith((" ", "\t")):
            return False
    return False


def _joined(*parts: Sequence[str]) -> list[str]:
    """All lines. A carriage return at the end of a part and a line feed after it become one line end."""
    made: list[str] = []
    for part in parts:
        if made and part and made[-1].endswith("\r") and part[0].startswith("\n"):
            made.append("\r\n")
        made += part
    return made
