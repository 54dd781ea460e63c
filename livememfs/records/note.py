"""A note: the fields of a file in `live/`, and how a file that somebody wrote becomes a note (data model 4.4).

Owns the note's fields, adding the fields that a writer left out, and the canonical name. Refuses text that is not UTF-8
and bodies over the limit; odd front matter is never refused, but becomes part of the body. Pure: the time and the agent
are passed in. May be called from any thread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from livememfs.errors import TooLarge
from livememfs.records.keys import ENDING_DIGITS, NoteName, agent_slug
from livememfs.text import frontmatter
from livememfs.text.fields import decode, read_list, read_text, split
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.times import iso, parse_iso

CATEGORIES = ("observation", "decision", "todo", "insight", "question", "progress", "issue")
DEFAULT_CATEGORY = CATEGORIES[0]
_UNKNOWN_AGENT = "unknown"
MAX_NOTE_BYTES = 1_048_576  # of the body; the front matter has its own limit

FIELDS = ("timestamp", "agent", "category", "tags", "space_id")
_REQUIRED = ("timestamp", "agent", "category", "space_id")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_WORD = re.compile(r"[^\W_]+")
_NOT_IN_CATEGORY = re.compile(r"[^A-Za-z0-9.-]")
_CATEGORY_SLUG_MAX = 32
ORDERS = 1 << 12
"""So many notes of one second can be kept in their order: three hexadecimal digits."""
UID_ATTEMPTS = 8
"""So many names are tried for one note or memory if they are already taken."""
_SECONDS_KEPT = 1_000


@dataclass(frozen=True)
class Note:
    """One note.

    :timestamp: aware, UTC
    :agent:     who wrote it, as in the front matter (not slugged)
    :category:  one of CATEGORIES, or what a foreign writer chose
    :tags:      as given
    :space_id:  the space that it names; empty when it names none
    :body:      everything after the front matter, unchanged
    :extra:     front matter fields this version does not know, in their order
    """

    timestamp: datetime
    agent: str
    category: str
    tags: tuple[str, ...]
    space_id: str
    body: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, *, path: str, name: str | None = None) -> Note:
        """The note in an object. Fields that its front matter lacks come from `name` if that is canonical.

        Odd front matter is body. The defaults are the time 1970, the agent `unknown`, the category `observation`.
        Raises NotText.
        """
        metadata, body = split(decode(data, path))
        known, extra = _sort_fields(metadata)
        named = NoteName.parse(name) if name else None
        return cls(
            timestamp=known.get("timestamp") or (named.timestamp if named else _EPOCH),
            agent=known.get("agent") or (named.agent if named else _UNKNOWN_AGENT),
            category=known.get("category") or (named.category if named else DEFAULT_CATEGORY),
            tags=known.get("tags", ()),
            space_id=known.get("space_id", ""),
            body=body,
            extra=extra,
        )

    def render(self) -> bytes:
        """The object of this note. Raises FrontMatterError when its fields are too large to be read back."""
        metadata = {
            "timestamp": iso(self.timestamp, exact=True),
            "agent": self.agent,
            "category": self.category,
            "tags": list(self.tags),
            "space_id": self.space_id,
            **self.extra,
        }
        return frontmatter.join(metadata, self.body).encode()


def complete(
    data: bytes,
    *,
    path: str,
    written_name: str,
    space: str,
    agent: str,
    now: datetime,
    previous: Note | None = None,
) -> tuple[Note, bytes]:
    """The note that somebody wrote under `written_name`, and the bytes to store.

    Given front matter is kept. Missing fields come from `previous` (the same note before this edit), then from the
    arguments. A given field that cannot be used is replaced and kept as `{field}_given`. Data that has all required
    fields is returned as it is, so completing twice changes nothing; only a byte order mark is always removed.
    `path` is for messages. Raises NotText, TooLarge.
    """
    text = decode(data, path)
    metadata, body = split(text)
    known, extra = _sort_fields(metadata)
    if not all(name in known for name in _REQUIRED):
        fallback = _fallback(written_name, space, agent, now, previous)
        try:
            text = frontmatter.join(_filled(metadata, known, fallback), body)
        except FrontMatterError:  # with all fields it would be too large to be read back, so it becomes body
            text, body = frontmatter.join(fallback, text), text
        # Without given front matter the fallback was written, so it need not be read back.
        known, extra = _sort_fields(frontmatter.split(text)[0] if metadata else fallback)
    size = len(body.encode())
    if size > MAX_NOTE_BYTES:
        raise TooLarge(path=path, detail=f"{size} bytes, and a note takes {MAX_NOTE_BYTES}")
    return Note(body=body, extra=extra, **{"tags": (), "space_id": "", **known}), text.encode()


def category_of(written_name: str) -> str:
    """The category that a written name begins with (`decision-use-s3.md`, `todo.md`), else `observation`."""
    first = _FIRST_WORD.match(written_name)
    word = first[0].lower() if first else ""
    return word if word in CATEGORIES else DEFAULT_CATEGORY


class Order:
    """The order in which one process wrote the notes of a second: a number, with which the digits of a name begin."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, datetime], int] = {}

    def next(self, space: str, timestamp: datetime, now: datetime) -> int:
        """The number of a note with this time that is written now: higher than all before it, up to the highest.

        It is the fraction of the second if that is higher, so that notes of several processes are in order as well.
        """
        second = timestamp.astimezone(UTC).replace(microsecond=0)
        of_now = now.astimezone(UTC)
        fraction = of_now.microsecond * ORDERS // 1_000_000 if of_now.replace(microsecond=0) == second else 0
        number = min(max(fraction, self._last.pop((space, second), -1) + 1), ORDERS - 1)
        self._last[space, second] = number
        if len(self._last) > _SECONDS_KEPT:
            del self._last[next(iter(self._last))]
        return number


