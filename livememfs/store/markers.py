"""Markers of directories on stores that lose what describes them.

Owns where mode, owner and times of a directory are kept. The marker `a/` carries them as user metadata. A store that
has directories of its own (SeaweedFS, a bucket with a hierarchical namespace) takes the marker for one of these, and
loses the metadata without a word. There an empty object `a/.livememfs-directory` carries them, under the same
conditions, and everybody above still sees one object `a/`. Which kind a store is shows when the first marker has been
written: it is looked at once. Refuses to touch any other key, and to show a directory of the store's own as an object:
no key stands for it. Called from the trio thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.records.keys import MARKER
from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfAbsent,
    IfMatch,
    ObjectInfo,
    Page,
    Store,
    StoredObject,
    StoreStatistics,
    check_condition,
)
from livememfs.store.content import Content

_DESCRIBES = f"/{MARKER}"


class MarkerStore:
    """A Store whose markers keep their metadata, made of one whose markers may not.

    `kept`: whether the markers of `inner` keep it; None while nobody knows.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.kept: bool | None = None

    @property
    def label(self) -> str:
        """The wrapped store's label."""
        return self.inner.label

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        beside = await self._beside(key) if self.kept is False else None
        if beside is None:
            found = await self.inner.get(key, if_match=if_match)
            self._expect_object(found.info)
            return found
        check_condition(None if if_match is None else IfMatch(if_match), key=key, current=beside.etag)
        return StoredObject(beside, b"")

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part. A marker has no parts."""
        return await self.inner.get_part(key, start, size, if_match=if_match)

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many. Markers are left out: they have no content."""
        return await self.inner.get_many([key for key in keys if not key.endswith("/")], at_once=at_once)

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        if self.kept is False and (beside := await self._beside(key)) is not None:
            return beside
        try:
            info = await self.inner.head(key)
            self._expect_object(info)
        except ObjectMissing:
            beside = await self._beside(key) if self.kept is None else None
            if beside is None:
                raise
            return beside
        if key.endswith("/") and self.kept is None:
            if info.meta:
                self.kept = True
            else:
                return await self._beside(key) or info
        return info

    def _expect_object(self, info: ObjectInfo) -> None:
        """ObjectMissing for a directory of the store's own."""
        if _is_no_object(info):
            self.kept = False
            raise ObjectMissing(key=info.key)

    async def _beside(self, key: str) -> ObjectInfo | None:
        """What describes a directory in place of its marker; None: nothing does, or the key is no marker."""
        if not key.endswith("/"):
            return None
        try:
            info = _shown(await self.inner.head(key + MARKER))
        except ObjectMissing:
            return None
        self.kept = False
        return info

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        if not key.endswith("/") or data:
            return await self.inner.put(key, data, meta=meta, condition=condition)
        if self.kept is False:
            return await self._put_beside(key, meta, condition)
        try:
            info = await self.inner.put(key, data, meta=meta, condition=condition)
        except PreconditionFailed:
            if not isinstance(condition, IfAbsent) or await self._has(key):
                raise
            return await self._put_beside(key, meta, condition)
        if self.kept is None and meta:
            self.kept = dict((await self.inner.head(key)).meta or {}) == dict(meta)
        # Found out here, or by whoever wrote another marker at the same moment.
        return await self._put_beside(key, meta, None) if self.kept is False and meta else info

    async def _has(self, key: str) -> bool:
        """Whether there is an object, and not a directory of the store's own."""
        try:
            await self.head(key)
        except ObjectMissing:
            return False
        return True

    async def _put_beside(self, key: str, meta: Mapping[str, str] | None, condition: Condition | None) -> ObjectInfo:
        """Write the object that describes the directory, on a condition that is about its marker."""
        try:
            return _shown(await self.inner.put(key + MARKER, b"", meta=meta, condition=condition))
        except (PreconditionFailed, ObjectMissing):
            if not isinstance(condition, IfMatch):
                raise
            # The directory may have a bare marker, which another program made: that is the version which was seen.
            check_condition(condition, key=key, current=(await self.head(key)).etag)
            return _shown(await self.inner.put(key + MARKER, b"", meta=meta, condition=IfAbsent()))

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete. Such a store lists a directory of its own until its marker is deleted, after all else."""
        if not key.endswith("/") or self.kept is True:
            await self.inner.delete(key, condition=condition)
            return
        if condition is not None:  # all markers have the same ETag: that of nothing
            check_condition(condition, key=key, current=(await self.head(key)).etag)
        await self.inner.delete(key + MARKER)
        await self.inner.delete(key)

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """See Store.copy. A marker is written anew: it is empty, and its metadata may lie elsewhere."""
        if not target.endswith("/") or self.kept is True:
            return await self.inner.copy(source, target, meta=meta, condition=condition, known=known)
        found = await self.head(source)
        return await self.put(target, b"", meta=found.meta if meta is None else meta, condition=condition)

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        """See Store.list_page. What describes a directory is shown as its marker, once."""
        page = await self.inner.list_page(
            prefix, delimiter=delimiter, start_after=start_after, token=token, limit=limit
        )
        if not any(info.key.endswith(_DESCRIBES) or _is_no_object(info) for info in page.objects):
            return page
        self.kept = False
        there = [info for info in page.objects if not _is_no_object(info)]
        shown = {info.key: info for info in there if not info.key.endswith(_DESCRIBES)}
        shown |= {info.key: info for info in map(_shown, there) if info.key.endswith("/")}
        return replace(page, objects=tuple(shown[key] for key in sorted(shown)))

    async def aclose(self) -> None:
        """See Store.aclose."""
        await self.inner.aclose()

    def statistics(self) -> StoreStatistics:
        """See Store.statistics."""
        return self.inner.statistics()


def _shown(info: ObjectInfo) -> ObjectInfo:
    """What describes a directory, under the key of the directory's marker; anything else as it is."""
    return replace(info, key=info.key.removesuffix(MARKER)) if info.key.endswith(_DESCRIBES) else info


def _is_no_object(info: ObjectInfo) -> bool:
    """Whether this is a directory of the store's own: SeaweedFS lists one that is empty without an ETag, and answers a
    HEAD with that of no part at all.
    """
    return info.key.endswith("/") and (not info.etag or info.etag.endswith("-0"))
