"""The fields of the memories of one folder, without their texts: read once for each version.

Owns these fields and the index by type and by subject, which are made anew only when a name or a version has changed.
Memories that have ended or are forgotten are never returned. The clock is asked each time, because no object changes
when a memory ends. Refuses names other than those of objects (`collection` knows them). Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from livememfs import errors
from livememfs.concurrency import for_each
from livememfs.memories.uses import Worth, moment
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.tree.context import Context

READ_AT_ONCE = 256
MAX_SUBJECT_BYTES = 120
_NONE = ("", None)
_NOT_IN_A_NAME = re.compile(r"[/\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Contents:
    """The names of one folder's memories: in their order, by type, and by the name of a subject."""

    names: Sequence[str] = ()
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    subjects: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Shelf:
    """The memories below `prefix`, which is that of one of keys.COLLECTIONS in a space."""

    __slots__ = ("_contents", "_context", "_folder", "_known", "_prefix", "_serial", "_space")

    def __init__(self, context: Context, space: str, folder: str) -> None:
        self._context, self._space, self._folder = context, space, folder
        self._prefix = f"{space}/{folder}/"
        self._known: dict[str, tuple[str, Memory | None]] = {}
        self._contents, self._serial = Contents(), 0

    async def one(self, name: str) -> Memory | None:
        """The memory of an object, without its text; None when the object is gone or is no memory, or has ended."""
        listing = await self._context.replica.names.listing(self._prefix)
        info = listing.objects.get(name)
        if info is None or not self._is_memory(name):
            return None
        await self._learn(name, info)
        return self.known(name)

    def known(self, name: str) -> Memory | None:
        """The same, of what was read before; makes no request."""
        entry = self._known.get(name)
        memory = entry[1] if entry is not None else None
        return memory if memory is not None and memory.is_there(self._context.clock.now()) else None

    def score(self, name: str, memory: Memory) -> float:
        """The score of a memory now."""
        worth = self.worth(name)
        return memory.effective(self._context.clock.now(), uses=worth.uses, last_use=moment(worth.used_at))

    def worth(self, name: str) -> Worth:
        """How often a memory was told, and used."""
        return self._context.uses.of(self._space, self._prefix + name)

    async def contents(self) -> Contents:
        """All memories; those not known yet are read. Some may have ended: ask `known`."""
        listing = await self._context.replica.names.listing(self._prefix)
        if listing.serial != self._serial:
            serial = listing.serial
            there = {name: info for name, info in listing.objects.items() if self._is_memory(name)}
            new = [(name, info) for name, info in there.items() if self._known.get(name, _NONE)[0] != info.etag]
            await self._learn_all(new)
            self._known = {name: entry for name, entry in self._known.items() if name in there}
            self._contents, self._serial = self._sorted(), serial
        return self._contents

    def _is_memory(self, name: str) -> bool:
        key = self._prefix + name
        return keys.parse(key).kind == "memory" and not keys.has_ended(key, self._context.clock.now())

    async def _learn_all(self, new: Sequence[tuple[str, ObjectInfo]]) -> None:
        replica = self._context.replica
        await for_each([item for item in new if replica.has(item[1])], lambda item: self._learn(*item))
        cold = [info.key for _, info in new if not replica.has(info)]
        for start in range(0, len(cold), READ_AT_ONCE):
            # Kept by portions: if a slow store makes one call fail, the next call goes on from there.
            for stored in (await replica.read_many(cold[start : start + READ_AT_ONCE])).values():
                self._keep(stored)

    async def _learn(self, name: str, info: ObjectInfo) -> None:
        if self._known.get(name, _NONE)[0] == info.etag:
            return
        replica = self._context.replica
        with suppress(errors.ObjectMissing):
            try:
                self._keep(StoredObject(info, await replica.read_version(info)))
            except (errors.ObjectMissing, errors.PreconditionFailed):
                self._keep(await replica.read(info.key, fresh=True))  # somebody has just replaced it

    def _keep(self, stored: StoredObject) -> None:
        key, name = stored.info.key, stored.info.key.removeprefix(self._prefix)
        try:
            memory = Memory.parse(stored.data, path=key, collection=self._folder, name=name)
        except errors.NotText:
            memory = None
        self._known[name] = stored.info.etag, replace(memory, content="") if memory is not None else None

    def _sorted(self) -> Contents:
        types: dict[str, list[str]] = {}
        subjects: dict[str, list[str]] = {}
        memories = {name: entry[1] for name, entry in sorted(self._known.items()) if entry[1] is not None}
        for name, memory in memories.items():
            types.setdefault(memory.type, []).append(name)
            for subject in subject_names(memory):
                subjects.setdefault(subject, []).append(name)
        return Contents(list(memories), types, subjects)


def subject_names(memory: Memory) -> Sequence[str]:
    """The names of the folders for a memory's subjects."""
    return tuple(dict.fromkeys(filter(None, map(subject_name, memory.subjects))))


def subject_name(subject: str) -> str:
    """The name of the folder for a subject: small letters, without characters that a file name cannot have."""
    name = _NOT_IN_A_NAME.sub("-", subject.casefold()).strip().lstrip(".")
    with suppress(UnicodeEncodeError):
        return name.encode()[:MAX_SUBJECT_BYTES].decode(errors="ignore")
    return ""
