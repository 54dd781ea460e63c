"""The fields of a memory as extended attributes: short texts that a shell reads and sets, one at a time.

Owns their names, how each is shown, and how setting one changes a memory. Refuses values that cannot be used. (Front
matter keeps such values as `{field}_given`, but who sets one attribute can be told the error.) Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from livememfs.records.memory import KNOWN_TYPES, MAX_LINKS, RELATIONS, Memory, read_field
from livememfs.text.times import iso

SETTABLE = ("type", "importance", "expires_at", "subjects", "links", *RELATIONS)
"""The attributes that may be set. That of a relation has the names of the memories that are linked by it."""
_BETWEEN_LINKS = re.compile(r"[,\n]+")
_BETWEEN_NAMES = re.compile(r"[,\s]+")


def shown(memory: Memory, score: float) -> dict[str, str]:
    """Every attribute that a memory has; `score` is its weight now."""
    attributes = {
        "type": memory.type,
        "importance": f"{memory.importance:g}",
        "score": f"{score:.4g}",
        "expires_at": iso(memory.expires_at, exact=True) if memory.expires_at else "",
        "subjects": ",".join(memory.subjects),
        "links": ",".join(f"{relation} {name}" for relation, name in memory.links),
        **{relation: ",".join(linked(memory, relation)) for relation in RELATIONS},
    }
    return {name: text for name, text in attributes.items() if text}


def linked(memory: Memory, relation: str) -> list[str]:
    """The names of the memories that a memory is linked to by one relation, as they were given."""
    return [name for of, name in memory.links if of == relation]


def changed(memory: Memory, name: str, text: str | None, now: datetime) -> Memory:
    """The memory with one of SETTABLE set, or removed (None). Raises ValueError with the reason.

    A change of links does not change `updated_at`, because what the memory says has not changed.
    """
    if name in RELATIONS:
        kept = [link for link in memory.links if link[0] != name]
        names = _BETWEEN_NAMES.split(text) if text is not None else []
        return with_links(memory, [*kept, *((name, _last_part(path)) for path in names if path)])
    if name == "links":
        parts = _BETWEEN_LINKS.split(text) if text is not None else []
        return with_links(memory, [_link(part) for part in parts if part.strip()])
    return replace(memory, updated_at=now, **_field(memory, name, text, now))


def with_links(memory: Memory, links: Iterable[tuple[str, str]]) -> Memory:
    """The memory with these links and no others, each once. Raises ValueError for too many links."""
    each = tuple(dict.fromkeys(links))
    if len(each) > MAX_LINKS:
        raise ValueError(f"{len(each)} links, and a memory has at most {MAX_LINKS}")
    return replace(memory, links=each)


def _link(part: str) -> tuple[str, str]:
    relation, _, name = part.strip().partition(" ")
    if relation.lower() not in RELATIONS or not name.strip() or " " in name.strip():
        raise ValueError(f"{part.strip()!r} is not a relation and a name; the relations are {', '.join(RELATIONS)}")
    return relation.lower(), _last_part(name.strip())


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].removesuffix(".md")


def _field(memory: Memory, name: str, text: str | None, now: datetime) -> dict[str, Any]:
    if text is None:
        usual: dict[str, Any] = {"importance": KNOWN_TYPES[memory.type], "expires_at": None, "subjects": ()}
        if name not in usual:
            raise ValueError("a memory has a type")
        return {name: usual[name]}
    for field in ("ttl", name) if name == "expires_at" else (name,):  # how long from now, or a time
        with suppress(ValueError, TypeError, OverflowError):
            return read_field(field, text, memory.collection, now)
    raise ValueError(f"{text!r} is no {name}: {_EXPECTED[name]}")


_EXPECTED = {
    "type": f"one of {', '.join(KNOWN_TYPES)}",
    "importance": "a number from 0 to 1",
    "expires_at": "a time such as 2026-12-31T18:00:00Z, how long from now such as 7d, or empty for no end",
    "subjects": "words with commas between them",
}
