"""Contents by version: bounded in memory and on the disk, and never without what the journal needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from livememfs.cache.blobs import INLINE_BYTES, Blobs
from livememfs.cache.database import Database
from livememfs.cache.journal.steps import Journal
from livememfs.store.base import content_etag

LARGE = b"x" * (INLINE_BYTES + 1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "cache")
    yield opened
    opened.close()


def opened(database: Database, *, max_bytes: int = 1 << 20, memory: int = 1 << 20) -> Blobs:
    return Blobs(database, max_bytes=max_bytes, memory_bytes=memory)


def test_memory_is_bounded_and_the_least_used_go_first(database: Database) -> None:
    blobs = opened(database, max_bytes=8, memory=80)  # too little disk to hold any of them
    for number in range(8):
        blobs.put(str(number), "v1", b"x" * 10)
    blobs.get("0", "v1")

    blobs.put("8", "v1", b"x" * 10)

    assert blobs.get("0", "v1") is not None
    assert blobs.get("1", "v1") is None
    assert blobs.statistics().memory_bytes == 80


def test_memory_refuses_what_would_push_out_all_the_rest(database: Database) -> None:
    blobs = opened(database, max_bytes=8, memory=80)
    blobs.put("small", "v1", b"x")

    blobs.put("large", "v1", b"x" * 11)

    assert blobs.get("large", "v1") is None
    assert blobs.get("small", "v1") == b"x"


@pytest.mark.parametrize("data", [b"", b"few bytes", LARGE], ids=["none", "few", "many"])
def test_what_was_read_is_there_for_the_next_process(tmp_path: Path, data: bytes) -> None:
    first = Database(tmp_path / "cache")
    blobs = opened(first)
    blobs.put("x", "v1", data)
    while blobs.persist():
        pass
    first.close()

    second = Database(tmp_path / "cache")

    assert opened(second).get("x", "v1") == data
    assert opened(second).get("x", "v2") is None
    second.close()


def test_the_disk_is_bounded_and_the_least_used_go_first(database: Database) -> None:
    blobs = opened(database, max_bytes=100, memory=0)
    for number in range(10):
        blobs.put(str(number), "v1", b"x" * 10)
    blobs.persist()
    assert blobs.get("0", "v1") is not None

    blobs.put("10", "v1", b"x" * 10)
    blobs.persist()

    assert blobs.get("0", "v1") is not None
    assert blobs.get("1", "v1") is None
    assert blobs.statistics().disk_bytes == 100


async def test_what_is_not_uploaded_is_never_evicted(database: Database) -> None:
    blobs = opened(database, max_bytes=100, memory=0)
    journal = Journal(database, blobs)
    data = b"x" * 90
    journal.put("accepted", data, content_etag(data), {}, base=None)

    for number in range(20):
        blobs.put(str(number), "v1", b"y" * 10)
        blobs.persist()

    assert blobs.get("accepted", content_etag(data)) == data


def test_a_file_whose_row_was_never_written_is_removed(database: Database) -> None:
    assert database.contents is not None
    (database.contents / "left-over").write_bytes(b"half")

    opened(database)

    assert list(database.contents.iterdir()) == []


def test_large_contents_are_files_that_go_with_their_row(database: Database) -> None:
    assert database.contents is not None
    blobs = opened(database, max_bytes=8 * len(LARGE), memory=0)
    blobs.put("x", "v1", LARGE)
    blobs.persist()
    assert len(list(database.contents.iterdir())) == 1

    while blobs.evict():
        pass

    assert list(database.contents.iterdir()) == []


def test_a_file_that_was_cut_short_is_not_served(database: Database) -> None:
    assert database.contents is not None
    blobs = opened(database, max_bytes=8 * len(LARGE), memory=0)
    blobs.put("x", "v1", LARGE)
    blobs.persist()
    [file] = database.contents.iterdir()

    file.write_bytes(b"short")

    assert blobs.get("x", "v1") is None
