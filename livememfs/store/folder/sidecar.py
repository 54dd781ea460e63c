"""What the folder store remembers about an object beside its bytes: key, etag and user metadata, by version.

Owns the format of a side file and the rule that makes a write atomic although two files change. Refuses to write.
Any thread may call it.

The rule: a side file may describe several versions, each known by inode, size and mtime of the content file it belongs
to. A writer first puts down "the new version, and the present one", then renames the new content into place. A reader
takes the description that fits the content it has open. So the rename alone decides, whatever else a crash cuts off,
and content that was changed by hand fits no description and is taken for what it is: bytes without metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from livememfs.store.folder.place import FolderPlace
from livememfs.text.foreign import read_object


@dataclass(frozen=True, slots=True)
class Identity:
    """Which version of a content file: every write makes a new inode, every edit by hand a new mtime or size."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Identity:
        """The identity of the file that was statted."""
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object's content."""

    identity: Identity
    etag: str
    meta: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SideFile:
    """All that one side file says."""

    key: str
    versions: tuple[Version, ...]

    def describing(self, identity: Identity) -> Version | None:
        """The version that fits, newest first."""
        return next((version for version in self.versions if version.identity == identity), None)


def render(key: str, versions: Iterable[Version]) -> bytes:
    """The bytes of a side file."""
    described = [
        {
            "inode": version.identity.inode,
            "size": version.identity.size,
            "modified_ns": version.identity.modified_ns,
            "etag": version.etag,
            "meta": dict(version.meta),
        }
        for version in versions
    ]
    return json.dumps({"key": key, "versions": described}, indent=1).encode()


def read(path: FolderPlace) -> SideFile | None:
    """What a side file says; None when there is none or it cannot be understood (it can always be done without)."""
    try:
        found = read_object(path.read() or b"")
        return SideFile(str(found["key"]), tuple(map(_version, found["versions"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _version(entry: Mapping[str, Any]) -> Version:
    identity = Identity(int(entry["inode"]), int(entry["size"]), int(entry["modified_ns"]))
    meta = {str(name): str(value) for name, value in entry["meta"].items()}
    return Version(identity, str(entry["etag"]), meta)
