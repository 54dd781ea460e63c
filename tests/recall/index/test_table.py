"""The records of an index: what it was told it tells again, and it knows what the other parts lack."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import index_world
import pytest
from index_world import ALL, read

from livememfs.errors import NoSpace
from livememfs.recall.index import table as module
from livememfs.recall.index.exchanged import Damaged, Restriction
from livememfs.recall.index.pieces import PieceText, spoken
from livememfs.recall.index.record import Record
from livememfs.recall.index.recordfile import VERSION
from livememfs.recall.index.sittings import HEARD, NEIGHBOURS, SITTING_SECONDS
from livememfs.recall.index.table import RecordTable


def note(name: str, created: int, text: str | tuple[str, ...] = "text", **given: Any) -> Record:
    """A note by ann in the space `space`."""
    return index_world.note(name, text, created, **given)


def put(table: RecordTable, *records: Record) -> int:
    return table.apply((), [read(record) for record in records])


def lacking(table: RecordTable, model: str) -> list[PieceText]:
    """Texts without a vector, the newest first."""
    return list(table.texts(table.without_vector(model)[::-1]).values())


@pytest.fixture
def table(tmp_path: Path) -> Iterator[RecordTable]:
    opened = RecordTable(tmp_path / "records.db")
    yield opened
    opened.close()


def titles(table: RecordTable, where: Restriction = ALL, limit: int = 100) -> list[str]:
    return [stored.record.title for stored in table.select(where, limit)]


# --- records -----------------------------------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was_and_after_reopening(tmp_path: Path) -> None:
    odd = note(
        "é 🙂",
        77,
        ("a\0b", "", "c" * 100_000),
        labels=(("tag", "École"), ("file", "a:b"), ("tag", "x")),
        importance=0.1,
        links=(("updates", "é"), ("part_of", "b")),
        channel="é",
        updated=78,
    )
    table = RecordTable(tmp_path / "records.db")
    put(table, odd)
    assert [stored.record for stored in table.select(ALL, 9)] == [odd]
    table.close()

    table = RecordTable(tmp_path / "records.db")
    assert [stored.record for stored in table.select(ALL, 9)] == [odd]
    assert [(part, stored.record) for part, stored in table.of_pieces([1, 2, 3, 99]).values()] == [
        (0, odd), (1, odd), (2, odd),
    ]  # fmt: skip
    table.close()


def test_numbers_of_pieces_are_never_given_twice(tmp_path: Path) -> None:
    """The text index may still have the old ones."""
    given: set[int] = set()
    for _ in range(4):
        table = RecordTable(tmp_path / "records.db")
        put(table, note("one", 1, ("a", "b")))
        assert given.isdisjoint(table.piece_numbers())
        given.update(table.piece_numbers())
        table.apply(["space/live/one.md"], ())
        assert table.piece_numbers() == []
        table.close()
    assert len(given) == 8


def test_what_went_leaves_no_row_behind(table: RecordTable) -> None:
    put(table, note("one", 1, ("a", "b"), labels=(("tag", "x"),)), note("two", 2))
    table.apply(["space/live/one.md"], ())
    counts = {"objects": 1, "records": 1, "pieces": 1, "vectors": 0, "gone": 2, "links": 0, "lost_links": 0}
    assert table.counts() == counts
    said: list[str] = []
    table.check(said.append)
    assert said == []
    table.settled(int(table.state("step") or 0))
    assert table.counts()["gone"] == 0


def test_a_step_that_fails_half_way_changes_nothing(table: RecordTable) -> None:
    put(table, note("one", 1))
    with pytest.raises(Damaged):
        table.apply(["space/live/one.md"], [("k", "1", "space", [note("two", 2), note("two", 3)])])
    assert titles(table) == ["one"]
    assert "k" not in table.objects()

    def breaking() -> Iterator[Any]:
        yield ("k", "1", "space", [note("two", 2)])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.apply((), breaking())
    assert titles(table) == ["one"]
    put(table, note("two", 2))
    assert titles(table) == ["two", "one"]


def test_a_word_that_is_remembered_is_known_after_reopening(tmp_path: Path) -> None:
    table = RecordTable(tmp_path / "records.db")
    assert table.state("word") is None
    table.remember("word", "a")
    table.remember("word", "é")
    table.close()
    table = RecordTable(tmp_path / "records.db")
    assert table.state("word") == "é"
    table.close()


# --- what the text index lacks -----------------------------------------------------------------------------------


def test_what_is_lacking_is_what_changed_since_a_step(table: RecordTable) -> None:
    first = put(table, note("one", 1 * SITTING_SECONDS), note("two", 5 * SITTING_SECONDS))
    assert [piece.number for piece in table.lacking(0).pieces] == [1, 2]
    table.settled(first)
    delta = table.lacking(first)
    assert (delta.gone, delta.pieces) == ((), ())

    second = table.apply(["space/live/one.md"], [("space/live/three.md", "1", "space", [note("three", 9_000_000)])])
    delta = table.lacking(first)
    assert (delta.gone, [piece.number for piece in delta.pieces]) == ((1,), [3])
    assert delta.step >= second


def test_a_piece_has_what_one_may_filter_by_and_its_labels_in_small_letters(table: RecordTable) -> None:
    put(table, note("one", 77, labels=(("tag", "École"), ("file", "SRC/a.py")), type="issue", agent="Zoë"))
    (piece,) = table.lacking(0).pieces
    assert (piece.space, piece.kind, piece.type, piece.agent, piece.created) == ("space", "live", "issue", "Zoë", 77)
    assert piece.labels == ("tag:école", "file:src/a.py")
    ((number, part, record, *rest),) = table.columns()
    assert (number, part, rest) == (piece.number, 0, ["live", "space", "issue", "Zoë", 77, False])
    assert list(table.columns([number, 99])) == [(number, part, record, *rest)]


def test_the_title_stands_above_the_parts_of_a_record_but_not_above_the_whole(table: RecordTable) -> None:
    put(table, note("one", 1, ("whole", "part"), kind="bank", title="Title"))
    assert [piece.text for piece in table.lacking(0).pieces] == ["whole", "Title\npart"]


@pytest.mark.parametrize("apart", [0, 1, 60, 700, SITTING_SECONDS, SITTING_SECONDS + 1])
@pytest.mark.parametrize("crowded", [50, 1, 0])
def test_many_at_once_have_the_contexts_and_meanings_of_those_that_came_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: int, crowded: int
) -> None:
    chance = random.Random(apart)
    notes = [
        note(f"{space}{n}", 1_000_000 + apart * n, f"{chance.random()}", space=space)
        for space in "ab"
        for n in range(40)
    ]
    notes += [note(f"memory{n}", 1_000_000 + n, f"fact {n}", kind="memories") for n in range(20)]
    several, single = RecordTable(tmp_path / "several.db"), RecordTable(tmp_path / "single.db")
    monkeypatch.setattr(module, "CROWDED", crowded)
    put(several, *notes[::2])
    put(several, *notes[1::2])
    several.apply([one.key for one in notes[10:30]], ())
    monkeypatch.setattr(module, "MANY", 1 << 30)
    for one in (*notes[::2], *notes[1::2]):
        put(single, one)
    single.apply([one.key for one in notes[10:30]], ())

    def shown(table: RecordTable) -> list[tuple[str, str]]:
        return sorted((piece.text, piece.context) for piece in table.lacking(0).pieces)

    assert shown(several) == shown(single)
    monkeypatch.undo()
    assert shown(several) == shown(single)
    assert {text.meaning for text in lacking(several, "m")} == {text.meaning for text in lacking(single, "m")}
    several.close()
    single.close()


@pytest.mark.parametrize("at", range(9))
def test_the_context_of_a_note_are_the_notes_around_it(table: RecordTable, at: int) -> None:
    put(table, *[note(f"n{n}", 60 * n, f"word{n}") for n in range(9)])
    piece = table.lacking(0).pieces[at]
    said = [line.rpartition(" ")[2] for line in piece.context.splitlines()]
    around = range(max(0, at - NEIGHBOURS), min(8, at + NEIGHBOURS) + 1)
    twice = [n for n in (at - 1, at + 1) if n in around]
    assert said == [f"word{n}" for n in (*[n for n in around if n != at], *twice)]


def test_of_a_long_note_only_the_beginning_is_context(table: RecordTable) -> None:
    long = "begins " + "filler " * HEARD + "ends"
    put(table, note("long", 0, long), note("short", 60, "word"))
    of_long, of_short = (piece.context for piece in table.lacking(0).pieces)
    assert of_long.count("word") == 2
    assert of_short.count("begins") == 2
    assert "ends" not in of_short
    assert len(of_short) < 2 * (HEARD + 40)


def test_a_note_that_comes_and_one_that_goes_touch_those_beside_and_no_others(table: RecordTable) -> None:
    step = put(table, *[note(f"n{n}", 60 * n, f"word{n}") for n in range(20)])
    put(table, note("new", 60 * 10 + 30, "new"))
    touched = {piece.created // 60 for piece in table.lacking(step).pieces}
    assert {9, 10, 11, 12} <= touched <= {8, 9, 10, 11, 12, 13, 14}
    step = table.lacking(step).step

    table.apply(["space/live/n3.md"], ())
    touched = {piece.created // 60 for piece in table.lacking(step).pieces}
    assert {1, 2, 4, 5} <= touched <= {0, 1, 2, 4, 5, 6, 7}


# --- vectors -----------------------------------------------------------------------------------------------------


def test_vectors_are_kept_by_meaning_and_model(table: RecordTable) -> None:
    put(table, note("one", 1, "first"), note("two", 9_999, "second"))
    first, second = lacking(table, "m")
    table.keep_vectors("m", [(first.meaning, b"123")])
    assert lacking(table, "m") == [second]
    assert lacking(table, "other") == [first, second]
    assert [(space, eight) for space, _, eight in table.vectors("m")] == [("space", b"123")]
    assert list(table.vectors("m", [second.meaning])) == []
    assert len(list(table.vectors("m", [first.meaning, second.meaning]))) == 1
    assert sorted(table.meanings([1, 2])) == sorted([first.meaning, second.meaning])


def test_thousands_of_meanings_and_numbers_are_no_matter(table: RecordTable) -> None:
    put(table, *[note(f"n{n}", n, f"w{n}", kind="bank") for n in range(1_200)])
    texts = lacking(table, "m")
    table.keep_vectors("m", [(text.meaning, b"x") for text in texts])
    assert len(list(table.vectors("m", [text.meaning for text in texts]))) == 1_200
    assert len(table.of_pieces(range(1, 1_201))) == len(table.meanings(range(1, 1_201))) == 1_200


def test_a_note_means_itself_and_what_was_said_just_before(table: RecordTable) -> None:
    put(table, note("a", 1_000, "question"), note("b", 1_060, "answer"), note("c", 1_061 + SITTING_SECONDS, "later"))
    by_end = {text.own.rpartition(" ")[2]: text for text in lacking(table, "m")}
    assert by_end["answer"].before == by_end["question"].own
    assert by_end["question"].before == by_end["later"].before == ""


def test_a_note_is_spoken_with_who_and_when_and_other_texts_as_they_are() -> None:
    assert spoken(note("a", 1_772_530_000), "text") == "ann (3 March 2026): text"
    assert spoken(note("a", 1_772_530_000, kind="bank"), "text") == "text"


# --- files and threads -------------------------------------------------------------------------------------------


def test_a_file_of_another_version_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    RecordTable(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={VERSION + 1}")
    db.close()
    with pytest.raises(Damaged, match="version"):
        RecordTable(path)


def test_a_database_of_something_else_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(Damaged):
        RecordTable(path)


def test_a_full_disk_is_told_from_damage(table: RecordTable) -> None:
    put(table, note("one", 1))
    table._db.execute(f"PRAGMA max_page_count={table._db.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(NoSpace):
        put(table, note("two", 2, "x" * 1_000_000))
    assert titles(table) == ["one"]


def test_threads_read_while_one_writes_and_see_whole_steps(table: RecordTable) -> None:
    """Each step puts in two records, so there is never an odd number of them."""
    odd: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            count = table.counts()["records"]
            if count % 2:
                odd.append(count)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(30):
        put(table, note(f"a{n}", n), note(f"b{n}", n))
    done.set()
    for thread in threads:
        thread.join()
    assert odd == []
    assert table.counts()["records"] == 60


def test_a_table_in_memory_works_for_one_thread() -> None:
    table = RecordTable(None)
    put(table, note("one", 1))
    assert titles(table) == ["one"]
    table.close()
