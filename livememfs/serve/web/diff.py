"""A unified diff as lines, each with a word for its kind and its sign, so that colour is not needed.

Owns the kinds of lines. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINES = 4_000


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: what it is, and its text with its sign."""

    kind: str
    text: str


def diff_lines(text: str) -> tuple[list[DiffLine], bool]:
    """The lines of a diff, and whether some are left out."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [DiffLine(_kind(line), line) for line in lines[:MAX_LINES]], len(lines) > MAX_LINES


def _kind(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return "file"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "add", "-": "del", "#": "remark", "\\": "remark"}.get(line[:1], "same")
