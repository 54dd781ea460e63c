"""A memory: one fact, in `memories/`, `self/` or `goals/` (spacebot-memory-v2 1.2, companion-memory).

Owns the fields, their defaults by type, adding the fields that a writer left out, and the canonical name. Refuses text
that is not UTF-8 and bodies over the limit; a field that cannot be used is replaced, and kept as `{field}_given`. Pure:
the time is passed in. May be called from any thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from livememfs.errors import TooLarge
from livememfs.records import keys
from livememfs.text import frontmatter
from livememfs.text.fields import decode, read_list, read_text, split
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.times import iso, parse_iso

TYPES: Mapping[str, float] = {
    "identity": 1.0, "goal": 0.9, "decision": 0.8, "todo": 0.8, "preference": 0.7, "fact": 0.6, "event": 0.4,
    "observation": 0.3,
}  # fmt: skip
"""The eight types that are offered, with the importance of a memory that does not state its own."""
TOPIC_TYPES: Mapping[str, float] = {"user": 0.7, "feedback": 0.7, "project": 0.6, "reference": 0.5}
"""Types of the files in which Claude Code remembers. They are kept where they are given, and never asked for."""
KNOWN_TYPES: Mapping[str, float] = {**TYPES, **TOPIC_TYPES}
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    keys.MEMORIES: (),
    keys.SELF: ("context", "capability", "limitation", "preference", "relation"),
    keys.GOALS: ("capability_request", "understanding", "connection"),
}
"""The categories of each collection, the default first."""
USUAL_TYPE = {keys.MEMORIES: "fact", keys.SELF: "identity", keys.GOALS: "goal"}
RELATIONS = ("related_to", "updates", "contradicts", "caused_by", "result_of", "part_of")
MAX_MEMORY_BYTES = 65_536
MAX_LINKS = 256

FRESH = timedelta(days=30)
"""So long a memory keeps all of its importance."""
HALF_LIFE = timedelta(days=90)
"""After FRESH its weight sinks towards half of its importance: the rest halves in each such time."""
USE_WEIGHT = 0.05
"""The share that each doubling of the uses adds."""

_FIELDS = (
    "type", "category", "importance", "subjects", "source", "channel_id", "created_at", "updated_at", "expires_at",
    "forgotten", "links", "space_id",
)  # fmt: skip
_KEPT = ("category", "importance", "source", "channel_id")
_INHERITED = ("subjects", "expires_at", "links")
"""Fields that a writer may have emptied on purpose. A version without a field of these or of _KEPT inherits it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TTL = re.compile(r"\s*([1-9][0-9]{0,5})\s*([smhdw])\s*", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NOT_A_WORD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Memory:
    """One memory.

    :collection: `memories`, `self` or `goals`
    :type:       one of KNOWN_TYPES
    :category:   one of the collection's CATEGORIES; empty in `memories`
    :content:    the body, unchanged
    :importance: 0 to 1, without the effect of age (see `effective`)
    :subjects:   flat tags, as given
    :expires_at: it has ended from this moment on; None: it has no end
    :forgotten:  its user removed it; it is kept, so that it can come back
    :links:      pairs of a relation and the name of another memory, without `.md`
    :extra:      fields this version does not know, in their order
    """

    collection: str
    type: str
    content: str
    importance: float
    created_at: datetime
    updated_at: datetime
    category: str = ""
    subjects: tuple[str, ...] = ()
    source: str = ""
    channel_id: str = ""
    expires_at: datetime | None = None
    forgotten: bool = False
    links: tuple[tuple[str, str], ...] = ()
    space_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes, *, path: str, collection: str, name: str | None = None) -> Memory:
        """The memory in an object. Fields that its front matter lacks come from `name` if that is canonical, else from
        the defaults; the default time is 1970. Raises NotText.
        """
        metadata, body = split(decode(data, path))
        known, _ = _read(metadata, collection, None)
        named = keys.MemoryName.parse(name) if name else None
        made = known.get("created_at") or (named.timestamp if named else _EPOCH)
        kind = known.get("type") or (named.type if named and named.type in KNOWN_TYPES else USUAL_TYPE[collection])
        return _made(collection, kind, made, known, body, metadata)

    def render(self, *, whole: bool = False) -> bytes:
        """The object of this memory. Raises FrontMatterError when its fields are too large to be read back.

        `whole`: also with empty fields, if the next version would inherit an earlier value without them.
        """
        fields = {
            "type": self.type,
            "category": self.category,
            "importance": self.importance,
            "subjects": list(self.subjects),
            "source": self.source,
            "channel_id": self.channel_id,
            "created_at": iso(self.created_at, exact=True),
            "updated_at": iso(self.updated_at, exact=True),
            "expires_at": iso(self.expires_at, exact=True) if self.expires_at else "",
            "forgotten": self.forgotten,
            "links": _grouped(self.links),
            "space_id": self.space_id,
        }
        always = ("importance", *(_INHERITED if whole else ()))
        metadata = {name: value for name, value in fields.items() if value or name in always}
        return frontmatter.join({**metadata, **self.extra}, self.content).encode()

    @property
    def said_of_trust(self) -> dict[str, Any]:
        """What its front matter says of whose words it has."""
        return {"trust": self.extra.get("trust"), "source": self.source}

    def is_there(self, now: datetime) -> bool:
        """Whether it is neither forgotten nor ended."""
        return not self.forgotten and (self.expires_at is None or now < self.expires_at)

    def effective(self, now: datetime, *, uses: int = 0, last_use: datetime | None = None) -> float:
        """Its weight now, 0 to 1: its importance, less with the time since it was written or used, more with its uses.

        An identity does not age.
        """
        if self.type == "identity":
            return self.importance
        age = now - max(self.updated_at, last_use or self.updated_at) - FRESH
        kept = 0.5 + 0.5 * math.pow(0.5, max(age / HALF_LIFE, 0.0))
        return min(1.0, self.importance * kept * (1 + USE_WEIGHT * math.log2(1 + max(uses, 0))))


