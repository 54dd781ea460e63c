"""Two processes of `livememfs sync` and a real mount of one bucket: random work, kill -9, and a server that fails a
fifth of all requests. In the end all have the same, nothing is lost and nothing is there twice.

Ten minutes, with LIVEMEMFS_TEST_LONG=1 only; `tests/mirror/test_mirror_model.py` has the same in one process.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cloud import Bucket, Cloud
from machine import LONG, SPACE, Mount, StartMount, detach, sh
from mirroring import MirrorProcess
from working import MINE, SHARED, Work

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261129").split()[0])
SECONDS = 600.0
PAUSE = 0.5
"""The longest one between two acts."""
KILLED = {"one": 0.02, "two": 0.02, "mount": 0.006}
"""How likely each of them is killed after an act."""
AWAY = 3.0
"""How long one of the mirrors is away at most; what is done in its directory meanwhile counts."""
SHARE = 0.2
SETTLED_WITHIN = 240.0
LOOKED_FOR = ("top", "live")


@pytest.fixture
def mirrors(tmp_path: Path, bucket: Bucket) -> Iterator[list[MirrorProcess]]:
    made = [MirrorProcess(name, tmp_path, bucket.environment(), "--space", SPACE) for name in ("one", "two")]
    yield made
    for mirror in made:
        mirror.end(signal.SIGKILL)


def files(top: Path) -> dict[str, str]:
    """The files that people work on, below a directory of the space."""
    found = {}
    for folder in LOOKED_FOR:
        for path in sorted((top / folder).rglob("*")):
            if path.is_file():
                found[path.relative_to(top).as_posix()] = path.read_text()
    return found


def work_on(work: Work, mirrors: list[MirrorProcess], mount: Mount, seconds: float) -> Counter[str]:
    """Everybody works until the time is over, and is killed now and then. How often each was killed."""
    kills: Counter[str] = Counter()
    back_at = dict.fromkeys(KILLED, 0.0)
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        for mirror in mirrors:
            if mirror.process is None and back_at[mirror.name] <= now:
                mirror.start(wait=False)
        who = work.dice.choice([*mirrors, mount])
        if isinstance(who, MirrorProcess):
            work.act(who.name, who.path, MINE + SHARED)
        else:
            with suppress(OSError):  # what the mount cannot be asked for now was not accepted
                work.act("mount", mount / SPACE, SHARED)
        for mirror in mirrors:
            if mirror.process is not None and work.dice.random() < KILLED[mirror.name]:
                mirror.end(signal.SIGKILL)
                back_at[mirror.name] = now + work.dice.random() * AWAY
                kills[mirror.name] += 1
        if work.dice.random() < KILLED["mount"]:
            mount.kill()
            detach(mount.path)
            mount.start()
            kills["mount"] += 1
        time.sleep(work.dice.random() * PAUSE)
    return kills


def settled(mirrors: list[MirrorProcess], mount: Mount) -> dict[str, str]:
    """What all have in the end: the same, twice with a look of everybody's in between."""
    deadline, before = time.monotonic() + SETTLED_WITHIN, None
    while True:
        mount.uploaded()
        found = [files(place) for place in (*(mirror.path for mirror in mirrors), mount / SPACE)]
        if found[0] == found[1] == found[2] == before:
            return found[0]
        before = found[0]
        if time.monotonic() > deadline:
            assert found[0] == found[1], "the mirrors"
            assert found[0] == found[2], "a mirror and the mount"
        time.sleep(10)


@pytest.mark.skipif(not LONG, reason="ten minutes")
@pytest.mark.timeout(1_500)
def test_two_mirrors_and_a_mount_of_one_bucket_end_equal_and_nothing_is_lost_or_twice(
    start_mount: StartMount,
    bucket: Bucket,
    s3: Cloud,
    mirrors: list[MirrorProcess],
    figures: Callable[[str], None],
) -> None:
    mount = start_mount({**bucket.environment(), "LIVEMEMFS_HOST": "mount"}, limit=1_400)
    mount.expect_log("")  # it is killed, and the bucket fails
    sh(f"mkdir -p {SPACE}/top", cwd=mount.path)
    mount.uploaded()
    work, before = Work(random.Random(SEED)), len(s3.log())
    began = time.monotonic()
    with s3.failing_now_and_then(SHARE):
        kills = work_on(work, mirrors, mount, SECONDS)
    worked, asked = time.monotonic() - began, len(s3.log()) - before
    for mirror in mirrors:
        if mirror.process is None:
            mirror.start(wait=False)
    texts = settled(mirrors, mount)
    after = time.monotonic() - began - worked
    for mirror in mirrors:
        mirror.stop()
    for name, text in texts.items():
        assert bucket.text(f"{SPACE}/{name}") == text
    work.check(texts)
    for mirror in mirrors:
        kept = [path for path in (mirror.path / ".livememfs-mirror/refused").rglob("*") if path.is_file()]
        assert kept == []
    copies = sum(".conflict-" in name for name in texts)
    figures(
        f"two mirrors and a mount: {worked:.0f} s, {dict(work.counts)}, {len(work.written)} lines, "
        f"killed {dict(kills)}, {asked} requests, {SHARE:.0%} of them failed, {copies} conflict copies, "
        f"equal after {after:.0f} s"
    )
