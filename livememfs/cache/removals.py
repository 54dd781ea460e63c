"""Whether a note that the bucket does not have was there before and somebody took it away.

Owns the question, and the trace that a removal by hand leaves for it. An upload whose answer was lost may have arrived;
when its note is gone, a run has taken it, which the ledger says, or a person, of which there is a trace. Notes are told
by the ids of the writes that made them, so equal bytes that somebody stores anew are never mistaken for a repetition.
Refuses to guess: what cannot be read says nothing, and then the note is stored. Trio thread only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from livememfs.cache.unread import Unread
from livememfs.errors import ConflictRetry, LiveMemError, ObjectMissing, Throttled, Unreachable
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.metadata import META_MADE, META_OP, META_SHA256
from livememfs.store.base import list_all
from livememfs.text.foreign import build, read_object

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo, Store

MADE_IDS = 8
"""Ids that are kept of these, the first: each is an attempt at making the note, between which it was edited here."""
CLOCKS = timedelta(minutes=15)
"""How far the clocks of a host and of the bucket are apart at most: S3 refuses whoever is further off."""
ENTRIES = 256
"""Entries that one question reads at most, the newest."""
REMEMBERED = 2048
_PASSING = (Throttled, Unreachable, ConflictRetry)


@dataclass(frozen=True)
class Taken:
    """A note that somebody took away.

    :ids:    of the writes that made it, and its last version; none when a former livememfs took it
    :sha256: of its last version, empty where that is not known
    """

    ids: frozenset[str]
    sha256: str = ""

    def was(self, own: str, earlier: Sequence[str], sha256: str) -> bool:
        """Whether this is what an upload has stored before; see `Removals.has_taken`.

        Equal bytes alone are no proof: a note that was renamed there and back is another upload of the same.
        """
        same = sha256 != "" and sha256 == self.sha256
        return own in self.ids or (same and (not self.ids or not self.ids.isdisjoint(earlier)))

    def render(self) -> bytes:
        """The object of a trace."""
        return f"{json.dumps({'ids': sorted(self.ids), 'sha256': self.sha256})}\n".encode()

    @classmethod
    def parse(cls, data: bytes) -> Taken:
        """The reverse. Raises Unreadable."""
        return build(cls, read_object(data))


@dataclass
class Removals:
    """What is known of the removals in one bucket. Entries never change, so each is read once in a process."""

    store: Store
    unread: Unread = field(default_factory=Unread)
    _entries: dict[tuple[str, str], Mapping[str, Taken]] = field(default_factory=dict)

    async def has_taken(self, key: str, own: str, earlier: Sequence[str], sha256: str, since_ns: int) -> bool:
        """Whether a note that is not in the bucket now is one that was stored and taken away after `since_ns`.

        :own:     the id under which exactly this content may have been sent
        :earlier: ids of former attempts, perhaps with other content
        :sha256:  of the content, empty where that is not known

        Asked after it was seen to be gone: before that a run commits its entry, and a removal by hand leaves its trace.
        Raises what passes; what the store refuses for good says nothing.
        """
        try:
            found = [await self.trace(key)]
            found += [taken.get(key) for taken in await self._entries_since(key.partition("/")[0], since_ns)]
        except _PASSING:
            raise
        except LiveMemError:
            return False
        return any(taken is not None and taken.was(own, earlier, sha256) for taken in found)

    async def trace(self, key: str) -> Taken | None:
        """What a removal by hand has left of a note; None: nothing. Raises what the store fails with."""
        try:
            return await self.unread.read(await self.store.get(keys.removed_key(key)), Taken.parse)
        except ObjectMissing:
            return None

    async def leave_trace(self, key: str, ids: Sequence[str], sha256: str) -> None:
        """Before a note is removed by hand: say so for longer than an upload can be on its way.

        Without ids nobody would know the note again, and nothing is left. Raises what passes.
        """
        if not ids:
            return
        try:
            await self.store.put(keys.removed_key(key), Taken(frozenset(ids), sha256).render())
        except _PASSING:
            raise
        except LiveMemError:
            return  # who may remove a note and write nothing else goes without

    async def _entries_since(self, space: str, since_ns: int) -> list[Mapping[str, Taken]]:
        """What the runs of a space took since then, the newest first."""
        from_ns = since_ns - CLOCKS // timedelta(microseconds=1) * 1000
        infos = (await list_all(self.store, keys.ledger_prefix(space))).objects
        late = [info for info in infos if keys.is_entry(info.key) and not 0 < info.modified_ns < from_ns]
        return [await self._read(info) for info in reversed(late[-ENTRIES:])]

    async def _read(self, info: ObjectInfo) -> Mapping[str, Taken]:
        known = self._entries.get((info.key, info.etag))
        if known is None:
            try:
                entry = await self.unread.read(await self.store.get(info.key), Entry.parse)
                known = taken_in(entry) if entry is not None else {}
            except ObjectMissing:
                known = {}
            while len(self._entries) >= REMEMBERED:
                del self._entries[next(iter(self._entries))]
            self._entries[info.key, info.etag] = known
        return known


def taken_in(entry: Entry) -> dict[str, Taken]:
    """The notes that a run takes out of `live/`, by key."""
    return {note.key: Taken(frozenset(entry.origins.get(note.key, "").split()), note.sha256) for note in entry.removes}


def ids_of(meta: Mapping[str, str] | None) -> tuple[str, ...]:
    """The ids of the writes that a version of a note comes from: those that may have made it, and its own."""
    found = meta or {}
    return tuple(dict.fromkeys((*found.get(META_MADE, "").split(), *found.get(META_OP, "").split())))


def with_makers(meta: Mapping[str, str], makers: Iterable[str]) -> dict[str, str]:
    """User metadata that names these as the makers of the note; without any, it names none."""
    kept = {name: value for name, value in meta.items() if name != META_MADE}
    ids = tuple(dict.fromkeys(makers))[:MADE_IDS]
    return kept | ({META_MADE: " ".join(ids)} if ids else {})


def makers_of(meta: Mapping[str, str] | None) -> tuple[str, ...]:
    """The ids of the writes that may have made the note of which this is a version."""
    found = meta or {}
    return tuple((found.get(META_MADE) or found.get(META_OP, "")).split())


def next_version(key: str, meta: Mapping[str, str], base: ObjectInfo | None) -> dict[str, str]:
    """User metadata of what is made from `base`: that of a note names the makers of the note."""
    return with_makers(meta, makers_of(base.meta) if base is not None else ()) if keys.is_note(key) else dict(meta)


def removal(key: str, base: ObjectInfo | None) -> dict[str, str]:
    """What has to be known of a note when it goes; empty when that was not heard."""
    meta = base.meta if base is not None else None
    if not meta or META_OP not in meta or not keys.is_note(key):
        return {}
    return {META_MADE: " ".join(ids_of(meta)), META_SHA256: meta.get(META_SHA256, "")}
