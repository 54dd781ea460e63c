"""Outages: the bucket is silent, lies or fails, or the local disk is full. Writers go on, nothing is lost or doubled.

LIVEMEMFS_TEST_LONG=1 makes the silence last a minute.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cloud import Bucket, Cloud
from machine import LONG, Mount, StartMount, sh
from proxy import PROGRAM

from livememfs.cache.asking import PATIENCE

SILENCE = 60.0 if LONG else 8.0
OP_TIMEOUT = 6
AT_ONCE = 0.9 * PATIENCE
"""Seconds within which what needs no bucket is answered, on a machine that is busy with other things as well: less than
whoever asks the bucket waits for it at least.
"""
SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
WRITERS = 4
FILES = 200 if LONG else 100
MIB = 1 << 20


class Proxy:
    """`tests/proxy` in a process of its own."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.endpoint = f"http://127.0.0.1:{ports['port']}"
        self._control = f"http://127.0.0.1:{ports['control']}"

    def order(self, what: str) -> None:
        """One of the orders of `tests/proxy/control`."""
        with urllib.request.urlopen(f"{self._control}/{what}", data=b"", timeout=10) as reply:
            assert reply.status == 200


@pytest.fixture
def proxy(s3: Cloud) -> Iterator[Proxy]:
    """A way to the server that can be blocked."""
    command = [*PROGRAM, "--target", urlsplit(s3.endpoint).netloc, "--control"]
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Proxy(json.loads(process.stdout.readline()))
        finally:
            process.kill()


def behind(proxy: Proxy, bucket: Bucket) -> dict[str, str]:
    return {**bucket.environment(), "S3_ENDPOINT_URL": proxy.endpoint}


def status_of(mount: Mount) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((mount / ".livememfs/status.json").read_text())
    return found


def timed(call: Any) -> float:
    """Seconds a call takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def refused(path: Path) -> float:
    """Seconds until a read fails, as it must."""
    began = time.monotonic()
    with pytest.raises(OSError, match=r"timed out|Input/output error"):
        path.read_bytes()
    return time.monotonic() - began


def files_in(bucket: Bucket, prefix: str = "project/files/") -> dict[str, bytes]:
    return {key.removeprefix(prefix): bucket.get(key) for key in bucket.keys(prefix) if key != prefix}


@pytest.mark.parametrize("watched", [True, False] if LONG else [True])
def test_while_the_bucket_is_silent_nobody_waits_for_it_and_everything_arrives_afterwards(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, watched: bool
) -> None:
    bucket.put("project/far/away.txt", bytes(MIB))
    if watched:
        bucket.put("project/_meta.json", b"{}")
    mount = start_mount(behind(proxy, bucket), "--op-timeout", str(OP_TIMEOUT))
    files = mount / "project/files"
    sh("mkdir project/files; ls project/far; echo known > project/files/known", cwd=mount.path)
    written = {"known": b"known\n"}
    reads, writes = [], []

    proxy.order("blackhole?on=1")
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        uncached = pool.submit(refused, mount / "project/far/away.txt")
        while time.monotonic() < began + SILENCE:
            name = f"f{len(writes)}"
            written[name] = name.encode() * 100
            writes.append(timed(lambda: (files / name).write_bytes(written[name])))  # noqa: B023  # called at once
            reads.append(timed(lambda: (files / "known").read_bytes()))
            time.sleep(0.02)  # the pace of whoever writes
        told = status_of(mount)
        waited = uncached.result()
    proxy.order("blackhole?on=0")

    print(f"{len(writes)} writes, the slowest {max(writes):.3f} s; the slowest cached read {max(reads):.3f} s")
    print(f"an uncached read failed after {waited:.1f} s")
    # Where nobody has asked for a while, whoever asks first finds out that the bucket is silent, and finds it out once.
    slowest = sorted(reads + writes)
    assert slowest[-1] < (AT_ONCE if watched else PATIENCE + AT_ONCE)
    assert slowest[-2] < AT_ONCE
    assert waited < OP_TIMEOUT + AT_ONCE
    assert "project/far/away.txt" in (mount / ".livememfs/errors.ndjson").read_text()
    assert (told["state"], told["pending"] > 0, told["pending_bytes"] > 0) == ("degraded", True, True)
    assert told["failing_since"]
    assert files_in(bucket) == written
    assert (mount / ".livememfs/conflicts.ndjson").read_text() == ""
    assert (mount / "project/far/away.txt").read_bytes() == bytes(MIB)


@pytest.mark.parametrize("watched", [True, False], ids=["in a space", "in a folder nobody watches"])
def test_a_directory_made_while_the_bucket_is_silent_can_be_used_at_once(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, watched: bool
) -> None:
    bucket.put("project/_meta.json" if watched else "project/far", b"{}")
    mount = start_mount(behind(proxy, bucket), "--op-timeout", str(OP_TIMEOUT))
    new = mount / "project/files/new"
    sh("mkdir project/files; echo known > project/files/known; ls project/files", cwd=mount.path)
    mount.uploaded()

    proxy.order("blackhole?on=1")
    took = [timed(new.mkdir), timed((new / "below").mkdir)]
    took.append(timed(lambda: (new / "below/file").write_text("new\n")))
    took.append(timed(lambda: (new / "below/file").rename(new / "moved")))
    assert sorted(os.listdir(new)) == ["below", "moved"]
    assert (new / "moved").read_text() == "new\n"
    proxy.order("blackhole?on=0")

    # Finding out that the bucket is silent takes a moment; nobody waits until a request is given up.
    assert max(took) < OP_TIMEOUT / 2
    assert files_in(bucket) == {"known": b"known\n", "new/": b"", "new/below/": b"", "new/moved": b"new\n"}


@pytest.mark.parametrize("when", ["before", "after"] if LONG else ["after"])
def test_a_bucket_that_fails_every_fifth_time_gets_each_file_once(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, when: Any
) -> None:
    """`after`: it has done what it was asked, and says that it has not, or hangs up."""
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    mount = start_mount(behind(proxy, bucket))
    sh("mkdir project project/files", cwd=mount.path)
    proxy.order(f"slowdown?fraction=0.2&when={when}&seed={SEED}")
    if when == "after":
        proxy.order("lose?writes=20")

    def work(writer: int) -> None:
        for number in range(FILES // WRITERS):
            (mount / f"project/files/w{writer}-{number}").write_text(f"{writer}.{number}\n")
            (mount / f"project/live/w{writer}-{number}.md").write_text(f"note {writer}.{number}\n")

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    mount.uploaded()

    proxy.order("slowdown?fraction=0")
    everything = [(writer, number) for writer in range(WRITERS) for number in range(FILES // WRITERS)]
    assert files_in(bucket) == {f"w{writer}-{number}": f"{writer}.{number}\n".encode() for writer, number in everything}
    notes = [bucket.text(key) for key in bucket.keys("project/live/") if not key.endswith("/.keep")]
    assert sorted(note.rpartition("\n\n")[2] for note in notes) == sorted(f"note {w}.{n}\n" for w, n in everything)
    assert (mount / ".livememfs/conflicts.ndjson").read_text() == ""


# --- the local disk ----------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB, of which new content leaves 32 alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    sh(f"mount -t tmpfs -o size=64m tmpfs '{disk}'")
    yield disk
    sh(f"umount -l '{disk}'")


def until_full(folder: Path, prefix: str) -> dict[str, bytes]:
    """Write files of one MiB until one is refused for want of room; those that were accepted."""
    accepted: dict[str, bytes] = {}
    for number in range(100):
        data = os.urandom(MIB)
        try:
            (folder / f"{prefix}{number}").write_bytes(data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return accepted
        accepted[f"{prefix}{number}"] = data
    raise AssertionError("it never was full")


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Somebody else takes all that is left."""
    path = disk / "somebody-elses"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(MIB)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    yield
    path.unlink()


