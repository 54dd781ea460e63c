"""The file of what sessions were told: it outlives a process, and nothing that happens to it costs more than itself."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from livememfs.recall.told import KEPT_SECONDS, MOST_SESSIONS, ToldFile

NOW = 1_771_596_000
STATE = {"turn": 3, "told": {"a": 1}, "last": []}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "told.db"


@pytest.fixture
def told(path: Path) -> Iterator[ToldFile]:
    made = ToldFile(path)
    yield made
    made.close()


def kept(path: Path) -> list[tuple[str, str]]:
    """The sessions in a file."""
    db = sqlite3.connect(path)
    try:
        return list(db.execute("SELECT space, name FROM session ORDER BY space, name"))
    finally:
        db.close()


def test_a_session_is_there_for_the_next_process(path: Path, told: ToldFile) -> None:
    assert told.load("alpha", "one") is None
    assert told.keep("alpha", "one", STATE, NOW) == ""
    assert told.keep("alpha", "one", STATE | {"turn": 4}, NOW) == ""
    told.close()

    again = ToldFile(path)
    assert again.load("alpha", "one") == STATE | {"turn": 4}
    assert again.load("alpha", "two") is again.load("beta", "one") is None
    again.close()


def test_two_processes_may_have_it_open(path: Path, told: ToldFile) -> None:
    other = ToldFile(path)
    told.keep("alpha", "one", STATE, NOW)
    other.keep("alpha", "two", STATE, NOW)

    assert told.load("alpha", "two") == other.load("alpha", "one") == STATE
    other.close()


def test_threads_may_keep_sessions_at_once(path: Path, told: ToldFile) -> None:
    failed: list[str] = []

    def work(number: int) -> None:
        failed.extend(filter(None, (told.keep("alpha", f"{number} {turn}", STATE, NOW) for turn in range(20))))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert len(kept(path)) == 80


@pytest.mark.parametrize("name", ["", "\0", "a" * 100_000, "\U0001f600", "'; DROP TABLE session; --"])
def test_any_name_is_a_sessions_name(told: ToldFile, name: str) -> None:
    told.keep("alpha", name, STATE, NOW)

    assert told.load("alpha", name) == STATE


def test_half_a_character_is_no_name_and_no_reason_to_fail(told: ToldFile) -> None:
    assert "surrogates" in told.keep("alpha", "\ud800", STATE, NOW)
    assert told.load("alpha", "\ud800") is None


def test_nothing_is_made_before_the_first_turn(path: Path, told: ToldFile) -> None:
    told.close()
    assert not path.exists()


def test_without_a_path_it_is_in_memory() -> None:
    told = ToldFile(None)
    told.keep("alpha", "one", STATE, NOW)

    assert told.load("alpha", "one") == STATE
    told.close()


# --- what can happen to a file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", [b"no database" * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_damaged_file_is_begun_anew(path: Path, damaged: bytes) -> None:
    path.write_bytes(damaged)
    told = ToldFile(path)

    assert told.load("alpha", "one") is None
    assert told.keep("alpha", "one", STATE, NOW) == ""
    assert told.load("alpha", "one") == STATE
    told.close()
    assert kept(path) == [("alpha", "one")]


def test_a_file_that_is_damaged_while_it_is_open_is_begun_anew(path: Path, told: ToldFile) -> None:
    for number in range(50):
        told.keep("alpha", f"session {number}", STATE | {"last": ["x" * 5_000]}, NOW)
    told.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4_096] + b"\xa5" * (len(whole) - 4_096))  # the schema is right, nothing else is

    again = ToldFile(path)
    assert again.load("alpha", "session 7") is None
    assert again.keep("alpha", "session 7", STATE, NOW) == ""
    assert again.load("alpha", "session 7") == STATE
    again.close()


def test_a_state_that_cannot_be_read_is_none(path: Path, told: ToldFile) -> None:
    told.keep("alpha", "one", STATE, NOW)
    db = sqlite3.connect(path)
    db.execute("UPDATE session SET state = ?", (json.dumps(STATE)[:-3],))
    db.commit()
    db.close()

    assert told.load("alpha", "one") is None


def test_a_file_that_somebody_else_holds_is_no_damage(path: Path, told: ToldFile) -> None:
    told.keep("alpha", "one", STATE, NOW)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    assert "locked" in told.keep("alpha", "two", STATE, NOW)
    assert told.load("alpha", "one") == STATE
    holder.execute("ROLLBACK")
    holder.close()
    assert told.keep("alpha", "two", STATE, NOW) == ""
    assert kept(path) == [("alpha", "one"), ("alpha", "two")]


def test_a_place_where_nothing_can_be_written_is_said_and_works_when_it_can(tmp_path: Path) -> None:
    told = ToldFile(tmp_path / "missing" / "told.db")

    assert told.load("alpha", "one") is None
    assert "unable to open" in told.keep("alpha", "one", STATE, NOW)
    (tmp_path / "missing").mkdir()
    assert told.keep("alpha", "one", STATE, NOW) == ""
    told.close()


def test_a_full_disk_is_said_and_what_was_kept_stays(path: Path, told: ToldFile) -> None:
    told.keep("alpha", "one", STATE, NOW)
    told._db().execute("PRAGMA max_page_count = 1")

    assert "full" in told.keep("alpha", "two", STATE | {"last": ["x" * 100_000]}, NOW)
    assert told.load("alpha", "one") == STATE


# --- what is forgotten -----------------------------------------------------------------------------------------


def test_sessions_that_have_ended_are_forgotten_by_the_next_process(path: Path, told: ToldFile) -> None:
    told.keep("alpha", "old", STATE, NOW)
    told.keep("alpha", "paused", STATE, NOW + 1)
    told.close()

    again = ToldFile(path)
    again.keep("alpha", "new", STATE, NOW + KEPT_SECONDS + 1)
    again.close()

    assert kept(path) == [("alpha", "new"), ("alpha", "paused")]


def test_of_too_many_sessions_the_oldest_are_forgotten(path: Path, told: ToldFile) -> None:
    told.keep("alpha", "first", STATE, NOW)
    told._db().executemany(
        "INSERT INTO session VALUES ('alpha', ?, ?, '{}')",
        [(f"s{number}", NOW + number) for number in range(1, MOST_SESSIONS + 2)],
    )
    told.close()

    again = ToldFile(path)
    again.keep("alpha", "last", STATE, NOW + MOST_SESSIONS + 10)
    again.close()

    names = {name for _, name in kept(path)}
    assert len(names) == MOST_SESSIONS
    assert names.isdisjoint({"first", "s1", "s2"})
    assert {"last", "s3"} <= names
