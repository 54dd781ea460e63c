"""What a crash leaves of open files."""

from __future__ import annotations

from pathlib import Path

from journal_world import full

from livememfs.cache.database import Database
from livememfs.cache.drafts import LARGEST, Drafts


def crash(folder: Path, path: str, data: bytes) -> None:
    """A process that ends with this written and not closed."""
    database = Database(folder)
    Drafts(database).keep(path, data, 1)
    database.close()


def test_what_was_being_written_is_there_after_a_crash_until_it_is_removed(tmp_path: Path) -> None:
    crash(tmp_path, "project/live/x.md", b"half a thought")

    for _ in range(2):  # it outlives more than one start
        database = Database(tmp_path)
        drafts = Drafts(database)
        [found] = drafts.recovered()
        assert (found.path, found.size) == ("project/live/x.md", 14)
        assert "project__live__x.md" in found.name
        assert drafts.read(found.name) == b"half a thought"
        database.close()

    database = Database(tmp_path)
    drafts = Drafts(database)
    drafts.remove(drafts.recovered()[0].name)
    assert drafts.recovered() == []
    database.close()


def test_two_crashes_over_one_file_leave_both(tmp_path: Path) -> None:
    crash(tmp_path, "a/b", b"first")
    database = Database(tmp_path)
    database._db.execute("UPDATE draft SET written = written - 5000000000")
    database.close()
    crash(tmp_path, "a/b", b"second")

    drafts = Drafts(Database(tmp_path))

    assert [drafts.read(found.name) for found in drafts.recovered()] == [b"first", b"second"]


def test_files_whose_names_are_spelled_alike_leave_each_their_own(tmp_path: Path) -> None:
    for _ in range(2):  # what an earlier crash of the same second left counts as well
        database = Database(tmp_path)
        drafts = Drafts(database)
        for path in ("a/b", "a__b"):
            drafts.keep(path, path.encode(), 1)
        database._db.execute("UPDATE draft SET written = 1000000000")
        database.close()

    drafts = Drafts(Database(tmp_path))

    found = {one.name: (one.path, drafts.read(one.name)) for one in drafts.recovered()}
    assert sorted(found.values()) == [("a/b", b"a/b")] * 2 + [("a__b", b"a__b")] * 2
    assert sorted(found) == [f"19700101T000001Z_a__b{mark}" for mark in ("", "~2", "~3", "~4")]


def test_a_closed_file_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path)
    drafts = Drafts(database)
    drafts.keep("a", b"x", 1)
    drafts.keep("b", b"y", 1)
    drafts.drop_all_but({"b"})
    database.close()

    assert [found.path for found in Drafts(Database(tmp_path)).recovered()] == ["b"]


def test_the_same_change_is_written_once_and_again_when_the_file_is_opened_anew(tmp_path: Path) -> None:
    database = Database(tmp_path)
    drafts = Drafts(database)
    for data in (b"first", b"of the same change"):
        drafts.keep("a", data, 1)
    assert database.rows("SELECT data FROM draft") == [(b"first",)]
    drafts.drop_all_but(set())
    drafts.keep("a", b"anew", 1)
    assert database.rows("SELECT data FROM draft") == [(b"anew",)]
    database.close()


def test_on_a_full_disk_what_a_crash_left_waits_for_the_next_start(tmp_path: Path) -> None:
    crash(tmp_path, "a", b"x")
    database = Database(tmp_path)
    with full(database):
        assert Drafts(database).recovered() == []
    assert [found.path for found in Drafts(database).recovered()] == ["a"]
    database.close()


def test_a_large_file_is_not_written_again_and_again(tmp_path: Path) -> None:
    database = Database(tmp_path)
    Drafts(database).keep("a", bytes(LARGEST + 1), 1)
    Drafts(database).keep("b", bytes(LARGEST), 1)
    database.close()

    assert [found.path for found in Drafts(Database(tmp_path)).recovered()] == ["b"]
