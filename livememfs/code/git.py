"""What only git knows: which files were renamed since a commit, whether a commit is merged, which files have a name.

Owns how it is started: for a short time, without a pager, hooks, locks, a network or a terminal, and with as little
trust in the repository's configuration as it allows. It compares commits with the index, never with the files, so that
no filter is started. Refuses to fail: without git, or an answer in time, the answer is None. Trio thread only.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath

import trio

from livememfs.code.repository import Repository

SECONDS = 5.0
"""Most seconds for an answer."""
MOST = 50_000
"""Names that are taken from one answer."""
MOST_CHANGED, MOST_COMMITS = 500, 32
"""Files of a branch that are compared, with so many of the first and the last commits that changed one of them."""
_OPTIONS = (
    "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false", "-c",
    "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false", "-c", "diff.external=", "-c", "core.quotePath=false",
)  # fmt: skip
_ENVIRONMENT = {
    "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat", "GIT_ASKPASS": "true",
}  # fmt: skip


class Git:
    """Git, with the environment that programs of others get. `mounted` is where our own mount is: git must not look for
    new files in it, where each is made as it is looked at.
    """

    def __init__(self, environment: Mapping[str, str], mounted: str = "") -> None:
        self._mounted = PurePosixPath(mounted) if mounted else None
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

    async def was_squashed(self, repository: Repository, commit: str, tip: str, head: str) -> bool:
        """Whether all that a branch has changed up to a commit, or to its tip, stood in one of the commits that `head`
        has and it has not: a squash takes the content, and no commit. False where that is not known.
        """
        if await self._holds(repository, commit, head):
            return True
        went_on = tip not in ("", commit) and await self.has(repository, commit, tip)
        return bool(went_on) and await self._holds(repository, tip, head)

    async def _holds(self, repository: Repository, end: str, head: str) -> bool:
        base = (await self._answer(repository, "merge-base", end, head)).strip()
        raw = (
            await self._answer(repository, "diff-tree", "-r", "-z", "--raw", "--no-renames", base, end) if base else ""
        )
        parts = raw.split("\0")[:-1]
        new = (about.split()[3] for about in parts[::2])
        wanted = {path: each if each.strip("0") else "" for path, each in zip(parts[1::2], new, strict=False)}
        if not wanted or len(wanted) > MOST_CHANGED or "\n" in raw:
            return False
        since = "rev-list", "--first-parent", f"{base}..{head}", "--", *wanted
        commits = (await self._answer(repository, "--literal-pathspecs", *since)).split()
        commits = list(dict.fromkeys((*commits[:MOST_COMMITS], *commits[-MOST_COMMITS:])))
        names = "".join(f"{each}:{path}\n" for each in commits for path in wanted).encode("utf-8", "surrogateescape")
        objects = await self._answer(repository, "cat-file", "--batch-check=%(objectname)", given=names)
        found = iter("" if line.endswith(" missing") else line for line in objects.split("\n"))
        return any([*islice(found, len(wanted))] == [*wanted.values()] for _ in commits)

    async def files_called(self, repository: Repository, names: Sequence[str], seconds: float) -> list[str]:
        """The files that have one of these names, with or without folders before it, without those that git ignores;
        empty where unknown.
        """
        patterns = [f":(glob,top)**/{_escaped(name)}" for name in names]
        new = ("--others", "--exclude-standard") if self._is_apart(repository) else ()
        words = "ls-files", "-z", "--cached", *new, "--", *patterns
        return _names(await self._ask(repository, *words, seconds=seconds))

    async def files_with(self, repository: Repository, words: Sequence[str], seconds: float) -> list[str]:
        """The same for the files in which one of these words stands."""
        new = ("--untracked",) if self._is_apart(repository) else ()
        options = "grep", *new, "-I", "-l", "-z", "-w", "-F", "--no-recurse-submodules", "--full-name"
        patterns = [part for word in words for part in ("-e", word)]
        return _names(await self._ask(repository, *options, *patterns, seconds=seconds))

    def _is_apart(self, repository: Repository) -> bool:
        """Whether our mount is not in this worktree."""
        return self._mounted is None or not self._mounted.is_relative_to(repository.top)

    async def _answer(self, repository: Repository, *words: str, given: bytes = b"") -> str:
        """The output of a command; empty where it failed."""
        answer = await self._ask(repository, *words, given=given)
        return answer[1] if answer is not None and answer[0] == 0 else ""

    async def _ask(
        self, repository: Repository, *words: str, seconds: float = SECONDS, given: bytes = b""
    ) -> tuple[int, str] | None:
        """The exit code and the output of a command."""
        command = ["git", *_OPTIONS, "-C", str(repository.top), *words]
        try:
            with trio.fail_after(seconds):
                done = await trio.run_process(
                    command,
                    env=self._environment,
                    stdin=given,
                    capture_stdout=True,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
        except (OSError, ValueError, trio.TooSlowError):
            return None
        return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def _names(answer: tuple[int, str] | None) -> list[str]:
    return [path for path in answer[1].split("\0")[:MOST] if path] if answer is not None and answer[0] == 0 else []


def _escaped(name: str) -> str:
    return "".join(f"\\{character}" if character in "\\*?[]" else character for character in name)