def uid_of(order: int, ending: str) -> str:
    """The eight digits of a note's name: three for the order of the notes of one second, and five others."""
    return f"{order % ORDERS:03x}{ending}"


def order_of(uid: str) -> int:
    """The number in the eight digits of a note's name by which the notes of its second are ordered."""
    return int(uid[:-ENDING_DIGITS], 16)


def uid_ending(space: str, written_name: str) -> str:
    """The last five digits of a note, which follow from the name it was written under.

    So any mount finds a note by its written name in a listing. The metadata of the object confirm the name.
    """
    return uid8(space, written_name)[-ENDING_DIGITS:]


def uid8(space: str, written_name: str, attempt: int = 0) -> str:
    """Eight hexadecimal digits that follow from a written name alone, for memories. Notes of the first version of
    livememfs have them too. `attempt` gives further digits when the first are taken.
    """
    source = "\0".join((space, written_name, str(attempt)))
    return hashlib.blake2b(source.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()


def canonical_name(note: Note, uid: str) -> str:
    """The file name of a note: `{YYYYMMDD}T{HHMMSS}_{agent}_{category}_{uid}.md`."""
    timestamp = note.timestamp.astimezone(UTC).replace(microsecond=0)
    category = _NOT_IN_CATEGORY.sub("-", note.category)[:_CATEGORY_SLUG_MAX]
    return str(NoteName(timestamp, agent_slug(note.agent), category or DEFAULT_CATEGORY, uid))


# --- reading ----------------------------------------------------------------------------------------------------


def _sort_fields(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The known fields with usable values, as Note has them, and all unknown fields."""
    known: dict[str, Any] = {}
    for name in FIELDS:
        value = _read_field(name, metadata.get(name))
        if value is not None:
            known[name] = value
    return known, {name: value for name, value in metadata.items() if name not in FIELDS}


def _read_field(name: str, value: object) -> object | None:
    """A field's value as Note has it, or None when it is missing or of no use."""
    if name == "tags":
        return read_list(value)
    text = read_text(value)
    if text is None or name != "timestamp":
        return text
    try:
        return parse_iso(text)
    except ValueError:
        return None


# --- completing --------------------------------------------------------------------------------------------------


def _fallback(written_name: str, space: str, agent: str, now: datetime, previous: Note | None) -> dict[str, Any]:
    """A value for each of the five fields, in the order in which they are written."""
    agent = (previous.agent if previous else agent).strip() or _UNKNOWN_AGENT
    agent = agent.encode("utf-8", "replace").decode()  # an environment variable may hold bytes that are no text
    return {
        "timestamp": iso(previous.timestamp, exact=True) if previous else iso(now),
        "agent": agent,
        "category": (previous.category.strip() if previous else "") or category_of(written_name),
        "tags": list(previous.tags) if previous else [],
        "space_id": (previous.space_id if previous else "") or space,
    }


def _filled(metadata: Mapping[str, Any], known: Mapping[str, Any], fallback: Mapping[str, Any]) -> dict[str, Any]:
    """All fields as one mapping: those of FIELDS in their order, then the unknown ones in theirs."""
    result: dict[str, Any] = {}
    set_aside: dict[str, Any] = {}
    for name in FIELDS:
        given = metadata.get(name)
        result[name] = given if name in known else fallback[name]
        if name not in known and given not in (None, "", [], {}):
            set_aside[f"{name}_given"] = given
    return {**result, **{name: value for name, value in metadata.items() if name not in FIELDS}, **set_aside}
