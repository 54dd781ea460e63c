"""The index as a whole: what was applied is found, whatever happened to the process or to its files in between."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from livememfs.errors import CacheInUse, NoSpace
from livememfs.recall.columns import Columns
from livememfs.recall.engine import Read
from livememfs.recall.index import Index
from livememfs.recall.lexical import Asked, Damaged, Lexical, Restriction
from livememfs.recall.record import Record
from livememfs.recall.table import SITTING_SECONDS, Table
from livememfs.testing.embed import hashed

ALL = Restriction()
MODEL = "hashed"
DIM = 64
DAY = 86_400


def note(name: str, text: str | tuple[str, ...], created: int = DAY, **given: Any) -> Record:
    """A note by ann in the space `space`."""
    key = f"{given.get('space', 'space')}/live/{name}.md"
    defaults: dict[str, Any] = {
        "ref": key, "key": key, "etag": "1", "kind": "live", "space": "space", "type": "todo", "agent": "ann",
        "title": name, "importance": 0.5, "labels": (),
    }  # fmt: skip
    pieces = text if isinstance(text, tuple) else (text,)
    return Record(**{**defaults, "created": created, "pieces": pieces, **given})


def read(*records: Record) -> Read:
    """The object that these records are in."""
    return records[0].key, records[0].etag, records[0].space, records


def found(index: Index, words: str, where: Restriction = ALL) -> list[str]:
    """Titles of the records that have the words, in order."""
    numbers = [number for number, _ in index.text(Asked(words), where, 100)[0]]
    return sorted({stored.record.title for _, stored in index.table.of_pieces(numbers).values()})


def embed(index: Index) -> int:
    """Embeds all there is to embed; how many texts."""
    done = 0
    while texts := index.unembedded(100):
        index.take_vectors(
            [text.meaning for text in texts], np.array([hashed(f"{text.own} {text.around}", DIM) for text in texts])
        )
        done += len(texts)
        assert done < 10_000
    return done


def near(index: Index, words: str, where: Restriction = ALL) -> list[str]:
    """Titles of what lies near the words, best first."""
    hits = index.near(hashed(words, DIM), where, 100)
    known = index.table.of_pieces([number for number, _ in hits])
    return [known[number][1].record.title for number, cosine in hits if cosine > 0.2]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index(tmp_path / "index", MODEL)
    yield opened
    opened.close()


def reopened(folder: Path) -> Index:
    return Index(folder, MODEL)


THREE = [
    read(note("one", "queue alpha", 1 * DAY)),
    read(note("two", "queue beta", 2 * DAY)),
    read(note("three", ("queue gamma", "second piece delta"), 3 * DAY)),
]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The closed folder of an index with three notes, of which all have vectors."""
    index = Index(tmp_path / "filled", MODEL)
    index.apply((), THREE)
    embed(index)
    index.close()
    return tmp_path / "filled"


def assert_whole(index: Index) -> None:
    assert index.verify() == []
    assert found(index, "queue") == ["one", "three", "two"]
    assert found(index, "delta") == ["three"]


# --- in and out --------------------------------------------------------------------------------------------------


def test_what_is_applied_is_found_when_apply_returns_and_after_reopening(filled: Path) -> None:
    index = reopened(filled)
    assert_whole(index)
    assert near(index, "queue alpha")[0] == "one"
    assert index.rebuilt == []
    assert index.redone == 0
    statistics = index.statistics()
    assert (statistics.objects, statistics.records, statistics.pieces) == (3, 3, 4)
    assert statistics.embedded == statistics.vectors == 4
    index.close()


def test_an_object_that_went_and_one_that_changed_are_gone_at_once(filled: Path) -> None:
    index = reopened(filled)
    index.apply(["space/live/one.md"], [read(note("two", "topic", 2 * DAY, etag="2"))])

    assert (found(index, "queue"), found(index, "topic"), near(index, "alpha")) == (["three"], ["two"], [])
    assert index.objects() == {"space/live/two.md": "2", "space/live/three.md": "1"}
    assert index.verify() == []
    assert index.statistics().embedded == 2
    index.close()


