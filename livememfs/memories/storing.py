"""Memories as objects: storing, forgetting, bringing back, and removing for good.

Owns where former versions of a memory are kept, `{space}/{collection}/.history/{id}/{stamp}.md`, and how a text without
a file is stored as a memory or a note. Refuses to decide which memories are alike. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.code.workplaces import Workplaces
from livememfs.concurrency import aside, for_each
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    NotFound,
    NotText,
    ObjectMissing,
    PreconditionFailed,
    TooLarge,
)
from livememfs.memories.dictated import Dictated
from livememfs.records import keys
from livememfs.records.memory import Memory, sealed
from livememfs.records.metadata import META_TRUST
from livememfs.records.sealing import BY_AGENT, Form, MemoryForm, says_nothing
from livememfs.records.trust import Trust, check_raise, kept_stamp, trust_of, vouched
from livememfs.spaces.describe import require_space
from livememfs.spaces.objects import OnPrivate, put_new, unheard
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text import frontmatter
from livememfs.text.fields import decode, split
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.privacy.redaction import told


@dataclass(frozen=True)
class Old:
    """A former version of a memory: its memory's id, its key, since when it is kept, and its class of trust."""

    id: str
    key: str
    moment: datetime
    memory: Memory
    stamp: Mapping[str, str] = field(default_factory=dict)


async def forget(replica: Replica, clock: Clock, info: ObjectInfo, *, by_caller: bool = True) -> str:
    """Remove a memory and keep it as forgotten; returns the key of what is kept. NoSpace, StoreError, TooLarge.

    Both are accepted when this returns, like any removal. `by_caller`: a file operation asks for it.
    """
    parsed = keys.parse(info.key)
    collection, _, name = parsed.name.partition("/")
    stored = await replica.read(info.key)
    memory = Memory.parse(stored.data, path=info.key, collection=collection, name=name)
    kept = keys.memory_history_key(parsed.space, collection, id_of(name), clock.now())
    data = sealed(replace(memory, forgotten=True), info.key)
    replica.save(kept, data, meta=kept_stamp(stored.info.meta), base=None, by_caller=by_caller)
    replica.remove(info.key, base=info, by_caller=by_caller)
    return kept


def keep_version(replica: Replica, clock: Clock, stored: StoredObject) -> None:
    """Keep the version of a memory that is about to be replaced, in its history. NoSpace."""
    parsed = keys.parse(stored.info.key)
    collection, _, name = parsed.name.partition("/")
    kept = keys.memory_history_key(parsed.space, collection, id_of(name), clock.now())
    replica.save(kept, stored.data, meta=kept_stamp(stored.info.meta), base=None, by_caller=False)


def id_of(name: str) -> str:
    """The id by which others name a memory: its file name without its end time."""
    parsed = keys.MemoryName.parse(name)
    return parsed.id if parsed is not None else name.removesuffix(".md")


async def forgotten(replica: Replica, space: str, collection: str) -> list[Old]:
    """The forgotten memories that were not brought back, the last one first."""
    return [old for old in await versions(replica, space, collection) if old.memory.forgotten]


async def versions(replica: Replica, space: str, collection: str, memory_id: str = "") -> Sequence[Old]:
    """The former versions of one memory, or of all, the last one first."""
    prefix = keys.memory_history_prefix(space, collection) + (f"{memory_id}/" if memory_id else "")
    former: list[Old] = []
    for info in await replica.names.walk(prefix, local=True):
        of, _, name = info.key.removeprefix(keys.memory_history_prefix(space, collection)).rpartition("/")
        try:
            moment = datetime.fromisoformat(name.removesuffix(".md")[:15]).replace(tzinfo=UTC)
            stored = await replica.read(info.key)
            memory = Memory.parse(stored.data, path=info.key, collection=collection, name=f"{of}.md")
        except (ValueError, ObjectMissing, NotText):
            continue  # a damaged one must not hide the others
        former.append(Old(of, info.key, moment, memory, kept_stamp(stored.info.meta)))
    return sorted(former, key=lambda old: old.key, reverse=True)


async def restore(replica: Replica, clock: Clock, space: str, collection: str, memory_id: str) -> str:
    """Bring a forgotten memory back; returns its key. NotFound; AlreadyExists when a memory with its id is there."""
    kept = await versions(replica, space, collection, memory_id)
    if not kept or not kept[0].memory.forgotten:
        raise NotFound(path=f"{space}/{collection}/{memory_id}")
    memory = replace(kept[0].memory, forgotten=False)
    ends = memory.expires_at
    if ends is not None and ends <= clock.now():
        memory, ends = replace(memory, expires_at=None), None  # with an end in the past it would vanish at once
    name = keys.MemoryName.parse(f"{memory_id}.md")
    key = f"{space}/{collection}/" + (str(replace(name, expires_at=ends)) if name is not None else f"{memory_id}.md")
    if replica.names.now(key) is not None:
        raise AlreadyExists(path=key)
    replica.save(key, memory.render(), meta=kept[0].stamp, base=None, by_caller=False)
    replica.remove(kept[0].key, base=None, by_caller=False)
    return key


# --- what a command asks for ------------------------------------------------------------------------------------------


async def current(replica: Replica, clock: Clock, space: str, collection: str) -> list[tuple[str, Memory]]:
    """The memories that are there now, with their ids, by name. NotFound without the space."""
    await require_space(replica, space)
    prefix = f"{space}/{collection}/"
    infos = [info for info in await replica.names.walk(prefix, local=True) if keys.parse(info.key).kind == "memory"]
    memories: dict[str, Memory] = {}

    async def read(info: ObjectInfo) -> None:
        name = info.key.removeprefix(prefix)
        try:
            data = (await replica.read(info.key)).data
            memories[name] = Memory.parse(data, path=info.key, collection=collection, name=name)
        except (ObjectMissing, NotText):
            return

    await for_each([info for info in infos if not keys.has_ended(info.key, clock.now())], read)
    return [(id_of(name), memories[name]) for name in sorted(memories)]


