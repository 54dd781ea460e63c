"""The index in a folder: what was applied is found, whatever happened to the process or to its files in between.

What every index can do is in `test_engine_contract`.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_world import ALL, DAY, DIM, MODEL, THREE, assert_whole, embed, note, read

from livememfs.errors import CacheInUse, NoSpace
from livememfs.recall.index import loaded as loaded
from livememfs.recall.index import snapshot
from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.index.lexical import Lexical
from livememfs.recall.index.local import Index
from livememfs.recall.index.merits import UnaskedMemories, Use
from livememfs.recall.index.record import Record
from livememfs.recall.index.table import RecordTable
from livememfs.testing.embed import hashed


def found(index: Index, words: str, where: Restriction = ALL) -> list[str]:
    """Titles of the records that have the words, in order."""
    numbers = [number for number, _ in index.text(TextQuery(words), where, 100)[0]]
    return sorted({stored.record.title for _, stored in index.table.of_pieces(numbers).values()})


def near(index: Index, words: str, where: Restriction = ALL) -> list[str]:
    """Titles of what lies near the words, best first."""
    hits = index.near(hashed(words, DIM), where, 100)
    known = index.table.of_pieces([number for number, _ in hits])
    return [known[number][1].record.title for number, cosine in hits if cosine > 0.2]


@pytest.fixture(autouse=True, params=["from the records", "from a snapshot"])
def opened_from(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test here both ways: an index that was closed in order is opened from a snapshot where it is large."""
    monkeypatch.setattr(loaded, "KEPT_FROM", 1 if request.param == "from a snapshot" else 1 << 60)
    return str(request.param)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index(tmp_path / "index", MODEL)
    yield opened
    opened.close()


