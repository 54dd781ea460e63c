"""mem0 (read in 2.2): the JSON that its API, its platform and its library give for all memories, or its `history.db`.

Owns its forms: a list, or an object with the list under `results` or `memories`; and the history, which has the words,
times and speaker of each memory, but neither its user nor its metadata. Any thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, first, modified, moment, parts, words
from livememfs.importing.sources.database import HEAD, Row, copied, rows
from livememfs.importing.sources.transcript import named, part
from livememfs.text.foreign import Unreadable, read_json

MOST = 1 << 30
"""Bytes of an export."""


def read(path: Path) -> Iterator[Read]:
    """The memories of an export, in its order."""
    try:
        with path.open("rb") as file:
            if file.read(len(HEAD)) == HEAD:
                yield from _history(path)
                return
        value = read_json(path.read_bytes(), most=MOST)
    except OSError as error:
        yield SourceFault(str(path), error.strerror or str(error))
        return
    except Unreadable as error:
        yield SourceFault(str(path), str(error))
        return
    if isinstance(value, Mapping):
        value = first(dict(value), "results", "memories")
    if not isinstance(value, list):
        yield SourceFault(str(path), "it has no list of memories")
        return
    for number, each in enumerate(value, 1):
        yield from _memory(f"{path}: memory {number}", each, path)


def _history(path: Path) -> Iterator[Read]:
    """The last words of each memory that was not deleted, and when it was first written."""
    last: dict[str, Row] = {}
    try:
        with copied(path) as database:
            for each in rows(database, "history", "rowid"):
                last[named(each, "memory_id")] = each
    except sqlite3.Error as error:
        yield SourceFault(str(path), str(error))
        return
    for memory_id, each in last.items():
        if each.get("event") != "DELETE":
            yield from _memory(
                f"{path}: memory {memory_id}", {**each, "id": memory_id, "text": each["new_memory"]}, path
            )


def _memory(place: str, value: object, path: Path) -> Iterator[Read]:
    fields: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {}
    text = first(fields, "memory", "data", "text")
    if not isinstance(text, str) or not text.strip():
        yield SourceFault(place, "it has no text under `memory`")
        return
    more = part(fields, "metadata")
    yield from parts(
        SourceItem(
            id=str(first(fields, "id", "hash") or text),
            text=text,
            place=place,
            seen=modified(path),
            made=moment(fields.get("created_at")),
            changed=moment(fields.get("updated_at")),
            ends=_ends(fields.get("expiration_date")),
            author=str(first(fields, "agent_id", "actor_id", "user_id") or ""),
            subjects=words([*words(first(fields, "categories") or more.get("category")), *words(more.get("tags"))]),
        )
    )


def _ends(day: object) -> datetime | None:
    """The end of the last day on which a memory is told."""
    last = moment(day)
    try:
        return last + timedelta(days=1) if last is not None else None
    except OverflowError:
        return None
