"""An observation: what was learnt from something an agent did (claude-mem 2.3).

Owns its fields, and how its object `{YYYYMMDD}T{HHMMSS}_{type}_{id8}.md` is written and read. An unknown type becomes
`discovery`. No field makes reading fail: odd values are left out, unknown fields are kept. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal, get_args

from livememfs.records import keys
from livememfs.records.trust import DERIVED, Trust, trust_of
from livememfs.text import frontmatter
from livememfs.text.fields import decode, read_list, read_text, split
from livememfs.text.size import tokens
from livememfs.text.times import iso, parse_iso

ObservationType = Literal["bugfix", "feature", "refactor", "decision", "discovery", "change"]
TYPES: tuple[ObservationType, ...] = get_args(ObservationType)
ICONS: Mapping[str, str] = dict(zip(TYPES, "✗✚↻⚖◎✎", strict=True))
"""One character for each type, of the Basic Multilingual Plane: some programs cut others in two."""
MAX_ITEMS, MAX_ITEM, MAX_TITLE, MAX_TEXT = 24, 600, 160, 6_000
SUPERSEDES, CONTRADICTS = "supersedes", "contradicts"
"""Fields with the names, without `.md`, of older observations that this one corrects; and where that is not sure."""
SUPERSEDED, CONTRADICTED = "superseded_by", "contradicted_by"
"""The same the other way: fields of the older one, with the names of the newer."""
MAX_LINKS = 16
LISTED_CHARACTERS, ENTRY_CHARACTERS = 4_000, 5
"""The most characters of one list of files, and the characters that are written around each name."""
_FIELDS = (
    "id", "session", "project", "agent", "type", "title", "subtitle", "facts", "concepts", "files_read",
    "files_modified", "discovery_tokens", "created_at", "created_at_epoch", "model", "events",
)  # fmt: skip


@dataclass(frozen=True)
class Observation:
    """One observation.

    :id:               eight hexadecimal digits
    :session:          the agent's id of the session
    :created_at:       when the first of its events was captured: aware, UTC
    :discovery_tokens: about how many tokens the agent spent to find this out
    :model:            the name of the model that observed, or `builtin`
    :events:           the ids of the events that it was made from
    """

    id: str
    session: str
    created_at: datetime
    type: ObservationType
    title: str
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    project: str = ""
    agent: str = ""
    discovery_tokens: int = 0
    model: str = ""
    events: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its object."""
        return str(keys.MemoryName(self.created_at.astimezone(UTC).replace(microsecond=0), self.type, self.id))

    @property
    def link(self) -> str:
        """By this other observations name it."""
        return self.name.removesuffix(".md")

    def linked(self, field_name: str) -> tuple[str, ...]:
        """The names of other observations in one of the four fields; what is none is left out."""
        given = read_list(self.extra.get(field_name)) or ()
        names = (name.removesuffix(".md") for name in given if len(name) < 100)
        return tuple(dict.fromkeys(name for name in names if keys.MemoryName.parse(f"{name}.md")))[:MAX_LINKS]

    def linking(self, field_name: str, name: str) -> Observation:
        """This one with one more name in a field; the last ones where there is no room for all."""
        names = list(dict.fromkeys((*self.linked(field_name), name)))[-MAX_LINKS:]
        return replace(self, extra={**self.extra, field_name: names})

    @property
    def tokens(self) -> int:
        """About how many tokens its texts have."""
        return sum(map(tokens, (self.narrative, *self.facts)))

    @property
    def trust(self) -> Trust:
        """Whose words it has."""
        return trust_of(None, self.extra, DERIVED)

    def render(self) -> bytes:
        """Its object."""
        metadata = {
            **{name: getattr(self, name) for name in _FIELDS if name not in ("created_at", "created_at_epoch")},
            "created_at": iso(self.created_at),
            "created_at_epoch": int(self.created_at.timestamp() * 1_000),
        }
        metadata |= {name: _listed(getattr(self, name)) for name in ("files_read", "files_modified")}
        in_order = {name: metadata[name] for name in _FIELDS}
        return frontmatter.join({**in_order, **self.extra}, self.narrative).encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes, *, path: str, name: str) -> Observation:
        """The observation in an object. Raises NotText."""
        metadata, body = split(decode(data, path))
        named = keys.MemoryName.parse(name)
        text = {field: read_text(metadata.get(field)) or "" for field in _FIELDS}
        known: dict[str, Any] = {field: text[field] for field in ("session", "subtitle", "project", "agent", "model")}
        known |= {field: tuple(dict.fromkeys(read_list_of(metadata.get(field)))) for field in _LISTS}
        try:
            made = parse_iso(text["created_at"])
        except ValueError:
            made = named.timestamp if named is not None else datetime.fromtimestamp(0, UTC)
        return cls(
            id=named.uid if named is not None else text["id"],
            created_at=made,
            type=type_of(text["type"] or (named.type if named is not None else "")),
            title=text["title"] or (body.strip().partition("\n")[0])[:MAX_TITLE],
            narrative=body,
            discovery_tokens=int(text["discovery_tokens"]) if text["discovery_tokens"].isdecimal() else 0,
            extra={field: value for field, value in metadata.items() if field not in _FIELDS},
            **known,
        )


def _listed(names: Sequence[str]) -> list[str]:
    """As many names of files as there is room for: for an object that cannot be written a model is asked again."""
    room = LISTED_CHARACTERS
    for number, name in enumerate(names):
        room -= len(name) + ENTRY_CHARACTERS
        if room < 0:
            return [*names[:number], f"(and {len(names) - number} more)"]
    return list(names)


_LISTS = ("facts", "concepts", "files_read", "files_modified", "events")


def read_list_of(value: object) -> tuple[str, ...]:
    """A list of texts. A single text is a list of one, and is not split at commas, because facts have commas."""
    if isinstance(value, str):
        return (value.strip(),) if value.strip() else ()
    return read_list(value) or ()


def type_of(text: str) -> ObservationType:
    """The type with this name; `discovery` for any other text (claude-mem 3.5)."""
    word = text.strip().lower()
    return next((kind for kind in TYPES if kind == word), "discovery")


def observation_id(session: str, events: Sequence[str], number: int) -> str:
    """The id of observation `number` of these events: the same each time it is made."""
    parts = "\0".join((session, str(number), *sorted(events)))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
