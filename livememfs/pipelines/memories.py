"""Memories as objects: forgetting one so that it can come back, and bringing it back.

Owns where the versions are kept that a memory no longer has: `{space}/{collection}/.history/{id}/{stamp}.md`. Refuses
to decide which memories are alike. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import AlreadyExists, NotFound, ObjectMissing
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.store.base import ObjectInfo


@dataclass(frozen=True)
class Old:
    """A version that is kept: of which memory, since when, and whether it was forgotten or replaced."""

    id: str
    key: str
    moment: datetime
    memory: Memory


async def forget(replica: Replica, clock: Clock, info: ObjectInfo) -> str:
    """Take a version of a memory away, and keep it as forgotten; the key of what is kept. NoSpace, StoreError.

    Accepted when this returns, as any removal is.
    """
    found = await replica.read(info.key)
    return await _keep(replica, clock, info, found.data, forgotten=True)


async def supersede(replica: Replica, clock: Clock, info: ObjectInfo, data: bytes) -> str:
    """Take a version away that another memory replaces, and keep it; the key of what is kept."""
    return await _keep(replica, clock, info, data, forgotten=False)


async def _keep(replica: Replica, clock: Clock, info: ObjectInfo, data: bytes, *, forgotten: bool) -> str:
    parsed = keys.parse(info.key)
    collection, _, name = parsed.name.partition("/")
    memory = Memory.parse(data, path=info.key, collection=collection, name=name)
    kept = keys.memory_history_key(parsed.space, collection, id_of(name), clock.now())
    replica.save(kept, replace(memory, forgotten=forgotten).render(), meta={}, base=None)
    replica.remove(info.key, base=info)
    return kept


def id_of(name: str) -> str:
    """What a memory is called by others: its name without how long it lasts."""
    parsed = keys.MemoryName.parse(name)
    return parsed.id if parsed is not None else name.removesuffix(".md")


async def forgotten(replica: Replica, space: str, collection: str) -> list[Old]:
    """What was forgotten and is not there again, the last first."""
    return [old for old in await versions(replica, space, collection) if old.memory.forgotten]


async def versions(replica: Replica, space: str, collection: str, memory_id: str = "") -> Sequence[Old]:
    """What is kept of one memory, or of all, the last first."""
    prefix = keys.memory_history_prefix(space, collection) + (f"{memory_id}/" if memory_id else "")
    found: list[Old] = []
    for info in await replica.walk(prefix, local=True):
        of, _, name = info.key.removeprefix(keys.memory_history_prefix(space, collection)).rpartition("/")
        try:
            moment = datetime.fromisoformat(name.removesuffix(".md")[:15]).replace(tzinfo=UTC)
            data = (await replica.read(info.key)).data
        except (ValueError, ObjectMissing):
            continue
        found.append(
            Old(of, info.key, moment, Memory.parse(data, path=info.key, collection=collection, name=f"{of}.md"))
        )
    return sorted(found, key=lambda old: old.key, reverse=True)


async def restore(replica: Replica, clock: Clock, space: str, collection: str, memory_id: str) -> str:
    """Bring a forgotten memory back; its key. NotFound when there is none, AlreadyExists when it is there."""
    kept = await versions(replica, space, collection, memory_id)
    if not kept or not kept[0].memory.forgotten:
        raise NotFound(path=f"{space}/{collection}/{memory_id}")
    memory = replace(kept[0].memory, forgotten=False)
    ends = memory.expires_at
    if ends is not None and ends <= clock.now():
        memory, ends = replace(memory, expires_at=None), None  # whoever brings it back wants to see it
    name = keys.MemoryName.parse(f"{memory_id}.md")
    key = f"{space}/{collection}/" + (str(replace(name, expires_at=ends)) if name is not None else f"{memory_id}.md")
    if replica.now(key) is not None:
        raise AlreadyExists(path=key)
    replica.save(key, memory.render(), meta={}, base=None)
    replica.remove(kept[0].key, base=None)
    return key