def complete(
    data: bytes,
    *,
    path: str,
    written_name: str,
    collection: str,
    space: str,
    now: datetime,
    previous: Memory | None = None,
) -> Memory:
    """The memory that somebody wrote under `written_name`.

    Missing fields come from `previous` (the same memory before this edit), then from the first word of the name, then
    from the defaults. `ttl` becomes `expires_at`; null means no end. A value that cannot be used is kept as
    `{field}_given`. `path` is for messages. Raises NotText, TooLarge.
    """
    metadata, body = split(decode(data, path))
    if len(body.encode()) > MAX_MEMORY_BYTES:
        raise TooLarge(path=path, detail=f"{len(body.encode())} bytes, and a memory takes {MAX_MEMORY_BYTES}")
    known, refused = _read(metadata, collection, now)
    word = _NOT_A_WORD.split(written_name.lower(), maxsplit=1)[0]
    usual = word if collection == keys.MEMORIES and word in TYPES else USUAL_TYPE[collection]
    kind = known.get("type") or (previous.type if previous else usual)
    made = known.get("created_at") or (previous.created_at if previous else now)
    memory = _made(collection, kind, made, known, body, metadata)
    inherited = {
        name: getattr(previous, name) for name in (*_KEPT, *_INHERITED) if previous is not None and name not in known
    }
    if not memory.category and "category" not in inherited and (categories := CATEGORIES[collection]):
        named = (category for category in categories if word == category or written_name.startswith(category))
        inherited["category"] = next(named, categories[0])
    former = previous.extra if previous is not None and not metadata else {}
    extra = {**former, **memory.extra, **{f"{name}_given": value for name, value in refused.items()}}
    updated = known.get("updated_at") or now
    return replace(memory, **inherited, updated_at=updated, space_id=space, extra=extra)


def sealed(memory: Memory, path: str) -> bytes:
    """The object of a memory that was just written. `path` is for the message. Raises TooLarge."""
    try:
        return memory.render()
    except FrontMatterError as error:
        raise TooLarge(path=path, detail=f"its front matter: {error}") from error


def canonical_name(memory: Memory, uid: str) -> str:
    """The file name of a memory: `{YYYYMMDD}T{HHMMSS}_{type}_{uid}.md`, with its end where it has one."""
    ends = _second(memory.expires_at) if memory.expires_at is not None else None
    return str(keys.MemoryName(_second(memory.created_at), memory.type, uid, ends))


