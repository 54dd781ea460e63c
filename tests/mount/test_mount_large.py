"""Large files on real mounts: in and out whole, with the memory of the daemon as it was, over kills and remounts."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchlib.servers import s3_server
from machine import LONG, SPACE, Mount, StartMount, sh
from test_mount_selftest import WORDS_ALONE

SIZE = (1 << 30) if LONG else 128 << 20
MEMORY = (150 if LONG else 100) << 20
"""Bytes of memory that the daemon may have; in the short form, that it may have more than at its start."""


@pytest.fixture(params=["folder", "seaweedfs"] if LONG else ["seaweedfs"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    if request.param == "folder":
        yield {"LIVEMEMFS_STORE": str(tmp_path / "bucket"), **WORDS_ALONE}
        return
    (tmp_path / "seaweedfs").mkdir()
    with s3_server("seaweedfs", tmp_path / "seaweedfs") as server:
        yield {**server.environment(), **WORDS_ALONE}


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film"
    with path.open("wb") as file:
        for _ in range(SIZE >> 20):
            file.write(os.urandom(1 << 20))
        file.write(b"the end")
    return path


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def memory(mount: Mount) -> int:
    """The most bytes of memory that the daemon has had."""
    lines = Path(f"/proc/{mount.pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_a_large_file_goes_in_and_out_with_flat_memory(
    environment: dict[str, str], start_mount: StartMount, film: Path
) -> None:
    first = start_mount(environment)
    sh(f"mkdir {SPACE}", cwd=first.path)
    before = 0 if LONG else memory(first)
    place = first / SPACE / "film"
    shutil.copyfile(film, place)
    assert digest(place) == digest(film)
    first.uploaded()
    assert memory(first) - before < MEMORY

    other = start_mount(environment, name="other")
    seen = other / SPACE / "film"
    with seen.open("rb") as file:
        file.seek(SIZE)
        assert file.read() == b"the end"
    assert digest(seen) == digest(film)
    sh(f"mv film moved; printf changed | dd of=moved bs=1 seek={SIZE // 2} conv=notrunc status=none; chmod 640 moved",
       cwd=other / SPACE)  # fmt: skip
    other.uploaded()
    assert memory(other) - before < MEMORY
    with film.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"changed")
    third = start_mount(environment, name="third")
    assert os.listdir(third / SPACE).count("film") == 0
    assert digest(third / SPACE / "moved") == digest(film)


def test_a_large_file_that_was_closed_survives_a_kill(tmp_path: Path, start_mount: StartMount, film: Path) -> None:
    """Before the bucket has it. What was not closed is gone, and takes no room."""
    mount = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "bucket"), **WORDS_ALONE})
    sh(f"mkdir {SPACE}", cwd=mount.path)
    shutil.copyfile(film, mount / SPACE / "film")
    descriptor = os.open(mount / SPACE / "open", os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, bytes(20 << 20))
    mount.kill()
    with pytest.raises(OSError, match="not connected"):
        os.close(descriptor)
    sh(f"fusermount3 -uz '{mount.path}'")
    mount.start()
    assert digest(mount / SPACE / "film") == digest(film)
    mount.uploaded()
    assert digest(tmp_path / "bucket" / SPACE / "film") == digest(film)
    assert list(mount.log_path.parent.rglob("*.open")) == []


def test_free_space_is_what_the_cache_and_its_disk_have(tmp_path: Path, start_mount: StartMount) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "bucket"), **WORDS_ALONE}, name="disk")
    disk, seen = os.statvfs(tmp_path), os.statvfs(mount.path)
    assert seen.f_blocks * seen.f_frsize == pytest.approx(disk.f_blocks * disk.f_frsize)
    assert 0 < seen.f_bavail * seen.f_frsize <= min(disk.f_bavail * disk.f_frsize, 10 << 30)
    small = start_mount(
        {"LIVEMEMFS_STORE": str(tmp_path / "bucket"), "LIVEMEMFS_CACHE_SIZE": str(64 << 20), **WORDS_ALONE}
    )
    assert os.statvfs(small.path).f_bavail * 4_096 == 64 << 20
