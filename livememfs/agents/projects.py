"""Which project a directory belongs to, and which space that wants.

Owns the search: the nearest `.livememfs.toml` above, else the repository of git, whose worktrees are one project. Home
directories, the root and mounts of ours are nobody's project. Starts no program and writes nothing. Blocking, and a
disk may hang: never on the trio thread.
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
"""What the description of a space begins with that was made for a project."""
LARGEST = 1 << 16
"""Bytes that are read of a file."""
_REMOTE = re.compile(r'^\s*\[remote "origin"\]\s*$(?:\n(?!\s*\[).*$)*?\n\s*url\s*=\s*(\S+)', re.MULTILINE)
_URL = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)(?::[0-9]+(?=/))?[:/]+(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project.

    :folder: its directory; of a repository with worktrees the main one
    :space:  the space it wants
    :marks:  what tells it from another project of that name, the best first; none where a file says the space
    :wrong:  what in `.livememfs.toml` cannot be used, empty when nothing is
    """

    folder: Path
    space: str
    marks: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def other_space(self) -> str:
        """The space it has where another project has `space`."""
        return f"{self.space[:56]}-{hashlib.sha256(self.marks[0].encode()).hexdigest()[:6]}"


def find(folder: Path, *, home: Path, host: str, mounts: Collection[str] = ()) -> Project | None:
    """The project of a directory; None for a directory that is in none."""
    if not folder.is_absolute() or ".." in folder.parts:
        return None
    above = list(_above(folder, home, mounts))
    pinned = next((one for one in above if (one / FILE).is_file()), None)
    if pinned is not None:
        return _pinned(pinned)
    top = next((one for one in above if _is_top(one / ".git")), None)
    if top is None:
        return None
    main, config = _repository(top)
    here = f"{host}:{main}"
    remote = _remote(config)
    return Project(
        folder=main, space=space_name(main.name.removesuffix(".git")), marks=(remote, here) if remote else (here,)
    )


def space_name(text: str) -> str:
    """A space's name made of any."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-")[:63] or "project"
    try:
        return check_space_name(name)
    except InvalidName:
        return f"{name[:55]}-project"


def _above(folder: Path, home: Path, mounts: Collection[str]) -> Iterator[Path]:
    """A directory and those above it that may be a project's."""
    for one in (folder, *folder.parents):
        if one == home or one == Path(one.anchor) or str(one) in mounts:
            return
        yield one


def _pinned(folder: Path) -> Project | None:
    """What `.livememfs.toml` says."""
    try:
        given = tomllib.loads(_read(folder / FILE))
        space = given.pop("space", None)
        if not isinstance(space, str):
            return Project(folder=folder, space="", wrong='it has no `space = "NAME"`')
        wrong = f"it says more than `space`: {', '.join(sorted(given))}; that counts for nothing" if given else ""
        return Project(folder=folder, space=check_space_name(space), wrong=wrong)
    except (ValueError, InvalidName) as error:
        return Project(folder=folder, space="", wrong=str(error))


def _is_top(git: Path) -> bool:
    """Whether this makes a directory the top of a repository or worktree. Sandboxes of agents make empty directories of
    that name wherever an agent may write, and leave some.
    """
    return (git / "HEAD").is_file() or git.is_file()


def _repository(top: Path) -> tuple[Path, Path]:
    """The main directory of a repository and its configuration, by the `.git` of one of its worktrees."""
    git = top / ".git"
    if git.is_dir():
        return top, git / "config"
    said = _read(git).strip()
    own = (top / said.removeprefix("gitdir:").strip()) if said.startswith("gitdir:") else git
    common = _read(own / "commondir").strip()
    if not common:  # a submodule is a project of its own
        return top, own / "config"
    shared = (own / common).resolve()
    return shared.parent if shared.name == ".git" else shared, shared / "config"


def _remote(config: Path) -> str:
    """Where a repository comes from, the same for all ways to get there; empty when it does not say."""
    found = _REMOTE.search(_read(config))
    place = _URL.fullmatch(found[1]) if found is not None else None
    if place is None or found is None or found[1].startswith(("/", ".", "file:")):
        return ""
    return f"{place[1].lower()}/{place[2].strip('/').removesuffix('.git')}"


def _read(path: Path) -> str:
    """What a small file says; empty for none."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode(errors="replace")
    except OSError:
        return ""
