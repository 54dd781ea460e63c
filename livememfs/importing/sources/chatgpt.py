"""ChatGPT: the conversations of an export of one's data.

Owns the form of `conversations.json` (or several such files): each conversation is a tree of messages, and the branch
that the user saw last is what comes. Any thread.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceSession, SourceTalk, moment
from livememfs.importing.sources.transcript import Turns, named, part, together
from livememfs.text.foreign import Unreadable, read_json

AGENT = "chatgpt"
MOST = 1 << 30
"""Bytes of one file."""


def read(path: Path) -> Iterator[Read]:
    """The conversations of an export: its .zip, its folder, or its file of conversations."""
    try:
        if path.is_dir():
            for file in sorted(file for file in path.rglob("*.json") if _holds(file.name)):
                yield from _conversations(str(file), file.read_bytes)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                for entry in sorted(zipped.infolist(), key=lambda entry: entry.filename):
                    if _holds(entry.filename.rpartition("/")[2]) and entry.file_size <= MOST:
                        yield from _conversations(f"{path}: {entry.filename}", partial(zipped.read, entry))
        else:
            yield from _conversations(str(path), path.read_bytes)
    except (OSError, zipfile.BadZipFile) as error:
        yield SourceFault(str(path), str(error))


def _holds(name: str) -> bool:
    return name.startswith("conversations") and name.endswith(".json")


def _conversations(place: str, load: Callable[[], bytes]) -> Iterator[Read]:
    try:
        value = read_json(load(), most=MOST)
    except Unreadable as error:
        yield SourceFault(place, str(error))
        return
    if not isinstance(value, list):
        yield SourceFault(place, "it has no list of conversations")
        return
    for number, each in enumerate(value, 1):
        which = f"{place}: conversation {number}"
        fields: dict[str, Any] = each if isinstance(each, dict) else {}
        session = named(fields, "conversation_id") or named(fields, "id")
        if session and isinstance(fields.get("mapping"), dict):
            yield SourceSession(session, which, partial(_told, session, fields))
        else:
            yield SourceFault(which, "it has no id, or no messages under `mapping`")


def _told(session: str, fields: dict[str, Any]) -> SourceTalk:
    turns = Turns(session, AGENT)
    turns.at(moment(fields.get("create_time")))
    for message_id, message in _branch(fields):
        turns.at(moment(message.get("create_time")))
        role, content = part(message, "author").get("role"), part(message, "content")
        pieces = content.get("parts") if content.get("content_type") in ("text", "multimodal_text") else None
        words = "\n\n".join(piece for piece in pieces if isinstance(piece, str)) if isinstance(pieces, list) else ""
        if role == "user" and part(message, "metadata").get("is_visually_hidden_from_conversation") is not True:
            turns.prompt(message_id, words)
        elif role == "assistant" and message.get("recipient") in (None, "all"):
            turns.words(message_id, words)
    return together([turns])


def _branch(fields: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The messages from the first to the one that was shown last."""
    mapping: dict[str, Any] = fields["mapping"]
    at = named(fields, "current_node")
    if at not in mapping:
        at = next(reversed(mapping), "")
    found: list[tuple[str, dict[str, Any]]] = []
    seen: set[str] = set()
    while at in mapping and at not in seen:
        seen.add(at)
        node = part(mapping, at)
        if message := part(node, "message"):
            found.append((named(message, "id") or at, message))
        at = named(node, "parent")
    return found[::-1]
