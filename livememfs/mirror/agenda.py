"""What is to be looked at, and when.

Owns the rule that a file counts once it was left alone for a moment: half a file is nobody's version. Refuses to look
and to act. Trio thread only; nothing here awaits, but `wait`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import trio

from livememfs.mirror.rows import NEVER, MirrorRow, Sig

QUIET_SECONDS = 0.2
LONGEST_SECONDS = 5.0
"""A file that is written to all the time is taken all the same after this long."""
STEP_SECONDS = 0.05
SOON_SECONDS = 5.0


@dataclass(slots=True)
class _Pending:
    """A path that somebody may be working on: what it was at the last look, since when, and the first look."""

    seen: Sig | None
    since: float
    first: float


class Agenda:
    """The paths of one mirror. `refused` has those that the tree does not take as they are."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._news: set[str] = set()
        self._later: dict[str, float] = {}
        self._woken = trio.Event()
        self.refused: dict[str, Sig] = {}

    def heard(self, *paths: str) -> None:
        """The tree may have something else there."""
        self._news.update(paths)
        self._woken.set()

    def again(self, path: str, seconds: float) -> None:
        """Look at a path in a while, or earlier if that is due already."""
        at = trio.current_time() + seconds
        self._later[path] = min(at, self._later.get(path, at))
        self._woken.set()

    def touched(self, paths: Iterable[str]) -> None:
        """Something has happened to local paths."""
        now = trio.current_time()
        for path in paths:
            self._pending.setdefault(path, _Pending(NEVER, now, now))
        self._woken.set()

    @property
    def idle(self) -> bool:
        """Whether everything that is known was looked at, but for what has to wait for long."""
        soon = trio.current_time() + SOON_SECONDS
        return not self._pending and not self._news and not any(at < soon for at in self._later.values())

    async def wait(self) -> None:
        """Wait until something is due."""
        now = trio.current_time()
        due = min(self._later.values(), default=float("inf"))
        if self._pending:
            due = min(due, now + STEP_SECONDS)
        if self._news:
            due = now
        self._woken = trio.Event()
        with trio.move_on_at(due):
            await self._woken.wait()

    def due(self) -> tuple[set[str], set[str]]:
        """The paths of which there is news, once, and those that somebody may be working on."""
        now = trio.current_time()
        late = {path for path, at in self._later.items() if at <= now}
        for path in late:
            del self._later[path]
        news, self._news = self._news | late, set()
        return news, set(self._pending)

    def is_ready(self, path: str, sig: Sig | None, row: MirrorRow | None, *, news: bool) -> bool:
        """Whether a path that was just looked at may be settled now; else it is due again in a moment."""
        now, pending = trio.current_time(), self._pending.get(path)
        if sig is None:
            self.refused.pop(path, None)
        if sig is None if row is None else row.local.same(sig):
            self._pending.pop(path, None)
            return news
        if pending is None:
            self._pending[path] = _Pending(sig, now, now)
            return False
        if pending.seen != sig:
            pending.seen, pending.since = sig, now
            if now - pending.first < LONGEST_SECONDS:
                return False
        elif now - pending.since < QUIET_SECONDS:
            return False
        del self._pending[path]
        return True

    def is_refused(self, path: str, sig: Sig | None) -> bool:
        """Whether a path was refused as it is, or is in a folder that was."""
        if sig is not None and path in self.refused:
            return self.refused[path].same(sig)
        while path := path.rpartition("/")[0]:
            if path in self.refused:
                return True
        return False
