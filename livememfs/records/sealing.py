"""How a text that somebody wrote, in a file or by a call, becomes a note or a memory of the bucket.

Owns what is stored: the bytes, redacted and with all fields; the names that the object may have; the metadata with its
written name; and which texts are empty, so that no note or memory is made from them. Adds no hash, mode or time: the
mount adds a hash when it uploads, by which it recognises its own upload, and a file has its own time. Refuses what is
no text, or too large. Pure; any thread, but a large text should not be redacted on the trio thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from livememfs.errors import NotText, TooLarge
from livememfs.records import keys, memory, note
from livememfs.records.metadata import META_NAME
from livememfs.records.trust import USUAL, Trust, stamp, trust_of, trust_written, with_trust
from livememfs.text import fields
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.privacy import redaction as privacy


@dataclass(frozen=True)
class Former:
    """The version that is replaced: the name of its object, its bytes, and its metadata."""

    name: str
    data: bytes
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """How a text came, by which it gets its class: never by what it says.

    :trust: the highest class of words that come so
    :given: the class that a person gave it, whatever else is known; None: nobody did
    :about: fields of front matter for what it speaks of where it was written; an empty one is taken out
    """

    trust: Trust = USUAL
    given: Trust | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def judged(self, said: Mapping[str, object], former: Former | None, old: Mapping[str, object]) -> Trust:
        """The class of a text with the front matter `said`; `old`: that of the version that it replaces."""
        if self.given is not None:
            return self.given
        was = trust_of(former.meta, old) if former is not None else None
        return trust_written(self.trust, said, was, old.get("source"))

    def placed(self, extra: Mapping[str, Any], *, same: bool) -> dict[str, Any]:
        """Other fields of front matter, with those of `about`. `same`: the text is that of the version before, and
        speaks of what it spoke of then.
        """
        if same or not self.about:
            return dict(extra)
        others = {name: value for name, value in extra.items() if name not in self.about}
        return {**others, **{name: value for name, value in self.about.items() if value}}


BY_AGENT = Provenance()
"""What a process writes into a file of the mount, or gives to a tool."""


@dataclass(frozen=True)
class Sealed:
    """A sealed text.

    :data:     the bytes to store
    :named:    gives the canonical name with eight digits
    :at:       the time of a note; None for a memory
    :replaced: the kinds of private text that were in the text, in its name or in its author's name
    :meta:     the metadata that tells its class of trust
    """

    data: bytes
    named: Callable[[str], str]
    at: datetime | None = None
    replaced: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)


class Form(ABC):
    """What the texts in one folder of a space become. `folder` is its name, `noun` the word for one of them."""

    folder: str
    noun: str
    _names: type[keys.NoteName] | type[keys.MemoryName]

    def seal(
        self,
        raw: bytes,
        *,
        path: str,
        written_name: str,
        space: str,
        agent: str,
        now: datetime,
        former: Former | None = None,
        origin: Provenance = BY_AGENT,
    ) -> Sealed:
        """Seal `raw`. `written_name` is empty for a text without a name; `path` is for messages.

        Raises NotText, TooLarge.
        """
        data, kinds = privacy.redact_file(raw)
        author = redacted_name(agent)
        sealed = self._completed(data, path, written_name, space, author.text, now, former, origin)
        return replace(sealed, replaced=tuple(sorted({*kinds, *author.found, *redacted_name(written_name).found})))

    @abstractmethod
    def _completed(
        self,
        data: bytes,
        path: str,
        written_name: str,
        space: str,
        agent: str,
        now: datetime,
        former: Former | None,
        origin: Provenance,
    ) -> Sealed:
        """As `seal`; `data` and `agent` are redacted already."""

    @abstractmethod
    def uids(self, space: str, written_name: str, order: int = 0) -> Iterator[str]:
        """The eight digits for a written name, then further choices if they are taken; only notes have an `order`."""

    def endings(self, space: str, written_name: str) -> list[str]:
        """The endings of the eight digits that a text with this written name may have."""
        return list(self.uids(space, written_name))

    def renewed(self, name: str, sealed: Sealed) -> str:
        """The name of the object with its next version. A note keeps its first name."""
        return name

    def uid_of(self, name: str) -> str:
        """The eight digits in a canonical name; empty for any other."""
        parsed = self._names.parse(name)
        return parsed.uid if parsed is not None else ""

    def with_uid(self, name: str, uid: str) -> str:
        """A canonical name with other digits."""
        parsed = self._names.parse(name)
        assert parsed is not None  # `uid_of` gave digits
        return str(replace(parsed, uid=uid))

    def name_meta(self, written_name: str) -> dict[str, str]:
        """The metadata with the written name, for other mounts. A private name stays on its own mount."""
        kept = written_name and not self.uid_of(written_name) and is_public(written_name)
        return {META_NAME: written_name} if kept else {}


class NoteForm(Form):
    """Notes, in `live/`."""

    folder, noun, _names = keys.LIVE, "note", keys.NoteName

    def _completed(
        self,
        data: bytes,
        path: str,
        written_name: str,
        space: str,
        agent: str,
        now: datetime,
        former: Former | None,
        origin: Provenance,
    ) -> Sealed:
        previous = note.Note.parse(former.data, path=path, name=former.name) if former is not None else None
        completed, whole = note.complete(
            data, path=path, written_name=written_name, space=space, agent=agent, now=now, previous=previous
        )
        trust = origin.judged(completed.extra, former, previous.extra if previous is not None else {})
        is_same = previous is not None and previous.body.strip() == completed.body.strip()
        if (extra := origin.placed(with_trust(completed.extra, trust), same=is_same)) != completed.extra:
            completed = replace(completed, extra=extra)
            whole = _rendered(completed, path)
        meta = stamp(trust, extra.get("source"))
        return Sealed(whole, lambda uid: note.canonical_name(completed, uid), completed.timestamp, meta=meta)

    def uids(self, space: str, written_name: str, order: int = 0) -> Iterator[str]:
        """See `Form.uids`."""
        ending = note.uid_ending(space, written_name)
        return (note.uid_of(order + attempt, ending) for attempt in range(note.UID_ATTEMPTS))

    def endings(self, space: str, written_name: str) -> list[str]:
        """See `Form.endings`. The first version of livememfs used other digits where the first were taken."""
        old = (note.uid8(space, written_name, attempt) for attempt in range(1, note.UID_ATTEMPTS))
        return [note.uid_ending(space, written_name), *old]


class MemoryForm(Form):
    """Memories. `collection` is one of keys.COLLECTIONS."""

    noun, _names = "memory", keys.MemoryName

    def __init__(self, collection: str) -> None:
        self.folder = collection

    def _completed(
        self,
        data: bytes,
        path: str,
        written_name: str,
        space: str,
        agent: str,
        now: datetime,
        former: Former | None,
        origin: Provenance,
    ) -> Sealed:
        previous = None
        if former is not None:
            previous = memory.Memory.parse(former.data, path=path, collection=self.folder, name=former.name)
        old = previous.said_of_trust if previous is not None else {}
        if previous is not None:  # its class is no claim of the new text, which may have no front matter
            previous = replace(previous, extra=with_trust(previous.extra, USUAL))
        completed = memory.complete(
            data, path=path, written_name=written_name, collection=self.folder, space=space, now=now, previous=previous
        )
        trust = origin.judged(completed.said_of_trust, former, old)
        author = {} if "agent" in completed.extra else {"agent": agent}
        is_same = previous is not None and previous.content.strip() == completed.content.strip()
        extra = origin.placed(with_trust(completed.extra, trust), same=is_same)
        completed = replace(completed, extra={**author, **extra})
        data, meta = memory.sealed(completed, path), stamp(trust, completed.source)
        return Sealed(data, lambda uid: memory.canonical_name(completed, uid), meta=meta)

    def uids(self, space: str, written_name: str, order: int = 0) -> Iterator[str]:
        """See `Form.uids`."""
        return (note.uid8(f"{space}/{self.folder}", written_name, attempt) for attempt in range(note.UID_ATTEMPTS))

    def renewed(self, name: str, sealed: Sealed) -> str:
        """See `Form.renewed`. A memory keeps its name, except for its end."""
        parsed = keys.MemoryName.parse(name)
        wanted = keys.MemoryName.parse(sealed.named(parsed.uid)) if parsed is not None else None
        if parsed is None or wanted is None:
            return name
        return str(replace(parsed, expires_at=wanted.expires_at))


def _rendered(completed: note.Note, path: str) -> bytes:
    try:
        return completed.render()
    except FrontMatterError as error:
        raise TooLarge(path=path, detail=f"its front matter: {error}") from error


def says_nothing(raw: bytes) -> bool:
    """Whether there is no text behind the front matter: no note or memory is made from that."""
    try:
        text = fields.decode(raw, "").rstrip()
    except NotText:
        return False  # `seal` raises the reason why it cannot be stored
    # Front matter is slow to read, so it is read only where nothing may stand behind it. `seal` reads it again.
    return not text or (text.endswith("---") and not fields.split(text)[1])


@lru_cache(1_024)
def redacted_name(name: str) -> privacy.Redacted:
    """A name, redacted. It is cached, because the same few names come again and again."""
    return privacy.redact(name)


def is_public(name: str) -> bool:
    """Whether a name has nothing private."""
    return not redacted_name(name).found
