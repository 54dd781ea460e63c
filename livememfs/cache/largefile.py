"""Large content, in files of the cache folder: one version, or what is being written.

Owns such a file while it is in use, and which parts of it have come from the bucket so far: a part comes when somebody
reads it. Refuses to change bytes that the journal or the cache has taken (`content`): who writes on gets a copy. Trio
thread only, but for `copy`, which takes as long as the disk does and runs in a thread.

A process that is killed leaves the file without a row in the cache; the next start removes it. A program that is
writing to a large file then has to write it again, as after a power cut.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from livememfs import private
from livememfs.concurrency import for_each
from livememfs.errors import NoSpace, ObjectMissing, PreconditionFailed, StoreError
from livememfs.store.content import LARGE, PART, FileContent

if TYPE_CHECKING:
    from livememfs.cache.asking import StoreQuestions
    from livememfs.cache.blobs import Blobs
    from livememfs.cache.journal.steps import Journal
    from livememfs.store.base import ObjectInfo, Store

Fetch = Callable[[int, int], Awaitable[bytes]]
"""Get so many bytes from a start on of one version from the bucket."""
_AT_ONCE = 2
"""Parts that are asked for side by side, of at most 8 MiB each."""


class LargeFile:
    """A content by `pread` and `pwrite`. `fetch` gets what is not here; None: nothing is missing."""

    __slots__ = ("__weakref__", "_coming", "_descriptor", "_fetch", "_missing", "path", "size", "taken")

    def __init__(self, folder: Path, size: int = 0, fetch: Fetch | None = None, source: Path | None = None) -> None:
        """`source` is a file of the cache, which stays as it is. NoSpace, StoreError."""
        self.path = folder / f"{uuid4().hex}.open"
        self._fetch = fetch
        self._missing = set(range(-(-size // PART))) if fetch is not None else set[int]()
        self._coming: dict[int, trio.Lock] = {}
        self.size = size
        self.taken = source is not None
        with _on_disk():
            private.make(folder)
            if source is not None:
                os.link(source, self.path)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, private.FILE)
        weakref.finalize(self, _drop, self._descriptor, self.path)

    @property
    def complete(self) -> bool:
        """Whether all of it is here."""
        return not self._missing

    @property
    def begun(self) -> bool:
        """Whether some of it is here."""
        return len(self._missing) < -(-self.size // PART)

    def has(self, offset: int, size: int) -> bool:
        """Whether this range is here."""
        return not self._missing or self._missing.isdisjoint(self._parts(offset, size))

    async def bring(self, offset: int, size: int) -> bool:
        """Have a range here; whether the last missing part came with it.

        Raises what the store fails with; NoSpace, StoreError for the disk.
        """

        async def fetch(part: int) -> None:
            assert self._fetch is not None  # or nothing would be missing
            start = part * PART
            async with self._coming.setdefault(part, trio.Lock()):
                if part in self._missing:  # another reader may have been faster
                    self._write(start, await self._fetch(start, min(PART, self.size - start)))
                    self._missing.discard(part)
            self._coming.pop(part, None)

        wanted = [part for part in self._parts(offset, size) if part in self._missing]
        await for_each(wanted, fetch, at_once=_AT_ONCE)
        return bool(wanted) and not self._missing

    def _parts(self, offset: int, size: int) -> range:
        return range(offset // PART, -(-min(offset + size, self.size) // PART))

    def read(self, offset: int, size: int) -> bytes:
        """A range that is here, as far as there is content. StoreError."""
        size = max(0, min(size, self.size - offset))
        with _on_disk():
            data = os.pread(self._descriptor, size, offset)
            if len(data) != size:
                raise OSError(f"{self.path} was cut")
        return data

    def write(self, offset: int, data: bytes) -> None:
        """Write; a gap before `offset` reads as zeros. Not when it is `taken`. NoSpace, StoreError."""
        if offset > self.size:
            self.truncate(offset)
        self._write(offset, data)
        self.size = max(self.size, offset + len(data))

    def _write(self, offset: int, data: bytes) -> None:
        left = memoryview(data)
        with _on_disk():
            while left:
                count = os.pwrite(self._descriptor, left, offset)
                left, offset = left[count:], offset + count

    def truncate(self, size: int) -> None:
        """Cut, or extend with zeros. Not when it is `taken`. NoSpace, StoreError."""
        with _on_disk():
            os.ftruncate(self._descriptor, size)
        self.size = size

    def content(self) -> FileContent:
        """The whole content, which from now on nobody changes."""
        self.taken = True
        return FileContent(self.path, self.size)

    def copy(self) -> LargeFile:
        """The same bytes, to write to. Blocks as long as the disk takes; any thread. NoSpace, StoreError."""
        made = LargeFile(self.path.parent)
        left = self.size
        with _on_disk():
            while left and (count := os.sendfile(made._descriptor, self._descriptor, self.size - left, left)):
                left -= count
        made.size = self.size
        return made


class LargeVersions:
    """The large versions of one bucket, to be read."""

    def __init__(self, store: Store, journal: Journal, blobs: Blobs, asking: StoreQuestions) -> None:
        self._store, self._journal, self._blobs, self._asking = store, journal, blobs, asking

    def open(self, info: ObjectInfo) -> LargeFile | None:
        """The content of a large version, in a file whose parts come when they are read; None for any other.

        A part that the bucket has no more raises PreconditionFailed or ObjectMissing. NoSpace, StoreError.
        """
        here = self._blobs.content(info.key, info.etag) if info.size > LARGE else b""
        if isinstance(here, bytes):
            return None
        return self._blobs.open(info.size, partial(self._fetch, info) if here is None else None, here)

    def create(self) -> LargeFile | None:
        """A file for what is being written; None where there is no folder for it. NoSpace, StoreError."""
        return self._blobs.open()

    def keep(self, info: ObjectInfo, file: LargeFile) -> None:
        """Let the cache have a version that came in parts, now that all are here."""
        self._blobs.put(info.key, info.etag, file.content())

    async def _fetch(self, info: ObjectInfo, start: int, size: int) -> bytes:
        op = self._journal.ops.newest(info.key)
        if op is not None and op.kind == "copy":
            with suppress(ObjectMissing, PreconditionFailed):  # it was carried out meanwhile, and its source removed
                return await self._part(op.source, start, size, info.etag)
        return await self._part(info.key, start, size, info.etag)

    async def _part(self, key: str, start: int, size: int, etag: str) -> bytes:
        return await self._asking.call(lambda: self._store.get_part(key, start, size, if_match=etag), bulk=True)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Failures of the local disk, as the errors that livememfs knows."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(f"the disk of the cache is full: {error}") from error
        raise StoreError(f"the cache cannot be used: {error}") from error


def _drop(descriptor: int, path: Path) -> None:
    os.close(descriptor)
    path.unlink(missing_ok=True)
