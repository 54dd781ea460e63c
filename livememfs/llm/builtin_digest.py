"""A digest without a model: notes of lasting categories, such as decisions, become memories word for word.

Owns which categories of notes last. Refuses to understand anything: nothing is summarised, joined or dated, and a note
of another category is skipped. The result has the form of a model's reply and passes the same
checks. Deterministic and pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from livememfs.records.note import Note

TYPE_OF: Mapping[str, str] = {
    "decision": "decision",
    "todo": "todo",
    "insight": "fact",
    "preference": "preference",
    "identity": "identity",
    "goal": "goal",
    "fact": "fact",
    "event": "event",
}
"""The type of memory that a note of each lasting category becomes."""


def store_notes(notes: Sequence[Note], *, max_bytes: int, max_subjects: int, max_subject_chars: int) -> dict[str, Any]:
    """A reply of the digest: `memories` and `skipped`, by note number from 1."""
    memories: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    first: dict[str, int] = {}
    for number, note in enumerate(notes, 1):
        text = note.body.strip("\r\n")
        same = " ".join(text.split()).casefold()
        reason = _why_not(note, text, max_bytes)
        if not reason and same in first:
            reason = f"says the same as note {first[same]}"
        if reason:
            skipped.append({"note": number, "reason": reason})
            continue
        first[same] = number
        tags = [tag for tag in note.tags if tag.strip() and tag.isprintable() and len(tag) <= max_subject_chars]
        kind = TYPE_OF[note.category.casefold()]
        memories.append(
            {"content": text, "subjects": tags[:max_subjects], "type": kind, "ttl": None, "sources": [number]}
        )
    return {"memories": memories, "skipped": skipped}


def _why_not(note: Note, text: str, max_bytes: int) -> str:
    """Why a note becomes no memory; empty when it does."""
    if note.category.casefold() not in TYPE_OF:
        return f"without a model, a note of the category {note.category!a} is not remembered"[:200]
    if not text.strip() or "\0" in text:
        return "it has no text"
    size = len(text.encode())
    return f"without a model, {size} bytes are too many for one memory" if size > max_bytes else ""