def test_an_object_without_records_is_remembered_as_read_and_forgets_those_it_had(index: Index) -> None:
    index.apply((), THREE)
    index.apply((), [("space/live/one.md", "2", "space", ()), ("space/live/empty.md", "1", "space", ())])
    assert found(index, "queue") == ["three", "two"]
    assert index.objects()["space/live/empty.md"] == "1"
    assert index.verify() == []


def test_one_object_given_twice_at_once_has_its_last_records(index: Index) -> None:
    index.apply((), [read(note("one", "first")), read(note("one", "second", etag="2"))])
    assert (found(index, "first"), found(index, "second"), index.verify()) == ([], ["one"], [])


def test_forgetting_what_is_not_there_changes_nothing(index: Index) -> None:
    index.apply((), THREE)
    index.apply(["space/live/never.md"], ())
    assert_whole(index)


# --- beside ------------------------------------------------------------------------------------------------------


def test_a_note_that_comes_between_two_others_is_context_of_both_and_changes_their_meaning(index: Index) -> None:
    index.apply((), [read(note("before", "lunch", 1_000)), read(note("after", "dinner", 1_200))])
    embed(index)

    index.apply((), [read(note("between", "needle", 1_100))])

    assert found(index, "needle") == ["after", "before", "between"]
    assert {text.own.rpartition(": ")[2] for text in index.unembedded(100)} == {"needle", "dinner"}
    assert any("needle" in text.around and "dinner" in text.around for text in index.unembedded(100))
    assert embed(index) == 2
    assert index.verify() == []


def test_a_note_that_goes_is_context_of_nothing(index: Index) -> None:
    index.apply((), [read(note(name, name, at)) for name, at in (("first", 1_000), ("needle", 1_100), ("last", 1_200))])
    embed(index)
    index.apply(["space/live/needle.md"], ())
    assert found(index, "needle") == []
    assert embed(index) == 1
    assert index.verify() == []


def test_a_note_of_another_sitting_or_space_or_kind_is_no_context(index: Index) -> None:
    index.apply(
        (),
        [
            read(note("late", "lunch", 1_000 + SITTING_SECONDS + 1)),
            read(note("elsewhere", "lunch", 1_000, space="other")),
            read(note("file", "lunch", 1_000, kind="bank")),
            read(note("needle", "needle", 1_000)),
        ],
    )
    assert found(index, "needle") == ["needle"]


def test_the_author_and_the_month_of_a_note_are_found(index: Index) -> None:
    index.apply((), [read(note("one", "lunch", 1_772_530_000, agent="Zoé"))])
    assert (found(index, "zoe"), found(index, "March 2026")) == (["one"], ["one"])


def test_notes_of_one_second_leave_nothing_to_embed_for_ever(index: Index) -> None:
    """An import writes many notes with one time. What follows them has a meaning that depends on the last of them."""
    index.apply((), [read(note(f"n{n}", f"word{n}", 1_000)) for n in range(5)])
    index.apply((), [read(note("follows", "dinner", 1_060))])
    index.apply((), [read(note("n5", "word5", 1_000))])
    for _ in range(3):
        texts = index.unembedded(100)
        index.take_vectors([text.meaning for text in texts], np.array([hashed(text.own, DIM) for text in texts]))
    assert index.unembedded(100) == []


# --- meaning -----------------------------------------------------------------------------------------------------


def test_vectors_survive_reopening_and_a_text_that_comes_back_is_not_embedded_again(filled: Path) -> None:
    index = reopened(filled)
    assert index.unembedded(10) == []
    index.apply(["space/live/one.md"], ())
    index.apply((), [THREE[0]])
    assert index.unembedded(10) == []
    assert near(index, "alpha")[0] == "one"
    index.close()


def test_vectors_of_another_model_do_not_count(filled: Path) -> None:
    index = Index(filled, "another")
    assert len(index.unembedded(10)) == 4
    assert near(index, "queue alpha") == []
    index.close()
    index = reopened(filled)
    assert index.unembedded(10) == []
    index.close()


