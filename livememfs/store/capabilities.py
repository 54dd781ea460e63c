"""Which of the protocol's promises a store keeps, found out by trying.

Owns the probe: a few tiny objects below `_system/probe/`, removed afterwards. Refuses to remember (the caller caches
the answer per endpoint) and to decide what to do where a promise is missing. Called from the trio thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4

import structlog
import trio

from livememfs.errors import (
    BucketMissing,
    ConflictRetry,
    Denied,
    ObjectMissing,
    PreconditionFailed,
    StoreError,
    Throttled,
    Unreachable,
)
from livememfs.store.base import Condition, IfAbsent, IfMatch, Store, list_all

PREFIX = "_system/probe/"
CLEAN_UP_S = 15.0

_log = structlog.get_logger("livememfs.store")
_TEXT = "é ✓ 100%"
_NO_ETAG = "0" * 32
# These say nothing about the promise that was being tried.
_NO_ANSWER = (BucketMissing, Denied, Throttled, Unreachable)


@dataclass(frozen=True)
class Capabilities:
    """What holds. `notes` has one sentence for people on each promise that is not kept.

    `put_if_absent`, `put_if_match`, `delete_if_match`: the condition is checked, and a true one lets the change pass.
    `start_after`: listings can begin in the middle. `metadata`: any text survives as user metadata. `copy_metadata`: a
    copy onto itself replaces the metadata. `markers`: the marker of a directory keeps its metadata, when it is
    overwritten too. `ordered`: listings are in key order, `a-b` before `a/b`.
    """

    put_if_absent: bool
    put_if_match: bool
    delete_if_match: bool
    start_after: bool
    metadata: bool
    copy_metadata: bool
    markers: bool
    ordered: bool
    notes: tuple[str, ...] = ()


async def probe(store: Store) -> Capabilities:
    """Try everything once, some 30 requests.

    Raises BucketMissing, Denied, Throttled or Unreachable where they keep the probe from finding out anything.
    """
    await store.list_page(PREFIX, limit=1)
    trial = _Trial(store, f"{PREFIX}{uuid4().hex}/")
    try:
        return await trial.run()
    finally:
        with trio.move_on_after(CLEAN_UP_S, shield=True):
            await trial.clean_up()


@dataclass
class _Trial:
    """One run of the probe under a prefix of its own."""

    store: Store
    prefix: str
    notes: list[str] = field(default_factory=list)

    async def run(self) -> Capabilities:
        return Capabilities(
            put_if_absent=await self._holds(self._put_if_absent, "If-None-Match on PUT is not honoured"),
            put_if_match=await self._holds(self._put_if_match, "If-Match on PUT is not honoured"),
            delete_if_match=await self._holds(self._delete_if_match, "If-Match on DELETE is not honoured"),
            start_after=await self._holds(self._start_after, "listings ignore start-after"),
            metadata=await self._holds(self._metadata, "user metadata is lost or changed"),
            copy_metadata=await self._holds(self._copy_metadata, "a copy onto itself does not replace the metadata"),
            markers=await self._holds(self._markers, "the marker of a directory loses its metadata"),
            ordered=await self._holds(self._ordered, "listings are not in key order"),
            notes=tuple(self.notes),
        )

    async def clean_up(self) -> None:
        """Remove what the probe wrote. What cannot be removed now is named in the log and harms nobody."""
        try:
            for info in (await list_all(self.store, self.prefix)).objects:
                await self.store.delete(info.key)
        except StoreError as error:
            _log.info("probe_left_objects", prefix=self.prefix, error=str(error))

    async def _holds(self, trial: Callable[[], Awaitable[bool]], otherwise: str) -> bool:
        try:
            if await trial():
                return True
        except _NO_ANSWER:
            raise
        except StoreError as error:
            otherwise = f"{otherwise}: {error}"
        self.notes.append(otherwise)
        return False

    async def _put_if_absent(self) -> bool:
        key = self.prefix + "absent"
        await self.store.put(key, b"1", condition=IfAbsent())
        return await self._refuses_put(key, IfAbsent())

    async def _put_if_match(self) -> bool:
        key = self.prefix + "match"
        first = await self.store.put(key, b"1")
        await self.store.put(key, b"2", condition=IfMatch(first.etag))
        return await self._refuses_put(key, IfMatch(first.etag))

    async def _refuses_put(self, key: str, condition: Condition) -> bool:
        try:
            await self.store.put(key, b"3", condition=condition)
        except (PreconditionFailed, ConflictRetry):
            return (await self.store.get(key)).data != b"3"
        return False

    async def _delete_if_match(self) -> bool:
        key = self.prefix + "delete"
        info = await self.store.put(key, b"1")
        try:
            await self.store.delete(key, condition=IfMatch(_NO_ETAG))
            return False
        except (PreconditionFailed, ConflictRetry):
            pass
        await self.store.delete(key, condition=IfMatch(info.etag))
        try:
            await self.store.head(key)
        except ObjectMissing:
            return True
        return False

    async def _start_after(self) -> bool:
        base = self.prefix + "after/"
        for name in "ab":
            await self.store.put(base + name, b"1")
        page = await self.store.list_page(base, start_after=base + "a")
        return [info.key for info in page.objects] == [base + "b"]

    async def _metadata(self) -> bool:
        key = self.prefix + "metadata"
        await self.store.put(key, b"1", meta={"probe": _TEXT})
        return (await self.store.head(key)).meta == {"probe": _TEXT}

    async def _copy_metadata(self) -> bool:
        key = self.prefix + "copy"
        await self.store.put(key, b"1", meta={"probe": "old"})
        await self.store.copy(key, key, meta={"probe": _TEXT})
        found = await self.store.get(key)
        return found.data == b"1" and found.info.meta == {"probe": _TEXT}

    async def _markers(self) -> bool:
        key = self.prefix + "directory/"
        await self.store.put(key + "file", b"1")
        for value in ("old", _TEXT):
            await self.store.put(key, b"", meta={"probe": value})
        return (await self.store.head(key)).meta == {"probe": _TEXT}

    async def _ordered(self) -> bool:
        base = self.prefix + "order/"
        keys = [base + name for name in ("a", "a-b", "a/b", "b")]
        for key in reversed(keys):
            await self.store.put(key, b"1")
        return [info.key for info in (await list_all(self.store, base)).objects] == keys
