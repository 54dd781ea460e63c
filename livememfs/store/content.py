"""Content of an object: bytes, or a file where they are too many to be held in memory.

Owns the size from which content is a file, and the digests of both. Refuses to change a file that it was given. Any
thread; what reads a whole file blocks for as long as the disk takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path

LARGE = 8 << 20
"""Bytes. A file that grows beyond this, or an object that is larger, lies in the cache folder and not in memory."""
PART = 8 << 20
"""Bytes that are read, sent and fetched at a time of a large content."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file that nobody writes to. `size` in bytes; `len()` says the same."""

    path: Path
    size: int

    def __len__(self) -> int:
        return self.size

    def parts(self) -> Iterator[bytes]:
        """The bytes, a part at a time. OSError, also where the file ends early: it was damaged."""
        left = self.size
        with self.path.open("rb", buffering=0) as file:
            if hasattr(os, "posix_fadvise"):  # macOS has none
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while left:
                part = file.read(min(PART, left))
                if not part:
                    raise OSError(f"{self.path} ends {left:,} bytes early")
                left -= len(part)
                yield part

    def read(self) -> bytes:
        """All of it in memory. OSError."""
        return b"".join(self.parts())


Content = bytes | FileContent


def parts_of(content: Content) -> Iterator[bytes]:
    """The bytes of a content, a part at a time. OSError."""
    return content.parts() if isinstance(content, FileContent) else iter((content,))


def whole(content: Content) -> bytes:
    """The bytes of a content, in memory. OSError."""
    return content.read() if isinstance(content, FileContent) else bytes(content)


def content_etag(content: Content) -> str:
    """The etag of the stores that choose it themselves: MD5 in hex, what S3 gives a plain upload. OSError."""
    digest = md5(usedforsecurity=False)
    for part in parts_of(content):
        digest.update(part)
    return digest.hexdigest()


def digests(content: Content) -> tuple[str, str]:
    """MD5 and SHA-256 in hex, by reading once. OSError."""
    etag, sha = md5(usedforsecurity=False), sha256()
    for part in parts_of(content):
        etag.update(part)
        sha.update(part)
    return etag.hexdigest(), sha.hexdigest()