def test_what_is_unembedded_comes_newest_first_and_no_more_than_asked_for(index: Index) -> None:
    index.apply((), THREE)
    assert [text.own.rpartition(" ")[2] for text in index.unembedded(3)] == ["delta", "gamma", "beta"]


def test_two_pieces_with_the_same_text_need_one_vector_and_both_are_found(index: Index) -> None:
    index.apply((), [read(note(name, "same text", kind="bank")) for name in ("one", "two")])
    assert embed(index) == 1
    assert sorted(near(index, "same text")) == ["one", "two"] or index.statistics().embedded == 2


def test_meaning_looks_into_the_spaces_that_are_asked_for_and_filters(index: Index) -> None:
    index.apply(
        (),
        [
            read(note("here", "alpha queue", 1 * DAY)),
            read(note("pad", "nothing like it", 9 * DAY)),
            read(note("there", "alpha queue", 1 * DAY, space="other", type="decision")),
            read(note("pad", "nothing like it", 9 * DAY, space="other")),
        ],
    )
    embed(index)
    assert sorted(near(index, "alpha queue")) == ["here", "there"]
    assert near(index, "alpha queue", Restriction(fields=(("space", ("space",)),))) == ["here"]
    assert near(index, "alpha queue", Restriction(fields=(("type", ("decision",)),))) == ["there"]
    assert near(index, "alpha queue", Restriction(without=(("type", ("decision",)),))) == ["here"]
    assert near(index, "alpha queue", Restriction(after=2 * DAY)) == []


def test_a_question_of_another_length_finds_nothing(filled: Path) -> None:
    index = reopened(filled)
    assert index.near(hashed("queue", 32), ALL, 10) == []
    index.close()


def test_the_mean_of_any_texts_is_kept_and_used_after_reopening(filled: Path) -> None:
    index = reopened(filled)
    assert index.prior is None
    prior = hashed("common", DIM)
    index.expect(prior)
    hits = index.near(hashed("alpha", DIM), ALL, 10)
    index.close()
    index = reopened(filled)
    assert index.prior is not None
    assert np.array_equal(index.prior, prior)
    again = index.near(hashed("alpha", DIM), ALL, 10)
    assert dict(again) == pytest.approx(dict(hits))
    index.close()


# --- any sequence of changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_after_any_changes_the_index_finds_what_a_dictionary_holds(tmp_path: Path, seed: int) -> None:
    """Each text has a word of its own. Notes are so far apart that they are no context of each other."""
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(12)]
    model: dict[str, str] = {}
    index = reopened(tmp_path)
    version = 0
    for _ in range(25):
        gone = [name for name in chance.sample(names, 2) if chance.random() < 0.5]
        came = [name for name in chance.sample(names, 3) if chance.random() < 0.7 and name not in gone]
        reads = []
        for name in came:
            version += 1
            model[name] = f"word{version}x"
            record = note(name, (f"common {model[name]}", "tail")[: chance.choice((1, 2))], DAY * names.index(name))
            reads.append(read(record))
        for name in gone:
            model.pop(name, None)
        index.apply([f"space/live/{name}.md" for name in gone], reads)
        if chance.random() < 0.4:
            embed(index)
        if chance.random() < 0.2:
            index.close()
            index = reopened(tmp_path)
        assert index.verify() == []
        assert found(index, "common") == sorted(model)
    for name, word in model.items():
        assert found(index, word) == [name]
    for number in range(version + 1):
        if (word := f"word{number}x") not in model.values():
            assert found(index, word) == []
    assert (index.rebuilt, index.redone) == ([], 0)
    index.close()


@pytest.mark.parametrize("seed", range(4))
def test_after_any_changes_context_and_meaning_are_those_of_an_index_made_anew(tmp_path: Path, seed: int) -> None:
    """Notes a minute apart, which come and go in any order."""
    chance = random.Random(seed)
    index = reopened(tmp_path / "changed")
    there: dict[int, Record] = {}
    for _ in range(15):
        gone = [number for number in list(there) if chance.random() < 0.2]
        came = [number for number in chance.sample(range(40), 4) if number not in gone]
        for number in gone:
            del there[number]
        there |= {number: note(f"n{number}", f"word{number}x", 60 * number) for number in came}
        index.apply([f"space/live/n{number}.md" for number in gone], [read(there[number]) for number in came])
    fresh = reopened(tmp_path / "fresh")
    fresh.apply((), [read(there[number]) for number in sorted(there)])

    assert {text.meaning for text in index.unembedded(1_000)} == {text.meaning for text in fresh.unembedded(1_000)}
    for number in range(40):
        assert found(index, f"word{number}x") == found(fresh, f"word{number}x")
    index.close()
    fresh.close()


