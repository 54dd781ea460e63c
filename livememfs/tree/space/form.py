"""What the files of a folder become when they are closed: notes in `live/`, memories in `memories/`, `self/`, `goals/`.

Owns how a file is completed and which names its object may have. Refuses to touch the bucket. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from livememfs.cache.conflicts import UID_ATTEMPTS
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.memory import canonical_name as memory_name
from livememfs.records.memory import complete as complete_memory
from livememfs.records.memory import sealed as sealed_memory
from livememfs.records.note import Note, canonical_name, complete, uid8, uid_ending, uid_of


@dataclass(frozen=True)
class Former:
    """The version that a file replaces: the name of its object, and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Sealed:
    """A completed file: the bytes to store, and the canonical name that goes with eight digits. `at`: a note's time."""

    data: bytes
    named: Callable[[str], str]
    at: datetime | None = None


class Form(Protocol):
    """What is made of files in one kind of folder."""

    @property
    def folder(self) -> str:
        """The folder's name in a space."""
        ...

    def seal(
        self, raw: bytes, *, path: str, written_name: str, space: str, agent: str, now: datetime, former: Former | None
    ) -> Sealed:
        """What somebody wrote, completed. Raises NotText, TooLarge."""
        ...

    def uids(self, space: str, written: str, order: int) -> Iterator[str]:
        """The eight digits that go with a written name, the next choice when one is taken; `order` is of notes."""
        ...

    def endings(self, space: str, written: str) -> list[str]:
        """In what the eight digits end of what was written under a name."""
        ...

    def uid_of(self, name: str) -> str:
        """The eight digits in a canonical name; empty for any other."""
        ...

    def with_uid(self, name: str, uid: str) -> str:
        """A canonical name with other digits."""
        ...

    def renewed(self, name: str, sealed: Sealed) -> str:
        """The name of the object after its next version."""
        ...


class _Named:
    """What canonical names of both kinds have in common: eight digits."""

    names: type[keys.NoteName] | type[keys.MemoryName]

    def uid_of(self, name: str) -> str:
        """See `Form.uid_of`."""
        parsed = self.names.parse(name)
        return parsed.uid if parsed is not None else ""

    def with_uid(self, name: str, uid: str) -> str:
        """See `Form.with_uid`."""
        parsed = self.names.parse(name)
        assert parsed is not None  # `uid_of` gave digits
        return str(replace(parsed, uid=uid))


class NoteForm(_Named):
    """See `Form`."""

    names = keys.NoteName

    folder = keys.LIVE

    def seal(
        self, raw: bytes, *, path: str, written_name: str, space: str, agent: str, now: datetime, former: Former | None
    ) -> Sealed:
        """See `Form.seal`."""
        previous = Note.parse(former.data, path=path, name=former.name) if former is not None else None
        note, data = complete(
            raw, path=path, written_name=written_name, space=space, agent=agent, now=now, previous=previous
        )
        return Sealed(data, lambda uid: canonical_name(note, uid), note.timestamp)

    def uids(self, space: str, written: str, order: int) -> Iterator[str]:
        """See `Form.uids`."""
        ending = uid_ending(space, written)
        return (uid_of(order + attempt, ending) for attempt in range(UID_ATTEMPTS))

    def endings(self, space: str, written: str) -> list[str]:
        """See `Form.endings`. The first version tried other digits where the first were taken."""
        return [uid_ending(space, written), *(uid8(space, written, attempt) for attempt in range(1, UID_ATTEMPTS))]

    def renewed(self, name: str, sealed: Sealed) -> str:
        """See `Form.renewed`. A note keeps the name it was first given."""
        return name


class MemoryForm(_Named):
    """See `Form`. `collection` is one of keys.COLLECTIONS."""

    names = keys.MemoryName

    def __init__(self, collection: str) -> None:
        self.folder = collection

    def seal(
        self, raw: bytes, *, path: str, written_name: str, space: str, agent: str, now: datetime, former: Former | None
    ) -> Sealed:
        """See `Form.seal`."""
        previous = None
        if former is not None:
            previous = Memory.parse(former.data, path=path, collection=self.folder, name=former.name)
        memory = complete_memory(
            raw, path=path, written_name=written_name, collection=self.folder, space=space, now=now, previous=previous
        )
        if "agent" not in memory.extra:
            memory = replace(memory, extra={"agent": agent, **memory.extra})
        return Sealed(sealed_memory(memory, path), lambda uid: memory_name(memory, uid))

    def uids(self, space: str, written: str, order: int = 0) -> Iterator[str]:
        """See `Form.uids`."""
        return (uid8(f"{space}/{self.folder}", written, attempt) for attempt in range(UID_ATTEMPTS))

    def endings(self, space: str, written: str) -> list[str]:
        """See `Form.endings`."""
        return list(self.uids(space, written))

    def renewed(self, name: str, sealed: Sealed) -> str:
        """See `Form.renewed`. A memory keeps its name, but for how long it lasts."""
        parsed = keys.MemoryName.parse(name)
        wanted = keys.MemoryName.parse(sealed.named(parsed.uid)) if parsed is not None else None
        if parsed is None or wanted is None:
            return name
        return str(replace(parsed, expires_at=wanted.expires_at))
