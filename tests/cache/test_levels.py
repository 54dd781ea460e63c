"""Known names: what the bucket said, under what was written here since, and what is known of folders by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from livememfs.cache import levels as module
from livememfs.cache.blobs import Blobs
from livememfs.cache.catalog import WRITTEN_AT_ONCE, Catalog
from livememfs.cache.database import Database
from livememfs.cache.journal.steps import Journal
from livememfs.cache.levels import Level, Levels, above, split_key
from livememfs.store.base import ObjectInfo

NEVER = float("-inf")


def info(key: str, etag: str = "v1") -> ObjectInfo:
    return ObjectInfo(key, etag, 1, 1)


def level(*names: str, folders: tuple[str, ...] = ()) -> Level:
    return Level([(name, info(name)) for name in names], set(folders), 0.0)


@pytest.fixture
def journal() -> Iterator[Journal]:
    database = Database(None)
    yield Journal(database, Blobs(database, max_bytes=1000, memory_bytes=1000))
    database.close()


@pytest.fixture
def levels(journal: Journal) -> Levels:
    return Levels(journal)


def heard(levels: Levels, prefix: str, *names: str, folders: tuple[str, ...] = ()) -> Level:
    """The bucket has told of a whole level."""
    levels.replace(prefix, [(name, info(prefix + name)) for name in names], set(folders), 1.0)
    found = levels.get(prefix)
    assert found is not None
    return found


def test_a_level_stays_in_order_whatever_comes_and_goes() -> None:
    made = level("b", "d", folders=("f",))
    made.set("c", info("c"))
    made.set("b", None)
    made.set("not there", None)
    assert [name for name, _ in made.items()] == ["c", "d"]
    assert [name in made for name in ("c", "b", "f", "x")] == [True, False, True, False]


def test_a_name_is_found_by_its_ending_before_and_after_others_come_and_go() -> None:
    first, second, other = (f"20261122T091001_me_todo_{digits}.md" for digits in ("00a1b2c3", "99a1b2c3", "00000000"))
    made = level(first, other)
    assert made.ending("1b2c3") == {first}
    made.set(second, info(second))
    assert made.ending("1b2c3") == {first, second}
    assert made.ending("99a1b2c3") == {second}
    made.set(first, None)
    assert made.ending("1b2c3") == {second}
    assert made.ending("fffff") == set()


async def test_what_waits_for_the_bucket_shows_over_what_the_bucket_says(journal: Journal, levels: Levels) -> None:
    journal.put("s/new", b"1", "v2", {}, base=None)
    journal.put("s/made/x", b"1", "v2", {}, base=None)
    journal.delete("s/removed", base=info("s/removed"))
    journal.delete("s/emptied/x", base=info("s/emptied/x"))
    journal.delete("s/kept/x", base=info("s/kept/x"))
    journal.delete("s/nested/x", base=info("s/nested/x"))
    journal.delete("s/unknown/x", base=info("s/unknown/x"))
    heard(levels, "s/emptied/", "x")
    heard(levels, "s/kept/", "x", "y")
    heard(levels, "s/nested/", "x", folders=("deeper",))

    found = heard(levels, "s/", "removed", "z", folders=("", "emptied", "kept", "nested", "unknown"))

    assert set(found.objects) == {"new", "z"}
    assert found.folders == {"made", "kept", "nested", "unknown"}
    assert levels.known == 3


def test_what_was_known_before_is_told_and_the_oldest_level_goes_first(levels: Levels) -> None:
    with patch.object(module, "MAX_LEVELS", 2):
        first = heard(levels, "a/")
        heard(levels, "b/")
        assert levels.replace("a/", [], set(), 2.0) is first
        assert len(levels) == 2
        assert levels.replace("c/", [], set(), 2.0) is None
    assert (levels.get("b/"), len(levels)) == (None, 2)


def test_a_first_object_brings_its_folders_and_the_last_one_takes_them_along(levels: Levels) -> None:
    top, outer = heard(levels, ""), heard(levels, "a/")
    inner = heard(levels, "a/b/")
    serials = [one.serial for one in (top, outer, inner)]

    assert levels.show("a/b/x", info("a/b/x")) == ["a/b/", "a/"]
    assert (top.folders, outer.folders, set(inner.objects)) == ({"a"}, {"b"}, {"x"})
    assert all(one.serial > serial for one, serial in zip((top, outer, inner), serials, strict=True))
    assert levels.show("a/b/y", info("a/b/y")) == []

    assert levels.show("a/b/x", None) == []
    assert levels.show("a/b/y", None) == ["a/b/", "a/"]
    assert (top.folders, outer.folders, set(inner.objects)) == (set(), set(), set())


def test_a_folder_with_another_folder_in_it_stays(levels: Levels) -> None:
    top = heard(levels, "", folders=("a",))
    heard(levels, "a/", "x", folders=("b",))
    assert levels.show("a/x", None) == []
    assert top.folders == {"a"}


def test_a_folder_of_which_not_everything_is_known_is_asked_for_and_stays_until_then(levels: Levels) -> None:
    top = heard(levels, "", folders=("a",))
    assert levels.show("a/x", None) == []
    assert (top.folders, top.confirmed) == ({"a"}, NEVER)
    outer = heard(levels, "a/", folders=("b",))
    top.confirmed = 1.0
    assert levels.show("a/b/x", None) == []
    assert (outer.folders, outer.confirmed, top.confirmed) == ({"b"}, NEVER, NEVER)


def test_levels_in_between_that_nobody_knows_are_passed_over_when_something_comes(levels: Levels) -> None:
    top = heard(levels, "")
    assert levels.show("a/b/x", info("a/b/x")) == ["a/"]
    assert top.folders == {"a"}


def test_what_vanished_is_known_to_be_empty_and_its_folder_is_gone(levels: Levels) -> None:
    top = heard(levels, "", folders=("a", "ab"))
    for prefix in ("a/", "a/b/", "ab/"):
        heard(levels, prefix, "x")
    levels.vanish("a/", {"a/c/"}, 5.0)
    for prefix in ("a/", "a/b/", "a/c/"):
        found = levels.get(prefix)
        assert found is not None
        assert (found.objects, found.folders, found.confirmed) == ({}, set(), 5.0)
    assert top.folders == {"ab"}
    assert levels.known == 1


def test_doubt_is_of_what_is_below_and_of_nothing_else(levels: Levels) -> None:
    found = [heard(levels, prefix) for prefix in ("a/", "a/b/", "ab/")]
    levels.doubt("a/")
    assert [one.confirmed for one in found] == [NEVER, NEVER, 1.0]


def test_a_key_is_taken_apart_into_its_folder_and_its_name() -> None:
    assert [split_key(key) for key in ("a/b/c", "c", "a/")] == [("a/b/", "c"), ("", "c"), ("a/", "")]
    assert [above(prefix) for prefix in ("a/b/c/", "a/", "a/b/")] == [["a/", "a/b/"], [], ["a/"]]


def test_known_names_are_kept_with_their_levels_until_these_have_to_be_asked_for_again(tmp_path: Path) -> None:
    database = Database(tmp_path / "cache")
    catalog = Catalog(database)
    known = [ObjectInfo("s/a", "v1", 3, 7, {"k": "v"}), ObjectInfo("s/b", "v2", 0, 8, None), info("top")]
    catalog.heard([*known, info("s/gone"), info("s/d/x")])
    catalog.gone("s/gone")
    catalog.complete("s/", {"d"})
    catalog.complete("", set())
    assert len(catalog) == 7
    assert (catalog.load("s/"), catalog.flush(), catalog.flush()) == (None, 0, 0)

    again = Catalog(database)
    assert again.load("s/") == ([("a", known[0]), ("b", known[1])], {"d"})
    assert again.load("") == ([("top", known[2])], set())
    assert again.load("s/d/") is None
    again.gone("s/a")
    again.incomplete("")
    again.flush()
    assert (again.load("s/"), again.load("")) == (([("b", known[1])], {"d"}), None)
    database.close()


def test_of_very_many_names_some_are_written_at_once_and_the_level_with_the_last_of_them(tmp_path: Path) -> None:
    database = Database(tmp_path / "cache")
    catalog = Catalog(database)
    catalog.heard(info(f"s/{number:04}") for number in range(WRITTEN_AT_ONCE + 1))
    catalog.complete("s/", ())
    assert catalog.flush() == 2
    assert Catalog(database).load("s/") is None, "a level that lacks a name would hide it"
    assert catalog.flush() == 0
    found = Catalog(database).load("s/")
    assert found is not None
    assert len(found[0]) == WRITTEN_AT_ONCE + 1
    database.close()
