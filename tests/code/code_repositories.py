"""A real git repository for tests: files, commits, branches, worktrees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

QUIET = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
}  # fmt: skip


class GitTree:
    """One worktree of a repository."""

    def __init__(self, top: Path) -> None:
        self.top = top

    @classmethod
    def made(cls, top: Path, origin: str = "https://example.org/acme/tool.git") -> GitTree:
        """A new repository, with a commit on `main`."""
        top.mkdir(parents=True)
        tree = cls(top)
        tree.git("init", "-q", "-b", "main")
        tree.git("config", "remote.origin.url", origin)
        tree.write("README.md", "# Tool\n")
        tree.commit("begin")
        return tree

    def git(self, *words: str) -> str:
        """The output of a command."""
        done = subprocess.run(
            ["git", *words], cwd=self.top, env={**os.environ, **QUIET}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str) -> Path:
        """Write a file."""
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def commit(self, message: str) -> str:
        """Commit everything; the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def worktree(self, top: Path, branch: str) -> GitTree:
        """Another worktree, on a new branch."""
        self.git("worktree", "add", "-q", "-b", branch, str(top))
        return GitTree(top)
