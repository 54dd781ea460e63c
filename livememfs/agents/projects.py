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

from livememfs.errors import InvalidName
from livememfs.records.names import check_space_name

FILE = ".livememfs.toml"
MARK = "project "
"""The beginning of a space's description if the space was made for a project."""
LARGEST = 1 << 16
"""Most bytes read of a file."""
_REMOTE = re.compile(r'^\s*\[remote "origin"\]\s*$(?:\n(?!\s*\[).*$)*?\n\s*url\s*=\s*(\S+)', re.MULTILINE)
_URL = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)(?::[0-9]+(?=/))?[:/]+(.+)", re.DOTALL)


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
    top = next((path for path in above if _is_top(path / ".git")), None)
    if top is None:
        return None
    main, config = _repository(top)
    here = f"{host}:{main}"
    remote = _remote(config)
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
        given = tomllib.loads(_read(folder / FILE))
        space = given.pop("space", None)
        if not isinstance(space, str):
            return Project(folder=folder, space="", wrong='it has no `space = "NAME"`')
        wrong = f"it has other keys than `space`, which are ignored: {', '.join(sorted(given))}" if given else ""
        return Project(folder=folder, space=check_space_name(space), wrong=wrong)
    except (ValueError, InvalidName) as error:
        return Project(folder=folder, space="", wrong=str(error))


def repository_around(folder: Path) -> Path | None:
    """The main directory of the git repository that a directory is in; None outside of one."""
    top = next((path for path in (folder, *folder.parents) if _is_top(path / ".git")), None)
    return _repository(top)[0] if top is not None else None


def _is_top(git: Path) -> bool:
    """Whether this `.git` is that of a repository or worktree. It may be an empty directory: sandboxes of agents leave
    such ones behind.
    """
    return (git / "HEAD").is_file() or git.is_file()


def _repository(top: Path) -> tuple[Path, Path]:
    """The main directory of a repository and its configuration, by the `.git` of one of its worktrees."""
    git = top / ".git"
    if git.is_dir():
        return top, git / "config"
    content = _read(git).strip()
    own = (top / content.removeprefix("gitdir:").strip()) if content.startswith("gitdir:") else git
    common = _read(own / "commondir").strip()
    if not common:  # a submodule is a project of its own
        return top, own / "config"
    shared = (own / common).resolve()
    return shared.parent if shared.name == ".git" else shared, shared / "config"


def _remote(config: Path) -> str:
    """Host and path of a repository's origin, equal for all protocols; empty without an origin."""
    url = _REMOTE.search(_read(config))
    place = _URL.fullmatch(url[1]) if url is not None else None
    if place is None or url is None or url[1].startswith(("/", ".", "file:")):
        return ""
    return f"{place[1].lower()}/{place[2].strip('/').removesuffix('.git')}"


def _read(path: Path) -> str:
    """The text of a small file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode(errors="replace")
    except OSError:
        return ""
