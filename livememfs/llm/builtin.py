"""Consolidation without a model: notes are filed word for word under the headings that the rules ask for.

Owns where a note goes and the form of its entry. Refuses to write prose: nothing is summarised, merged or dropped,
every byte of a file stays, and an entry that a file already has is not made twice. The result has the form of a model's
reply and passes the same checks. Deterministic and pure; may be called from any thread.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from livememfs.records.note import Note
from livememfs.records.rules import PlannedFile, planned_files
from livememfs.text.times import iso

NAME = "builtin"

_FALLBACK = PlannedFile("notes.md", ())
_COMMON_FILES = ("activecontext", "journal", "notes", "log")
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "decision": ("decision", "décision", "choice", "choix", "pattern", "architecture"),
    "progress": ("progress", "progrès", "done", "what works", "ce qui fonctionne", "status", "statut"),
    "todo": ("todo", "to do", "next", "prochaine", "remain", "what's left", "reste", "ce qui reste", "open"),
    "issue": ("issue", "problem", "problème", "bug", "risk", "open"),
    "question": ("question", "undecided", "open"),
    "insight": ("insight", "lesson", "learn", "pattern", "fact"),
    "observation": ("observation", "recent", "récent", "changements récents", "fact"),
}
_LISTED_NOTES = 50
_LISTED_CHARS = 120
_ROOM_FOR_HEADINGS = 1_024
_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)[ \t]*#*[ \t\r]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINE_END = re.compile(r"\r\n|\n|\r")


def file_notes(rules: str, bank: Mapping[str, str], notes: Sequence[Note], *, max_bytes: int) -> dict[str, Any]:
    """A reply of the consolidation: `bank_files` in full, `coverage` by note number from 1, `synthesis`.

    :bank:      the texts of the bank's files by name
    :max_bytes: no file grows beyond it; notes go on in `name-2.md`

    A note that no file can take (it alone is too large, or holds NUL) is not named in the coverage, so it stays.
    """
    filing = _Filing(rules, bank, max_bytes)
    for number, note in enumerate(notes, 1):
        filing.add(number, note)
    return filing.reply()


class _Filing:
    """The new files, and where each note went."""

    def __init__(self, rules: str, bank: Mapping[str, str], max_bytes: int) -> None:
        present = {name.casefold(): name for name in bank}
        planned = planned_files(rules) or [_FALLBACK]
        self._planned = [PlannedFile(present.get(file.name.casefold(), file.name), file.headings) for file in planned]
        self._bank = bank
        self._pages = {**{file.name: _skeleton(file) for file in self._planned}, **bank}
        self._max = max_bytes
        self._coverage: list[dict[str, Any]] = []
        self._lines: list[str] = []

    def add(self, number: int, note: Note) -> None:
        """File one note."""
        if not note.body.strip():
            self._coverage.append({"note": number, "skipped": "there is nothing new in it"})
            return
        file, heading = _place(self._planned, note)
        entry = _entry(note)
        if "\0" in entry or len(entry.encode()) + _ROOM_FOR_HEADINGS > self._max:
            return
        for name in _parts(file.name):
            page = self._pages.get(name, f"# {PurePosixPath(name).stem}\n")
            if _stands_in(entry, page):
                self._coverage.append({"note": number, "skipped": f"stands in {name} already"})
                return
            longer = _insert(page, heading, entry)
            if len(longer.encode()) <= self._max:
                self._pages[name] = longer
                self._coverage.append({"note": number, "files": [name]})
                self._lines.append(f"- {iso(note.timestamp)} {_one_line(note.category)} -> {name}: {_summary(note)}")
                return

    def reply(self) -> dict[str, Any]:
        """Everything that changed."""
        files = [
            {"filename": name, "action": "updated" if name in self._bank else "created", "content": page}
            for name, page in self._pages.items()
            if self._bank.get(name) != page
        ]
        return {"bank_files": files, "coverage": self._coverage, "synthesis": self._synthesis()}

    def _synthesis(self) -> str:
        # Without a count: no note has it, so the check would list it as a fact without a source.
        lines = ["Filed word for word by the built-in consolidator, without a model:", ""]
        lines += self._lines[:_LISTED_NOTES]
        if len(self._lines) > _LISTED_NOTES:
            lines.append("- and more")
        return "\n".join(lines).rstrip() + "\n"


# --- where a note goes ------------------------------------------------------------------------------------------


def _place(planned: Sequence[PlannedFile], note: Note) -> tuple[PlannedFile, str]:
    """The planned file and the heading for a note; the day is the heading when none fits its category."""
    day = note.timestamp.date().isoformat()
    category = note.category.casefold()
    words = _KEYWORDS.get(category, (category,))
    for word in words:
        for file in planned:
            if word in file.name.casefold():
                return file, next((heading for heading in file.headings if _speaks_of(heading, words)), day)
        for file in planned:
            for heading in file.headings:
                if _speaks_of(heading, (word,)):
                    return file, heading
    for common in _COMMON_FILES:
        for file in planned:
            if common in file.name.casefold():
                return file, day
    return planned[0], day


def _speaks_of(heading: str, words: Sequence[str]) -> bool:
    return any(re.search(rf"\b{re.escape(word)}", heading, re.IGNORECASE) for word in words)


def _parts(name: str) -> Iterator[str]:
    """`progress.md`, `progress-2.md`, `progress-3.md` and so on."""
    yield name
    yield from (f"{name.removesuffix('.md')}-{number}.md" for number in itertools.count(2))


# --- what it looks like there -------------------------------------------------------------------------------------


def _skeleton(file: PlannedFile) -> str:
    return f"# {PurePosixPath(file.name).stem}\n" + "".join(f"\n## {heading}\n" for heading in file.headings)


def _entry(note: Note) -> str:
    """A dated line and the note as a quotation, so that no line of it can begin a heading or a fence in the file."""
    head = " · ".join((iso(note.timestamp), _one_line(note.agent), _one_line(note.category)))
    tags = ", ".join(_one_line(tag) for tag in note.tags)
    lines = _LINE_END.sub(lambda end: f"{end[0]}> ", note.body.strip("\r\n"))
    return f"**{head}**{f' ({tags})' if tags else ''}\n\n> {lines}"


def _stands_in(entry: str, page: str) -> bool:
    """Whether a page has exactly this entry; a longer quotation with the same beginning is another entry."""
    return f"\n{entry}\n\n" in f"\n{page}\n\n"


def _insert(page: str, heading: str, entry: str) -> str:
    """The page with the entry at the end of its section, which is made at the end of the page when missing."""
    position = _end_of_section(page, heading)
    if position is None:
        return f"{page}{_gap(page)}## {heading}\n\n{entry}\n"
    before, after = page[:position], page[position:]
    return f"{before}{_gap(before)}{entry}\n" + (f"\n{after}" if after else "")


def _gap(before: str) -> str:
    """The line ends that are missing before a blank line."""
    if not before or before.endswith("\n\n"):
        return ""
    return "\n" if before.endswith("\n") else "\n\n"


def _end_of_section(page: str, heading: str) -> int | None:
    """Where the text directly below a heading ends: before the next heading of any level."""
    inside = False
    for position, title in _headings(page):
        if inside:
            return position
        inside = title.casefold() == heading.casefold()
    return len(page) if inside else None


def _headings(page: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each heading that is not inside a fenced block."""
    position, fence = 0, ""
    for line in page.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _HEADING.fullmatch(line):
            yield position, heading[1]
        position += len(line) + 1


def _summary(note: Note) -> str:
    """The beginning of a note's text, in one line."""
    text = _one_line(note.body[: _LISTED_CHARS * 4]).lstrip("#>-* ")
    return text if len(text) <= _LISTED_CHARS else f"{text[: _LISTED_CHARS - 1]}…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
