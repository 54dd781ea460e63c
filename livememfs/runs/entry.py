"""What the entries of all kinds of run have in common: who makes the run, and its notes.

Refuses to read or write the bucket (`ledger` does). Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from livememfs.records.ledger import NoteEntry
from livememfs.records.note import Note
from livememfs.runs.coverage import Fate
from livememfs.runs.notes import LiveNote
from livememfs.text.times import iso

_FIRST_LINE_CHARS = 200


@dataclass(frozen=True)
class Committer:
    """Who commits a run: the host, the fence of its lease, and the stamp of the backup that it made first."""

    host: str
    fence: int
    backup: str


def origins_of(notes: Iterable[LiveNote]) -> dict[str, str]:
    """The ids by which late copies of these notes are known: see `Entry.origins`."""
    return {live.key: " ".join(live.ids) for live in notes if live.ids}


def note_entry(live: LiveNote, fate: Fate, number: int) -> NoteEntry:
    """A note as the ledger names it."""
    return NoteEntry(
        key=live.key,
        etag=live.etag,
        sha256=live.sha256,
        agent=live.note.agent,
        timestamp=iso(live.note.timestamp),
        first_line=first_line(live.note),
        used_in=fate.used_in,
        skipped=fate.skipped,
        number=number,
    )


def first_line(note: Note) -> str:
    """The first line of a note that is not blank: people know the note by it."""
    return next((line.strip() for line in note.body.splitlines() if line.strip()), "")[:_FIRST_LINE_CHARS]
