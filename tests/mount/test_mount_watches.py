"""Who watches by inotify hears what other hosts do, of files and in directories, none missed: within 3 s where they are
at work."""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from cloud import Bucket
from inotify import ALL, CLOSE_WRITE, CREATE, DELETE, DELETE_SELF, IS_DIRECTORY, MODIFY, Watch
from machine import LONG, SPACE, Mount, StartMount

from livememfs.cache.watching.pace import CALM_SECONDS
from livememfs.fuse.watched import EVERY, find

HEARD_WITHIN = 3.0
NOISE = 4.0
"""What a busy machine may add to a promise before a test calls it broken."""
ROUNDS = 100 if LONG else 1
LONGEST = 1_500 if LONG else 120


@pytest.fixture(params=["s3", "folder"])
def pair(
    request: pytest.FixtureRequest, start_mount: StartMount, bucket: Bucket, tmp_path: Path
) -> tuple[Mount, Mount]:
    """Two mounts of one bucket with one space: this machine's and another one's."""
    env = bucket.environment() if request.param == "s3" else {"LIVEMEMFS_STORE": str(tmp_path / "store")}
    here = start_mount(env, name="here", limit=LONGEST)
    there = start_mount({**env, "LIVEMEMFS_HOST": "there"}, name="there", limit=LONGEST)
    (there / SPACE).mkdir()
    await_(lambda: (here / SPACE / "live").exists())
    return here, there


def await_(condition: Callable[[], bool], seconds: float = CALM_SECONDS + NOISE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@pytest.mark.timeout(LONGEST)
def test_what_another_host_does_is_heard_by_watches_on_the_file_and_on_its_directory(pair: tuple[Mount, Mount]) -> None:
    """In each round a file and a directory are made; the file is changed twice, while somebody has it open; both go."""
    here, there = pair
    mine, theirs = here / SPACE / "work", there / SPACE / "work"
    theirs.mkdir()
    await_(mine.exists)
    delays: dict[str, list[float]] = {"made": [], "changed": [], "removed": []}
    with Watch(mine, ALL) as folder, looking_at(mine):
        for number in range(ROUNDS):
            delays["made"] += made(theirs, f"f{number}", f"d{number}", folder)
            delays["changed"] += changed(mine / f"f{number}", theirs / f"f{number}", folder)
            delays["removed"] += removed(mine, theirs, f"f{number}", f"d{number}", folder)
    tell(delays)


@contextmanager
def looking_at(folder: Path) -> Iterator[None]:
    """Somebody lists a directory again and again, and so often knows a name before it is announced."""
    command = 'while ls -l "$0" > /dev/null; do sleep 0.1; done'
    with subprocess.Popen(["sh", "-c", command, str(folder)]) as looker:
        try:
            yield
        finally:
            looker.terminate()


def made(theirs: Path, file: str, directory: str, folder: Watch) -> list[float]:
    (theirs / file).write_text("one\n")
    (theirs / directory).mkdir()
    return folder.expect(
        {(CREATE, file), (CLOSE_WRITE, file), (CREATE | IS_DIRECTORY, directory)}, HEARD_WITHIN + NOISE
    )


def changed(mine: Path, theirs: Path, folder: Watch) -> list[float]:
    """A descriptor and the inode stay, and what was read goes on as `tail -f` would have it."""
    delays = []
    with Watch(mine, ALL) as file, mine.open() as held:
        number = mine.stat().st_ino
        assert held.read() == "one\n"
        for text in ("two\n", "three\n"):
            with theirs.open("a") as writer:
                writer.write(text)
            delays += file.expect({(MODIFY, "")}, HEARD_WITHIN + NOISE)
            folder.expect({(MODIFY, mine.name), (CLOSE_WRITE, mine.name)}, NOISE)
            assert held.read() == text
            assert mine.stat().st_ino == os.fstat(held.fileno()).st_ino == number
    return delays


def removed(mine: Path, theirs: Path, file: str, directory: str, folder: Watch) -> list[float]:
    with Watch(mine / file, ALL) as one, Watch(mine / directory, ALL) as other:
        (theirs / file).unlink()
        (theirs / directory).rmdir()
        delays = one.expect({(DELETE_SELF, "")}, HEARD_WITHIN + NOISE)
        delays += other.expect({(DELETE_SELF, "")}, NOISE)
        folder.expect({(DELETE, file), (DELETE | IS_DIRECTORY, directory)}, NOISE)
    assert not (mine / file).exists()
    assert not (mine / directory).exists()
    return delays


def tell(delays: dict[str, list[float]]) -> None:
    for what, found in delays.items():
        ordered = sorted(found)
        late = ordered[int(len(ordered) * 0.95)]
        print(
            f"{what}: {len(found)} heard, min {ordered[0]:.2f}, median {statistics.median(ordered):.2f},"
            f" p95 {late:.2f}, max {ordered[-1]:.2f} s"
        )


def test_tail_goes_on_when_another_host_appends_to_a_file_and_to_a_note(pair: tuple[Mount, Mount]) -> None:
    """By name and by descriptor, all four at once."""
    here, there = pair
    (there / SPACE / "log").write_text("begin\n")
    (there / SPACE / "live/todo.md").write_text("begin\n")
    await_(lambda: (here / SPACE / "log").exists() and len(os.listdir(here / SPACE / "live")) == 1)
    [note] = os.listdir(here / SPACE / "live")
    paths = ("log", f"live/{note}")
    with ExitStack() as started:
        tails = [
            started.enter_context(tail_of(here / SPACE / path, how)) for path in paths for how in ("name", "descriptor")
        ]
        for line in ("one\n", "two\n"):
            for path in paths:
                with (there / SPACE / path).open("a") as file:
                    file.write(line)
            for tail in tails:
                assert select.select([tail], [], [], HEARD_WITHIN + NOISE)[0], f"{tail.name}: nothing came"
                assert tail.readline() == line


@contextmanager
def tail_of(path: Path, how: str) -> Iterator[TextIO]:
    """What `tail -f` prints of a file that has one line."""
    with subprocess.Popen(["tail", "-n", "1", f"--follow={how}", path], stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        try:
            assert tail.stdout.readline() == "begin\n"
            yield tail.stdout
        finally:
            tail.terminate()


def test_a_watch_on_a_directory_that_nobody_has_listed_is_found(pair: tuple[Mount, Mount]) -> None:
    """Else no name in it could be told for new. What came before the watch was found is not announced."""
    here, there = pair
    folder = here / SPACE / "live"
    with Watch(folder, CREATE) as watch:
        assert find(folder.stat().st_dev) == [folder.stat().st_ino]
        for number in range(10):
            (there / SPACE / f"live/{number}.md").write_text(f"note {number}")
            if watch.wait(CREATE, HEARD_WITHIN) is not None:
                break
        assert number < EVERY
