"""What one request shows of a bank that is too large to be shown whole: an outline, and the texts near to the notes.

Owns the choice: the files, or the sections of a large file, that share rare words with the notes or are named by them;
the best one for each note comes first. Refuses edits of what was not shown: a model must not change what it has not
read. Slow on large banks, so it is called in a worker thread; pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from livememfs.runs.coverage import words
from livememfs.text.edits import Edit
from livememfs.text.headings import shown_path
from livememfs.text.outline import Outline
from livememfs.text.size import tokens

PER_ENTRY = 20
"""Tokens that a file or a section costs besides its text."""
NAMED = 30.0
"""The score of a file that a note names; a word in one of a thousand files has half as much again."""
ENDS = ("append", "add")
"""The edits that are allowed in a section of which only the end was shown."""
_LEVELS = (6, 2, 1, 0)
"""The levels down to which the outline names headings, tried in this order until it fits."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Excerpt:
    """What a request shows of a bank.

    :outline: one object for each file: its name, its size in bytes, and the headings for which there is room
    :unnamed: how many files are not named, for want of room
    :full:    texts by file name
    :parts:   of large files: the own text of sections, by path
    :ends:    the sections of which only the end is shown
    """

    outline: tuple[Mapping[str, Any], ...] = ()
    unnamed: int = 0
    full: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Mapping[Path, str]] = field(default_factory=dict)
    ends: frozenset[tuple[str, Path]] = frozenset()

    def faults(self, name: str, edits: Sequence[Edit]) -> list[str]:
        """Why an existing file must not be changed by `edits`; without edits: by a whole new content."""
        if name in self.full:
            return []
        if name not in self.parts:
            return ["the file was not shown in this request, so it stays as it is"]
        if not edits:
            return ["the file was shown in part, so it is changed by edits alone"]
        return [fault for edit in edits for fault in self._edit_faults(name, edit)]

    def _edit_faults(self, name: str, edit: Edit) -> list[str]:
        path = edit.heading[:-1] if edit.op == "add" else edit.heading
        if path not in self.parts[name] or edit.deep:
            return [f"the heading {shown_path(path)} was not shown with all that the edit would change"]
        if (name, path) in self.ends and edit.op not in ENDS:
            return [f"of the heading {shown_path(path)} only the end was shown, so it can only be added to"]
        return []


@dataclass(frozen=True)
class _Unit:
    """A file, or the own text of one of its sections: what is shown or left out as a whole."""

    name: str
    path: Path | None
    text: str
    cost: int
    words: frozenset[str]
    is_end: bool = False

    @property
    def id(self) -> tuple[str, Path | None]:
        return self.name, self.path


def excerpt(bank: Mapping[str, str], notes: Sequence[str], room: int, outline_room: int) -> tuple[Excerpt, int]:
    """What to show of a bank with these notes, and how many of them, from the first on, have the unit that is nearest
    to them shown.

    :bank:         texts by file name
    :room:         tokens for files and sections
    :outline_room: tokens for the outline
    """
    outlines = {name: Outline(text) for name, text in bank.items()}
    units = [unit for name, text in sorted(bank.items()) for unit in _units(name, text, outlines[name], room)]
    chosen, served = _chosen(units, notes, room)
    parts: dict[str, dict[Path, str]] = {}
    shown = {unit.id for unit in chosen}
    for unit in units:
        if unit.path is not None and unit.id in shown:
            parts.setdefault(unit.name, {})[unit.path] = unit.text
    full = {unit.name: unit.text for unit in chosen if unit.path is None}
    ends = frozenset((unit.name, unit.path) for unit in chosen if unit.path is not None and unit.is_end)
    outline, unnamed = _outline(outlines, [unit.name for unit in chosen], outline_room)
    return Excerpt(outline, unnamed, full, parts, ends), served


