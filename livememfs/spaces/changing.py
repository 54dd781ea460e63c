"""Changing what a space's `_meta.json` says: description, owner, and a person's choices.

Owns that no other field is changed, and no version that was not read is overwritten: a run may write the record at the
same moment. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from livememfs.cache.replica import Replica
from livememfs.errors import NotFound, ObjectMissing, ObjectUnreadable, PreconditionFailed
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.spaces.objects import OnPrivate, public_name, put_version, unheard

TRIES = 10


async def describe(
    replica: Replica, space: str, *, description: str = "", owner: str = "", on_private: OnPrivate = unheard
) -> Meta:
    """Change description, owner, or both; an empty text leaves what is there. Returns the record.

    Raises NotFound, ObjectUnreadable, PreconditionFailed when others keep changing it. `on_private` hears what was
    replaced.
    """
    key = keys.meta_key(space)
    description, owner = (public_name(text, key, on_private) for text in (description, owner))
    return await _change(
        replica,
        space,
        lambda meta: replace(meta, description=description or meta.description, owner=owner or meta.owner),
    )


async def allow_web(replica: Replica, space: str, allowed: bool) -> Meta:
    """Have agents told, or not, what the web said without asking for it. Raises as `describe`."""
    return await _change(replica, space, lambda meta: meta.allowing_web(allowed))


async def want_proposals(replica: Replica, space: str, wanted: bool) -> Meta:
    """Have what digests and observers would add wait for a person, or not. Raises as `describe`."""
    return await _change(replica, space, lambda meta: meta.with_proposals(wanted))


async def _change(replica: Replica, space: str, change: Callable[[Meta], Meta]) -> Meta:
    key = keys.meta_key(space)
    for _ in range(TRIES):
        try:
            stored = await replica.read(key, fresh=True)
        except ObjectMissing:
            raise NotFound(path=space) from None
        try:
            meta = Meta.parse(stored.data)
        except ValueError as error:
            raise ObjectUnreadable(error, path=key) from error
        changed = change(meta)
        if changed == meta:
            return meta
        try:
            await put_version(replica, key, changed.render(), stored.info.etag, stored.info.meta)
        except PreconditionFailed:
            continue
        return changed
    raise PreconditionFailed(key=key)
