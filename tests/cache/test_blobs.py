"""Contents by version: bounded in memory and on the disk, and never without what the journal needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from journal_world import full

from livememfs.cache.blobs import INLINE_BYTES, PERSISTED_AT_ONCE, Blobs
from livememfs.cache.database import Database
from livememfs.cache.journal.steps import Journal
from livememfs.store.base import ObjectInfo
from livememfs.store.content import FileContent, content_etag

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

    blobs.put("y", "v1", LARGE)
    assert blobs.by_id(blobs.id_of("y", "v1") or 0) == LARGE
    for file in database.contents.iterdir():
        file.write_bytes(b"short")
    assert blobs.by_id(blobs.id_of("y", "v1") or 0) is None


def test_a_file_that_somebody_has_removed_is_not_served_and_its_row_goes(database: Database) -> None:
    assert database.contents is not None
    blobs = opened(database, max_bytes=8 * len(LARGE), memory=0)
    blobs.put("x", "v1", LARGE)
    blobs.persist()
    [file] = database.contents.iterdir()
    file.unlink()

    assert blobs.get("x", "v1") is None
    assert blobs.evict() == len(LARGE)
    assert blobs.evict() == 0


def test_a_version_is_had_before_and_after_it_is_on_the_disk_and_no_other_is(database: Database) -> None:
    blobs = opened(database, memory=0)
    blobs.put("x", "v1", b"x")
    assert blobs.has("x", "v1")
    assert not blobs.has("x", "v2")
    blobs.persist()
    assert blobs.has("x", "v1")
    assert not blobs.has("x", "v2")


def test_what_is_kept_or_read_from_the_disk_is_in_memory_then(database: Database) -> None:
    blobs = opened(database)
    first, second = blobs.keep("x", "v1", b"first"), blobs.keep("x", "v2", b"second")
    assert (blobs.statistics().in_memory, blobs.statistics().memory_bytes) == (1, 6)
    assert (blobs.by_id(first), blobs.by_id(second)) == (b"first", b"second")
    blobs.drop("x")
    assert (blobs.statistics().in_memory, blobs.statistics().memory_bytes) == (0, 0)
    assert blobs.get("x", "v1") == b"first"
    assert (blobs.statistics().in_memory, blobs.statistics().memory_bytes) == (1, 5)


def test_what_was_used_last_stays_whether_it_was_read_or_kept_again(database: Database) -> None:
    blobs = opened(database, max_bytes=100, memory=0)
    for number in range(10):
        blobs.put(str(number), "v1", b"x" * 10)
    blobs.persist()
    blobs.keep("8", "v1", b"x" * 10)
    for number in range(7, 0, -1):
        blobs.get(str(number), "v1")

    for more, gone in ((10, {0}), (11, {0, 9}), (12, {0, 8, 9}), (13, {0, 7, 8, 9})):
        blobs.put(str(more), "v1", b"x" * 10)
        blobs.persist()
        assert {number for number in range(more) if not blobs.has(str(number), "v1")} == gone


def test_a_step_that_is_undone_leaves_neither_bytes_nor_a_file(database: Database) -> None:
    assert database.contents is not None
    blobs = opened(database)
    with suppress(ZeroDivisionError), database.atomic():
        blobs.keep("x", "v1", LARGE)
        raise ZeroDivisionError

    assert blobs.statistics().disk_bytes == 0
    assert list(database.contents.iterdir()) == []


def test_of_very_many_some_are_brought_to_the_disk_at_once(database: Database) -> None:
    blobs = opened(database)
    for number in range(PERSISTED_AT_ONCE + 1):
        blobs.put(str(number), "v1", b"x")
    assert blobs.persist() == 1
    assert blobs.persist() == 0


def test_a_full_disk_is_read_and_gives_up_what_it_can_until_there_is_nothing_left(database: Database) -> None:
    blobs = opened(database, memory=0)
    blobs.put("x", "v1", b"x")
    blobs.persist()
    blobs.put("y", "v1", b"y")
    with full(database):
        assert blobs.get("x", "v1") == b"x"
        assert blobs.make_room(), "the reserve"
        assert not blobs.make_room()
    assert blobs.statistics().waiting == 0
    assert blobs.make_room(), "what the bucket has"
    assert not blobs.make_room()
    assert not blobs.has("x", "v1")


async def test_the_bytes_that_a_waiting_version_was_made_from_are_never_evicted(database: Database) -> None:
    blobs = opened(database, memory=0)
    blobs.put("x", "v1", b"old")
    op = Journal(database, blobs).put("x", b"new", "v2", {}, base=ObjectInfo("x", "v1", 3, 0))
    assert blobs.make_room(), "the reserve"
    assert not blobs.make_room()
    assert op.base_blob is not None
    assert blobs.by_id(op.base_blob) == b"old"


def test_what_is_forgotten_is_not_brought_to_the_disk(database: Database) -> None:
    blobs = opened(database)
    blobs.put("x", "v1", b"x")
    blobs.drop("x")
    assert blobs.statistics().waiting == 0
    assert not blobs.has("x", "v1")


def test_how_often_it_was_of_use_is_counted_wherever_it_was(database: Database) -> None:
    blobs = opened(database, memory=0)
    assert blobs.get("x", "v1") is None
    blobs.put("x", "v1", b"x")
    assert blobs.get("x", "v1") == b"x"
    assert blobs.get("x", "v2") is None
    blobs.persist()
    assert blobs.get("x", "v1") == b"x"
    in_memory = opened(database)
    in_memory.put("y", "v1", b"yy")
    in_memory.get("y", "v1")
    told = [(one.hits, one.misses) for one in (blobs.statistics(), in_memory.statistics())]
    assert told == [(2, 2), (1, 0)]


@pytest.mark.parametrize(("size", "waiting"), [(12, 1), (13, 0)])
def test_what_would_take_more_than_an_eighth_of_the_disk_is_not_kept_unasked(
    database: Database, size: int, waiting: int
) -> None:
    blobs = opened(database, max_bytes=100, memory=0)
    blobs.put("x", "v1", b"x" * size)
    assert blobs.statistics().waiting == waiting


@pytest.mark.parametrize(("size", "kept"), [(1 << 18, 1 << 18), (1 + (1 << 18), 0)])
def test_a_file_that_would_take_more_than_half_of_the_disk_is_not_kept_unasked(
    database: Database, tmp_path: Path, size: int, kept: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * size)
    blobs = opened(database, max_bytes=1 << 19)
    blobs.put("x", "v1", FileContent(path, size))
    assert blobs.statistics().disk_bytes == kept
    assert blobs.statistics().in_memory == 0


@pytest.mark.parametrize(("size", "held"), [(10, 1), (11, 0)])
def test_memory_takes_what_is_an_eighth_of_it(database: Database, size: int, held: int) -> None:
    blobs = opened(database, memory=80)
    blobs.put("x", "v1", b"old")
    blobs.put("x", "v2", b"x" * size)
    assert (blobs.statistics().in_memory, blobs.statistics().memory_bytes) == (held, size * held)


@pytest.mark.parametrize(("size", "files"), [(INLINE_BYTES, 0), (INLINE_BYTES + 1, 1)])
def test_what_is_small_is_in_its_row_and_has_no_file_to_sync(database: Database, size: int, files: int) -> None:
    assert database.contents is not None
    blob = opened(database).keep("x", "v1", b"x" * size)
    found = list(database.contents.iterdir())
    assert len(found) == files
    assert opened(database).sync(blob) == (found[0] if found else None)
    assert opened(database).sync(blob + 1) is None


def test_no_more_is_forgotten_than_there_is_too_much(database: Database) -> None:
    blobs = opened(database, max_bytes=100, memory=0)
    for number in range(12):
        blobs.keep(str(number), "v1", b"x" * 10)
    assert blobs.evict() == 20
    assert blobs.evict() == 10, "asked for room, it gives some"
    assert blobs.statistics().disk_bytes == 90


def test_a_version_has_one_row_whoever_keeps_it(database: Database) -> None:
    blobs = opened(database)
    row = blobs.keep("x", "v1", b"x")
    assert blobs.keep("x", "v1", b"x") == row == blobs.id_of("x", "v1")
    assert blobs.id_of("x", "v2") is None
    blobs.put("y", "v1", b"y")
    assert blobs.by_id(blobs.id_of("y", "v1") or 0) == b"y"
    assert blobs.statistics().disk_bytes == 2
    assert opened(database).statistics().disk_bytes == 2
