"""The notes of a space as a run reads them, each with the version that was read.

Owns which objects in `live/` are notes, their order, and reading them side by side. Refuses to guess: a note that
changed while it was read waits for the next run. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from livememfs.cache.removals import ids_of
from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import NotText, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.metadata import META_OP
from livememfs.records.names import is_litter
from livememfs.records.note import Note
from livememfs.records.trust import USUAL, Trust, trust_of
from livememfs.store.base import ObjectInfo, StoredObject


@dataclass(frozen=True)
class LiveNote:
    """A note as it was read. `name` is relative to `live/`, `sha256` is of its bytes, in hex.

    :part:     which part of the note the text is, such as `2 of 3`; empty for a whole note
    :ids:      ids of the writes that it comes from; `op` is that of this version; empty where they are not known
    :modified_ns: when the bucket got this version, in nanoseconds since the epoch; 0 when that is not known
    :taken_by: the run that took an earlier version of it; 0: none
    :new:      the lines that are new since that earlier version; None where they are not known
    :trust:    whose words it has
    """

    name: str
    key: str
    etag: str
    note: Note
    sha256: str = ""
    ids: tuple[str, ...] = ()
    op: str = ""
    modified_ns: int = 0
    taken_by: int = 0
    new: str | None = None
    part: str = ""
    trust: Trust = USUAL

    @property
    def unread(self) -> Note:
        """The note with only what no run has read yet."""
        return self.note if self.new is None else replace(self.note, body=self.new)


def is_note(key: str) -> bool:
    """Whether runs read the object under this key as a note."""
    parsed = keys.parse(key)
    return parsed.kind == "note" and not is_litter(parsed.name)


async def note_objects(replica: Replica, space: str) -> list[ObjectInfo]:
    """The notes of a space as the bucket lists them now."""
    return [info for info in await replica.names.walk(keys.live_prefix(space)) if is_note(info.key)]


async def read_notes(replica: Replica, infos: Sequence[ObjectInfo]) -> tuple[list[LiveNote], tuple[str, ...]]:
    """These notes in order of their time stamps, and the names of those that are not text."""
    contents = await read_whole(replica, infos)
    notes: list[LiveNote] = []
    unreadable: list[str] = []
    for info in infos:
        name = keys.parse(info.key).name
        whole = contents.get(info.key)
        if whole is None:
            continue  # edited or removed just now
        try:
            note = Note.parse(whole.data, path=info.key, name=name)
            digest, meta = sha256(whole.data).hexdigest(), whole.info.meta
            ids, op = ids_of(meta), (meta or {}).get(META_OP, "")
            trust = trust_of(meta, note.extra)
            notes.append(LiveNote(name, info.key, info.etag, note, digest, ids, op, info.modified_ns, trust=trust))
        except NotText:
            unreadable.append(name)
    notes.sort(key=_written)
    return notes, tuple(unreadable)


def _written(live: LiveNote) -> tuple[datetime, str, str]:
    """The key to sort notes by: the digits in a name begin with the order within one second."""
    named = keys.NoteName.parse(live.name)
    return live.note.timestamp, named.uid if named is not None else "", live.name


async def read_whole(replica: Replica, infos: Sequence[ObjectInfo]) -> dict[str, StoredObject]:
    """The same as `read_versions`, with the user metadata: where it is not known, it is read with the content."""
    objects: dict[str, StoredObject] = {}

    async def read(info: ObjectInfo) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            if info.meta is not None:
                objects[info.key] = StoredObject(info, await replica.read_version(info))
                return
            whole = await replica.read(info.key, fresh=True)
            if whole.info.etag == info.etag:
                objects[info.key] = whole

    await for_each(infos, read)
    return objects


async def read_versions(replica: Replica, infos: Sequence[ObjectInfo]) -> dict[str, bytes]:
    """The contents of exactly these versions by key, read side by side. Versions that are gone are left out."""
    contents: dict[str, bytes] = {}

    async def read(info: ObjectInfo) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            contents[info.key] = await replica.read_version(info)

    await for_each(infos, read)
    return contents
