"""Tables for people: as wide as their terminal, or aligned lines in a file or a pipe.

Owns which columns a narrow terminal shows. Refuses to break a short cell, and to pad lines at their end. Main
thread only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from livememfs.shown import in_a_line

if TYPE_CHECKING:
    from rich.table import Table

GAP = 2
SHORT = 20
"""Columns of a cell that is never broken."""
READABLE = 24
"""Columns that a text needs, so that a reader can follow its lines."""


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells for a file or a pipe: each in one line, whatever its length."""
    from rich.cells import cell_len

    *widths, _ = _widths(lines)
    texts = []
    for *most, last in lines:
        padded = (cell + " " * (width - cell_len(cell) + GAP) for cell, width in zip(most, widths, strict=True))
        texts.append(("".join(padded) + last).rstrip())
    return texts


def fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str], width: int) -> list[str]:
    """The columns that a terminal of this width shows. `spare`: those that may be missing, the first one first."""
    needed = {name: min(taken, READABLE) for name, taken in zip(columns, _widths([columns, *rows]), strict=True)}
    for name in spare:
        if sum(needed.values()) + GAP * (len(needed) - 1) <= width:
            break
        needed.pop(name, None)
    return list(needed)


def show(
    columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], spare: Sequence[str]
) -> list[str]:
    """Print a table at the terminal. Returns the columns that it had no room for."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    shown = fitting(columns, rows, spare, console.width)
    console.print(made(columns, rows, styles, shown))
    return [name for name in columns if name not in shown]


def made(columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], shown: Sequence[str]) -> Table:
    """The table of these columns, for a terminal."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    places = [place for place, name in enumerate(columns) if name in shown]
    for place, taken in enumerate(_widths([columns, *rows])):
        if place in places:
            grid.add_column(columns[place], overflow="fold", no_wrap=taken <= SHORT)
    for number, row in enumerate(rows):
        grid.add_row(*(Text(in_a_line(row[place])) for place in places), style=styles[number] if styles else None)
    return grid


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
