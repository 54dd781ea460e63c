"""Two mounts of one bucket: what one of them does, the other one shows soon, whole, and to those who watch."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import pytest
from cloud import Bucket
from inotify import MODIFY, Watch
from machine import Mount, StartMount, sh

from livememfs.cache.watcher import LISTED_AGAIN
from livememfs.cache.watching.pace import CALM_SECONDS

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
INTERVAL = 2.0
SOON = INTERVAL + 1.0
FIRST = CALM_SECONDS
"""Within this the first change of another host is seen, and within `SOON` what it does after that."""
NOISE = 4.0
"""What a busy machine may add to a promise before a test calls it broken."""


@pytest.fixture
def other(mounted: Mount, second_mount: StartMount) -> Mount:
    return second_mount()


def until(condition: Callable[[], bool], seconds: float) -> float:
    """How long it took to come true."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - started


def test_an_edit_shows_on_the_other_machine_within_the_interval_and_a_second(mounted: Mount, other: Mount) -> None:
    """Also where the kernel has name, attributes and bytes of the old version, and of the same size."""
    mine, theirs = mounted / "project/f", other / "project/f"
    mine.write_text("old 0")
    until(theirs.exists, FIRST + NOISE)
    worst = 0.0
    for number in range(1, 5):
        assert theirs.read_text() == f"old {number - 1}"
        theirs.stat()
        mine.write_text(f"old {number}")
        worst = max(worst, until(lambda text=f"old {number}": theirs.read_text() == text, SOON + NOISE))
    print(f"visible after at most {worst:.2f} s")


def test_new_attributes_never_come_with_old_bytes(mounted: Mount, other: Mount) -> None:
    """A reader who looks all the time sees each version whole, never one version's size with another one's bytes."""
    mine, theirs = mounted / "project/f", other / "project/f"
    texts = [f"{number}{'x' * (number * 37 % 501)}\n" for number in range(12 if LONG else 4)]
    mine.write_text(texts[0])
    until(theirs.exists, FIRST + NOISE)
    looks, seen = 0, set()
    for text in texts:
        mine.write_text(text)
        deadline = time.monotonic() + SOON + NOISE
        found = ""
        while found != text and time.monotonic() < deadline:
            with theirs.open() as file:
                size, found = os.fstat(file.fileno()).st_size, file.read()
            assert found in texts, f"no version has {found!r}"
            assert size in (len(found), 0) or size in {len(known) for known in texts}
            path_size = theirs.stat().st_size
            again = theirs.read_text()
            assert again in texts
            assert path_size in (len(found), len(again))
            looks += 1
            seen.add(found)
        assert found == text
    print(f"{looks} looks at {len(seen)} versions")


def test_notes_and_removals_show_on_the_other_machine(mounted: Mount, other: Mount) -> None:
    sh("ls project/live project/bank", cwd=other.path)
    (mounted / "project/live/decision.md").write_text("we chose S3")
    [note] = until_listed(other, "project/live", 1)
    assert (other / "project/live/decision.md").read_text().endswith("we chose S3")

    os.unlink(mounted / "project/live" / note)

    until(lambda: not (other / "project/live" / note).exists(), SOON + NOISE)
    assert os.listdir(other / "project/live") == []


def until_listed(mount: Mount, folder: str, count: int) -> list[str]:
    until(lambda: len(os.listdir(mount / folder)) == count, FIRST + NOISE)
    return os.listdir(mount / folder)


def test_a_name_that_was_asked_for_in_vain_shows_when_it_comes(mounted: Mount, other: Mount) -> None:
    path = other / "project/later"
    assert not path.exists()
    (mounted / "project/later").write_text("here")
    until(path.exists, FIRST + NOISE)
    assert path.read_text() == "here"


def test_a_directory_moved_there_is_moved_here(mounted: Mount, other: Mount) -> None:
    sh("mkdir -p project/a/b && echo x > project/a/b/file", cwd=mounted.path)
    until(lambda: (other / "project/a/b/file").exists(), FIRST + NOISE)
    sh("mv project/a project/c", cwd=mounted.path)
    until(lambda: (other / "project/c/b/file").exists() and not (other / "project/a").exists(), SOON + NOISE)