async def remember(
    replica: Replica,
    clock: Clock,
    space: str,
    collection: str,
    text: str,
    *,
    agent: str,
    on_private: OnPrivate = unheard,
    code: Workplaces | None = None,
    dictated: Dictated | None = None,
) -> str:
    """Store a memory and return its key; see `store_text`."""
    form = MemoryForm(collection)
    return await store_text(
        replica, clock, form, space, text, agent=agent, on_private=on_private, code=code, dictated=dictated
    )


async def store_text(
    replica: Replica, clock: Clock, form: Form, space: str, text: str, *, agent: str, on_private: OnPrivate,
    code: Workplaces | None = None, dictated: Dictated | None = None,
) -> str:  # fmt: skip
    """Store a text that has no name as a note or a memory, and return its key; when this returns, the bucket has it.

    `on_private` is called with what was replaced; `code` knows in which code somebody works, `dictated` whether the
    words are a user's. Raises NotFound without the space, BadRequest for a text that is empty after its front matter,
    NotText, TooLarge,
    AlreadyExists when no free name was found.
    """
    await require_space(replica, space)
    raw, now = text.encode("utf-8", "surrogatepass"), clock.now()
    path = f"{space}/{form.folder}/(new {form.noun})"
    if says_nothing(raw):
        raise BadRequest(path=path, detail=f"there is nothing in the {form.noun}")
    origin = dictated.origin(space, raw, now) if dictated is not None else BY_AGENT
    origin = replace(origin, about=await code.fields(space, raw)) if code is not None else origin
    seal = partial(form.seal, raw, path=path, written_name="", space=space, agent=agent, now=now, origin=origin)
    sealed = await aside(len(raw), seal)
    if sealed.replaced:
        on_private(told(path, sealed.replaced))
    order = replica.order.next(space, sealed.at, now) if sealed.at is not None else 0
    key = ""
    for uid in form.uids(space, token_hex(8), order):
        key = f"{space}/{form.folder}/{sealed.named(uid)}"
        with suppress(PreconditionFailed):
            await put_new(replica, key, sealed.data, meta=sealed.meta)
            return key
    raise AlreadyExists(path=key)


async def trust_of_object(replica: Replica, key: str) -> Trust:
    """The class of a note or a memory. ObjectMissing, NotText."""
    stored = await replica.read(key)
    return trust_of(stored.info.meta, split(decode(stored.data, key))[0])


async def vouch(replica: Replica, clock: Clock, info: ObjectInfo, trust: Trust, *, by: str) -> None:
    """Give a note or a memory another class, which is accepted when this returns. The former version of a memory is
    kept in its history.

    :by: the agent behind the process that asks; empty or a person's name where there is none

    Raises NotPermitted for an agent that would raise it, ObjectMissing, NotText, TooLarge, NoSpace.
    """
    stored = await replica.read(info.key)
    fields, body = split(decode(stored.data, info.key))
    was = trust_of(stored.info.meta, fields)
    check_raise(info.key, was, trust, by)
    if trust is was:
        return
    try:
        data = frontmatter.join(vouched(fields, trust), body).encode()
    except FrontMatterError as error:
        raise TooLarge(path=info.key, detail=f"its front matter: {error}") from error
    if keys.parse(info.key).kind == "memory":
        keep_version(replica, clock, stored)
    meta = {**(stored.info.meta or {}), META_TRUST: trust.word}
    replica.save(info.key, data, meta=meta, base=stored.info, by_caller=False)


async def the_one(replica: Replica, clock: Clock, space: str, collection: str, memory_id: str) -> ObjectInfo:
    """The object of a memory by its id or the beginning of one. NotFound, BadRequest when several begin so."""
    await require_space(replica, space)
    prefix = f"{space}/{collection}/"
    matches = [
        info
        for info in await replica.names.walk(prefix, local=True)
        if keys.parse(info.key).kind == "memory"
        and info.key.removeprefix(prefix).startswith(memory_id.removesuffix(".md"))
        and not keys.has_ended(info.key, clock.now())
    ]
    if not matches:
        raise NotFound(path=prefix + memory_id)
    if len(matches) > 1:
        raise BadRequest(path=prefix + memory_id, detail=f"{len(matches)} memories begin so")
    return matches[0]


async def was_there(replica: Replica, space: str, key: str) -> bool:
    """Whether a memory was stored before: it is there, with whatever end, or was forgotten or replaced since. `key` is
    relative to the space.
    """
    collection, _, name = key.partition("/")
    memory_id = id_of(name)
    if await replica.names.walk(f"{space}/{collection}/{memory_id}"):
        return True
    return bool(await replica.names.walk(f"{keys.memory_history_prefix(space, collection)}{memory_id}/"))


async def purge(replica: Replica, space: str, collection: str, memory_id: str) -> int:
    """Remove a memory and its former versions for good; returns how many objects. NotFound when there are none."""
    await require_space(replica, space)
    prefix = f"{space}/{collection}/"
    whole = [info.key for info in await replica.names.walk(prefix) if _is_of(info.key.removeprefix(prefix), memory_id)]
    if not whole:
        raise NotFound(path=prefix + memory_id)
    for key in whole:
        await replica.delete(key)
    return len(whole)


def _is_of(name: str, memory_id: str) -> bool:
    """Whether the object of this name is the memory, or a former version of it."""
    return id_of(name) == memory_id or name.startswith(f"{keys.MEMORY_HISTORY}/{memory_id}/")
