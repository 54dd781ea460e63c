"""Empty directories for sandboxes, which must mount something over a name that does not exist.

Sandboxes of agents keep the agent from `.git`, `.codex` and the like in each folder that it may write to: they make
what is missing, mount something read-only over it for one command, and remove it. Owns these directories where nothing
else may be made. They are on this machine only, not listed, and gone with the mount. Refuses to have anything put into
them, and more than a few of them. Trio thread only.
"""

from __future__ import annotations

from livememfs import errors
from livememfs.tree.computed import ReadOnlyDirectory
from livememfs.tree.node import AttrChange, Caller, Directory, check_name

MOST = 64
"""In one directory: sandboxes need a handful."""
WHY = "it is there for a sandbox to mount on, and stays empty"


class EmptyDirectory(ReadOnlyDirectory):
    """An empty directory."""

    __slots__ = ()

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times are accepted and not kept."""


class Places:
    """The empty directories that were made in one directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._made: dict[str, EmptyDirectory] = {}

    def get(self, name: str) -> EmptyDirectory | None:
        """The directory of that name."""
        return self._made.get(name)

    async def make(self, name: str, now_ns: int) -> EmptyDirectory:
        """A new directory. AlreadyExists; the refusal of `directory` without a dot in front, or with `MOST` made."""
        directory = self._directory
        path = directory.path_of(name)
        if not name.startswith(".") or len(self._made) >= MOST:
            raise directory.refuse(f"creating {name}")
        check_name(name, path)
        try:
            await directory.child(name)
        except errors.NotFound:
            made = self._made[name] = EmptyDirectory(directory, name, WHY, mode=0o755, mtime_ns=now_ns)
            return made
        raise errors.AlreadyExists(path=path)

    def remove(self, name: str) -> bool:
        """Remove a directory; False when there is none of that name."""
        return self._made.pop(name, None) is not None
