"""Where an object lies inside the folder, and where the store keeps its own things.

Owns the mapping between keys and paths. Refuses I/O. Any thread may call it.

    root/a/b.md                                the object `a/b.md`: plain bytes, for people and other programs
    root/.livememfs-store/odd/<sha256>         an object whose key cannot be a path beside the others (see `plain`)
    root/.livememfs-store/meta/<xx>/<sha256>   what is remembered about the object's version, JSON (see `sidecar`)
    root/.livememfs-store/tmp/<instance>/      files being written by one open store
    root/.livememfs-store/locks/<xx>           one lock file for each stripe of keys
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from livememfs.store.folder.place import FolderPlace

HIDDEN = ".livememfs-store"
MAX_PART_BYTES = 255
STRIPES = 64


class Layout:
    """Paths below one root."""

    def __init__(self, root: Path) -> None:
        self.root = FolderPlace(str(root))
        self.hidden = self.root / HIDDEN
        self.odd_folder = self.hidden / "odd"
        self.meta_folder = self.hidden / "meta"
        self.temp_folder = self.hidden / "tmp"
        self.lock_folder = self.hidden / "locks"
        self.own_folders = (self.hidden, self.odd_folder, self.meta_folder, self.temp_folder, self.lock_folder)

    def plain(self, key: str) -> FolderPlace | None:
        """The path a person would look for, or None for a key that is no path: empty, `.` or `..` parts (so also a
        trailing slash), parts over 255 bytes, NUL, or a start in the store's own tree.
        """
        parts = key.split("/")
        if parts[0] == HIDDEN or "\0" in key or not all(map(_stands_as_name, parts)):
            return None
        return self.root / key

    def odd(self, key: str) -> FolderPlace:
        """The path for the same object when the plain one is impossible or taken by a folder."""
        return self.odd_folder / _digest(key)

    def side(self, key: str) -> FolderPlace:
        """The path of what is remembered about the object."""
        digest = _digest(key)
        return self.meta_folder / digest[:2] / digest

    def side_of_odd(self, name: str) -> FolderPlace:
        """The same, by the file name of an odd object."""
        return self.meta_folder / name[:2] / name

    def lock(self, key: str) -> FolderPlace:
        """The lock file of the key's stripe."""
        return self.lock_folder / f"{int(_digest(key)[:8], 16) % STRIPES:02x}"


def _stands_as_name(part: str) -> bool:
    return part not in ("", ".", "..") and len(part.encode()) <= MAX_PART_BYTES


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()
