"""The few ways in which the folder store changes a disk, each one step that a crash can come before or after.

Owns durability: a new file is synced before it gets its name, a folder after an entry in it changed. Refuses to know
keys. Any thread may call it. Tests subclass `Disk` to stop the world at any step; nothing else in the folder store
changes files.
"""

from __future__ import annotations

import os
from contextlib import suppress

from livememfs.store.content import Content, parts_of
from livememfs.store.folder.place import FolderPlace


class Disk:
    """Changes to files.

    `fsync` False trades safety at a power cut for speed; a killed process loses nothing either way.
    """

    def __init__(self, *, fsync: bool = True) -> None:
        self._fsync = fsync

    def write_new(self, path: FolderPlace, data: Content, *, modified_ns: int | None = None) -> os.stat_result:
        """Create `path` with these bytes, synced; its stat once it is complete. Raises FileExistsError."""
        descriptor = path.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            for part in parts_of(data):
                left = memoryview(part)
                while left:
                    left = left[os.write(descriptor, left) :]
            if modified_ns is not None:
                os.utime(descriptor, ns=(modified_ns, modified_ns))
            if self._fsync:
                os.fsync(descriptor)
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: FolderPlace, target: FolderPlace) -> None:
        """Give a complete file its name, in one step, over whatever file had it."""
        source.replace(target)
        self._sync_folder(target.parent)

    def unlink(self, path: FolderPlace, *, lasting: bool) -> None:
        """Remove a file; one that is gone is fine. `lasting`: a power cut must not bring it back."""
        with suppress(FileNotFoundError):
            path.unlink()
        if lasting:
            self._sync_folder(path.parent)

    def make_folder(self, path: FolderPlace, *, below: FolderPlace) -> None:
        """Create a folder and its missing parents, but never `below` itself: a root that vanished stays gone.

        Raises FileExistsError where a file or a link is in the way, FileNotFoundError without `below`.
        """
        if path.is_folder():
            return
        if path == below:
            raise FileNotFoundError(f"{path} is gone")
        self.make_folder(path.parent, below=below)
        path.make_folder()
        self._sync_folder(path.parent)

    def remove_folder(self, path: FolderPlace) -> bool:
        """Remove a folder if it is empty; whether it is gone."""
        try:
            path.remove_folder()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _sync_folder(self, path: FolderPlace) -> None:
        if not self._fsync:
            return
        # One that was removed as empty by another writer: its own removal is what has to last.
        with suppress(FileNotFoundError), path.opened() as descriptor:
            os.fsync(descriptor)
