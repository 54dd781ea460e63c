"""A crash at every moment: whatever was accepted by then is in the bucket in the end, once, and nothing else is.

A process can die before and after each commit of the local database and each effect in the store. A script is run once
for every such moment and dies there; the next process takes up the same folder, must show what was accepted, goes on
with the rest of the script and brings everything to the bucket. The step during which it died happened as a whole or
not at all.
"""

from __future__ import annotations

import functools
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trio
from trio.testing import MockClock

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.store.base import ObjectInfo, list_all
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Asked, Fault, FaultyStore

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
STAMP = "livememfs-mtime"
LARGE = bytes(100_000)
"""Kept as a file beside the database."""
LATENCY = 0.05
NEVER = 1 << 60
connect = sqlite3.connect

Step = tuple[Any, ...]
State = dict[str, tuple[bytes, str]]
"""Content and time stamp by key."""


class Crash(BaseException):  # noqa: N818  # no error: the end
    """The process is no more."""


class Moments:
    """Counts the moments at which a process can die; it dies at number `at`."""

    def __init__(self, at: int = NEVER) -> None:
        self.at = at
        self.count = 0
        self.dead = False
        self.where = ""

    def comes(self, what: str) -> bool:
        """Whether the process dies now. Once dead, it dies at every further step: nothing has an effect any more."""
        self.count += 1
        if self.count == self.at:
            self.dead, self.where = True, what
        return self.dead

    def plan(self, asked: Asked, _: int) -> Fault:
        if self.comes(f"before {asked.verb} {asked.key}"):
            return Fault(before=Crash())  # type: ignore[arg-type]  # the store raises what it is given
        # The effect comes later than this decision, and so does the death.
        self.count += 1
        if self.count == self.at:
            self.where = f"after {asked.verb} {asked.key}"
            return Fault(after=Crash())  # type: ignore[arg-type]  # as above
        return Fault()