def _second(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def expiry(ttl: str, now: datetime) -> datetime | None:
    """The end of a memory that lasts `7d`, `1h` or the like from `now`; None for any other text, and for no end."""
    match = _TTL.fullmatch(ttl)
    if match is None:
        return None
    try:
        return now + timedelta(**{_UNITS[match[2].lower()]: int(match[1])})
    except OverflowError:
        return None


# --- reading -----------------------------------------------------------------------------------------------------


def _made(
    collection: str, kind: str, made: datetime, known: Mapping[str, Any], body: str, metadata: Mapping[str, Any]
) -> Memory:
    usual = {"importance": KNOWN_TYPES[kind], "updated_at": made}
    given = {name: value for name, value in known.items() if name not in ("type", "created_at")}
    extra = {name: value for name, value in metadata.items() if name not in (*_FIELDS, "ttl")}
    fields: dict[str, Any] = {**usual, **given, "extra": extra}
    return Memory(collection=collection, type=kind, content=body, created_at=made, **fields)


def _read(
    metadata: Mapping[str, Any], collection: str, now: datetime | None
) -> tuple[dict[str, Any], dict[str, object]]:
    """The fields that can be used, and the given values that cannot. A `ttl` counts from `now`."""
    known = _topic_type(metadata)
    refused: dict[str, object] = {}
    for name in (*_FIELDS, "ttl"):
        if name not in metadata:
            continue
        given = metadata[name]
        try:
            known |= read_field(name, given, collection, now)
        except (ValueError, TypeError, OverflowError):
            if given not in (None, "", [], {}):
                refused[name] = given
    return known, refused


def _topic_type(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The type where Claude Code writes it, under `metadata`. A `type` of the front matter itself goes before it."""
    beside = metadata.get("metadata")
    given = beside.get("type") if isinstance(beside, Mapping) else None
    return {"type": given} if isinstance(given, str) and given in KNOWN_TYPES else {}


def read_field(name: str, given: Any, collection: str, now: datetime | None) -> dict[str, Any]:
    """One field, or `ttl`, as Memory has it. ValueError, TypeError or OverflowError for a value that cannot be used."""
    if name == "ttl":
        return _lasting(given, now)
    if name == "expires_at" and given in (None, ""):
        return {"expires_at": None}
    text = read_text(given)
    if name == "type":
        return {name: _one_of(text, KNOWN_TYPES)}
    if name == "category":
        return {name: _one_of(text, CATEGORIES[collection])}
    if name == "importance":
        return {name: _share(given)}
    if name in ("created_at", "updated_at", "expires_at"):
        return {name: parse_iso(text or "")}
    if name == "forgotten":
        return {name: text == "true"}
    if name == "subjects":
        return {name: _each_once(read_list(given))}
    if name == "links":
        return {name: _links(given)}
    if text is None:
        raise ValueError(given)
    return {name: text}


def _lasting(given: Any, now: datetime | None) -> dict[str, Any]:
    if now is None:
        return {}  # in a stored memory it has become `expires_at`
    if given is None or (isinstance(given, str) and given.strip().lower() in ("", "null", "none", "never")):
        return {"expires_at": None}
    ends = expiry(str(given), now)
    if ends is None:
        raise ValueError(given)
    return {"expires_at": ends}


def _one_of(text: str | None, allowed: Iterable[str]) -> str:
    word = _NOT_A_WORD.sub("_", (text or "").lower()).strip("_")
    if word not in allowed:
        raise ValueError(text)
    return word


def _share(given: Any) -> float:
    if isinstance(given, bool) or not 0 <= float(given) <= 1:
        raise ValueError(given)
    return round(float(given), 4)


def _each_once(texts: tuple[str, ...] | None) -> tuple[str, ...]:
    if texts is None:
        raise ValueError
    each: dict[str, str] = {}
    for text in texts:
        each.setdefault(text.casefold(), text)
    return tuple(each.values())


def _links(given: Any) -> tuple[tuple[str, str], ...]:
    """Links given as `{updates: [name, ...]}` or as `updates name`; unknown relations are left out."""
    if isinstance(given, str | list):
        words = [text.split(maxsplit=1) for text in read_list(given) or ()]
        pairs = [(pair[0], pair[1]) for pair in words if len(pair) == 2]
    elif isinstance(given, dict):
        pairs = [(relation, name) for relation, names in given.items() for name in read_list(names) or ()]
    else:
        raise TypeError(given)
    links = ((relation.strip().lower(), name.strip().removesuffix(".md")) for relation, name in pairs)
    return tuple(dict.fromkeys(link for link in links if link[0] in RELATIONS and link[1]))[:MAX_LINKS]


def _grouped(links: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for relation, name in links:
        grouped.setdefault(relation, []).append(name)
    return grouped
