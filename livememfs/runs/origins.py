"""Which notes each part of a bank file came from, as a page of Markdown.

Owns the page: one section for each heading of the file, and below it the runs that wrote it with their notes; and the
lines whose facts no source has. Refuses
to guess: a part that no run names is said to have no trail. The same file and the same runs give the same bytes, of
the basic plane only. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from livememfs.records.ledger import Entry, NoteEntry, Unsourced
from livememfs.text.headings import Section, shown_path
from livememfs.text.markdown import Document
from livememfs.text.times import iso

NO_TRAIL = "No run names this part."
OF_A_RENAME = "A heading that was renamed later, or text that was there before the first run, has no trail."


@dataclass(frozen=True)
class Origin:
    """One run that wrote a part, and the notes it came from."""

    run: int
    when: str
    notes: tuple[NoteEntry, ...]


@dataclass(frozen=True)
class PartOrigins:
    """A part of a file, by the titles from the top down to its own; the newest run first."""

    heading: tuple[str, ...]
    origins: tuple[Origin, ...]


def without_source(text: str, file: str, runs: Sequence[Entry]) -> list[Unsourced]:
    """The lines of a bank file that a run listed as stating what no source has, as far as they still stand there."""
    there = set(text.splitlines())
    found = {line.text: line for run in runs for line in run.unsourced if line.file == file and line.text in there}
    return sorted(found.values(), key=lambda line: line.line)


def origins(text: str, file: str, runs: Sequence[Entry]) -> list[PartOrigins]:
    """The parts of a bank file with text of their own, in its order; `runs` are those that stand, the newest first."""
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
            yield Origin(run.number, iso(run.committed_at), tuple(notes))


def render(file: str, found: Sequence[PartOrigins], odd: Sequence[Unsourced] = ()) -> str:
    """The page of one file; `odd` are its lines without a source."""
    lines = [f"# Where bank/{shown(file)} comes from", "", OF_A_RENAME]
    for part in found:
        lines += ["", f"## {shown(shown_path(part.heading))}", ""]
        lines += _listed(part.origins)
    if odd:
        lines += ["", "## Lines with facts that no source has", ""]
        lines += [f"- {shown(line.text)} ({', '.join(map(shown, line.facts))})" for line in odd]
    return "\n".join(lines) + "\n"


def _listed(found: Sequence[Origin]) -> list[str]:
    if not found:
        return [NO_TRAIL]
    lines: list[str] = []
    for origin in found:
        lines.append(f"- run {origin.run}, {origin.when}{'' if origin.notes else ': no note is named'}")
        lines += [f"  - {_note(note)}" for note in origin.notes]
    return lines


def _note(note: NoteEntry) -> str:
    said = f": {shown(note.first_line)}" if note.first_line else ""
    return f"`{shown(note.key)}` ({shown(note.agent)}, {shown(note.timestamp)}){said}"


def shown(text: str) -> str:
    """One line of the basic plane: what a note says must not become a line of the page's own."""
    return "".join(character if _plain(character) else "\ufffd" for character in " ".join(text.split()))


def _plain(character: str) -> bool:
    return character.isprintable() and character <= "\uffff"
