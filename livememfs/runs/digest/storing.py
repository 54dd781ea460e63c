"""Carrying out what a digest has committed: its memories, each once.

Owns telling a memory that is still to be stored from one that was and is no more. Refuses to touch a memory that is
there, whoever has changed it since. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import for_each
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.spaces.objects import put_new


async def _are_stored(replica: Replica, entry: Entry) -> bool:
    """Whether all memories of a digest were stored before, wherever they are by now."""
    try:
        await replica.names.stat(keys.stored_key(entry.space, entry.number), fresh=True)
    except ObjectMissing:
        return False
    return True


async def store(replica: Replica, clock: Clock, entry: Entry, *, again: bool) -> None:
    """Store the memories of a digest and note that it was done. `again`: somebody may have stored some of them."""
    if await _are_stored(replica, entry):
        return

    async def one(write: Write) -> None:
        key = f"{entry.space}/{write.key}"
        if keys.has_ended(key, clock.now()) or (again and await _was_there(replica, entry.space, write.key)):
            return
        with suppress(PreconditionFailed):  # the answer to an earlier attempt was lost
            await put_new(replica, key, (write.content or "").encode("utf-8", "backslashreplace"))

    await for_each(entry.writes, one)
    with suppress(PreconditionFailed):
        await put_new(replica, keys.stored_key(entry.space, entry.number), b"")


async def _was_there(replica: Replica, space: str, key: str) -> bool:
    """Whether a memory was stored: it is there, lasts longer or shorter now, or was forgotten or replaced since."""
    collection, _, name = key.partition("/")
    parsed = keys.MemoryName.parse(name)
    memory_id = parsed.id if parsed is not None else name.removesuffix(".md")
    if await replica.names.walk(f"{space}/{collection}/{memory_id}"):
        return True
    return bool(await replica.names.walk(f"{keys.memory_history_prefix(space, collection)}{memory_id}/"))