# --- a process that dies -----------------------------------------------------------------------------------------


class Died(Exception):
    """The process ended here."""


def dying(folder: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str, *, after: bool, at: int = 1) -> Path:
    """A copy of the folder as it was when the process died: before the call of a method that was its `at`-th, or after
    what that method did. Nothing is closed in between, as in a crash.
    """
    index = reopened(folder)
    copy = folder.parent / "copy"
    original: Callable[..., Any] = getattr(cls, name)
    calls = 0

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != at:
            return original(self, *args, **kwargs)
        if after:
            original(self, *args, **kwargs)
        shutil.copytree(folder, copy)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(cls, name, method)
        with pytest.raises(Died):
            index.apply(["space/live/one.md"], [read(note("four", "queue fourth", 4 * DAY)), THREE[1]])
    index.close()
    return copy


@pytest.mark.parametrize(
    ("cls", "name", "after", "redone"),
    [
        (Table, "lacking", False, 1),
        (Lexical, "apply", False, 1),
        (Lexical, "apply", True, 1),
        (Table, "settled", False, 1),
        (Table, "settled", True, 0),
    ],
)
def test_a_crash_between_records_and_text_is_healed_by_doing_the_step_again(
    filled: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str, after: bool, redone: int
) -> None:
    copy = dying(filled, monkeypatch, cls, name, after=after)

    index = reopened(copy)
    assert index.verify() == []
    assert found(index, "queue") == ["four", "three", "two"]
    assert found(index, "alpha") == []
    assert (index.rebuilt, index.redone) == ([], redone)
    embed(index)
    assert near(index, "queue fourth")[0] == "four"
    index.close()

    index = reopened(copy)
    assert (index.rebuilt, index.redone, index.verify()) == ([], 0, [])
    index.close()


