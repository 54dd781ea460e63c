"""What only git knows: which files were renamed since a commit, whether a commit is merged, which files have a name.

Owns how it is started: for a short time, without a pager, hooks, locks, a network or a terminal, and with as little
trust in the repository's configuration as it allows. It compares commits with the index, never with the files, so that
no filter is started. Refuses to fail: without git, or an answer in time, the answer is None. Trio thread only.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

import trio

from livememfs.code.repository import Repository

SECONDS = 5.0
"""Most seconds for an answer."""
MOST = 50_000
"""Names that are taken from one answer."""
_OPTIONS = (
    "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false", "-c",
    "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false", "-c", "diff.external=", "-c", "core.quotePath=false",
)  # fmt: skip
_ENVIRONMENT = {
    "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat", "GIT_ASKPASS": "true",
}  # fmt: skip


class Git:
    """Git, with the environment that programs of others get."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
        self._environment = kept | _ENVIRONMENT

    async def renames(self, repository: Repository, commit: str) -> Mapping[str, str] | None:
        """The paths of files in the index by those that they had at a commit, where they differ."""
        words = "diff-index", "--cached", "-M", "-z", "--name-status", "--diff-filter=R", commit, "--"
        answer = await self._ask(repository, *words)
        if answer is None or answer[0] != 0:
            return None
        parts = answer[1].split("\0")[: 3 * MOST]
        return dict(zip(parts[1::3], parts[2::3], strict=False))

    async def has(self, repository: Repository, commit: str, head: str) -> bool | None:
        """Whether a commit is an ancestor of another, or the same."""
        if commit == head:
            return True
        answer = await self._ask(repository, "merge-base", "--is-ancestor", commit, head)
        return None if answer is None or answer[0] not in (0, 1) else answer[0] == 0

    async def files_called(self, repository: Repository, names: Sequence[str], seconds: float) -> list[str]:
        """The tracked files that have one of these names, with or without folders before it; empty where unknown."""
        patterns = [f":(glob,top)**/{_escaped(name)}" for name in names]
        answer = await self._ask(repository, "ls-files", "-z", "--", *patterns, seconds=seconds)
        if answer is None or answer[0] != 0:
            return []
        return [path for path in answer[1].split("\0")[:MOST] if path]

    async def _ask(self, repository: Repository, *words: str, seconds: float = SECONDS) -> tuple[int, str] | None:
        """The exit code and the output of a command."""
        command = ["git", *_OPTIONS, "-C", str(repository.top), *words]
        try:
            with trio.fail_after(seconds):
                done = await trio.run_process(
                    command,
                    env=self._environment,
                    stdin=b"",
                    capture_stdout=True,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
        except (OSError, ValueError, trio.TooSlowError):
            return None
        return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def _escaped(name: str) -> str:
    return "".join(f"\\{character}" if character in "\\*?[]" else character for character in name)
