"""A place below the root of the folder store, and the only way there: no symbolic link is followed.

Owns the way: each folder is opened in the one before it, by descriptor, so whoever puts a link in place of one, at
whatever moment, leads nobody out of the store. The root itself may be a link, since the user named it. What is made is
never open to more people than the folder it is made in. Refuses to know keys. Any thread.
"""

from __future__ import annotations

import os
import shutil
import stat as stat_bits
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_ROOT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
_ANY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""To open a pipe or a device does not wait for anybody."""


class FolderPlace(NamedTuple):
    """A path below a root: `path` holds names with a slash between them, and is empty for the root."""

    root: str
    path: str = ""

    def __truediv__(self, name: str) -> FolderPlace:
        return FolderPlace(self.root, f"{self.path}/{name}" if self.path else name)

    def __fspath__(self) -> str:
        return os.path.join(self.root, self.path) if self.path else self.root  # noqa: PTH118 - both are text

    def __str__(self) -> str:
        return self.__fspath__()

    @property
    def name(self) -> str:
        """The last name; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> FolderPlace:
        """The folder it is in; the root is in itself."""
        return FolderPlace(self.root, self.path.rpartition("/")[0])

    def folder(self) -> int:
        """A descriptor of the folder that is here, to open others in. Raises OSError, as for a link on the way."""
        found = os.open(self.root, _ROOT)
        for name in self.path.split("/") if self.path else ():
            try:
                inner = os.open(name, _FOLDER, dir_fd=found)
            finally:
                os.close(found)
            found = inner
        return found

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor by which the folder that is here can be listed and synced, for a block. Raises OSError."""
        folder = self.folder()
        try:
            found = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            yield found
        finally:
            os.close(found)

    def open(self, flags: int) -> int:
        """A descriptor of what is here. A file that this makes is as private as its folder. Raises OSError."""
        with self._folder_of_it() as folder:
            mode = _mode(folder) & 0o666 if flags & os.O_CREAT else 0
            return os.open(self.name, flags | _ANY, mode, dir_fd=folder)

    def open_regular(self) -> int | None:
        """A descriptor to read a regular file by; None for anything else or nothing. PermissionError."""
        try:
            folder = self.parent.folder()
            try:
                found = os.open(self.name, os.O_RDONLY | _ANY, dir_fd=folder)
            finally:
                os.close(folder)
        except PermissionError as error:
            error.filename = str(self)
            raise
        except OSError:
            return None
        if stat_bits.S_ISREG(os.fstat(found).st_mode):
            return found
        os.close(found)
        return None

    def read(self) -> bytes | None:
        """The bytes of a regular file; None for anything else or nothing. OSError."""
        found = self.open_regular()
        if found is None:
            return None
        with os.fdopen(found, "rb") as stream:
            return stream.read()

    def stat(self) -> os.stat_result:
        """What is here, a link itself. Raises OSError."""
        with self._folder_of_it() as folder:
            return os.stat(self.name or ".", dir_fd=folder, follow_symlinks=False)

    def is_folder(self) -> bool:
        """Whether a folder is here, and none behind a link."""
        try:
            os.close(self.folder())
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def exists(self) -> bool:
        """Whether anything is here, if only a link."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self.stat()
            return True
        return False

    def make_folder(self) -> None:
        """Make a folder in one that is there. Raises FileExistsError where anything but a folder is."""
        try:
            with self._folder_of_it() as folder:
                os.mkdir(self.name, _mode(folder), dir_fd=folder)
        except FileExistsError:
            if not self.is_folder():
                raise

    def remove_folder(self) -> None:
        """Remove a folder that is empty. Raises OSError."""
        with self._folder_of_it() as folder:
            os.rmdir(self.name, dir_fd=folder)

    def remove_tree(self) -> None:
        """Remove a folder with all that is in it, as far as it can be."""
        with suppress(OSError), self._folder_of_it() as folder:
            shutil.rmtree(self.name, ignore_errors=True, dir_fd=folder)

    def unlink(self) -> None:
        """Remove a file or a link. Raises OSError."""
        with self._folder_of_it() as folder:
            os.unlink(self.name, dir_fd=folder)

    def replace(self, target: FolderPlace) -> None:
        """Give the file the name `target`, over whatever file or link has it. Raises OSError."""
        with self._folder_of_it() as source, target._folder_of_it() as folder:
            os.replace(self.name, target.name, src_dir_fd=source, dst_dir_fd=folder)

    def names(self) -> list[str]:
        """What is in the folder that is here. Raises OSError."""
        with self.opened() as folder:
            return [entry.name for entry in os.scandir(folder)]

    @contextmanager
    def _folder_of_it(self) -> Iterator[int]:
        """A descriptor of the folder this is in. What fails inside names this place, and not its last name alone."""
        try:
            found = self.parent.folder()
            try:
                yield found
            finally:
                os.close(found)
        except OSError as error:
            error.filename, error.filename2 = str(self), None
            raise


def _mode(folder: int) -> int:
    """Who may use what is made in a folder, before the umask takes its part: nobody whom the folder keeps out."""
    return os.fstat(folder).st_mode & 0o777
