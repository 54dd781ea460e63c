"""A store in this process's memory: the reference the others are compared with, and the quick one for tests.

Owns a dictionary. Refuses to outlive the process. Called from the trio thread only: each method gives way once at its
start and then runs without an await, so a condition and its change are one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from livememfs.clock import Clock, SystemClock
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfMatch,
    ObjectInfo,
    Page,
    StoredObject,
    StoreStatistics,
    Tally,
    check_condition,
    check_key,
    check_meta,
    get_each,
    nanoseconds,
)
from livememfs.store.content import Content, content_etag, whole
from livememfs.store.listing import ListingRequest, SortedKeys, page_of


class MemoryStore:
    """A Store in a dictionary. `clock` dates the objects."""

    def __init__(self, clock: Clock | None = None, *, label: str = "memory") -> None:
        self.label = label
        self._clock: Clock = clock or SystemClock()
        self._objects: dict[str, StoredObject] = {}
        self._tally = Tally()

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        await trio.lowlevel.checkpoint()
        with self._tally.request("get"):
            found = self._find(key)
            if if_match is not None and found.info.etag != if_match:
                raise PreconditionFailed(key=key)
            self._tally.bytes_in += len(found.data)
            return found

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part."""
        return (await self.get(key, if_match=if_match)).data[start : start + size]

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many."""
        return await get_each(self, keys)

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        await trio.lowlevel.checkpoint()
        with self._tally.request("head"):
            return self._find(key).info

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        await trio.lowlevel.checkpoint()
        with self._tally.request("put"):
            info = self._place(check_key(key), whole(data), check_meta(meta), condition)
            self._tally.bytes_out += len(data)
            return info

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete."""
        await trio.lowlevel.checkpoint()
        with self._tally.request("delete"):
            if condition is not None:
                check_condition(condition, key=key, current=self._find(key).info.etag)
            self._objects.pop(check_key(key), None)

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
        await trio.lowlevel.checkpoint()
        with self._tally.request("copy"):
            check_key(target)
            found = self._find(source)
            kept = found.info.meta if meta is None else meta
            return self._place(target, found.data, check_meta(kept), condition)

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
        await trio.lowlevel.checkpoint()
        with self._tally.request("list"):
            request = ListingRequest(prefix, delimiter, start_after, token, limit)
            page = page_of(SortedKeys(sorted(self._objects)), request)
            objects = tuple(replace(self._objects[key].info, meta=None) for key in page.keys)
            return Page(objects, tuple(page.prefixes), page.next_token)

    async def aclose(self) -> None:
        """Nothing to let go of; the objects stay readable."""
        await trio.lowlevel.checkpoint()

    def statistics(self) -> StoreStatistics:
        """See Store.statistics."""
        return self._tally.snapshot()

    def _find(self, key: str) -> StoredObject:
        try:
            return self._objects[check_key(key)]
        except KeyError:
            raise ObjectMissing(key=key) from None

    def _place(self, key: str, data: bytes, meta: dict[str, str], condition: Condition | None) -> ObjectInfo:
        current = self._objects.get(key)
        check_condition(condition, key=key, current=current.info.etag if current else None)
        info = ObjectInfo(key, content_etag(data), len(data), nanoseconds(self._clock.now()), meta)
        self._objects[key] = StoredObject(info, bytes(data))
        return info
