"""A store that has directories of its own, as SeaweedFS does: what it does differently, in memory.

A marker loses its metadata. A prefix stays listed after the last key below it went, as a directory that no key stands
for, until its marker is deleted. A LIST of that directory shows it as an object without an ETag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from livememfs.cache.levels import above
from livememfs.clock import Clock
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.store.base import MAX_PAGE, Condition, IfAbsent, IfMatch, ObjectInfo, Page, StoredObject
from livememfs.store.memory import MemoryStore


class HierarchicalStore(MemoryStore):
    """See the module. `stays_listed` False: only metadata is lost, and listings are those of S3."""

    def __init__(self, clock: Clock | None = None, *, stays_listed: bool = True) -> None:
        super().__init__(clock, label="hierarchical")
        self._own: set[str] = set()
        """The directories, as prefixes."""
        self._stays_listed = stays_listed

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        lost = key.endswith("/") and not data
        if isinstance(condition, IfAbsent) and key in self._own:
            raise PreconditionFailed(key=key)
        info = await super().put(key, data, meta=None if lost else meta, condition=condition)
        if self._stays_listed:
            self._own.update([*above(key), *([key] if key.endswith("/") else [])])
        return info

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        try:
            return await super().get(key, if_match=if_match)
        except ObjectMissing:
            return StoredObject(await self.head(key), b"")

    async def head(self, key: str) -> ObjectInfo:
        try:
            return await super().head(key)
        except ObjectMissing:
            if key not in self._own:
                raise
            return ObjectInfo(key, f"{'0' * 32}-0", 0, 0, {})

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        await super().delete(key, condition=condition)
        if not any(other.startswith(key) for other in (*self._objects, *self._own - {key})):
            self._own.discard(key)

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        page = await super().list_page(prefix, delimiter=delimiter, start_after=start_after, token=token, limit=limit)
        if delimiter != "/" or token is not None or start_after:
            return page
        cut = len(prefix)
        below = {name[: name.index("/", cut) + 1] for name in self._own if name.startswith(prefix) and len(name) > cut}
        prefixes = tuple(sorted({*page.prefixes, *below}))
        bare = prefix in self._own and not page.objects and not prefixes
        itself = (ObjectInfo(prefix, "", 0, 0),) if bare else ()
        return replace(page, objects=(*itself, *page.objects), prefixes=prefixes)
