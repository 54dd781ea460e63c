"""A file with a JSON object in each line, as scripts and exports write it.

Owns which names of fields are understood. A line with `key` and `content` is an object of `livememfs export`, which
keeps its name. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, SourceObject, first, modified, moment, parts, words
from livememfs.text.foreign import Unreadable, read_object

LONGEST_LINE = 16 << 20
"""Bytes."""


def read(path: Path) -> Iterator[Read]:
    """The lines, in their order."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                if line.strip():
                    yield from _line(f"{path}:{number}", line, path)
    except OSError as error:
        yield SourceFault(str(path), error.strerror or str(error))


def _line(place: str, line: bytes, path: Path) -> Iterator[Read]:
    try:
        fields = read_object(line, most=LONGEST_LINE)
    except Unreadable as error:
        yield SourceFault(place, f"it is no JSON object: {error}")
        return
    text = first(fields, "text", "content", "memory", "fact", "body", "observation")
    if not isinstance(text, str) or not text.strip():
        yield SourceFault(place, "it has no text under `text`, `content` or `memory`")
    elif isinstance(fields.get("key"), str):
        yield SourceObject(fields["key"], text.encode("utf-8", "surrogatepass"), place)
    else:
        yield from parts(_item(place, text, fields, path))


def _item(place: str, text: str, fields: dict[str, Any], path: Path) -> SourceItem:
    made = moment(first(fields, "created_at", "createdAt", "timestamp", "date", "time"))
    return SourceItem(
        id=str(first(fields, "id", "uuid", "_id") or text),
        text=text,
        place=place,
        seen=modified(path),
        kind=str(first(fields, "type", "kind", "category") or "fact").lower(),
        made=made,
        changed=moment(first(fields, "updated_at", "updatedAt")),
        author=str(first(fields, "agent", "author", "user") or ""),
        subjects=words(first(fields, "tags", "subjects", "categories")),
    )