def test_an_editor_with_a_bank_file_open_hears_of_a_consolidation_on_another_machine(
    mounted: Mount, other: Mount
) -> None:
    """inotify reports IN_MODIFY within 2 s of the end of the run, although nobody on this machine did anything."""
    consolidate = "echo '%s' > project/live/decision.md && touch project/.consolidate && cat project/.consolidate.wait"
    sh(consolidate % "we chose S3", cwd=mounted.path)
    until(lambda: os.listdir(other / "project/bank") != [], FIRST + NOISE)
    delays = []
    for number in range(3):
        [file] = [path for path in (other / "project/bank").iterdir() if "S3" in path.read_text()][:1]
        with Watch(file) as watch:
            sh(consolidate % f"fact number {number}", cwd=mounted.path)
            told = watch.wait(MODIFY, 2.0 + NOISE)
            assert told is not None, "no event"
            delays.append(told)
            assert f"fact number {number}" in file.read_text()
    print(f"IN_MODIFY {', '.join(f'{delay:.2f}' for delay in delays)} s after the end of the run")


def test_polling_costs_two_requests_an_interval_and_one_for_each_directory_in_use(
    mounted: Mount, bucket: Bucket
) -> None:
    sh("ls project/live project/bank; echo x > project/f; cat project/f", cwd=mounted.path)
    mounted.uploaded()
    time.sleep(INTERVAL)  # what the commands above cause is over; nothing tells that it is
    before = bucket.requests()
    time.sleep(4 * INTERVAL)  # for so long it is counted
    spent = bucket.requests() - before
    print(f"{dict(spent)} in {4 * INTERVAL:g} s")
    assert sum(spent.values()) <= 2 * 5 + 3 * 4 * INTERVAL / LISTED_AGAIN


def test_what_is_known_is_read_and_listed_without_a_request(mounted: Mount, bucket: Bucket) -> None:
    """Only the watcher's own looks are made, however often somebody reads."""
    sh("for i in 1 2 3; do echo $i > project/live/$i.md; echo $i > project/$i; done", cwd=mounted.path)
    mounted.uploaded()
    sh("cat project/live/* project/1; ls -l project/live project", cwd=mounted.path)
    time.sleep(INTERVAL)  # what the commands above cause is over; nothing tells that it is
    before = bucket.requests()
    started = time.monotonic()
    rounds = 0
    while (seconds := time.monotonic() - started) < 2 * INTERVAL:
        sh("cat project/live/* project/1; ls -l project/live project", cwd=mounted.path)
        rounds += 1
    spent = bucket.requests() - before
    print(f"{rounds} rounds in {seconds:.1f} s, {dict(spent)}")
    # A look is a LIST or two each three quarters of the interval, and each of the two directories is listed every 3 s
    # (docs/scale.md). One of each may fall on the edge.
    assert sum(spent.values()) <= 2 * seconds / INTERVAL + 2 * seconds / 3 + 4
    assert rounds * 6 > 2 * sum(spent.values()), "too few rounds to tell a request of the reader's from the watcher's"


def test_a_reader_keeps_the_version_it_opened(mounted: Mount, other: Mount) -> None:
    mine, theirs = mounted / "project/f", other / "project/f"
    mine.write_text("first version")
    until(theirs.exists, FIRST + NOISE)
    with theirs.open() as file:
        assert file.read(5) == "first"
        mine.write_text("another one")
        until(lambda: theirs.read_text() == "another one", SOON + NOISE)
        assert file.read() == " version"


def test_unmounting_while_changes_come_in_ends_well(mounted: Mount, other: Mount) -> None:
    (other / "project/bank").exists()
    with contextlib.suppress(OSError):
        for number in range(20):
            (mounted / f"project/{number}").write_text("x")
    other.stop()
