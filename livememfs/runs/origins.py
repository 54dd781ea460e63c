"""Two pages of Markdown: where the parts of a bank file came from, and which lines a run took out of the bank.

Owns the page in `.why/`, with one section for each heading of the file: the runs that wrote it and their notes, and
then the lines whose facts no source has. Owns `.history/<n>/.outgoing.md`, too. Refuses to guess: the page says so of a
part that no run names, and calls a line dropped that stands nowhere any more, whatever the reason. The same input gives
the same bytes, of the basic plane only. Pure; any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from livememfs.records.ledger import Entry, NoteEntry, Unsourced
from livememfs.text.headings import Section, shown_path
from livememfs.text.markdown import Document
from livememfs.text.outgoing import Fate, Outgoing
from livememfs.text.times import iso

NO_TRAIL = "No run names this part."
OF_A_RENAME = "A heading that was renamed later, or text that was there before the first run, has no trail."
OUTGOING_NAME = ".outgoing.md"
_FATES: dict[Fate, str] = {"dropped": "Dropped", "reworded": "Reworded", "moved": "Moved"}


@dataclass(frozen=True)
class Origin:
    """One run that wrote a part, and the notes it came from; `by` is who wrote it in an edit."""

    run: int
    when: str
    notes: tuple[NoteEntry, ...]
    by: str = ""


@dataclass(frozen=True)
class PartOrigins:
    """A part of a file, by the titles from the top down to its own; the newest run first."""

    heading: tuple[str, ...]
    origins: tuple[Origin, ...]


def without_source(text: str, file: str, runs: Sequence[Entry]) -> list[Unsourced]:
    """The lines of a bank file with facts that no source has, by the lists of the runs, if they still stand there."""
    present = set(text.splitlines())
    listed = (line for run in runs for line in run.unsourced if line.file == file and line.text in present)
    return sorted({line.text: line for line in listed}.values(), key=lambda line: line.line)


def origins(text: str, file: str, runs: Sequence[Entry]) -> list[PartOrigins]:
    """The parts of a bank file with text of their own, in its order; `runs` are the standing ones, newest first."""
    document = Document(text)
    return [
        PartOrigins(section.path, tuple(_origins(file, section.path, runs)))
        for section in document.root.walk()
        if own_text(document, section).strip()
    ]


def own_text(document: Document, section: Section) -> str:
    """A section's heading and its own text, without the headings below it."""
    return "".join(document.lines[section.start : section.own_end])


def _origins(file: str, heading: tuple[str, ...], runs: Sequence[Entry]) -> Iterator[Origin]:
    for run in runs:
        parts = [part for part in run.parts if part.file == file and part.heading == heading]
        if parts:
            numbers = {number for part in parts for number in part.notes}
            notes = sorted((note for note in run.removes if note.number in numbers), key=lambda note: note.number)
            yield Origin(run.number, iso(run.committed_at), tuple(notes), run.by)


def origins_page(file: str, parts: Sequence[PartOrigins], unsourced: Sequence[Unsourced] = ()) -> str:
    """The page of one file; `unsourced` are its lines without a source."""
    lines = [f"# Where bank/{shown(file)} comes from", "", OF_A_RENAME]
    for part in parts:
        lines += ["", f"## {shown(shown_path(part.heading))}", ""]
        lines += _listed(part.origins)
    if unsourced:
        lines += ["", "## Lines with facts that no source has", ""]
        lines += [f"- {shown(line.text)} ({', '.join(map(shown, line.facts))})" for line in unsourced]
    return "\n".join(lines) + "\n"


def _listed(runs: Sequence[Origin]) -> list[str]:
    if not runs:
        return [NO_TRAIL]
    lines: list[str] = []
    for origin in runs:
        source = f": written by {shown(origin.by)}" if origin.by else "" if origin.notes else ": no note is named"
        lines.append(f"- run {origin.run}, {origin.when}{source}")
        lines += [f"  - {_note(note)}" for note in origin.notes]
    return lines


def _note(note: NoteEntry) -> str:
    first_line = f": {shown(note.first_line)}" if note.first_line else ""
    return f"`{shown(note.key)}` ({shown(note.agent)}, {shown(note.timestamp)}){first_line}"


def outgoing_page(run: Entry) -> str:
    """The page of what one run took out of the bank."""
    listed = Counter(line.fate for line in run.outgoing)
    figures = {fate: run.metrics.get(f"lines_{fate}", listed[fate]) for fate in _FATES}
    lines = [f"# What run {run.number} took out of the bank", ""]
    lines.append(", ".join(f"{figures[fate]} {fate}" for fate in _FATES) + ".")
    for fate, title in _FATES.items():
        if listed[fate]:
            lines += ["", f"## {title}", "", *(_outgoing_line(line) for line in run.outgoing if line.fate == fate)]
    if sum(figures.values()) > len(run.outgoing):
        lines += ["", "The rest is not listed."]
    return "\n".join(lines) + "\n"


def _outgoing_line(line: Outgoing) -> str:
    item = f"- {shown(line.file)}: {shown(line.text)}"
    if line.fate == "dropped":
        return item + (f" (reason given: {shown(line.reason)})" if line.reason else "")
    return f"{item} -> {shown(line.where)}" + (f": {shown(line.now)}" if line.fate == "reworded" else "")


def shown(text: str) -> str:
    """A text as one line of the basic plane: a line break in a note must not begin a new line of the page."""
    return "".join(character if _plain(character) else "\ufffd" for character in " ".join(text.split()))


def _plain(character: str) -> bool:
    return character.isprintable() and character <= "\uffff"
