"""Changing what a space's `_meta.json` says for people: description and owner.

Owns that no other field is changed, and no version that was not read is overwritten: a run may write the record at the
same moment. Trio thread only.
"""

from __future__ import annotations

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
    for _ in range(TRIES):
        try:
            stored = await replica.read(key, fresh=True)
        except ObjectMissing:
            raise NotFound(path=space) from None
        try:
            meta = Meta.parse(stored.data)
        except ValueError as error:
            raise ObjectUnreadable(error, path=key) from error
        changed = replace(meta, description=description or meta.description, owner=owner or meta.owner)
        if changed == meta:
            return meta
        try:
            await put_version(replica, key, changed.render(), stored.info.etag, stored.info.meta)
        except PreconditionFailed:
            continue
        return changed
    raise PreconditionFailed(key=key)
