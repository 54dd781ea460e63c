"""The project of a directory, and the space that it uses.

Owns the search: the nearest `.livememfs.toml` above, else the git repository; all worktrees are one project. A home
directory, the root and a mount of livememfs are no projects. Starts no program and writes nothing. Blocking, and a disk
may hang: never on the trio thread.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from livememfs.code.repository import is_top, opened, read, repository_at
from livememfs.errors import InvalidName
from livememfs.records.names import check_space_name

FILE = ".livememfs.toml"
MARK = "project "
"""The beginning of a space's description if the space was made for a project."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project.

    :folder: its directory; with worktrees, that of the main one
    :space:  the space it uses
    :marks:  texts that identify it among projects with the same name, the best first; none if a file names the space
    :wrong:  the fault in `.livememfs.toml`, empty without one
    """

    folder: Path
    space: str
    marks: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def other_space(self) -> str:
        """Its space if another project has `space`."""
        return f"{self.space[:56]}-{hashlib.sha256(self.marks[0].encode()).hexdigest()[:6]}"


def find(folder: Path, *, home: Path, host: str, mounts: Collection[str] = ()) -> Project | None:
    """The project around a directory; None without one."""
    if not folder.is_absolute() or ".." in folder.parts:
        return None
    above = list(_above(folder, home, mounts))
    pinned = next((path for path in above if (path / FILE).is_file()), None)
    if pinned is not None:
        return _pinned(pinned)
    top = next((path for path in above if is_top(path / ".git")), None)
    if top is None:
        return None
    repository = opened(top)
    main, remote = repository.main, repository.remote
    here = f"{host}:{main}"
    return Project(
        folder=main, space=space_name(main.name.removesuffix(".git")), marks=(remote, here) if remote else (here,)
    )


def space_name(text: str) -> str:
    """A valid space name made from any text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-")[:63] or "project"
    try:
        return check_space_name(name)
    except InvalidName:
        return f"{name[:55]}-project"


def _above(folder: Path, home: Path, mounts: Collection[str]) -> Iterator[Path]:
    """A directory and its parents, up to the first that cannot be a project."""
    for path in (folder, *folder.parents):
        if path == home or path == Path(path.anchor) or str(path) in mounts:
            return
        yield path


def _pinned(folder: Path) -> Project | None:
    try:
        given = tomllib.loads(read(folder / FILE))
        space = given.pop("space", None)
        if not isinstance(space, str):
            return Project(folder=folder, space="", wrong='it has no `space = "NAME"`')
        wrong = f"it has other keys than `space`, which are ignored: {', '.join(sorted(given))}" if given else ""
        return Project(folder=folder, space=check_space_name(space), wrong=wrong)
    except (ValueError, InvalidName) as error:
        return Project(folder=folder, space="", wrong=str(error))


def repository_around(folder: Path) -> Path | None:
    """The main directory of the git repository that a directory is in; None outside of one."""
    repository = repository_at(folder)
    return repository.main if repository is not None else None
