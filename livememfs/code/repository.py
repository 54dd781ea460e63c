"""Git repositories as their files say it: which one a directory is in, its branch and its commit.

Owns the search and the few forms of git's files; all worktrees and clones of a repository are one. Starts no program
and writes nothing. Blocking, and a disk may hang: never on the trio thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from livememfs.code.anchor import CodePlace

LARGEST = 1 << 16
"""Most bytes read of a file."""
LARGEST_REFS = 4 << 20
"""The same for the file with all packed refs."""
USUAL_MAIN = ("main", "master", "trunk")
"""Branches that are the project's own, where the repository does not say which one is."""
_REMOTE = re.compile(r'^\s*\[remote "origin"\]\s*$(?:\n(?!\s*\[).*$)*?\n\s*url\s*=\s*(\S+)', re.MULTILINE)
_URL = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)(?::[0-9]+(?=/))?[:/]+(.+)", re.DOTALL)
_HEADS = "refs/heads/"


@dataclass(frozen=True)
class Repository:
    """A repository, seen from one of its worktrees.

    :top:    the directory of the worktree
    :git:    what git keeps of this worktree
    :common: what git keeps of all of them
    :main:   the directory of the main worktree
    :remote: host and path of its origin; empty without one
    """

    top: Path
    git: Path
    common: Path
    main: Path
    remote: str

    def name(self, host: str) -> str:
        """What it is called everywhere; on one host alone where it has no origin."""
        return self.remote or f"{host}:{self.main}"

    def place(self, host: str) -> CodePlace:
        """Where this worktree is now; without branch or commit where they cannot be read."""
        head = read(self.git / "HEAD").strip()
        ref = head.removeprefix("ref:").strip() if head.startswith("ref:") else ""
        commit = self.commit_of(ref) if ref else head
        return CodePlace.of({
            "repository": self.name(host), "branch": ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else "",
            "commit": commit,
        })  # fmt: skip

    def tip(self, branch: str) -> str:
        """The commit of a branch; empty for one that is not here."""
        return self.commit_of(_HEADS + branch) if branch and ".." not in branch else ""

    def commit_of(self, ref: str) -> str:
        """The commit of a ref; empty where it is unknown."""
        if ".." in ref or not ref.startswith("refs/"):
            return ""
        for folder in (self.git, self.common):
            if loose := read(folder / ref).strip():
                return loose
        packed = read(self.common / "packed-refs", LARGEST_REFS)
        found = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(ref)}$", packed, re.MULTILINE)
        return found[1] if found is not None else ""

    def mains(self) -> frozenset[str]:
        """The branches that are the project's own."""
        prefix = "ref: refs/remotes/origin/"
        head = read(self.common / "refs/remotes/origin/HEAD").strip()
        return frozenset((head.removeprefix(prefix),)) if head.startswith(prefix) else frozenset(USUAL_MAIN)


def repository_at(folder: Path) -> Repository | None:
    """The repository that a directory is in; None outside of one."""
    top = next((path for path in (folder, *folder.parents) if is_top(path / ".git")), None)
    return opened(top) if top is not None else None


def is_top(git: Path) -> bool:
    """Whether this `.git` is that of a repository or worktree. It may be an empty directory: sandboxes of agents leave
    such ones behind.
    """
    return (git / "HEAD").is_file() or git.is_file()


def opened(top: Path) -> Repository:
    """The repository of a worktree, by its `.git`."""
    git = top / ".git"
    if git.is_dir():
        return Repository(top, git, git, top, _remote(git / "config"))
    content = read(git).strip()
    own = (top / content.removeprefix("gitdir:").strip()) if content.startswith("gitdir:") else git
    common = read(own / "commondir").strip()
    if not common:  # a submodule is a project of its own
        return Repository(top, own, own, top, _remote(own / "config"))
    shared = (own / common).resolve()
    return Repository(top, own, shared, shared.parent if shared.name == ".git" else shared, _remote(shared / "config"))


def _remote(config: Path) -> str:
    """Host and path of a repository's origin, equal for all protocols; empty without an origin."""
    url = _REMOTE.search(read(config))
    place = _URL.fullmatch(url[1]) if url is not None else None
    if place is None or url is None or url[1].startswith(("/", ".", "file:")):
        return ""
    return f"{place[1].lower()}/{place[2].strip('/').removesuffix('.git')}"


def read(path: Path, most: int = LARGEST) -> str:
    """The text of a small file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""
