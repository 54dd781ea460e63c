"""Whether a record may be told as it stands, by the code that it speaks of and by the branch it was made on.

Owns the words for it. Fresh is told plain; changed, or not checked, is told with that word; gone is not told; what is
on another branch, and not merged into this one, is told after the others and marked. Refuses to remove anything.
Blocking, by what it reads; what only git knows is taken from answers that were asked for before, and noted if missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from livememfs.code.anchor import Anchor, Claim, CodePlace
from livememfs.code.reading import Allowance, CodeFiles, FileMissing, FileUnread
from livememfs.code.repository import Repository


class CodeStatus(Enum):
    """How the code is that a record speaks of, in the worktree that was looked at."""

    FRESH = "fresh"
    CHANGED = "changed"
    GONE = "gone"
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class CodeVerdict:
    """What came of a check.

    :of:     the anchors with their status, and the path at which each was looked for
    :branch: the other branch that it is on, unmerged; empty for what counts here
    """

    status: CodeStatus = CodeStatus.FRESH
    branch: str = ""
    of: tuple[tuple[Anchor, CodeStatus, str], ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether it may be told to who did not ask for it."""
        return bool(self.branch) or self.status is not CodeStatus.GONE

    @property
    def mark(self) -> str:
        """What stands beside it where it is shown; empty for what is fresh."""
        if self.branch:
            return f"on branch {self.branch}, not merged"
        return _MARKS[self.status]


_MARKS = {
    CodeStatus.FRESH: "",
    CodeStatus.CHANGED: "its code has changed since",
    CodeStatus.GONE: "its code is gone",
    CodeStatus.UNCHECKED: "not checked against the code",
}
PLAIN = CodeVerdict()


@dataclass
class Answers:
    """What git said of a repository as it is now, and what it was not asked yet.

    :renames: by commit: the new paths by the old ones, from that commit to the worktree
    :merged:  by commit: whether HEAD has it, or what it brought; None where git does not know the commit
    :outdated: commits whose renames are those of an older state
    """

    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    merged: Mapping[str, bool | None] = field(default_factory=dict)
    outdated: set[str] = field(default_factory=set)
    unknown_renames: set[str] = field(default_factory=set)
    unknown_merged: dict[str, str] = field(default_factory=dict)
    """With the tip of the branch."""

    def renamed(self, commit: str, path: str) -> str:
        """The path of a file now, that had another one at a commit; empty where no new one is known."""
        if commit and (commit not in self.renames or commit in self.outdated):
            self.unknown_renames.add(commit)
        return self.renames.get(commit, {}).get(path, "")

    def has(self, commit: str, tip: str = "") -> bool:
        """Whether HEAD is known to have a commit, or what it brought. `tip`: of its branch, which may have gone on."""
        if commit and commit not in self.merged:
            self.unknown_merged[commit] = tip
        return bool(self.merged.get(commit))


@dataclass
class CodeCheck:
    """The check of some claims in one worktree, within `room`."""

    repository: Repository
    here: CodePlace
    sources: CodeFiles
    answers: Answers
    room: Allowance
    unread: bool = False

    def verdicts(self, claims: Sequence[Claim | None], into: list[CodeVerdict]) -> None:
        """Put one verdict for each claim into a list, in their order. Claims about other repositories are not judged.

        A file is read once, for all that is said of it.
        """
        wanted: dict[str, set[str]] = {}
        for claim in claims:
            for anchor in claim.anchors if claim is not None and self._is_ours(claim) else ():
                wanted.setdefault(anchor.path, set()).add(anchor.symbol)
        mains = self.repository.mains() if any(wanted) or any(claims) else frozenset()
        for claim in claims:
            into.append(self._verdict(claim, wanted, mains) if claim is not None and self._is_ours(claim) else PLAIN)

    def _is_ours(self, claim: Claim) -> bool:
        return claim.place.repository == self.here.repository

    def _verdict(self, claim: Claim, wanted: Mapping[str, set[str]], mains: frozenset[str]) -> CodeVerdict:
        of = tuple((anchor, *self._status(anchor, claim.place.commit, wanted)) for anchor in claim.anchors)
        status = _joined(each for _, each, _ in of)
        if status is CodeStatus.FRESH and of:  # it is here, however it came: a squash leaves no trace of its commits
            return CodeVerdict(of=of)
        branch = claim.place.branch
        elsewhere = branch and branch != self.here.branch and branch not in mains
        return CodeVerdict(status, branch if elsewhere and not self._is_merged(claim) else "", of)

    def _is_merged(self, claim: Claim) -> bool:
        """Whether the branch's work is here. What was not committed when the record was made is in its tip alone."""
        tip = self.repository.tip(claim.place.branch)
        if not self.answers.has(claim.place.commit, tip):
            return False
        return not claim.anchors or not tip or self.answers.has(tip)

    def _status(self, anchor: Anchor, commit: str, wanted: Mapping[str, set[str]]) -> tuple[CodeStatus, str]:
        path = anchor.path
        try:
            try:
                found = self.sources.digests(self.repository.top, path, wanted[path], self.room)
            except FileMissing:
                path = self.answers.renamed(commit, anchor.path)
                if not path:
                    return CodeStatus.GONE, anchor.path
                found = self.sources.digests(self.repository.top, path, wanted[anchor.path], self.room)
        except FileMissing:
            return CodeStatus.GONE, path
        except FileUnread:
            self.unread = True
            return CodeStatus.UNCHECKED, path
        digest = found[anchor.symbol]
        if not digest:
            return CodeStatus.GONE, path
        return (CodeStatus.UNCHECKED if not anchor.digest else _compared(digest, anchor.digest)), path


def _compared(now: str, then: str) -> CodeStatus:
    return CodeStatus.FRESH if now == then else CodeStatus.CHANGED


def _joined(each: Iterable[CodeStatus]) -> CodeStatus:
    """Of several anchors: gone if all are, changed if any is, fresh only if all are."""
    found = set(each) or {CodeStatus.FRESH}
    if len(found) == 1:
        return found.pop()
    return CodeStatus.CHANGED if found & {CodeStatus.CHANGED, CodeStatus.GONE} else CodeStatus.UNCHECKED
