"""mem0: the JSON that its API, its platform and its library give for all memories.

Owns its forms: a list, or an object with the list under `results` or `memories`. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, first, modified, moment, parts, words
from livememfs.text.foreign import Unreadable, read_json

MOST = 1 << 30
"""Bytes of an export."""


def read(path: Path) -> Iterator[Read]:
    """The memories of an export, in its order."""
    try:
        value = read_json(path.read_bytes(), most=MOST)
    except OSError as error:
        yield SourceFault(str(path), error.strerror or str(error))
        return
    except Unreadable as error:
        yield SourceFault(str(path), f"it is no JSON: {error}")
        return
    if isinstance(value, Mapping):
        value = first(dict(value), "results", "memories")
    if not isinstance(value, list):
        yield SourceFault(str(path), "it has no list of memories")
        return
    for number, each in enumerate(value, 1):
        yield from _memory(f"{path}: memory {number}", each, path)


def _memory(place: str, value: object, path: Path) -> Iterator[Read]:
    fields: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
    text = first(fields, "memory", "data", "text")
    if not isinstance(text, str) or not text.strip():
        yield SourceFault(place, "it has no text under `memory`")
        return
    metadata = fields.get("metadata")
    category = metadata.get("category") if isinstance(metadata, Mapping) else None
    yield from parts(
        SourceItem(
            id=str(first(fields, "id", "hash") or text),
            text=text,
            place=place,
            seen=modified(path),
            made=moment(fields.get("created_at")),
            changed=moment(fields.get("updated_at")),
            author=str(first(fields, "agent_id", "user_id") or ""),
            subjects=words(first(fields, "categories") or category),
        )
    )
