"""The mirror: a directory and the tree are kept equal, path by path.

Owns what is looked at, on notice of either side and now and then in full, and the order in which many paths are
settled. Refuses to take a disk that is gone for a removal. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import trio

from livememfs.cache.changes import Change
from livememfs.concurrency import for_each
from livememfs.mirror.agenda import Agenda
from livememfs.mirror.branch import Branch
from livememfs.mirror.place import MirrorPlace
from livememfs.mirror.renames import settle_renames
from livememfs.mirror.rows import Do, MirrorRows, Remote, Sig, decide
from livememfs.mirror.settling import Settler, aside_from_disk
from livememfs.tree.space.root import CONTEXT

PAGE_SECONDS = 2.0
"""A page that is computed is made anew this long after a change of its space."""
AT_ONCE = 8


@dataclass(frozen=True)
class MirrorStatistics:
    """Since the start: changes brought to the tree, brought to the disk, and refused; and what was refused last.

    :waiting: paths that are refused as they are now
    :folders: each takes one of the notices that the system has to give
    :polled:  whether the system gives none
    """

    up: int
    down: int
    refused: int
    waiting: int
    folders: int
    polled: bool
    last_refusal: str


class Mirror:
    """One directory and one branch of the tree."""

    def __init__(self, branch: Branch, place: MirrorPlace, rows: MirrorRows, host: str) -> None:
        self.branch, self.place, self.rows = branch, place, rows
        self.agenda = Agenda()
        self.settler = Settler(branch, place, rows, self.agenda, host)
        self.is_polled = False

    def changed(self, change: Change) -> None:
        """A subscriber of the stream of changes."""
        path = self.branch.path_of(change.key)
        if path:
            space = "" if self.branch.space else f"{path.partition('/')[0]}/"
            self.agenda.heard(path)
            self.agenda.again(f"{space}{CONTEXT}", PAGE_SECONDS)

    def met(self, space: str) -> None:
        """There is such a space."""
        if not self.branch.space and self.rows.get(space) is None:
            self.agenda.heard(space)

    async def run(self) -> None:
        """Keep both equal until cancelled. MountError when the disk is gone."""
        while True:
            await self.agenda.wait()
            await self.step()

    async def until_idle(self) -> None:
        """Do what is to be done, as far as it is known. MountError."""
        while not self.agenda.idle:
            await self.agenda.wait()
            await self.step()

    async def step(self) -> None:
        """Look at everything that is due, once."""
        news, pending = self.agenda.due()
        found = await aside_from_disk(self.place.look_all, news | pending)
        ready = {
            path: sig
            for path, sig in found.items()
            if self.agenda.is_ready(path, sig, self.rows.get(path), news=path in news)
        }
        if ready:
            await self.settle(ready)
        await self.settler.let_go()

    async def compare(self) -> None:
        """Look at everything on both sides. Raises what the store fails with, MountError."""
        remotes: dict[str, Remote] = {}
        async for path, remote in self.branch.walk():
            remotes[path] = remote
        found = await self._scanned()
        for path in {*found, *remotes, *self.rows.all} - {""}:
            row, sig = self.rows.get(path), found.get(path)
            if decide(row, sig, remotes.get(path)) is Do.NOTHING or self.agenda.is_refused(path, sig):
                continue
            if sig is None if row is None else row.local.same(sig):
                self.agenda.heard(path)
            else:
                self.agenda.touched([path])

    async def scan(self) -> Iterable[str]:
        """Look at everything on the disk: notices of the system may get lost. The paths that are there. MountError."""
        found = await self._scanned()
        gone = [path for path in self.rows.all if path and path not in found]
        self.agenda.touched([*gone, *(path for path, sig in found.items() if self._is_changed(path, sig))])
        return found

    async def _scanned(self) -> dict[str, Sig]:
        found = await aside_from_disk(self.place.scan)
        self.place.expect_here()
        return found

    def _is_changed(self, path: str, sig: Sig) -> bool:
        row = self.rows.get(path)
        return (row is None or not row.local.same(sig)) and not self.agenda.is_refused(path, sig)

    async def settle(self, found: dict[str, Sig | None]) -> None:
        """Make these paths equal. What may be a directory that goes waits for what is in it. MountError."""
        for path, sig in list(found.items()):
            row = self.rows.get(path)
            if sig is None and row is not None and row.local.kind == "d":
                found.update(dict.fromkeys(self.rows.below(path)))
            elif sig is not None and sig.kind == "d" and row is None:
                self.agenda.touched(await aside_from_disk(self.place.scan, path))
        if None in found.values():
            self.place.expect_here()
        await settle_renames(self.settler, found)
        rows = ((path, sig, self.rows.get(path)) for path, sig in found.items())
        last = {path for path, sig, row in rows if row is not None and (sig is None or row.local.kind == "d")}

        async def one(path: str) -> None:
            await self.settler.settle(path, found[path])

        await for_each(sorted(found.keys() - last), one, at_once=AT_ONCE)
        for path in sorted(last, reverse=True):
            await one(path)
        await trio.lowlevel.checkpoint()

    def statistics(self) -> MirrorStatistics:
        """Counters, and a look at each row."""
        return MirrorStatistics(
            **self.settler.counts,
            waiting=len(self.agenda.refused),
            folders=sum(row.local.kind == "d" for row in self.rows.all.values()),
            polled=self.is_polled,
            last_refusal=self.place.told,
        )

    def polled(self) -> None:
        """The system has no notices to give."""
        self.is_polled = True