def wait_for_reserve(disk: Path) -> None:
    """What the daemon has put by for a full disk is there again."""
    deadline = time.monotonic() + 10
    while not list(disk.glob("*/reserve")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_disk_that_is_full_of_what_waits_refuses_more_and_takes_it_again_after_the_outage(
    small_disk: Path, start_mount: StartMount, bucket: Bucket, s3: Cloud
) -> None:
    mount = start_mount({**bucket.environment(), "LIVEMEMFS_CACHE": str(small_disk)}, "--op-timeout", "3")
    files = mount / "project/files"
    sh("mkdir project project/files; echo known > project/files/known; ls project/files", cwd=mount.path)
    mount.uploaded()

    with s3.failing(503):
        accepted = {"known": b"known\n", **until_full(files, "f")}
        assert len(accepted) > 3
        assert (files / "known").read_bytes() == b"known\n"
        assert set(accepted) <= set(os.listdir(files))
        for name, data in accepted.items():
            assert (files / name).read_bytes() == data
    mount.uploaded()

    found = files_in(bucket)
    assert {name: data for name, data in found.items() if name in accepted} == accepted
    (files / "again").write_bytes(bytes(MIB))
    mount.uploaded()
    assert files_in(bucket)["again"] == bytes(MIB)
    assert (mount / ".livememfs/conflicts.ndjson").read_text() == ""


def test_a_disk_that_somebody_else_fills_costs_new_content_and_nothing_that_was_accepted(
    small_disk: Path, start_mount: StartMount, bucket: Bucket, s3: Cloud
) -> None:
    mount = start_mount({**bucket.environment(), "LIVEMEMFS_CACHE": str(small_disk)}, "--op-timeout", "3")
    files = mount / "project/files"
    sh("mkdir project project/files; echo known > project/files/known; ls project/files", cwd=mount.path)

    with s3.failing(503):
        for number in range(20):
            (files / f"f{number}").write_text(f"{number}\n")
        with filled(small_disk):
            with pytest.raises(OSError, match="No space left"):
                (files / "refused").write_bytes(bytes(5 * MIB))  # more than what is put by for a full disk
            for number in range(20):
                assert (files / f"f{number}").read_text() == f"{number}\n"
            time.sleep(1.5)  # the cache is brought to the disk every half second, or is not
            assert len(os.listdir(files)) >= 21
    wait_for_reserve(small_disk)
    with filled(small_disk):
        mount.uploaded()
    (files / "again").write_text("again\n")

    expected = {"known": b"known\n", "again": b"again\n", **{f"f{n}": f"{n}\n".encode() for n in range(20)}}
    found = files_in(bucket)
    assert {name: data for name, data in found.items() if name != "refused"} == expected


def test_two_daemons_with_one_cache_folder_take_a_place_each(
    start_mount: StartMount, bucket: Bucket, second_mount: StartMount, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    one = start_mount({**bucket.environment(), "LIVEMEMFS_CACHE": str(cache)})
    sh("mkdir project; echo one > project/one", cwd=one.path)
    one.uploaded()
    other = second_mount({"LIVEMEMFS_CACHE": str(cache)})
    sh("echo other > project/other", cwd=other.path)
    other.uploaded()

    assert (bucket.get("project/one"), bucket.get("project/other")) == (b"one\n", b"other\n")
    assert len([path for path in cache.iterdir() if (path / "state.db").exists()]) == 2
