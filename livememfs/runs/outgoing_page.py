"""Which lines a run took out of the bank, as a page of Markdown: `.history/<n>/.outgoing.md`.

Owns the page. Refuses to guess: a line that is said nowhere any more is called dropped, whatever the reason. The same
entry gives the same bytes. Pure; any thread.
"""

from __future__ import annotations

from collections import Counter

from livememfs.records.ledger import Entry
from livememfs.runs.origins import shown
from livememfs.text.outgoing import Fate, Outgoing

NAME = ".outgoing.md"
_TITLES: dict[Fate, str] = {"dropped": "Dropped", "reworded": "Reworded", "moved": "Moved"}


def render(entry: Entry) -> str:
    """The page of one run."""
    counts = Counter(line.fate for line in entry.outgoing)
    figures = {fate: entry.metrics.get(f"lines_{fate}", counts[fate]) for fate in _TITLES}
    lines = [f"# What run {entry.number} took out of the bank", ""]
    lines.append(", ".join(f"{figures[fate]} {fate}" for fate in _TITLES) + ".")
    for fate, title in _TITLES.items():
        found = [line for line in entry.outgoing if line.fate == fate]
        if found:
            lines += ["", f"## {title}", "", *map(_line, found)]
    if sum(figures.values()) > len(entry.outgoing):
        lines += ["", "The rest is not listed."]
    return "\n".join(lines) + "\n"


def _line(line: Outgoing) -> str:
    said = f"- {shown(line.file)}: {shown(line.text)}"
    if line.fate == "dropped":
        return said + (f" (reason given: {shown(line.reason)})" if line.reason else "")
    return f"{said} -> {shown(line.where)}" + (f": {shown(line.now)}" if line.fate == "reworded" else "")