def reopened(folder: Path) -> closing[Index]:
    """The index of a folder, for a `with`."""
    return closing(Index(folder, MODEL))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The closed folder of an index with three notes, of which all have vectors."""
    index = Index(tmp_path / "filled", MODEL)
    index.apply((), THREE)
    embed(index)
    index.close()
    return tmp_path / "filled"


# --- meaning -----------------------------------------------------------------------------------------------------


def test_the_mean_of_any_texts_is_kept_and_used_after_reopening(filled: Path) -> None:
    with reopened(filled) as index:
        assert index.prior is None
        prior = hashed("common", DIM)
        index.expect(prior)
        hits = index.near(hashed("alpha", DIM), ALL, 10)
    with reopened(filled) as index:
        assert index.prior is not None
        assert np.array_equal(index.prior, prior)
        again = index.near(hashed("alpha", DIM), ALL, 10)
        assert dict(again) == pytest.approx(dict(hits))


# --- a process that dies -----------------------------------------------------------------------------------------


class Died(Exception):
    """The process ended here."""


def dying(folder: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str, *, after: bool, at: int = 1) -> Path:
    """A copy of the folder as it was when the process died: before the call of a method that was its `at`-th, or after
    what that method did. Nothing is closed in between, as in a crash.
    """
    with reopened(folder) as index:
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
    return copy


@pytest.mark.parametrize(
    ("cls", "name", "after", "redone"),
    [
        (RecordTable, "lacking", False, 1),
        (Lexical, "apply", False, 1),
        (Lexical, "apply", True, 1),
        (RecordTable, "settled", False, 1),
        (RecordTable, "settled", True, 0),
    ],
)
def test_a_crash_between_records_and_text_is_healed_by_doing_the_step_again(
    filled: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str, after: bool, redone: int
) -> None:
    copy = dying(filled, monkeypatch, cls, name, after=after)

    with reopened(copy) as index:
        assert index.verify() == []
        assert found(index, "queue") == ["four", "three", "two"]
        assert found(index, "alpha") == []
        assert (index.repairs.rebuilt, index.repairs.redone) == ([], redone)
        embed(index)
        assert near(index, "queue fourth")[0] == "four"

    with reopened(copy) as index:
        assert (index.repairs.rebuilt, index.repairs.redone, index.verify()) == ([], 0, [])


def test_a_crash_within_the_records_leaves_what_was_there(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = dying(filled, monkeypatch, RecordTable, "_touch_neighbours", after=True)
    with reopened(copy) as index:
        assert_whole(index)
        assert (index.repairs.rebuilt, index.repairs.redone) == ([], 0)


def test_a_crash_between_two_commits_of_many_is_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livememfs.recall.index.fulltext.FED_AT_ONCE", 1)
    folder = tmp_path / "index"
    with reopened(folder) as index:
        index.apply((), THREE)
    copy = dying(folder, monkeypatch, Lexical, "apply", after=False, at=2)
    monkeypatch.undo()

    with reopened(copy) as index:
        assert (index.verify(), found(index, "queue"), index.repairs.redone) == ([], ["four", "three", "two"], 1)


@pytest.mark.parametrize(("cls", "name"), [(Lexical, "apply"), (RecordTable, "settled")])
def test_a_step_that_failed_is_made_good_by_the_next_one(
    filled: Path, monkeypatch: pytest.MonkeyPatch, cls: type, name: str
) -> None:
    """The process lives on, the disk was full for a moment; in between, everything is still answered."""
    with reopened(filled) as index:

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


def test_vectors_that_come_while_a_step_has_failed_do_not_break_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The piece is then in the records and near, and not yet among what filters know."""
    with reopened(tmp_path) as index:
        index.apply(
            (), [(f"space/bank/{n}.md", "1", "space", [note(f"n{n}", f"w{n}", kind="bank")]) for n in range(1_023)]
        )

        def full(*_: Any, **__: Any) -> None:
            raise NoSpace("No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Lexical, "apply", full)
            with pytest.raises(NoSpace):
                index.apply((), [read(note("new", "needle"))])
            embed(index)
            assert near(index, "w7", Restriction(fields=(("kind", ("bank",)),)))[0] == "n7"


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
    with reopened(folder.parent / "other") as other:
        other.apply((), [read(note("foreign", "queue foreign", 9 * DAY)), *THREE])
    shutil.rmtree(folder / "text")
    shutil.copytree(folder.parent / "other" / "text", folder / "text")


def _text_of_before(folder: Path) -> None:
    """A restored copy: its mark is right, and it lacks what came since."""
    old = folder.parent / "old"
    shutil.copytree(folder / "text", old)
    with reopened(folder) as index:
        index.apply((), [read(note("one", "queue alpha", 1 * DAY, etag="2")), read(note("five", "fifth", 5 * DAY))])
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
    with reopened(filled) as index:
        assert index.repairs.rebuilt == ["text"]
        assert_whole(index)
        assert found(index, "foreign") == []
        assert index.unembedded(10) == []

    with reopened(filled) as index:
        assert (index.repairs.rebuilt, index.repairs.redone) == ([], 0)
        assert_whole(index)


def test_a_text_index_of_before_gets_what_it_lacks_and_loses_what_went(filled: Path) -> None:
    _text_of_before(filled)
    for healed in (1, 0):
        with reopened(filled) as index:
            assert index.repairs.redone + len(index.repairs.rebuilt) == healed
            assert_whole(index)
            assert found(index, "fifth") == ["five"]


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
    with reopened(filled) as index:
        assert index.repairs.rebuilt == ["records"]
        assert (found(index, "queue"), near(index, "queue"), index.objects()) == ([], [], {})
        assert index.verify() == []

        index.apply((), THREE)
        assert_whole(index)
        assert embed(index) == 4


def _beyond_the_first_page(folder: Path) -> None:
    path = folder / "records.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def test_records_whose_damage_lies_further_on_are_made_anew_as_well(filled: Path) -> None:
    _beyond_the_first_page(filled)
    with reopened(filled) as index:
        assert (index.repairs.rebuilt, index.objects(), index.verify()) == (["records"], {}, [])
        index.apply((), THREE)
        assert_whole(index)


def test_an_open_index_that_is_made_anew_is_empty_and_takes_everything_in_again(filled: Path) -> None:
    with reopened(filled) as index:
        index.make_anew()
        assert (index.objects(), found(index, "queue"), near(index, "queue"), index.verify()) == ({}, [], [], [])
        index.apply((), THREE)
        assert_whole(index)
        assert embed(index) == 4
    with reopened(filled) as index:
        assert (index.repairs.rebuilt, index.repairs.redone) == ([], 0)
        assert_whole(index)


def test_records_that_went_take_the_text_with_them(filled: Path) -> None:
    for path in filled.glob("records.db*"):
        path.unlink()
    with reopened(filled) as index:
        assert (found(index, "queue"), index.verify(), index.objects()) == ([], [], {})


# --- one process at a time, and full disks -----------------------------------------------------------------------


def test_a_folder_is_for_one_index_at_a_time(tmp_path: Path) -> None:
    with reopened(tmp_path):
        with pytest.raises(CacheInUse) as refused:
            reopened(tmp_path)
        assert str(tmp_path) in str(refused.value)
    Index(tmp_path, MODEL).close()


def test_a_folder_is_for_one_process_at_a_time(filled: Path) -> None:
    with reopened(filled) as index:
        script = (
            "import sys, pathlib\n"
            "from livememfs.errors import CacheInUse\n"
            "from livememfs.recall.index.local import Index\n"
            "try:\n    Index(pathlib.Path(sys.argv[1]), 'hashed')\n"
            "except CacheInUse:\n    sys.exit(23)\n"
        )
        done = subprocess.run([sys.executable, "-c", script, str(filled)], timeout=60)
        assert done.returncode == 23
        assert_whole(index)


def test_a_folder_that_could_not_be_opened_is_not_kept_locked(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RecordTable, "pieces_there", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reopened(filled)
    with reopened(filled) as index:
        assert_whole(index)


def test_a_full_disk_is_said_and_the_index_answers_and_recovers(filled: Path) -> None:
    """SQLite is given no page more than it has."""
    with reopened(filled) as index:
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


# --- the snapshot ------------------------------------------------------------------------------------------------

from_a_snapshot = pytest.mark.parametrize("opened_from", ["from a snapshot"], indirect=True)


def large(folder: Path) -> Index:
    """An index with several spaces, memories and notes, of which some have no vector yet."""
    index = Index(folder, MODEL)
    index.apply((), THREE)
    index.apply((), [read(memory(number)) for number in range(40)])
    embed(index)
    index.apply(["space/live/two.md"], [read(note("late", "queue late", 9 * DAY, space="other"))])
    index.expect(hashed("common", DIM))  # and the means are of all there is
    return index


def memory(number: int) -> Record:
    key = f"space/memories/m{number}.md"
    kind = "identity" if number % 7 == 0 else "fact"
    return note(
        f"m{number}", f"memory number{number}", number * DAY, ref=key, key=key, kind="memories", type=kind,
        agent=f"agent{number % 3}", importance=number / 40, channel=f"c{number % 2}", updated=number * DAY,
    )  # fmt: skip


def all_answers(index: Index) -> list[Any]:
    """What the parts in memory say, each of them asked."""
    space, memories = Restriction(fields=(("space", ("space",)),)), Restriction(fields=(("kind", ("memories",)),))
    numbers = index.table.piece_numbers()
    return [
        [
            index.near(hashed(f"number{number}", DIM), where, 9)
            for number in (3, 17)
            for where in (ALL, space, memories)
        ],
        index.near(hashed("queue", DIM), replace(ALL, after=2 * DAY, without=(("agent", ("agent1",)),)), 99),
        index.text(TextQuery("memory queue"), memories, 99),
        index.briefs(numbers),
        [index.spelt(field, ["space", "other"]) for field in ("type", "agent")],
        index.foremost(["space"], UnaskedMemories(now=41 * DAY, since=30 * DAY, least=0.5)),
        index.foremost(["space", "other"], UnaskedMemories(now=41 * DAY, since=30 * DAY, channel="c1", most=99)),
        [text.meaning for text in index.unembedded(99)],
        index.statistics().embedded,
        index.verify(),
    ]


def test_an_index_that_was_opened_again_answers_as_before_and_goes_on(tmp_path: Path, opened_from: str) -> None:
    index = large(tmp_path)
    before = all_answers(index)
    index.close()
    for _ in range(2):
        with reopened(tmp_path) as index:
            assert bool(index.loaded.kept_at) == (opened_from == "from a snapshot")
            assert all_answers(index) == before

    whole, again = large(tmp_path / "whole"), Index(tmp_path, MODEL)
    for one in (whole, again):
        one.apply(["space/memories/m3.md"], [read(replace(memory(n), etag="2")) for n in (5, 50, 51)])
        embed(one)
        one.used({("space", "m9"): Use(40, 40 * DAY)})
    assert all_answers(again)[-1] == []
    assert [all_answers(again)[n] for n in (1, 3, 4, 5, 6, 7, 8)] == [
        all_answers(whole)[n] for n in (1, 3, 4, 5, 6, 7, 8)
    ]
    whole.close()
    again.close()


def _cut(path: Path) -> None:
    _truncate(path, 0.9)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _garbled(path: Path) -> None:
    path.write_bytes(b"\xff" + path.read_bytes()[1:])


def _other_form(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(snapshot.FORM.encode(), b"livememfs index 0", 1))


def _lacks_a_part(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"columns"', b'"colunms"', 1))


def _is_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@from_a_snapshot
@pytest.mark.parametrize(
    "harm", [_cut, _longer, _emptied, _garbled, _other_form, _lacks_a_part, _is_a_directory, Path.unlink]
)
def test_a_snapshot_that_is_damaged_or_missing_is_made_anew_from_the_records(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    index = large(tmp_path)
    before = all_answers(index)
    index.close()
    harm(tmp_path / "memory")
    with reopened(tmp_path) as index:
        assert index.loaded.kept_at == ""
        assert index.repairs.rebuilt == ([] if harm is Path.unlink else ["snapshot"])
        assert all_answers(index) == before


@from_a_snapshot
def test_a_snapshot_of_other_records_is_not_taken_for_one_of_these(tmp_path: Path) -> None:
    """Of an earlier step, of another index, of another model, or of records that were restored since."""
    first, second = tmp_path / "first", tmp_path / "second"
    large(first).close()
    large(second).close()
    earlier = first / "memory"
    kept, records = earlier.read_bytes(), (first / "records.db").read_bytes()
    with reopened(first) as index:
        index.apply((), [read(note("new", "queue new", 20 * DAY))])
    for snapshot_of in (kept, (second / "memory").read_bytes()):
        earlier.write_bytes(snapshot_of)
        index = Index(first, MODEL)
        assert index.loaded.kept_at == ""
        assert found(index, "queue") == ["late", "new", "one", "three"]
        assert index.verify() == []
        index.table.close()  # as when the process is killed: nothing is kept
        index.fulltext.lexical.close()
        os.close(index._lock)
    other = Index(first, "another model")
    assert (other.loaded.kept_at, other.statistics().embedded) == ("", 0)
    other.close()
    (first / "records.db").write_bytes(records)
    with reopened(first) as index:
        assert index.loaded.kept_at == ""
        assert index.verify() == []


@from_a_snapshot
def test_what_is_kept_on_a_full_disk_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = large(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        index.close()
    assert not list(tmp_path.glob("memory*"))
    with reopened(tmp_path) as index:
        assert (index.repairs.rebuilt, index.verify()) == ([], [])


# --- filters that nearly everything fits -------------------------------------------------------------------------


@pytest.mark.parametrize("few", [0, 3, 60])
def test_what_is_left_out_of_what_was_found_is_what_the_filter_would_not_have_found(index: Index, few: int) -> None:
    """Whichever of the two ways is taken, and however good those are that may not be found."""
    chance = random.Random(few)
    words = ["queue", "retry", "upload", "cache", "bucket", "journal"]
    records = [memory(number) for number in range(200)]
    records += [note(f"n{number}", "", number) for number in range(few)]
    texts = (" ".join(chance.choices(words, k=chance.randint(2, 12) if n < 200 else 2)) for n in range(len(records)))
    index.apply((), [read(replace(record, pieces=(text,))) for record, text in zip(records, texts, strict=True)])
    for kinds in (("memories",), ("live",), ("memories", "live"), ("bank",)):
        for limit in (1, 10, 400):
            where = Restriction(fields=(("space", ("space",)), ("kind", kinds)))
            for asked in (
                TextQuery("queue cache"),
                TextQuery("journal", without=("upload",)),
                TextQuery("bucket", ("retry upload",)),
            ):
                wanted = index.fulltext.lexical.search(asked, where, limit)
                hits, _ = index.text(asked, where, limit)
                assert [score for _, score in hits] == pytest.approx([score for _, score in wanted])
                assert {n for n, score in hits if score > hits[-1][1]} == {
                    n for n, score in wanted if score > wanted[-1][1]
                }