def test_a_crash_within_the_records_leaves_what_was_there(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = dying(filled, monkeypatch, Table, "_touch_neighbours", after=True)
    index = reopened(copy)
    assert_whole(index)
    assert (index.rebuilt, index.redone) == ([], 0)
    index.close()


def test_a_crash_between_two_commits_of_many_is_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livememfs.recall.index.FED_AT_ONCE", 1)
    folder = tmp_path / "index"
    index = reopened(folder)
    index.apply((), THREE)
    index.close()
    copy = dying(folder, monkeypatch, Lexical, "apply", after=False, at=2)
    monkeypatch.undo()

    index = reopened(copy)
    assert (index.verify(), found(index, "queue"), index.redone) == ([], ["four", "three", "two"], 1)
    index.close()


@pytest.mark.parametrize(("cls", "name"), [(Lexical, "apply"), (Table, "settled")])
def test_a_step_that_failed_is_made_good_by_the_next_one(
    filled: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str
) -> None:
    """The process lives on, the disk was full for a moment; in between, everything is still answered."""
    index = reopened(filled)

    def full(*_: Any, **__: Any) -> None:
        raise NoSpace("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cls, name, full)
        with pytest.raises(NoSpace):
            index.apply(["space/live/one.md"], [read(note("four", "queue fourth", 4 * DAY))])
        assert set(found(index, "queue")) >= {"two", "three"}
        assert "one" not in found(index, "queue")
        assert "two" in near(index, "queue beta", Restriction(fields=(("type", ("todo",)),)))
        embed(index)
        assert "two" in near(index, "queue beta", Restriction(fields=(("type", ("todo",)),)))

    index.apply((), ())
    assert index.verify() == []
    assert found(index, "queue") == ["four", "three", "two"]
    assert near(index, "queue fourth", Restriction(fields=(("type", ("todo",)),)))[0] == "four"
    index.close()


def test_vectors_that_come_while_a_step_has_failed_do_not_break_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The piece is then in the records and near, and not yet among what filters know."""
    index = reopened(tmp_path)
    index.apply((), [(f"space/bank/{n}.md", "1", "space", [note(f"n{n}", f"w{n}", kind="bank")]) for n in range(1_023)])

    def full(*_: Any, **__: Any) -> None:
        raise NoSpace("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Lexical, "apply", full)
        with pytest.raises(NoSpace):
            index.apply((), [read(note("new", "needle"))])
        embed(index)
        assert near(index, "w7", Restriction(fields=(("kind", ("bank",)),)))[0] == "n7"
    index.close()


# --- files that are damaged --------------------------------------------------------------------------------------


def _truncate(path: Path, share: float = 0.5) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def _text_removed(folder: Path) -> None:
    shutil.rmtree(folder / "text")


def _text_emptied(folder: Path) -> None:
    for path in (folder / "text").iterdir():
        path.unlink()


def _text_truncated(folder: Path) -> None:
    for path in (folder / "text").iterdir():
        _truncate(path)


def _segments_truncated(folder: Path) -> None:
    for path in (folder / "text").iterdir():
        if path.suffix in {".idx", ".term", ".fast"}:
            _truncate(path)


def _meta_garbled(folder: Path) -> None:
    (folder / "text" / "meta.json").write_bytes(b"\xff{]")


def _text_is_a_file(folder: Path) -> None:
    shutil.rmtree(folder / "text")
    (folder / "text").write_text("not a folder")


def _text_of_another(folder: Path) -> None:
    other = reopened(folder.parent / "other")
    other.apply((), [read(note("foreign", "queue foreign", 9 * DAY)), *THREE[:2], THREE[2]])
    other.close()
    shutil.rmtree(folder / "text")
    shutil.copytree(folder.parent / "other" / "text", folder / "text")


def _text_of_before(folder: Path) -> None:
    """A restored copy: its mark is right, and it lacks what came since."""
    old = folder.parent / "old"
    shutil.copytree(folder / "text", old)
    index = reopened(folder)
    index.apply((), [read(note("one", "queue alpha", 1 * DAY, etag="2")), read(note("five", "fifth", 5 * DAY))])
    index.close()
    shutil.rmtree(folder / "text")
    shutil.copytree(old, folder / "text")


@pytest.mark.parametrize(
    "harm",
    [
        _text_removed, _text_emptied, _text_truncated, _segments_truncated, _meta_garbled, _text_of_another,
        _text_is_a_file,
    ],
)  # fmt: skip
def test_a_text_index_that_is_damaged_missing_or_anothers_is_made_anew(
    filled: Path, harm: Callable[[Path], None]
) -> None:
    harm(filled)
    index = reopened(filled)
    assert index.rebuilt == ["text"]
    assert_whole(index)
    assert found(index, "foreign") == []
    assert index.unembedded(10) == []
    index.close()

    index = reopened(filled)
    assert (index.rebuilt, index.redone) == ([], 0)
    assert_whole(index)
    index.close()


def test_a_text_index_of_before_gets_what_it_lacks_and_loses_what_went(filled: Path) -> None:
    _text_of_before(filled)
    for healed in (1, 0):
        index = reopened(filled)
        assert index.redone + len(index.rebuilt) == healed
        assert_whole(index)
        assert found(index, "fifth") == ["five"]
        index.close()


def _version(folder: Path) -> None:
    with sqlite3.connect(folder / "records.db") as db:
        db.execute("PRAGMA user_version=77")
    db.close()


def _records(share: float) -> Callable[[Path], None]:
    return lambda folder: _truncate(folder / "records.db", share)


def _no_database(folder: Path) -> None:
    (folder / "records.db").write_bytes(b"this is no database at all" * 500)


@pytest.mark.parametrize(
    "harm",
    [_version, _no_database, _records(0.5), _records(0.9), _records(0.01)],
    ids=["another version", "no database", "half of it", "most of it", "a bit of it"],
)
def test_records_that_cannot_be_read_are_made_anew_and_so_is_the_text(
    filled: Path, harm: Callable[[Path], None]
) -> None:
    """What was in them is read from the bucket again; nothing that is left over is found until then."""
    harm(filled)
    index = reopened(filled)
    assert index.rebuilt == ["records"]
    assert (found(index, "queue"), near(index, "queue"), index.objects()) == ([], [], {})
    assert index.verify() == []

    index.apply((), THREE)
    assert_whole(index)
    assert embed(index) == 4
    index.close()


def test_records_that_went_take_the_text_with_them(filled: Path) -> None:
    for path in filled.glob("records.db*"):
        path.unlink()
    index = reopened(filled)
    assert (found(index, "queue"), index.verify(), index.objects()) == ([], [], {})
    index.close()


# --- one process at a time, and full disks -----------------------------------------------------------------------


def test_a_folder_is_for_one_index_at_a_time(tmp_path: Path) -> None:
    index = reopened(tmp_path)
    with pytest.raises(CacheInUse) as refused:
        reopened(tmp_path)
    assert str(tmp_path) in str(refused.value)
    index.close()
    reopened(tmp_path).close()


def test_a_folder_is_for_one_process_at_a_time(filled: Path) -> None:
    index = reopened(filled)
    script = (
        "import sys, pathlib\n"
        "from livememfs.errors import CacheInUse\n"
        "from livememfs.recall.index import Index\n"
        "try:\n    Index(pathlib.Path(sys.argv[1]), 'hashed')\n"
        "except CacheInUse:\n    sys.exit(23)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(filled)], timeout=60)
    assert done.returncode == 23
    assert_whole(index)
    index.close()


def test_a_folder_that_could_not_be_opened_is_not_kept_locked(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Table, "columns", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reopened(filled)
    index = reopened(filled)
    assert_whole(index)
    index.close()


def test_a_full_disk_is_said_and_the_index_answers_and_recovers(filled: Path) -> None:
    """SQLite is given no page more than it has."""
    index = reopened(filled)
    db = index.table._db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count={pages}")

    with pytest.raises(NoSpace):
        index.apply((), [read(note("large", "queue " * 100_000))])
    with pytest.raises(NoSpace):
        index.take_vectors([b"m%d" % n for n in range(500)], np.tile(hashed("x", DIM), (500, 1)))
    assert_whole(index)
    assert near(index, "queue alpha")[0] == "one"

    db.execute("PRAGMA max_page_count=1000000")
    index.apply((), [read(note("large", "space regained", 9 * DAY))])
    assert found(index, "regained") == ["large"]
    assert_whole(index)
    index.close()


def test_two_records_by_one_name_are_refused_as_a_whole(index: Index) -> None:
    index.apply((), THREE)
    with pytest.raises(Damaged):
        index.apply((), [read(note("four", "queue")), ("space/bank/x.md", "1", "space", [note("four", "queue")])])
    assert_whole(index)


def all_spaces(names: Sequence[str]) -> Restriction:
    return Restriction(fields=(("space", tuple(names)),))


def test_many_spaces_are_searched_side_by_side(index: Index) -> None:
    spaces = [f"s{n}" for n in range(30)]
    index.apply((), [read(note(f"in-{space}", f"queue {space}", space=space)) for space in spaces])
    embed(index)
    assert len(found(index, "queue", all_spaces(spaces))) == 30
    assert found(index, "queue", all_spaces(["s3", "s4"])) == ["in-s3", "in-s4"]
    assert len(index.near(hashed("queue", DIM), all_spaces(["s3", "s4"]), 10)) == 2


def test_names_are_told_as_they_are_written_in_the_spaces_that_are_asked_for() -> None:
    columns = Columns()
    for number, (space, agent) in enumerate((("alpha", "Ann"), ("alpha", "ann"), ("other", "Eve")), 1):
        columns.put(number, space, "live", "todo", agent, 0)

    assert columns.spelt("agent", ["alpha"]) == ["Ann", "ann"]
    assert columns.spelt("agent", ["other"]) == ["Eve"]
    assert columns.spelt("agent", []) == []
    assert columns.spelt("type", ["alpha", "other"]) == ["todo"]
