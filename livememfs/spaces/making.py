"""Spaces as a whole: make them, seal their rules, remove them (data model 4.1, 4.2 and 5).

Owns the order in which a space's objects come and go: `_meta.json` is what makes a prefix a space, so it is written
first and removed last. Refuses to touch a space that is not there. Describing and exporting are offered from here too,
so that callers need one module. Trio thread only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    NotEmpty,
    NotText,
    PreconditionFailed,
    ReadOnly,
    Throttled,
    TooLarge,
    Unreachable,
)
from livememfs.records import keys
from livememfs.records.names import check_space_name
from livememfs.records.space import Meta
from livememfs.spaces.backup_make import each
from livememfs.spaces.describe import (
    SpaceEntry,
    SpaceInfo,
    SpaceSummary,
    counts,
    info,
    is_space,
    list_spaces,
    require_space,
    rules,
    summary,
)
from livememfs.spaces.export import Exported, Progress, export
from livememfs.spaces.objects import (
    OnPrivate,
    decode_text,
    delete_directories,
    public,
    public_as_it_is,
    public_name,
    put_new,
    unheard,
    uploaded,
)
from livememfs.store.base import ObjectInfo

__all__ = [
    "MAX_RULES_BYTES",
    "Exported",
    "Progress",
    "SpaceEntry",
    "SpaceInfo",
    "SpaceSummary",
    "check_rules",
    "counts",
    "create",
    "delete",
    "export",
    "info",
    "is_space",
    "list_spaces",
    "remove_empty",
    "require_space",
    "rules",
    "seal_rules",
    "summary",
]

log = structlog.get_logger("livememfs.spaces")

MAX_RULES_BYTES = 262_144
DELETE_ROUNDS = 3


# --- making ------------------------------------------------------------------------------------------------------


async def create(
    replica: Replica,
    clock: Clock,
    name: str,
    *,
    description: str = "",
    owner: str = "",
    rules: str | None = None,
    distil: Sequence[str] = (),
    on_private: OnPrivate = unheard,
    later: bool = False,
) -> Meta:
    """Make a space. Raises InvalidName, AlreadyExists, and what `seal_rules` raises for the rules' text. A name cannot
    have a mark in it, so one with a credential is refused. `on_private` hears what was replaced elsewhere.

    :distil: which runs take notes out of `live/`, where it is not consolidation
    :later:  where the store does not answer, make it on this machine, and in the bucket when it answers again; should
             another host have made one of that name by then, it is one space, with the record of that host

    The host that writes `_meta.json` first makes the space. If it dies after that, the space works: its folders need no
    sentinel, and rules can still be sealed.
    """
    check_space_name(name)
    public_as_it_is(name, "a space's name")
    data = None if rules is None else await public(rules, keys.rules_key(name), on_private)
    if data is not None:
        check_rules(name, data)
    key = keys.meta_key(name)
    description, owner = (public_name(text, key, on_private) for text in (description, owner))
    extra = {"distil": list(distil)} if distil else {}
    meta = Meta(name, description, owner, clock.now().astimezone(UTC).replace(microsecond=0), extra=extra)
    kept = [keys.keep_key(name, folder) for folder in (keys.LIVE, keys.BANK)]
    try:
        await put_new(replica, key, meta.render())
        for sentinel in kept:
            await replica.put(sentinel, b"")
    except PreconditionFailed:
        raise AlreadyExists(path=name) from None
    except (Throttled, Unreachable):
        if not later or data is not None:
            raise
        _accept(replica, {key: meta.render(), **dict.fromkeys(kept, b"")})
    if data is not None:
        await _put_rules(replica, name, data)
    log.info("space_created", space=name)
    return meta


def _accept(replica: Replica, objects: Mapping[str, bytes]) -> None:
    """Accept the objects of a new space here. Each of its folders is known to be empty then."""
    for key in objects:
        replica.names.begin(key.rpartition("/")[0] + "/")
    for key, content in objects.items():
        replica.save(key, content, meta={}, base=None)


async def seal_rules(replica: Replica, space: str, data: bytes) -> ObjectInfo:
    """Write a space's rules; after that only an edit (`runs/edit`) changes them.

    Raises NotFound without the space, ReadOnly when it has rules, and NotText, TooLarge or BadRequest (nothing in it)
    for a text that cannot be rules.
    """
    check_rules(space, data)
    await require_space(replica, space)
    return await _put_rules(replica, space, data)


def check_rules(space: str, data: bytes) -> None:
    """Refuse a text that cannot be rules. TooLarge, NotText, BadRequest."""
    path, again = keys.rules_key(space), "write _rules.md again: nothing is sealed yet"
    if len(data) > MAX_RULES_BYTES:
        advice = f"shorten the rules, and {again}"
        raise TooLarge(path=path, detail=f"{len(data)} bytes, and rules take {MAX_RULES_BYTES}", advice=advice)
    try:
        text = decode_text(data, path)
    except NotText as error:
        raise NotText(**error.values | {"advice": f"save the rules as UTF-8, and {again}"}) from None
    if not text.strip():
        raise BadRequest(path=path, detail="rules without a word cannot be sealed", advice=again)


async def _put_rules(replica: Replica, space: str, data: bytes) -> ObjectInfo:
    key = keys.rules_key(space)
    try:
        return await put_new(replica, key, data)
    except PreconditionFailed:
        raise ReadOnly(path=key, detail="rules are sealed once they are written") from None


# --- removing ----------------------------------------------------------------------------------------------------


async def delete(replica: Replica, space: str, *, progress: Progress | None = None) -> int:
    """Remove a space with all it holds; returns how many objects were removed. Raises NotFound.

    Called under the lease of the space: otherwise a committed run could write objects after it. `_meta.json` goes last:
    a delete that fails on the way leaves a space, and the next one goes on. Before that the space is listed again, for
    what other hosts wrote meanwhile.
    """
    await require_space(replica, space)
    async with _nothing_to_come(replica, space):
        removed = 0
        for _ in range(DELETE_ROUNDS):
            objects = [item.key for item in await replica.names.walk(f"{space}/") if item.key != keys.meta_key(space)]
            if not objects:
                break
            await each(objects, replica.delete, progress)
            removed += len(objects)
        await replica.delete(keys.meta_key(space))
        await delete_directories(replica, f"{space}/")
    log.info("space_deleted", space=space, objects=removed + 1)
    return removed + 1


async def remove_empty(replica: Replica, space: str) -> None:
    """Remove a space that holds only its own records (rules, synthesis, ledger). Raises NotFound, NotEmpty.

    A note that another host writes at the same moment is not lost: it stays under a prefix that is no space any more.
    """
    await require_space(replica, space)
    async with _nothing_to_come(replica, space):
        objects = await replica.names.walk(f"{space}/")
        counts = _content_counts(objects)
        if counts:
            detail = ", ".join(f"{count} {what}" for what, count in counts.items())
            raise NotEmpty(path=space, detail=detail)
        await each([item.key for item in objects if item.key != keys.meta_key(space)], replica.delete, None)
        await replica.delete(keys.meta_key(space))
        await delete_directories(replica, f"{space}/")
    log.info("space_removed", space=space)


@asynccontextmanager
async def _nothing_to_come(replica: Replica, space: str) -> AsyncIterator[None]:
    """Around a removal: wait until accepted writes are in the bucket, and stop background writes. TimedOut.

    An object that arrived after `_meta.json` is gone would leave a prefix that shows as a directory and is no space.
    """
    async with replica.upkeep.removing(space):
        await uploaded(replica, f"{space}/", f"what was written to {space}")
        yield


def _content_counts(objects: list[ObjectInfo]) -> dict[str, int]:
    """How many objects of each kind keep a space from being empty, by what a person calls them."""
    counts: dict[str, int] = {}
    for item in objects:
        label = _content_label(keys.parse(item.key))
        if label:
            counts[label] = counts.get(label, 0) + 1
    return counts


def _content_label(parsed: keys.ParsedKey) -> str:
    """What an object is to the user, or an empty string for a space's own records and folder markers."""
    if parsed.kind in ("note", "live-other"):
        return "in live/"
    if parsed.kind == "bank":
        return "in bank/"
    if parsed.name.endswith(f"/{keys.TOLD}") and parsed.kind == "session":
        return ""  # records of what a session was told: users cannot remove them, nor do they miss them
    if parsed.kind in ("memory", "observation", "session", "agent", "agent-index"):
        return f"in {parsed.name.partition('/')[0]}/"
    if parsed.name.startswith(f"{keys.PROPOSALS}/") and parsed.kind == "other":
        return "in .proposals/"
    own = parsed.kind != "other" or parsed.name.startswith(f"{keys.CHANGES}/")
    marker = parsed.name.endswith("/") and parsed.name.startswith((f"{keys.LIVE}/", f"{keys.BANK}/"))
    return "" if own or marker or not parsed.name else "other files or directories"
