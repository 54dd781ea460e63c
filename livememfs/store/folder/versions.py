"""Which version of an object lies on the disk now: the reading half of the folder store.

Owns finding an object's content file and putting it together with its side file, without a lock: content files are
replaced, never rewritten, so an open one is a snapshot. Refuses to write. Any thread may call it.

Etags of files that were placed by hand are computed from their bytes and remembered in memory by inode, size, mtime
and ctime.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from livememfs.errors import StoreError
from livememfs.store.base import ObjectInfo
from livememfs.store.content import LARGE, Content, FileContent
from livememfs.store.folder import sidecar
from livememfs.store.folder.layout import Layout
from livememfs.store.folder.place import FolderPlace
from livememfs.store.folder.sidecar import Identity, Version

_CHUNK = 1 << 20
_REMEMBERED = 1 << 14
_ROUNDS = 100
# A file system stamps times in steps of up to some milliseconds: two edits within one step look like one.
_SETTLED_NS = 100_000_000

Fingerprint = tuple[Identity, int]
"""An identity and the ctime: also changes when somebody sets an mtime back."""


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """An object's present content file and what is known about it. `data` is None where only figures were asked for."""

    path: FolderPlace
    version: Version
    data: bytes | None = None

    def info(self, key: str) -> ObjectInfo:
        """As the store's protocol names it."""
        identity = self.version.identity
        return ObjectInfo(key, self.version.etag, identity.size, identity.modified_ns, self.version.meta)


class Versions:
    """Looks objects up below one root."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: dict[str, tuple[Fingerprint, Version]] = {}

    def find(self, key: str, *, content: bool = False, part: tuple[int, int] | None = None) -> FoundVersion | None:
        """The object as it is now, or None. Raises StoreError when it changes faster than it can be read.

        With its bytes where they are asked for: all as `content`, or a `part` by its start and size.
        """
        part = (0, -1) if content else part
        for _ in range(_ROUNDS):
            opened = self._open(key)
            if opened is None:
                self._known.pop(key, None)
                return None
            path, descriptor = opened
            try:
                found = self._look(key, path, descriptor, part)
            finally:
                os.close(descriptor)
            if found is not None:
                return found
        raise StoreError("it is being changed all the time", key=key)

    @contextmanager
    def content(self, key: str) -> Iterator[tuple[Version, Content] | None]:
        """The object as it is now, to be read within the block; None when there is none.

        Of a large one the file that it is then: what replaces it is another file.
        """
        found = self.find(key)
        if found is None or found.version.identity.size <= LARGE:
            found = self.find(key, content=True)
            yield None if found is None or found.data is None else (found.version, found.data)
            return
        opened = self._open(key)
        if opened is None:
            yield None
            return
        path, descriptor = opened
        try:
            found = self._look(key, path, descriptor, None)
            if found is None:
                raise StoreError("it is being changed", key=key)
            yield found.version, FileContent(Path(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    def _open(self, key: str) -> tuple[FolderPlace, int] | None:
        """The content file, open. The plain path is tried last again: a write may just have moved it there from odd."""
        plain, odd = self._layout.plain(key), self._layout.odd(key)
        for path in (plain, odd, plain):
            if path is not None and (descriptor := path.open_regular()) is not None:
                return path, descriptor
        return None

    def _look(self, key: str, path: FolderPlace, descriptor: int, part: tuple[int, int] | None) -> FoundVersion | None:
        """What the open file is, or None when it changed under our eyes."""
        before = _fingerprint(os.fstat(descriptor))
        version = self._remembered(key, before)
        data = _read(descriptor, *part) if part is not None else None
        if version is None:
            version = Version(before[0], _etag(descriptor), {})
            if _fingerprint_at(path) != before:
                return None  # replaced meanwhile: the side file spoke of the next version, not of no version
            if time.time_ns() - before[1] > _SETTLED_NS:
                self._remember(key, before, version)
        if part is not None and _fingerprint(os.fstat(descriptor))[0] != before[0]:
            return None  # written in place by hand while we read
        return FoundVersion(path, version, data)

    def _remembered(self, key: str, fingerprint: Fingerprint) -> Version | None:
        known = self._known.get(key)
        if known is not None and known[0] == fingerprint:
            return known[1]
        side = sidecar.read(self._layout.side(key))
        version = side.describing(fingerprint[0]) if side else None
        if version is not None:
            self._remember(key, (version.identity, fingerprint[1]), version)
        return version

    def _remember(self, key: str, fingerprint: Fingerprint, version: Version) -> None:
        self._known[key] = (fingerprint, version)
        if len(self._known) > _REMEMBERED:
            with suppress(KeyError, RuntimeError):  # another thread was faster, or comes in between
                del self._known[next(iter(self._known))]


def _fingerprint(stat: os.stat_result) -> Fingerprint:
    return Identity.of(stat), stat.st_ctime_ns


def _fingerprint_at(path: FolderPlace) -> Fingerprint | None:
    try:
        return _fingerprint(path.stat())
    except OSError:
        return None


def _read(descriptor: int, start: int, size: int) -> bytes:
    """So many bytes from `start` on, as far as there are; -1: all."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        stream.seek(start)
        return stream.read(size)


def _etag(descriptor: int) -> str:
    digest = md5(usedforsecurity=False)
    offset = 0
    while chunk := os.pread(descriptor, _CHUNK, offset):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()
