"""Where agents work, as far as their hooks have told this process; and checks of records against the code there.

Owns the last working directory of each session and space, what git answered, and how long anybody waits: a check reads
for a few milliseconds (`BEFORE_AN_ANSWER`), and a disk that hangs costs `PATIENCE`. What a check lacks is asked of git,
and read, in the background, for the next one. Refuses to fail: what cannot be checked is said to be so. Trio thread
only.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio

from livememfs.code.anchor import Claim, CodePlace
from livememfs.code.checking import PLAIN, Answers, CodeCheck, CodeStatus, CodeVerdict
from livememfs.code.git import Git
from livememfs.code.reading import Allowance, CodeFiles
from livememfs.code.repository import Repository, repository_at
from livememfs.code.stamping import Stamping, Subject
from livememfs.concurrency import aside
from livememfs.text.privacy.redaction import redact_file

READ_SECONDS, READ_BYTES = 2.0, 64 << 20
"""Most time and bytes that are read for a new record."""
PATIENCE, EVENT_PATIENCE, LONG_PATIENCE = 0.05, 0.3, 4.0
"""Most seconds that an answer waits for a disk that hangs, that an event or a text does to be placed, and the rest."""
GIT_SECONDS, NAMING_SECONDS = 2.0, 0.5
"""Most seconds that who asked for it waits for git, and that a new record does."""
THREADS = 4
"""Most threads, each of which may wait for a disk that hangs."""
KEPT, KEPT_ANSWERS = 1_024, 8_192
FOUND_SECONDS = 30.0
"""A working directory is looked at again after so long; its branch and its commit each time."""
ASKED = 64
"""Most questions to git that wait; the others come with the next check."""


@dataclass(frozen=True)
class CheckPatience:
    """How long a check may take: what is not read within `seconds` and `bytes` counts as not checked; `at_most` is for
    a disk that hangs. `git`: whether git is waited for too.
    """

    seconds: float
    bytes: int
    at_most: float
    git: bool = False


BEFORE_AN_ANSWER = CheckPatience(0.005, 4 << 20, PATIENCE)
FOR_A_PAGE = CheckPatience(0.2, 32 << 20, 0.4)
ON_REQUEST = CheckPatience(READ_SECONDS, READ_BYTES, LONG_PATIENCE, git=True)

T = TypeVar("T")
_Work = tuple[object, Callable[[], Awaitable[object]]]
"""What is asked, by which the same question is known, and how."""


class Workplaces:
    """The working directories of one machine. `mounted` is where our own mount is: nothing in it is code. `own` is the
    directory of this process, where it speaks for who started it.
    """

    def __init__(
        self, host: str = "localhost", environment: Mapping[str, str] | None = None, *, mounted: str = "", own: str = ""
    ) -> None:
        self._host, self._mounted, self._own, self._git = host, mounted, own, Git(environment or {}, mounted)
        self._sources = CodeFiles()
        self._folders: dict[tuple[str, str], str] = {}
        self._found: dict[str, tuple[Repository | None, float]] = {}
        self._renames: dict[tuple[Path, str], tuple[object, Mapping[str, str]]] = {}
        self._merged: dict[tuple[Path, str, str], bool | None] = {}
        self._limiter = trio.CapacityLimiter(THREADS)
        self._ask, self._asked = trio.open_memory_channel[_Work](ASKED)
        self._waiting: set[object] = set()
        self._counts = {"checked": 0, "changed": 0, "gone": 0, "unmerged": 0, "unchecked": 0, "late": 0, "asked": 0}

    async def run(self) -> None:
        """Ask git what checks lacked, until cancelled."""
        async for what, work in self._asked:
            try:
                await work()
                self._counts["asked"] += 1
            finally:
                self._waiting.discard(what)

    def heard(self, space: str, session: str, folder: str) -> None:
        """A session of a space is in a directory now."""
        if not folder.startswith("/") or self._is_ours(folder):
            return
        for place in ((space, session), (space, "")):
            self._folders.pop(place, None)
            self._folders[place] = folder
        while len(self._folders) > KEPT:
            del self._folders[next(iter(self._folders))]

    def folders(self, space: str, session: str = "", first: str = "") -> Sequence[str]:
        """Where to look, the best first: `first`, where the session was last, where any of the space was."""
        heard = (self._folders.get((space, session), ""), self._folders.get((space, ""), ""))
        known = (first, *heard, self._own)
        return tuple(dict.fromkeys(filter(None, known)))

    async def place(self, folders: Sequence[str], patience: float = EVENT_PATIENCE) -> CodePlace:
        """The repository, branch and commit of the first directory that is in one; empty ones where none is."""

        def look() -> CodePlace:
            repository, _ = self._repository(folders)
            return repository.place(self._host) if repository is not None else CodePlace()

        return await self._aside(look, patience) or CodePlace() if folders else CodePlace()

    # --- checking -----------------------------------------------------------------------------------------------

    async def verdicts(
        self, folders: Sequence[str], claims: Sequence[Claim | None], patience: CheckPatience | None = None
    ) -> Sequence[CodeVerdict]:
        """One verdict for each claim, as of now, in the first of these directories that is in a repository."""
        patience = patience or BEFORE_AN_ANSWER
        if not folders or not any(claims):
            return [PLAIN] * len(claims)
        verdicts, check = await self._judged(folders, claims, patience)
        if isinstance(check, CodeCheck):
            if await self._asking(check, wait=patience.git):
                verdicts, _ = await self._judged(folders, claims, patience)
            elif check.unread and not patience.git:
                self._later(("read", folders), partial(self._judged, folders, claims, ON_REQUEST))
        self._count(verdicts)
        return verdicts

    async def _judged(
        self, folders: Sequence[str], claims: Sequence[Claim | None], patience: CheckPatience
    ) -> tuple[Sequence[CodeVerdict], CodeCheck | bool | None]:
        """The verdicts, those that came too late as not checked; and the check, None if it was late."""
        into: list[CodeVerdict] = []
        room = Allowance.of(patience.seconds, patience.bytes)
        check = await self._aside(partial(self._check, folders, claims, room, into), patience.at_most)
        if check is not None:
            return into, check
        self._counts["late"] += 1
        done = into[:]  # the thread may go on
        return [*done, *(CodeVerdict(CodeStatus.UNCHECKED) if claim else PLAIN for claim in claims[len(done) :])], None

    def _check(
        self, folders: Sequence[str], claims: Sequence[Claim | None], room: Allowance, into: list[CodeVerdict]
    ) -> CodeCheck | bool:
        repository, _ = self._repository(folders)
        if repository is None:
            into += [PLAIN] * len(claims)
            return False
        here = repository.place(self._host)
        check = CodeCheck(repository, here, self._sources, self._known(repository, here, claims), room)
        check.verdicts(claims, into)
        return check

    def _known(self, repository: Repository, here: CodePlace, claims: Iterable[Claim | None]) -> Answers:
        """What git said so far. Of renames also what it said of an older state: the path is looked at in any case."""
        commits = {claim.place.commit for claim in claims if claim is not None and claim.place.commit}
        stamp = _stamp(repository, here)
        answers = Answers()
        renames: dict[str, Mapping[str, str]] = {}
        for commit in commits:
            known = self._renames.get((repository.git, commit))
            if known is not None:
                renames[commit] = known[1]
                if known[0] != stamp:
                    answers.outdated.add(commit)
        answers.renames, answers.merged = renames, _Merged(self._merged, repository, here.commit)
        return answers

    async def _asking(self, check: CodeCheck, *, wait: bool) -> bool:
        """Have git asked what a check lacked; whether anything was, and has been answered."""
        repository, here, answers = check.repository, check.here, check.answers
        work, done = list[_Work](), False
        for commit in sorted(answers.unknown_renames):
            work.append((("renames", repository.git, commit), partial(self._ask_renames, repository, here, commit)))
        for commit, tip in sorted(answers.unknown_merged.items()) if here.commit else ():
            asking = partial(self._ask_merged, repository, commit, tip, here.commit)
            work.append((("merged", repository.common, commit, here.commit), asking))
        with trio.move_on_after(GIT_SECONDS) if wait else nullcontext():
            while wait and work:
                await work[0][1]()
                done = bool(work.pop(0))
        for what, ask in work[:ASKED]:
            self._later(what, ask)
        return done

    def _later(self, what: object, work: Callable[[], Awaitable[object]]) -> None:
        if what not in self._waiting:
            try:
                self._ask.send_nowait((what, work))
            except trio.WouldBlock:
                return
            self._waiting.add(what)

    async def _ask_renames(self, repository: Repository, here: CodePlace, commit: str) -> None:
        stamp = await self._aside(lambda: _stamp(repository, here), LONG_PATIENCE)
        found = await self._git.renames(repository, commit)
        self._renames[repository.git, commit] = stamp, found or {}
        while len(self._renames) > KEPT:
            del self._renames[next(iter(self._renames))]

    async def _ask_merged(self, repository: Repository, commit: str, tip: str, head: str) -> None:
        has = await self._git.has(repository, commit, head)
        if has is False:
            has = await self._git.was_squashed(repository, commit, tip, head)
        self._merged[repository.common, commit, head] = has
        while len(self._merged) > KEPT_ANSWERS:
            del self._merged[next(iter(self._merged))]

    # --- new records --------------------------------------------------------------------------------------------

    async def fields(self, space: str, raw: bytes, folder: str = "") -> Mapping[str, Any]:
        """The fields of front matter of a text that somebody in a directory writes into a space now; none outside of a
        repository.
        """
        folders = self.folders(space, "", folder)
        where = await self._aside(lambda: self._repository(folders)[1], EVENT_PATIENCE) if folders else ""
        if not where:
            return {}
        text = (await aside(len(raw), lambda: redact_file(raw)))[0].decode("utf-8", "replace")
        claim = await self.claim(Subject(text, where))
        return claim.fields(whole=True) if claim is not None else {}

    async def claim(self, subject: Subject, place: CodePlace | None = None) -> Claim | None:
        """What a new record keeps; None outside of a repository. `place`: where it was made, if that is known."""
        here = await self.place((subject.folder,), LONG_PATIENCE)
        if not here.repository or (place is not None and place.repository not in ("", here.repository)):
            return Claim(place) if place is not None and place.repository else None
        stamping = await self._aside(partial(self._stamping, subject), LONG_PATIENCE)
        if stamping is None:
            return Claim(place or here)
        names = await self._aside(partial(stamping.unknown, subject), LONG_PATIENCE)
        if names:
            stamping.paths = _by_name(names, await self._git.files_called(stamping.repository, names, NAMING_SECONDS))
        elif words := stamping.homeless(subject):
            stamping.having = await self._git.files_with(stamping.repository, words, NAMING_SECONDS)
        anchors = await self._aside(partial(stamping.anchors, subject), LONG_PATIENCE)
        return Claim(place if place is not None and place.repository else here, anchors or ())

    def _stamping(self, subject: Subject) -> Stamping | None:
        repository, _ = self._repository((subject.folder,))
        if repository is None:
            return None
        return Stamping(repository, self._sources, Allowance.of(READ_SECONDS, READ_BYTES))

    # --- looking ------------------------------------------------------------------------------------------------

    def _repository(self, folders: Sequence[str]) -> tuple[Repository | None, str]:
        """The repository of the first directory that is in one, and that directory. In a worker thread."""
        known = ((self._repository_of(folder), folder) for folder in folders)
        return next((pair for pair in known if pair[0] is not None), (None, ""))

    def _repository_of(self, folder: str) -> Repository | None:
        known, until = self._found.get(folder, (None, 0.0))
        now = time.monotonic()
        if now < until:
            return known
        repository = None if self._is_ours(folder) else repository_at(Path(folder))
        if len(self._found) >= KEPT:
            self._found.clear()
        self._found[folder] = repository, now + FOUND_SECONDS
        return repository

    def _is_ours(self, folder: str) -> bool:
        return bool(self._mounted) and f"{folder}/".startswith(f"{self._mounted.rstrip('/')}/")

    async def _aside(self, work: Callable[[], T], patience: float) -> T | None:
        """`work()` in a thread that nobody waits for longer than so many seconds; None if it took longer."""
        with trio.move_on_after(patience):
            return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
        return None

    def _count(self, verdicts: Iterable[CodeVerdict]) -> None:
        for verdict in verdicts:
            if verdict is not PLAIN:
                self._counts["checked"] += 1
                name = "unmerged" if verdict.branch else _NAMES.get(verdict.status)
                if name is not None:
                    self._counts[name] += 1

    def statistics(self) -> dict[str, int]:
        """Records checked, and how many of them had changed, were gone, unmerged, or could not be checked; checks that
        a disk made late; questions that git was asked.
        """
        return dict(self._counts)


_NAMES = {CodeStatus.CHANGED: "changed", CodeStatus.GONE: "gone", CodeStatus.UNCHECKED: "unchecked"}


class _Merged(dict[str, "bool | None"]):
    """Which commits a commit has, as far as git was asked."""

    def __init__(self, known: Mapping[tuple[Path, str, str], bool | None], repository: Repository, head: str) -> None:
        super().__init__()
        self._known, self._common, self._head = known, repository.common, head

    def __contains__(self, commit: object) -> bool:
        return (self._common, commit, self._head) in self._known

    def get(self, commit: str, default: Any = None) -> Any:
        return self._known.get((self._common, commit, self._head), default)


def _stamp(repository: Repository, here: CodePlace) -> object:
    """Equal only while neither the commit nor the index has changed."""
    try:
        info = (repository.git / "index").stat()
        return here.commit, info.st_mtime_ns, info.st_size
    except OSError:
        return here.commit, 0, 0


def _by_name(names: Iterable[str], paths: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in names}
    for path in paths:
        for name in found:
            if path == name or path.endswith(f"/{name}"):
                found[name].append(path)
    return found