@contextmanager
def dying(moments: Moments) -> Iterator[None]:
    """Every database opened within dies at its moment."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql == "COMMIT" and moments.comes("before a commit"):
                raise Crash
            found = super().execute(sql, *values)
            if sql == "COMMIT" and moments.comes("after a commit"):
                raise Crash
            return found

    with patch.object(sqlite3, "connect", functools.partial(connect, factory=Connection)):
        yield


# --- the script, and what it makes -----------------------------------------------------------------------------------


def after(state: State, number: int, step: Step) -> State:
    """What is there after a step. A step for which nothing is there does nothing."""
    made = dict(state)
    match step:
        case ("save", key, data):
            made[key] = (data, str(number))
        case ("remove", key):
            made.pop(key, None)
        case ("move", source, target) if source in made and source != target:
            made[target] = made.pop(source)
        case ("restamp", key) if key in made:
            made[key] = (made[key][0], str(number))
    return made


async def perform(replica: Replica, number: int, step: Step) -> None:
    """The same on a replica, as the tree does it."""
    match step:
        case ("save", key, data):
            replica.save(key, data, meta={STAMP: str(number)}, base=await found(replica, key))
        case ("remove", key):
            info = await found(replica, key)
            if info is not None:
                replica.remove(key, base=info)
        case ("move", source, target):
            info, replaces = await found(replica, source), await found(replica, target)
            if info is not None and source != target:
                replica.move(info, target, replaces=replaces)
        case ("restamp", key):
            info = await found(replica, key)
            if info is not None:
                replica.restamp(info, {STAMP: str(number)})
        case ("wait", seconds):
            await trio.sleep(seconds)
        case ("forget",):
            replica.blobs._memory.clear()  # so that a rename of what is stored has no bytes at hand
            await replica.uploaded()
            while replica.blobs.evict():
                pass
        case ("uploaded",):
            await replica.uploaded()


async def found(replica: Replica, key: str) -> ObjectInfo | None:
    try:
        return await replica.stat(key)
    except errors.ObjectMissing:
        return None


class Story:
    """A script that is lived through by processes which share a folder and a bucket."""

    def __init__(self, folder: Path, script: list[Step]) -> None:
        self.folder = folder
        self.script = script
        self.memory = MemoryStore(ManualClock())
        self.conflicts: list[tuple[str, str]] = []
        self.state: State = {}
        self.done = 0

    async def live(self, moments: Moments) -> None:
        """One process: look around, go on, and settle."""
        store = FaultyStore(self.memory, plan=moments.plan)
        store.latency("*", LATENCY)
        replica = None
        try:
            with dying(moments):
                replica = Replica(
                    RetryingStore(store),
                    folder=self.folder,
                    host="here",
                    on_conflict=lambda key, copy: self.conflicts.append((key, copy)),
                )
                async with trio.open_nursery() as nursery:
                    await nursery.start(replica.run)
                    await self._look_around(replica)
                    while self.done < len(self.script):
                        await perform(replica, self.done, self.script[self.done])
                        self.state = after(self.state, self.done, self.script[self.done])
                        self.done += 1
                    await replica.uploaded()
                    assert len(replica.journal) == 0
                    nursery.cancel_scope.cancel()
                self._check_contents(replica)
        finally:
            if replica is not None:
                replica._database.close()

    async def _look_around(self, replica: Replica) -> None:
        """What was accepted shows; of the step in the middle of which the last process died, all or nothing."""
        shown = await self.shown(replica)
        if shown == self.state:
            return
        assert self.done < len(self.script)
        self.state = after(self.state, self.done, self.script[self.done])
        self.done += 1
        assert shown == self.state

    async def shown(self, replica: Replica) -> State:
        listing = await replica.listing("s/")
        infos = await replica.complete(list(listing.objects.values()))
        return {info.key: ((await replica.read(info.key)).data, (info.meta or {})[STAMP]) for info in infos}

    def _check_contents(self, replica: Replica) -> None:
        """No file is there for nobody, and none is missing."""
        rows = replica._database.rows("SELECT file FROM blob WHERE file IS NOT NULL")
        assert sorted(file for (file,) in rows) == sorted(os.listdir(self.folder / "contents"))

    async def bucket(self) -> State:
        infos = (await list_all(self.memory, "")).objects
        objects = [await self.memory.get(info.key) for info in infos]
        return {found.info.key: (found.data, (found.info.meta or {}).get(STAMP, "")) for found in objects}

    def run(self, *deaths: int) -> Moments:
        """Live as often as it takes: the first lives end at the given moments, the last one as it should."""
        lives: list[Moments] = []
        try:
            for at in (*deaths, NEVER):
                lives.append(Moments(at))
                if not self._dies(lives[-1]):
                    break  # it was done before its moment came
            expected: State = {}
            for number, step in enumerate(self.script):
                expected = after(expected, number, step)
            assert trio.run(self.bucket) == expected
            assert self.conflicts == []
        except Exception as error:
            error.add_note(f"{self.script}\ndeaths: {[(life.at, life.where) for life in lives]}")
            raise
        return lives[-1]

    def _dies(self, moments: Moments) -> bool:
        try:
            trio.run(self.live, moments, clock=MockClock(autojump_threshold=0))
        except Crash:
            return True
        except BaseExceptionGroup as group:
            crashes, rest = group.split(Crash)
            if crashes is None or rest is not None:
                raise
            return True
        return False


SCRIPTS: dict[str, list[Step]] = {
    "written again and again": [
        ("save", "s/a", b"1"),
        ("save", "s/a", b"2"),
        ("wait", 0.28),  # on its way
        ("save", "s/a", b"3"),
        ("save", "s/a", b"4"),
        ("uploaded",),
        ("save", "s/a", b"5"),
        ("save", "s/a", LARGE),
    ],
    "removed and made again": [
        ("save", "s/a", b"1"),
        ("wait", 0.28),
        ("remove", "s/a"),
        ("wait", 0.28),
        ("save", "s/a", b"2"),
        ("uploaded",),
        ("remove", "s/a"),
        ("save", "s/a", b"3"),
        ("remove", "s/a"),
        ("wait", 0.28),
        ("save", "s/a", b"4"),
    ],
    "renamed before and after the upload": [
        ("save", "s/a", LARGE),
        ("move", "s/a", "s/b"),
        ("wait", 0.28),
        ("move", "s/b", "s/c"),
        ("uploaded",),
        ("move", "s/c", "s/d"),
        ("wait", 0.28),
        ("move", "s/d", "s/a"),
        ("forget",),
        ("move", "s/a", "s/b"),
        ("move", "s/b", "s/c"),
    ],
    "saved the way editors do": [
        ("save", "s/a", b"1"),
        ("uploaded",),
        ("save", "s/t", b"2"),
        ("move", "s/t", "s/a"),
        ("save", "s/t", b"3"),
        ("wait", 0.28),
        ("move", "s/t", "s/a"),
        ("move", "s/a", "s/a~"),
        ("save", "s/a", b"4"),
        ("remove", "s/a~"),
    ],
    "attributes": [
        ("save", "s/a", b"1"),
        ("restamp", "s/a"),
        ("wait", 0.28),
        ("restamp", "s/a"),
        ("wait", 0.28),
        ("save", "s/a", b"2"),
        ("uploaded",),
        ("restamp", "s/a"),
        ("save", "s/a", b"2"),
        ("move", "s/a", "s/b"),
        ("restamp", "s/b"),
    ],
    "two that change places": [
        ("save", "s/a", b"a"),
        ("save", "s/b", b"b"),
        ("uploaded",),
        ("move", "s/a", "s/t"),
        ("move", "s/b", "s/a"),
        ("move", "s/t", "s/b"),
        ("forget",),
        ("move", "s/a", "s/t"),
        ("move", "s/b", "s/a"),
        ("move", "s/t", "s/b"),
    ],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_crash_at_every_moment_loses_nothing_and_does_nothing_twice(tmp_path: Path, script: list[Step]) -> None:
    whole = Story(tmp_path / "whole", script).run()
    for at in range(1, whole.count + 1):
        Story(tmp_path / str(at), script).run(at)
    print(f"{whole.count} crashes")
