"""The bytes of a file at one version.

Owns one version's content: loaded when it is first needed, immutable until it is written to, then a private copy that
remembers whether it was saved. A file that changes in the bucket gets a new body; handles keep the one they opened, so
nobody ever reads half of one version and half of another. Refuses sizes over the limit it was given. Trio thread only.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from livememfs import errors

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.store.base import ObjectInfo

_serials = count(1)


class Body:
    """Content of one version. `info` is the object it came from, None for something never stored."""

    __slots__ = ("_data", "changes", "info", "saved", "serial")

    def __init__(self, info: ObjectInfo | None, data: bytes | None = None) -> None:
        self.info = info
        self._data: bytes | bytearray | None = b"" if info is None and data is None else data
        self.serial = next(_serials)
        self.changes = self.saved = 0

    @property
    def dirty(self) -> bool:
        """Whether something was written that is not saved."""
        return self.changes != self.saved

    @property
    def loaded(self) -> bool:
        """Whether the bytes are here."""
        return self._data is not None

    @property
    def size(self) -> int:
        """Bytes, known without loading."""
        if self._data is not None:
            return len(self._data)
        assert self.info is not None  # by construction: something never stored has its bytes
        return self.info.size

    async def load(self, replica: Replica) -> None:
        """Have the bytes here. PreconditionFailed or ObjectMissing when the bucket has this version no more."""
        if self._data is None:
            assert self.info is not None  # as in `size`
            data = await replica.read_version(self.info)
            if self._data is None:  # another reader may have been faster, and a writer have changed it since
                self._data = data

    def read(self, offset: int, size: int) -> bytes:
        """A part of the loaded bytes."""
        assert self._data is not None  # handles load before they read
        return bytes(self._data[offset : offset + size])

    def value(self) -> bytes:
        """All of the loaded bytes, as they are now."""
        assert self._data is not None  # as in `read`
        return bytes(self._data)

    def write(self, offset: int, data: bytes, *, limit: int, path: str) -> None:
        """Write at `offset`; a gap before it is filled with zeros. TooLarge."""
        end = offset + len(data)
        if end > limit:
            raise errors.TooLarge(path=path, detail=f"at most {limit:,} bytes")
        content = self._writable()
        if offset > len(content):
            content.extend(bytes(offset - len(content)))
        content[offset:end] = data
        self.changes += 1

    def truncate(self, size: int, *, limit: int, path: str) -> None:
        """Cut or extend with zeros. TooLarge."""
        if size > limit:
            raise errors.TooLarge(path=path, detail=f"at most {limit:,} bytes")
        if size == 0:
            self._data = bytearray()
        content = self._writable()
        del content[size:]
        content.extend(bytes(size - len(content)))
        self.changes += 1

    def mark_dirty(self) -> None:
        """Say that these bytes are not in the bucket."""
        self.changes += 1

    def _writable(self) -> bytearray:
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data or b"")
        return self._data
