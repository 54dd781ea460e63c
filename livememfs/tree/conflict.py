"""Two hosts wrote the same object: keep both.

Owns the name of a conflict copy and the decision: identical bytes are adopted, else the bucket's version keeps the name
and ours goes beside it, with a line in `conflicts.ndjson`. Refuses to drop a byte. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.store.base import IfAbsent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context

ATTEMPTS = 100


async def keep_both(
    context: Context, path: str, key: str, data: bytes, meta: Mapping[str, str]
) -> tuple[ObjectInfo, bool]:
    """Settle a put whose condition failed; returns what the bucket now has under `key`, and whether that is ours.

    When it is not, a writer that goes on must not take that version for its own, or it would overwrite it next.

    Raises PreconditionFailed when no free name for the copy can be found.
    """
    replica = context.replica
    try:
        theirs = await replica.read(key, fresh=True)
    except errors.ObjectMissing:
        # Removed there, edited here: the edit wins.
        return await replica.put(key, data, meta=meta, condition=IfAbsent()), True
    if theirs.data == data:
        return theirs.info, True
    for attempt in range(ATTEMPTS):
        copy = conflict_key(key, context.host, f"{context.clock.now():%Y%m%dT%H%M%SZ}", attempt)
        try:
            await replica.put(copy, data, meta=meta, condition=IfAbsent())
        except errors.PreconditionFailed:
            continue
        folder = path.rpartition("/")[0]
        context.errors.conflict(path, f"{folder}/{copy.rpartition('/')[2]}", "changed by another host meanwhile")
        return theirs.info, False
    raise errors.PreconditionFailed(key=key)


def conflict_key(key: str, host: str, stamp: str, attempt: int = 0) -> str:
    """`dir/name.conflict-<host>-<utc>.md` for "dir/name.md"."""
    folder, slash, name = key.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    number = f"-{attempt}" if attempt else ""
    return f"{folder}{slash}{stem}.conflict-{host}-{stamp}{number}{dot}{suffix}"
