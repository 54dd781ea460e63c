"""Rules: the text that says which files a bank has (data model 4.2).

Owns the templates for the rules of a new space, and finding the planned files in any rules text. Refuses nothing: rules
are prose for a model, and may name no file. The templates are read once, at import. Pure otherwise; may be called from
any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from livememfs.errors import InvalidName
from livememfs.records.names import check_bank_name

DEFAULT = "standard"

_FOLDER = resources.files("livememfs.records") / "templates"
_TEMPLATES = {name: (_FOLDER / f"{name}.md").read_text("utf-8") for name in (DEFAULT, "journal", "minimal")}

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_BULLET = re.compile(r"([ \t]*)(?:[-*+]|[0-9]{1,3}[.)])[ \t]+(.*)")
_FILE = re.compile(r"`([^`]+\.md)`|([^\s`*\"'()\[\],;:]+\.md)(?![\w.])")
_LEAD = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|`(.+?)`(?=\s*[:–—-])")
_TAIL = re.compile(r"\s*:(?:\s|$)|\s+[–—-]\s|\.(?:\s|$)|\s\(")
_SECTION_MAX = 80


@dataclass(frozen=True)
class PlannedFile:
    """A bank file that the rules ask for.

    :name:     relative to `bank/`
    :headings: its contents, in the order of the rules
    """

    name: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class _Line:
    """A heading or a bullet of the rules."""

    is_heading: bool
    indent: int
    text: str


def templates() -> dict[str, str]:
    """The templates by name; one of them is `DEFAULT`."""
    return dict(_TEMPLATES)


def planned_files(rules_text: str) -> list[PlannedFile]:
    """The bank files that the rules name, in order, each once.

    A heading with a file name plans the file (`### projectbrief.md`, `## 1. projectbrief.md`), and the bullets below it
    are its contents. If no heading has a file name, bullets plan files (`- journal.md: what happened`), and the bullets
    indented below are the contents. A name that no bank file can have is ignored.
    """
    lines = list(_lines(rules_text))
    planned = _by_headings(lines) or _by_bullets(lines)
    return [PlannedFile(name, tuple(dict.fromkeys(headings))) for name, headings in planned.items()]


def _by_headings(lines: list[_Line]) -> dict[str, list[str]]:
    planned: dict[str, list[str]] = {}
    current: list[str] | None = None
    outermost = 0
    for line in lines:
        if line.is_heading:
            name = _file_name(line.text)
            current = None if name is None else planned.setdefault(name, [])
        elif current is not None:
            outermost = line.indent if not current else min(outermost, line.indent)
            if line.indent <= outermost:
                current.append(_section(line.text))
    return planned


def _by_bullets(lines: list[_Line]) -> dict[str, list[str]]:
    planned: dict[str, list[str]] = {}
    current: list[str] | None = None
    indent = 0
    for line in lines:
        name = None if line.is_heading else _file_name(line.text)
        if name is not None:
            current, indent = planned.setdefault(name, []), line.indent
        elif current is not None and not line.is_heading and line.indent > indent:
            current.append(_section(line.text))
        else:
            current = None
    return planned


def _lines(text: str) -> Iterator[_Line]:
    """Headings and bullets outside fenced blocks."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _HEADING.fullmatch(line):
            yield _Line(True, 0, heading[2])
        elif bullet := _BULLET.fullmatch(line):
            yield _Line(False, len(bullet[1].expandtabs(4)), bullet[2])


def _file_name(text: str) -> str | None:
    """The name of a bank file in a heading or bullet."""
    match = _FILE.search(text)
    try:
        return check_bank_name(match[1] or match[2]) if match is not None else None
    except InvalidName:
        return None


def _section(text: str) -> str:
    """A bullet as a heading: its bold beginning, or the words before its explanation."""
    lead = _LEAD.match(text)
    words = next(filter(None, lead.groups())) if lead else _TAIL.split(text, maxsplit=1)[0]
    return " ".join(words.replace("`", "").replace("**", "").split())[:_SECTION_MAX].rstrip(" .:;,")
