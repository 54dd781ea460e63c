"""The bytes of a file at one version.

Owns one version's content: loaded when it is first needed, immutable until it is written to, then a private copy that
remembers whether it was saved. What is large is in a file of the cache, whose parts are loaded when they are read.

A file that changes in the bucket gets a new body, and `following` says when a handle goes on in it. Refuses sizes over
the limit it was given. Trio thread only.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import trio

from livememfs import errors
from livememfs.cache.largefile import LargeFile
from livememfs.store.content import LARGE

if TYPE_CHECKING:
    from livememfs.cache.largefile import LargeVersions
    from livememfs.cache.replica import Replica
    from livememfs.store.base import ObjectInfo
    from livememfs.store.content import Content

_serials = count(1)


class Body:
    """Content of one version. `info` is the object it came from, None for something never stored. `base` is the content
    that the writer has made this from, where that is joined line by line; None where it is that of `info`.
    """

    __slots__ = ("_data", "base", "changes", "info", "saved", "serial")

    def __init__(self, info: ObjectInfo | None, data: bytes | None = None) -> None:
        self.info = info
        self._data: bytes | bytearray | LargeFile | None = b"" if info is None and data is None else data
        self.serial = next(_serials)
        self.changes = self.saved = 0
        self.base: bytes | None = None

    @property
    def dirty(self) -> bool:
        """Whether something was written that is not saved."""
        return self.changes != self.saved

    @property
    def loaded(self) -> bool:
        """Whether all bytes are here."""
        return self._data.complete if isinstance(self._data, LargeFile) else self._data is not None

    @property
    def in_parts(self) -> bool:
        """Whether it is read part by part."""
        return isinstance(self._data, LargeFile)

    @property
    def begun(self) -> bool:
        """Whether some of the bytes of a large version are here, and some are not: no other version may complete it."""
        return isinstance(self._data, LargeFile) and self._data.begun and not self._data.complete

    def has(self, offset: int, size: int) -> bool:
        """Whether the bytes of a range are here."""
        return self._data.has(offset, size) if isinstance(self._data, LargeFile) else self._data is not None

    @property
    def size(self) -> int:
        """Bytes, known without loading."""
        if isinstance(self._data, LargeFile):
            return self._data.size
        if self._data is not None:
            return len(self._data)
        assert self.info is not None  # by construction: something never stored has its bytes
        return self.info.size

    async def load(self, replica: Replica, offset: int = 0, size: int | None = None) -> None:
        """Have the bytes here, or at least those of a range where there are very many.

        PreconditionFailed or ObjectMissing when the bucket has this version no more.
        """
        if self._data is None:
            assert self.info is not None  # as in `size`
            file = replica.large.open(self.info)
            data = await replica.read_version(self.info) if file is None else file
            if self._data is None:  # another reader may have been faster, and a writer have changed it since
                self._data = data
        await self._bring(replica, offset, size)

    async def _bring(self, replica: Replica, offset: int, size: int | None) -> None:
        file, info = self._data, self.info
        if not isinstance(file, LargeFile):
            return
        came_last = await file.bring(offset, file.size if size is None else size)
        if came_last and size is not None and info is not None:  # whoever loads all of it is about to change it
            replica.large.keep(info, file)

    def read(self, offset: int, size: int) -> bytes:
        """A part of the loaded bytes."""
        assert self._data is not None  # handles load before they read
        if isinstance(self._data, LargeFile):
            return self._data.read(offset, size)
        return bytes(self._data[offset : offset + size])

    def value(self) -> bytes:
        """All of the loaded bytes, as they are now."""
        return self.read(0, self.size)

    def content(self) -> Content:
        """The same; a large one stays in its file, which nobody changes from now on."""
        return self._data.content() if isinstance(self._data, LargeFile) else self.value()

    async def own(self) -> None:
        """Before a write: have a file that is ours alone, where the journal or the cache have the present one."""
        while isinstance(file := self._data, LargeFile) and file.taken:
            copy = await trio.to_thread.run_sync(file.copy)
            if self._data is file:  # another writer may have been faster
                self._data = copy

    def write(self, offset: int, data: bytes, *, limit: int, path: str, large: LargeVersions) -> None:
        """Write at `offset`; a gap before it is filled with zeros. TooLarge; NoSpace, StoreError for a large file."""
        content = self._writable(offset + len(data), limit, path, large)
        if isinstance(content, LargeFile):
            content.write(offset, data)
        else:
            if offset > len(content):
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data
        self.changes += 1

    def truncate(self, size: int, *, limit: int, path: str, large: LargeVersions) -> None:
        """Cut or extend with zeros. TooLarge; NoSpace, StoreError for a large file."""
        if size == 0:
            self._data = bytearray()
        content = self._writable(size, limit, path, large)
        if isinstance(content, LargeFile):
            content.truncate(size)
        else:
            del content[size:]
            content.extend(bytes(size - len(content)))
        self.changes += 1

    def let_go(self) -> None:
        """Nobody has the file open: what the cache has need not be held here as well."""
        if self.info is not None and not self.dirty:
            self._data = None

    def mark_dirty(self) -> None:
        """Say that these bytes are not in the bucket."""
        self.changes += 1

    def _writable(self, end: int, limit: int, path: str, large: LargeVersions) -> bytearray | LargeFile:
        """What can be changed up to `end`."""
        if end > limit:
            raise errors.TooLarge(path=path, detail=f"at most {limit:,} bytes")
        if isinstance(self._data, LargeFile):
            assert not self._data.taken  # by `own`
            return self._data
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data or b"")
        file = large.create() if end > LARGE else None
        if file is None:
            return self._data
        file.write(0, bytes(self._data))
        self._data = file
        return file
