"""What a source gives: items, objects that keep their form, sessions, and places that could not be read.

Owns these four forms and how a text that is too long for a memory is cut. Refuses to know any tool. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from livememfs.observing.capture import Said
from livememfs.records.memory import KNOWN_TYPES
from livememfs.text.fields import read_list
from livememfs.text.times import parse_iso

KINDS = ("note", "bank", "memory", "observation", "session", "agent", "agent-index")
"""Of objects that come as they are."""
MOST_BYTES = 48_000
"""Of one memory's text. It takes 65,536; a secret that is replaced by its mark may make a text longer."""


@dataclass(frozen=True)
class SourceItem:
    """Something that a tool remembered. It becomes a memory.

    :id:       the tool's own id, or what stands for it: the same at each import, and of no other item of this source
    :place:    where it is: the file, and the line or the number where one file has many
    :kind:     a type of memory; anything else becomes `fact`
    :made:     when it was written, as far as the tool knows; `seen`: otherwise the time of its file
    :ends:     when it stops being true, if the tool says so
    :links:    pairs of a relation and the id of another item; those of no item are left out (the text names them)
    """

    id: str
    text: str
    place: str
    seen: datetime
    kind: str = "fact"
    made: datetime | None = None
    changed: datetime | None = None
    ends: datetime | None = None
    author: str = ""
    subjects: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()

    @property
    def type(self) -> str:
        """The type of memory."""
        return self.kind if self.kind in KNOWN_TYPES else "fact"


@dataclass(frozen=True)
class SourceObject:
    """An object of another bucket of this layout, which keeps its name. `name` is its key below the space."""

    name: str
    data: bytes
    place: str


@dataclass(frozen=True)
class SourceFault:
    """Something that could not be read: where, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class SourceEvent:
    """Something that happened in a session, as a hook would have told it, and when. It has an id of its own."""

    said: Said
    at: datetime


@dataclass(frozen=True)
class SourceTalk:
    """What a session holds: its events, in the order of the transcript, and what could not be read of it.

    :summary: what the tool itself says of it, by the names of SUMMARY_FIELDS
    """

    events: tuple[SourceEvent, ...]
    faults: tuple[SourceFault, ...] = ()
    summary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceSession:
    """A session of an agent. `tell` reads it, in a worker thread: not all of them would fit into memory at once."""

    id: str
    place: str
    tell: Callable[[], SourceTalk]


Read = SourceItem | SourceObject | SourceSession | SourceFault
Reader = Callable[[Path], Iterator[Read]]
"""Reads what is at a path, and changes nothing there. Runs in a worker thread."""


def parts(item: SourceItem) -> Iterator[SourceItem]:
    """The item, or its parts where it is too long: cut before a heading, else between paragraphs, else anywhere."""
    rest, number = item.text, 0
    while len(rest.encode()) > MOST_BYTES:
        head = rest.encode()[:MOST_BYTES].decode(errors="ignore")
        cuts = (head.rfind("\n#"), head.rfind("\n\n"), head.rfind("\n"), len(head) - 1)
        cut = next(cut for cut in cuts if cut > len(head) // 4) + 1
        number += 1
        yield _part(item, number, rest[:cut])
        rest = rest[cut:]
    yield _part(item, number + 1, rest) if number else item


def _part(item: SourceItem, number: int, text: str) -> SourceItem:
    return replace(item, id=item.id if number == 1 else f"{item.id}#{number}", text=text)


# --- fields as tools write them ---------------------------------------------------------------------------------------


def moment(value: object) -> datetime | None:
    """A moment as tools write one: text in ISO form, or seconds or milliseconds since 1970. None for anything else."""
    try:
        if isinstance(value, str):
            return parse_iso(value.strip())
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1_000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def words(value: object) -> tuple[str, ...]:
    """A list of short texts: a list, or one text with commas."""
    given = value.split(",") if isinstance(value, str) else read_list(value) or ()
    return tuple(dict.fromkeys(word.strip().lstrip("#") for word in given if word.strip().lstrip("#")))


def first(fields: dict[str, Any], *names: str) -> Any:
    """The value of the first of these fields that says something; None without one."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [])), None)


def modified(path: Path) -> datetime:
    """When a file was last changed."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def digest(*parts: str) -> str:
    """Sixteen digits that tell some texts from others."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
