"""The crash test: the daemon is killed again and again while four writers work, and every accepted byte is found.

Each writer tells what returned well and what a kill cut off; the first must be in the bucket in the end, the second may
be, and nothing is there twice. A note is found by its body, a file by its path. LIVEMEMFS_TEST_LONG=1 kills 250 times.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
from cloud import Bucket
from lives import Daemons, Ledger, Writer, cut_off, tokens_of
from machine import LONG, _is_noise, clean_environment

SEED = os.environ.get("LIVEMEMFS_TEST_SEED", "20261122")
WRITERS = 4
KILLS_ON_A_FOLDER = 100 if LONG else 8
KILLS_ON_S3 = 50 if LONG else 5
SHORTEST, LONGEST, LONGEST_ON_S3 = 0.01, 0.15, 0.4
"""Seconds between the moment a mount is ready and its end."""


@dataclass
class World:
    """One bucket, its mount, and the lives of its daemons."""

    name: str
    home: Path
    environment: dict[str, str]
    kills: int
    longest: float

    def run(self) -> None:
        """Kill, and keep what the writers have to say for `check`."""
        dice = random.Random(f"{SEED} {self.name}")
        mountpoint, log = self.home / "mnt", self.home / "log"
        mountpoint.mkdir(parents=True)
        with ExitStack() as stack:
            daemons = stack.enter_context(Daemons(mountpoint, self.environment, log))
            daemons.start()
            for folder in ("project", "project/files"):
                (mountpoint / folder).mkdir()
            names = [f"w{number}" for number in range(WRITERS)]
            writers = [
                Writer(mountpoint / "project", who, f"{SEED} {self.name} {who}", self.home / who) for who in names
            ]
            for writer in writers:
                stack.enter_context(writer)
            stack.callback(cut_off, mountpoint)  # so that every writer can end
            self._wait_for(writers)
            for _ in range(self.kills):
                time.sleep(dice.uniform(SHORTEST, self.longest))  # the moment is what is being tried
                daemons.kill()
                daemons.start()
            self.ledgers = [writer.finish() for writer in writers]
            (mountpoint / ".livememfs/journal.wait").read_bytes()
            self.conflicts = (mountpoint / ".livememfs/conflicts.ndjson").read_text()
            self.stuck = json.loads((mountpoint / ".livememfs/status.json").read_text())["stuck"]
            assert daemons.end() == 0
        self.noise = [line for line in log.read_text().splitlines() if _is_noise(line)]

    def _wait_for(self, writers: list[Writer]) -> None:
        """The writers' processes take longer to start than a daemon lives."""
        deadline = time.monotonic() + 20
        while any(not writer.output.stat().st_size for writer in writers):
            assert time.monotonic() < deadline, "the writers do not begin"
            time.sleep(0.01)

    def check(self, bucket: dict[str, str]) -> Counter[str]:
        """Hold the bucket against the ledgers. Returns how much there was."""
        assert (self.conflicts, self.stuck, self.noise) == ("", [], [])
        assert not [key for key in bucket if "conflict" in key]
        files = {key.removeprefix("project/files/"): data for key, data in bucket.items() if "/files/" in key}
        notes = [data for key, data in bucket.items() if "/live/" in key and not key.endswith("/.keep")]
        found = Counter(tokens_of(note.rpartition("\n\n")[2])[0] for note in notes)
        assert {token for token, times in found.items() if times > 1} == set(), "a note is there twice"
        for ledger in self.ledgers:
            self._check_one(ledger, set(found), files)
        assert set(found) <= set().union(*(ledger.notes | ledger.open_notes for ledger in self.ledgers))
        return sum((ledger.counts for ledger in self.ledgers), Counter(notes=len(found), kills=self.kills))

    def _check_one(self, ledger: Ledger, found: set[str], files: dict[str, str]) -> None:
        assert ledger.notes - found == set(), "a note was lost"
        mine = {name.partition("-")[2]: tokens_of(data) for name, data in files.items() if name[:2] == ledger.who}
        assert mine in ledger.states


@contextmanager
def side_by_side(*worlds: World) -> Iterator[None]:
    """Run them all: a daemon's life is mostly waiting."""
    failures: list[BaseException] = []

    def run(world: World) -> None:
        try:
            world.run()
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run, args=(world,), name=world.name) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    yield


def stored_in(folder: Path) -> dict[str, str]:
    """Every object of a folder store with plain content."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".livememfs-store" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def text_in(bucket: Bucket) -> dict[str, str]:
    """Every object of a bucket."""
    return {key: bucket.text(key) for key in bucket.keys("")}


@pytest.mark.timeout(300)
def test_kills_lose_nothing_that_was_accepted_and_double_nothing(tmp_path: Path, bucket: Bucket) -> None:
    started = time.monotonic()
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    worlds = []
    for name, kills in (("one", KILLS_ON_A_FOLDER), ("two", KILLS_ON_A_FOLDER), ("s3", KILLS_ON_S3)):
        home = tmp_path / name
        store = bucket.environment() if name == "s3" else {"LIVEMEMFS_STORE": str(home / "store")}
        environment = clean_environment(home, LIVEMEMFS_LOG_JSON="true", **store)
        worlds.append(World(name, home, environment, kills, LONGEST_ON_S3 if name == "s3" else LONGEST))

    with side_by_side(*worlds):
        total: Counter[str] = Counter()
        for world in worlds:
            told = world.check(text_in(bucket) if world.name == "s3" else stored_in(world.home / "store"))
            print(f"{world.name}: {dict(told)}")
            total += told
    took = time.monotonic() - started
    print(f"{total['kills']} kills, {total['did']} accepted, {total['cut']} cut off, {took:.0f} s")
    assert total["kills"] == 2 * KILLS_ON_A_FOLDER + KILLS_ON_S3
    assert total["did"] > total["kills"]
