"""The marker of a directory: the empty object `a/` that stands for the directory `a` itself.

Owns when it is written: an empty directory has no other object, and mode, owner and times of a directory are its
metadata.
Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.plain import PlainDirectory


async def marker_of(directory: PlainDirectory) -> ObjectInfo | None:
    """The marker with its metadata; None when there is none."""
    names = directory.context.replica.names
    marker = (await names.listing(directory.prefix)).objects.get("") if directory.prefix else None
    return next(iter(await names.complete([marker])), None) if marker is not None else None


async def keep_directory(directory: PlainDirectory, leaving: str) -> None:
    """Before the name `leaving` goes: if nothing else is there, write a marker, or the directory would go as well."""
    if not directory.prefix or directory.parent is None:
        return
    replica = directory.context.replica
    empty = await replica.presence.empty(directory.prefix)
    listing = await replica.names.listing(directory.prefix)
    if listing.folders - empty <= {leaving} and set(listing.objects) <= {leaving}:
        replica.save(directory.prefix, b"", meta={}, base=None)
