"""A large content by ranges: each part comes once, when it is read, and nothing is read that is not here."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import trio
from trio.abc import Clock

from livememfs import errors
from livememfs.cache import largefile
from livememfs.cache.largefile import LargeFile

DATA = b"0123456789"


@pytest.fixture(autouse=True)
def small_parts() -> Iterator[None]:
    with patch.object(largefile, "PART", 4):
        yield


class Bucket:
    """What has `DATA`. `asked` are the ranges it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def fetch(self, start: int, size: int) -> bytes:
        self.asked.append((start, size))
        await trio.sleep(1)
        return DATA[start : start + size]


async def test_a_range_brings_the_parts_that_it_touches_and_no_other(tmp_path: Path, autojump_clock: Clock) -> None:
    bucket = Bucket()
    file = LargeFile(tmp_path, len(DATA), bucket.fetch)
    assert (file.begun, file.complete, file.has(0, 1)) == (False, False, False)

    assert not await file.bring(3, 1)
    assert (bucket.asked, file.begun, file.complete) == ([(0, 4)], True, False)
    assert (file.has(0, 4), file.has(0, 5), file.has(4, 1)) == (True, False, False)
    assert file.read(0, 4) == DATA[:4]

    assert await file.bring(4, 100)
    assert sorted(bucket.asked) == [(0, 4), (4, 4), (8, 2)]
    assert (file.complete, file.has(0, 100)) == (True, True)
    assert [file.read(*part) for part in ((0, 100), (9, 5), (10, 1), (11, 1))] == [DATA, b"9", b"", b""]
    assert not await file.bring(0, 10), "the last missing part came before"
    assert len(bucket.asked) == 3


async def test_two_readers_of_one_part_fetch_it_once_and_parts_come_two_at_a_time(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    bucket = Bucket()
    file = LargeFile(tmp_path, len(DATA), bucket.fetch)
    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(file.bring, 0, 8)
    assert sorted(bucket.asked) == [(0, 4), (4, 4)]
    assert trio.current_time() - started == pytest.approx(1.0)
    assert not file._coming


def test_what_is_written_anew_is_complete_and_a_gap_reads_as_zeros(tmp_path: Path) -> None:
    file = LargeFile(tmp_path)
    assert (file.complete, file.taken, file.size) == (True, False, 0)
    file.write(2, b"ab")
    file.write(0, b"x")
    assert (file.size, file.read(0, 10)) == (4, b"x\0ab")
    file.truncate(3)
    file.truncate(5)
    assert file.read(0, 10) == b"x\0a\0\0"


def test_a_copy_has_the_same_bytes_and_can_be_written_to_alone(tmp_path: Path) -> None:
    file = LargeFile(tmp_path)
    file.write(0, DATA)
    content = file.content()
    assert (file.taken, content.path, len(content)) == (True, file.path, 10)
    copy = file.copy()
    copy.write(0, b"x")
    assert (copy.size, copy.read(0, 20), file.read(0, 20)) == (10, b"x" + DATA[1:], DATA)
    assert not copy.taken


def test_a_file_of_the_cache_has_one_more_name_as_long_as_it_is_open(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(DATA)
    file = LargeFile(tmp_path, len(DATA), source=source)
    assert (file.taken, file.complete, file.read(0, 10)) == (True, True, DATA)
    path = file.path
    assert path.exists()
    del file
    gc.collect()
    assert (path.exists(), source.read_bytes()) == (False, DATA)


def test_a_file_that_was_cut_is_an_error_and_never_short_content(tmp_path: Path) -> None:
    file = LargeFile(tmp_path)
    file.write(0, DATA)
    os.truncate(file.path, 5)
    with pytest.raises(errors.StoreError, match="was cut"):
        file.read(0, 10)


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, errors.NoSpace), (errno.EDQUOT, errors.NoSpace), (errno.EIO, errors.StoreError)],
)
def test_a_full_disk_is_told_from_a_broken_one(tmp_path: Path, number: int, kind: type[Exception]) -> None:
    file = LargeFile(tmp_path)
    with patch("os.pwrite", side_effect=OSError(number, "no")), pytest.raises(errors.LiveMemError) as raised:
        file.write(0, b"x")
    assert type(raised.value) is kind


def test_what_the_disk_takes_by_pieces_is_written_whole(tmp_path: Path) -> None:
    file = LargeFile(tmp_path)
    whole = os.pwrite
    with patch("os.pwrite", side_effect=lambda handle, data, offset: whole(handle, data[:3], offset)):
        file.write(1, DATA)
    assert file.read(0, 20) == b"\0" + DATA
