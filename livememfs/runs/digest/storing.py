"""Carrying out a committed digest: each of its memories is stored once.

Owns how a memory that is still to be stored is told from one that was stored and then removed. Refuses to touch a
memory that is there, even if it was changed since. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import for_each
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.memories.storing import was_there
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.spaces.objects import put_new


async def _are_stored(replica: Replica, entry: Entry) -> bool:
    """Whether all memories of a digest were stored before, even if they are gone by now."""
    try:
        await replica.names.stat(keys.stored_key(entry.space, entry.number), fresh=True)
    except ObjectMissing:
        return False
    return True


async def store(replica: Replica, clock: Clock, entry: Entry, *, again: bool) -> None:
    """Store the memories of a digest, and mark it as stored. `again`: some of them may have been stored before."""
    if await _are_stored(replica, entry):
        return

    async def store_one(write: Write) -> None:
        key = f"{entry.space}/{write.key}"
        if keys.has_ended(key, clock.now()) or (again and await was_there(replica, entry.space, write.key)):
            return
        with suppress(PreconditionFailed):  # the answer to an earlier attempt was lost
            await put_new(replica, key, (write.content or "").encode("utf-8", "backslashreplace"), meta=write.meta)

    await for_each(entry.writes, store_one)
    with suppress(PreconditionFailed):
        await put_new(replica, keys.stored_key(entry.space, entry.number), b"")
