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
from livememfs.cache.database import Database
from livememfs.cache.replica import Replica
from livememfs.store.base import ObjectInfo, list_all
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
STAMP = "livememfs-mtime"
LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
STORIES = 200 if LONG else 50
LARGE = bytes(100_000)
"""Kept as a file beside the database."""
LATENCY = 0.05
UNSTEADY = 0.3
"""The share of requests that fail, before or after their effect, where the network is bad."""
NEVER = 1 << 60
PATIENCE = 10_000.0
"""Seconds of virtual time."""
connect = sqlite3.connect

Step = tuple[Any, ...]
State = dict[str, tuple[bytes, str]]
"""Content and time stamp by key."""


class Crash(BaseException):  # no error: the end
    """The process is no more."""


class Moments:
    """Counts the moments at which a process can die; it dies at number `at`.

    With `dice` the network is bad, too. The commits with the numbers in `full` find no room on the disk.
    """

    def __init__(self, at: int = NEVER, dice: random.Random | None = None, full: range = range(0)) -> None:
        self.at = at
        self.dice = dice
        self.full = full
        self.count = self.commits = 0
        self.dead = False
        self.where = ""

    def comes(self, what: str) -> bool:
        """Whether the process dies now. Once dead, it dies at every further step: nothing has an effect any more."""
        self.count += 1
        if self.count == self.at:
            self.dead, self.where = True, what
        return self.dead

    def commit(self) -> None:
        """Before a commit."""
        self.commits += 1
        if self.comes("before a commit"):
            raise Crash
        if self.commits in self.full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    def plan(self, asked: StoreRequest, _: int) -> Fault:
        if self.comes(f"before {asked.verb} {asked.key}"):
            return Fault(before=Crash())  # type: ignore[arg-type]  # the store raises what it is given
        # The effect comes later than this decision, and so does the death.
        self.count += 1
        if self.count == self.at:
            self.where = f"after {asked.verb} {asked.key}"
            return Fault(after=Crash())  # type: ignore[arg-type]  # as above
        if self.dice is not None and self.dice.random() < UNSTEADY:
            reset = errors.Unreachable("reset", endpoint="the bucket")
            return Fault(before=reset) if self.dice.random() < 0.5 else Fault(after=reset)
        return Fault()


@contextmanager
def dying(moments: Moments) -> Iterator[None]:
    """Every database opened within dies at its moment."""

    opened: list[Database] = []

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            sql = sql.replace("synchronous=NORMAL", "synchronous=OFF")  # it is a process that dies, not the machine
            try:
                if sql == "COMMIT":
                    moments.commit()
                found = super().execute(sql, *values)
                if sql == "COMMIT" and moments.comes("after a commit"):
                    raise Crash
            except Crash:
                for database in opened:
                    database._undo.clear()  # the dead do not tidy up
                raise
            return found

    def remembered(folder: Path | None) -> Database:
        opened.append(Database(folder))
        return opened[-1]

    with (
        patch.object(sqlite3, "connect", functools.partial(connect, factory=Connection)),
        patch("livememfs.cache.replica.Database", remembered),
    ):
        try:
            yield
        finally:
            for database in opened:
                database.close()  # as the system does for a process that is gone


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
            await uploaded(replica)
            while replica.blobs.evict():
                pass
        case ("uploaded",):
            await uploaded(replica)


async def found(replica: Replica, key: str) -> ObjectInfo | None:
    while True:
        try:
            return await replica.names.stat(key)
        except errors.ObjectMissing:
            return None
        except errors.Unreachable:
            continue


async def uploaded(replica: Replica) -> None:
    while len(replica.journal.ops):
        try:
            await replica.uploaded()
        except errors.StoreError:  # no room to write it off: it is tried again
            await trio.sleep(1)


