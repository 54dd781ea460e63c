"""The headings of a Markdown text, and the tree they make.

Owns what a line and a heading is: CommonMark's blocks, by markdown-it, so that a `#` in a fence, a comment, a quotation
or a list is no heading. Refuses nothing: any text has headings, possibly none. A part of a text is read as within the
whole, if the part begins where no block is open. Pure; any thread may call it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from livememfs.text import frontmatter

BOM = "\ufeff"
_PROBE = "\n\n# probe\n"
_MAX_NESTING = 100  # beyond it the parser skips the rest of the text; each level costs two or three stack frames
_SHOWN_CHARS = 80

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside all other blocks. It takes the lines `[start, body)`."""

    level: int
    title: str
    start: int
    body: int

    def moved(self, by: int) -> Heading:
        """The same heading, `by` lines further down."""
        return Heading(self.level, self.title, self.start + by, self.body + by)


@dataclass(frozen=True)
class Scan:
    """The structure of a run of lines, which are counted from 0.

    :blocks:   the first line of each outermost block, and of each item of an outermost list
    :open_end: a fence, a comment or the like is never closed: it would swallow whatever came next
    """

    headings: tuple[Heading, ...]
    blocks: frozenset[int]
    open_end: bool


@dataclass(eq=False)
class Section:
    """A heading and the lines that belong to it: `[start, body)` is the heading itself, `[body, own_end)` its own text,
    `[own_end, end)` the headings below it. The root has level 0, no title and an empty heading.
    """

    level: int
    title: str
    start: int
    body: int
    own_end: int = 0
    end: int = 0
    parent: Section | None = None
    children: list[Section] = field(default_factory=list)

    @property
    def path(self) -> tuple[str, ...]:
        """The titles from the top down to this one."""
        return (*self.parent.path, self.title) if self.parent is not None else ()

    def walk(self) -> Iterator[Section]:
        """This section and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def split_lines(text: str) -> list[str]:
    """The lines of CommonMark, with their line ends; joined, they are the text."""
    return _LINE.findall(text)


def is_blank(line: str) -> bool:
    """Whether the line is blank to CommonMark, to which a form feed or a no-break space is text."""
    return not line.strip(" \t\r\n")


def scan(lines: Sequence[str]) -> Scan:
    """The structure of a run of lines that begins where no block is open. Front matter is not recognised."""
    tokens = _parser().parse("".join(lines).lstrip(BOM) + _PROBE)
    # The probe is a heading of its own unless an open block has swallowed it.
    open_end = not (len(tokens) > 2 and tokens[-3].type == "heading_open" and tokens[-2].content == "probe")
    if not open_end:
        del tokens[-3:]
    blocks = {token.map[0] for token in tokens if token.map is not None and _is_outermost(token)}
    return Scan(tuple(_headings(tokens)), frozenset(blocks), open_end)


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield Heading(int(token.tag[1:]), normal(tokens[number + 1].content), *token.map)


def _is_outermost(token: Token) -> bool:
    return token.nesting >= 0 and (token.level == 0 or (token.level == 1 and token.type == "list_item_open"))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.core.ruler.enableOnly(["normalize", "block"])  # nobody here needs the marks within a line
    return parser


def front_matter_lines(text: str) -> int:
    """How many lines at the top are front matter, which Markdown would read as a rule and an underlined heading."""
    try:
        _, body = frontmatter.split(text.lstrip(BOM))
    except frontmatter.FrontMatterError:
        return 0
    lines = split_lines(text[: len(text) - len(body)])
    while lines and is_blank(lines[-1]):
        lines.pop()
    return len(lines) if "".join(lines).strip(BOM) else 0


def tree(headings: Sequence[Heading], above: int, count: int) -> Section:
    """The root of a text of `count` lines with these headings; its first `above` lines are front matter."""
    root = current = Section(0, "", above, above)
    for heading in headings:
        current.own_end = heading.start
        while current.level >= heading.level and current.parent is not None:
            current.end = heading.start
            current = current.parent
        section = Section(heading.level, heading.title, heading.start, heading.body, parent=current)
        current.children.append(section)
        current = section
    current.own_end = count
    still_open: Section | None = current
    while still_open is not None:
        still_open.end = count
        still_open = still_open.parent
    return root


def normal(title: str) -> str:
    """The form in which titles are compared: NFC, single spaces."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", title)).strip()


def shown_path(path: Sequence[str]) -> str:
    """A path of titles for a person or a model to read."""
    shown = (title if len(title) <= _SHOWN_CHARS else f"{title[: _SHOWN_CHARS - 1]}…" for title in path)
    return " > ".join(shown) if path else "(the text above all headings)"