def _units(name: str, text: str, outline: Outline, room: int) -> Iterator[_Unit]:
    cost = tokens(text) + PER_ENTRY
    if cost * 2 <= room:
        yield _Unit(name, None, text, cost, frozenset(words(f"{name} {text}")))
        return
    twice = set(outline.duplicates())
    for section in outline.root.walk():
        own = "".join(outline.lines[section.start : section.own_end])
        if not own.strip() or section.path in twice:
            continue
        titles = " ".join(section.path)
        cost = tokens(own) + tokens(titles) + PER_ENTRY
        own_words = frozenset(words(f"{name} {titles} {own}"))
        if cost * 2 <= room:
            yield _Unit(name, section.path, own, cost, own_words)
        else:
            end = _end_of(own, room // 2 - tokens(titles) - PER_ENTRY)
            yield _Unit(name, section.path, end, tokens(end) + tokens(titles) + PER_ENTRY, own_words, is_end=True)


def _end_of(text: str, room: int) -> str:
    """The last lines of a text, as many as fit."""
    lines = text.splitlines(keepends=True)
    start = len(lines)
    while start and (room := room - tokens(lines[start - 1])) >= 0:
        start -= 1
    return "".join(lines[start:])


def _chosen(units: Sequence[_Unit], notes: Sequence[str], room: int) -> tuple[list[_Unit], int]:
    """The best unit for each note while there is room, then the second best for each of these notes, and so on; and how
    many notes these are. A unit without a word of a note is never chosen for it.
    """
    known = Counter(word for unit in units for word in unit.words)
    used = Counter(word for note in notes for word in words(note))
    # A word of all notes, such as one of a form, says little about any of them: it is divided by how many have it.
    weight = {word: math.log(1 + len(units) / known[word]) ** 2 / used[word] for word in used if word in known}
    mean = sum(unit.cost for unit in units) / max(len(units), 1)
    ranked: list[list[_Unit]] = []
    chosen: dict[tuple[str, Path | None], _Unit] = {}
    for note in notes:
        best_first = _ranked(units, note, weight, mean)
        if best_first and best_first[0].id not in chosen:
            if best_first[0].cost > room and ranked:
                break
            chosen[best_first[0].id] = best_first[0]
            room -= best_first[0].cost
        ranked.append(best_first)
    for place in range(1, max(map(len, ranked), default=0)):
        for unit in (best_first[place] for best_first in ranked if place < len(best_first)):
            if unit.cost <= room and unit.id not in chosen:
                chosen[unit.id] = unit
                room -= unit.cost
    return list(chosen.values()), len(ranked)


def _ranked(units: Sequence[_Unit], note: str, weight: Mapping[str, float], mean: float) -> list[_Unit]:
    own, folded = words(note) & weight.keys(), note.casefold()
    scores: list[tuple[float, int]] = []
    for at, unit in enumerate(units):
        score = sum(weight[word] for word in own & unit.words) / (0.5 + 0.5 * math.sqrt(unit.cost / mean))
        stem = unit.name.rpartition("/")[2].removesuffix(".md").casefold()
        if len(stem) > 2 and stem in folded:
            score += NAMED
        if score:
            scores.append((-score, at))
    return [units[at] for _, at in sorted(scores)]


def _outline(
    outlines: Mapping[str, Outline], shown: Sequence[str], room: int
) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """The files with as many headings as fit; where not even all names fit, the shown files come first."""
    for level in _LEVELS:
        entries = [_entry(name, outline, level) for name, outline in sorted(outlines.items())]
        if sum(map(_cost, entries)) <= room:
            return tuple(entries), 0
    names = [name for name in dict.fromkeys((*shown, *sorted(outlines))) if (room := room - PER_ENTRY) >= 0]
    return tuple(_entry(name, outlines[name], 0) for name in sorted(names)), len(outlines) - len(names)


def _entry(name: str, outline: Outline, level: int) -> dict[str, Any]:
    titles = [section.title for section in outline.sections() if section.level <= level]
    size = {"filename": name, "bytes": len(outline.text.encode())}
    return {**size, "headings": titles} if level else size


def _cost(entry: Mapping[str, Any]) -> int:
    headings = sum(tokens(title) + 2 for title in entry.get("headings", ()))
    return tokens(str(entry["filename"])) + PER_ENTRY // 2 + headings
