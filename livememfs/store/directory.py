"""A folder as a store: the default when no bucket is configured, with the guarantees of one.

Owns the way from trio to the worker threads; what happens there is `livememfs.store.folder`. The object `a/b.md` is the
file `a/b.md` with plain content, files placed by hand are objects, and several processes may share the folder.
Called from the trio thread. Reads are abandoned when cancelled, a change is always waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import trio

from livememfs.clock import Clock, SystemClock
from livememfs.errors import LiveMemError, ObjectMissing
from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfMatch,
    ObjectInfo,
    Page,
    StoredObject,
    StoreStatistics,
    Tally,
)
from livememfs.store.content import Content
from livememfs.store.folder.disk import Disk
from livememfs.store.folder.files import Files
from livememfs.store.listing import ListingRequest

T = TypeVar("T")

_THREADS = 16


class DirectoryStore:
    """A Store in a folder.

    Opening creates the folder when it is missing and removes what a killed process left half written; this is short
    local work and happens in the constructor. `disk` is how bytes are made to last (`Disk(fsync=False)` for tests and
    throw-away folders). Raises Denied, NoSpace or StoreError when the folder cannot be used.
    """

    def __init__(self, root: Path, clock: Clock | None = None, *, disk: Disk | None = None) -> None:
        self.root = root.absolute()
        self.label = f"folder {self.root}"
        self._files = Files(self.root, clock or SystemClock(), disk or Disk())
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._tally = Tally()

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        with self._tally.request("get"):
            found = await self._read(lambda: self._files.get(key, if_match))
            self._tally.bytes_in += len(found.data)
            return found

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part."""
        with self._tally.request("get"):
            part = await self._read(lambda: self._files.get_part(key, start, size, if_match))
            self._tally.bytes_in += len(part)
            return part

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many. One thread does: a disk answers sooner than threads take turns."""
        gone_on = True

        def read() -> list[StoredObject]:
            found: list[StoredObject] = []
            with suppress(LiveMemError):
                for key in keys:
                    with suppress(ObjectMissing):
                        if gone_on:
                            found.append(self._files.get(key, None))
            return found

        try:
            found = await self._read(read)
        finally:
            gone_on = False
        self._tally.requests("get", len(found))
        self._tally.bytes_in += sum(len(one.data) for one in found)
        return found

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        with self._tally.request("head"):
            return await self._read(lambda: self._files.head(key))

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        with self._tally.request("put"):
            info = await self._change(lambda: self._files.put(key, data, meta, condition))
            self._tally.bytes_out += len(data)
            return info

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete."""
        with self._tally.request("delete"):
            await self._change(lambda: self._files.delete(key, condition))

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """See Store.copy."""
        with self._tally.request("copy"):
            return await self._change(lambda: self._files.copy(source, target, meta, condition))

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        """See Store.list_page."""
        request = ListingRequest(prefix, delimiter, start_after, token, limit)
        with self._tally.request("list"):
            return await self._read(lambda: self._files.list_page(request))

    async def aclose(self) -> None:
        """See Store.aclose."""
        await self._change(self._files.close)

    def statistics(self) -> StoreStatistics:
        """See Store.statistics."""
        return self._tally.snapshot()

    async def _read(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)

    async def _change(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work, limiter=self._limiter)