class Story:
    """A script that is lived through by processes which share a folder and a bucket."""

    def __init__(self, folder: Path, script: list[Step], dice: random.Random | None = None) -> None:
        self.dice = dice
        self.folder = folder
        self.script = script
        self.memory = MemoryStore(ManualClock())
        self.conflicts: list[tuple[str, str]] = []
        self.state: State = {}
        self.done = self.refused = 0

    async def live(self, moments: Moments) -> None:
        """One process: look around, go on, and settle."""
        store = FaultyStore(self.memory, plan=moments.plan)
        store.latency("*", LATENCY)
        with dying(moments):
            replica = Replica(
                RetryingStore(store),
                folder=self.folder,
                host="here",
                on_conflict=lambda key, copy: self.conflicts.append((key, copy)),
            )
            async with trio.open_nursery() as nursery:
                nursery.cancel_scope.deadline = trio.current_time() + PATIENCE
                await nursery.start(replica.run)
                await self._look_around(replica)
                while self.done < len(self.script):
                    await self._go_on(replica)
                await uploaded(replica)
                assert await self.shown(replica) == self.state
                nursery.cancel_scope.cancel()
            assert (self.done, len(replica.journal.ops)) == (len(self.script), 0), "it does not come to an end"
            self._check_contents(replica)

    async def _go_on(self, replica: Replica) -> None:
        """One step. What a full disk refuses has not happened."""
        try:
            await perform(replica, self.done, self.script[self.done])
        except errors.NoSpace:
            self.refused += 1
            shown = await self.shown(replica)
            assert shown == self.state, "a refusal has left its mark"
        else:
            self.state = after(self.state, self.done, self.script[self.done])
        self.done += 1

    async def _look_around(self, replica: Replica) -> None:
        """What was accepted shows; of the step in the middle of which the last process died, all or nothing."""
        shown = await self.shown(replica)
        if shown == self.state:
            return
        assert self.done < len(self.script)
        self.state = after(self.state, self.done, self.script[self.done])
        self.done += 1
        assert shown == self.state, "what was accepted does not show"

    async def shown(self, replica: Replica) -> State:
        while True:
            try:
                listing = await replica.names.listing("s/")
                infos = await replica.names.complete(list(listing.objects.values()))
                return {info.key: ((await replica.read(info.key)).data, (info.meta or {})[STAMP]) for info in infos}
            except (errors.Unreachable, errors.PreconditionFailed, errors.ObjectMissing):
                continue  # a rename went on meanwhile; the tree asks again as well

    def _check_contents(self, replica: Replica) -> None:
        """No file is there for nobody, and none is missing."""
        rows = replica._database.rows("SELECT file FROM blob WHERE file IS NOT NULL")
        assert sorted(file for (file,) in rows) == sorted(os.listdir(self.folder / "contents"))

    async def bucket(self) -> State:
        infos = (await list_all(self.memory, "")).objects
        objects = [await self.memory.get(info.key) for info in infos]
        return {found.info.key: (found.data, (found.info.meta or {}).get(STAMP, "")) for found in objects}

    def run(self, *deaths: int, full: range = range(0)) -> Moments:
        """Live as often as it takes: the first lives end at the given moments, the last one as it should."""
        lives: list[Moments] = []
        try:
            for at in (*deaths, NEVER):
                lives.append(Moments(at, self.dice, full))
                if not self._dies(lives[-1]):
                    break  # it was done before its moment came
            assert trio.run(self.bucket) == self.state
            assert self.conflicts == []
        except Exception as error:
            told = repr(self.script).replace(repr(LARGE), "LARGE")
            error.add_note(f"{told}\ndeaths: {[(life.at, life.where) for life in lives]}, full: {full}")
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
    "renamed there and back": [
        ("save", "s/a", b"a"),
        ("save", "s/b", b"b"),
        ("uploaded",),
        ("move", "s/b", "s/a"),
        ("move", "s/a", "s/b"),
        ("forget",),
        ("save", "s/a", b"a"),
        ("forget",),
        ("move", "s/b", "s/a"),
        ("move", "s/a", "s/b"),
        ("restamp", "s/b"),
        ("move", "s/b", "s/c"),
        ("uploaded",),
        ("move", "s/c", "s/d"),
        ("move", "s/d", "s/c"),
    ],
    "renamed onto what is on its way": [
        ("save", "s/a", b"a"),
        ("forget",),
        ("save", "s/b", b"b"),
        ("wait", 0.28),
        ("move", "s/a", "s/b"),
        ("move", "s/b", "s/c"),
        ("wait", 0.28),
        ("move", "s/c", "s/b"),
    ],
    "log files": [
        ("save", "s/a", b"1"),
        ("save", "s/a.1", b"0"),
        ("forget",),
        ("move", "s/a.1", "s/a.2"),
        ("move", "s/a", "s/a.1"),
        ("save", "s/a", b"2"),
        ("move", "s/a.2", "s/a.3"),
        ("move", "s/a.1", "s/a.2"),
        ("move", "s/a", "s/a.1"),
        ("save", "s/a", b"3"),
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
    """Those before the first step, in which the database is made, are the same for all: one script dies there."""
    whole = Story(tmp_path / "whole", script).run()
    before = 0 if script is next(iter(SCRIPTS.values())) else Story(tmp_path / "empty", []).run().count
    for at in range(before + 1, whole.count + 1):
        Story(tmp_path / str(at), script).run(at)
    print(f"{whole.count - before} crashes")


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_disk_that_is_full_at_any_moment_refuses_a_step_or_takes_it(
    tmp_path: Path, script: list[Step], expect_log: Callable[[str], None]
) -> None:
    """Whatever does not fit, for a moment or for a while."""
    expect_log("the bucket does not take it")  # not before there is room to write it off
    whole = Story(tmp_path / "whole", script).run()
    refused = 0
    for at in range(Story(tmp_path / "empty", []).run().commits + 1, whole.commits + 1):
        for until in (at + 1, at + 12) if LONG else ((at + 1, at + 12)[at % 2],):
            story = Story(tmp_path / f"{at}-{until}", script)
            story.run(full=range(at, until))
            refused += story.refused
    print(f"{refused} refusals")
    assert refused


@pytest.mark.parametrize("network", ["good", "bad"])
def test_whatever_is_done_and_however_often_it_dies_the_outcome_is_that_of_the_script(
    tmp_path: Path, network: str
) -> None:
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    for number in range(STORIES):
        dice = random.Random(f"{SEED} {network} {number}")
        script = [random_step(dice, moment) for moment in range(dice.randint(4, 16))]
        deaths = [dice.randint(1, 60) for _ in range(dice.randint(0, 3))]
        Story(tmp_path / str(number), script, dice if network == "bad" else None).run(*deaths)


def random_step(dice: random.Random, number: int) -> Step:
    key, other = dice.choices(("s/a", "s/b", "s/c"), k=2)
    kinds = {"save": 30, "remove": 10, "move": 25, "restamp": 8, "wait": 12, "forget": 8, "uploaded": 7}
    match dice.choices(list(kinds), list(kinds.values()))[0]:
        case "save":
            return ("save", key, LARGE if dice.random() < 0.05 else b"%d" % number)
        case "move":
            return ("move", key, other)
        case "wait":
            return ("wait", dice.choice((0.01, 0.26, 0.28, 0.4)))
        case "forget" | "uploaded" as kind:
            return (kind,)
        case kind:
            return (kind, key)
