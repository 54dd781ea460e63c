"""The text index: what is put in is found at once and after a restart, and a folder that is no index says so.

What every index does with words and phrases is in `test_engine_contract`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from livememfs.errors import NoSpace
from livememfs.recall.index.exchanged import Damaged, Piece, Restriction, TextQuery
from livememfs.recall.index.lexical import Lexical

ALL = Restriction()


def piece(number: int, text: str, **given: Any) -> Piece:
    """An English note that somebody wrote `number` seconds after 1970."""
    defaults: dict[str, Any] = {
        "language": "en", "context": "", "space": "space", "kind": "live", "type": "todo", "agent": "ann",
        "created": number,
    }  # fmt: skip
    return Piece(**{"number": number, "text": text, **defaults, **given})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    found = Lexical(tmp_path / "text")
    yield found
    found.close()


def found(index: Lexical, words: str = "", where: Restriction = ALL, **asked: Any) -> list[int]:
    """The numbers of what is found, in the order of numbers."""
    return sorted(number for number, _ in index.search(TextQuery(words, **asked), where, 100))


# --- in and out --------------------------------------------------------------------------------------------------


def test_what_was_applied_is_found_when_apply_returns_and_after_reopening(tmp_path: Path) -> None:
    index = Lexical(tmp_path / "text")
    index.apply((), [piece(1, "the queue is full"), piece(2, "la file est pleine", language="fr")])
    assert (found(index, "queue"), found(index, "pleines")) == ([1], [2])
    index.close()

    index = Lexical(tmp_path / "text")
    assert (found(index, "queue"), found(index, "pleines"), len(index), index.numbers()) == ([1], [2], 2, {1, 2})
    index.close()


def test_what_is_taken_out_is_gone_when_apply_returns(index: Lexical) -> None:
    index.apply((), [piece(1, "queue"), piece(2, "queue")])
    index.apply([1, 99], ())
    assert (found(index, "queue"), len(index), index.numbers()) == ([2], 1, {2})


def test_a_number_that_is_put_in_again_has_only_its_new_text(index: Lexical) -> None:
    index.apply((), [piece(1, "queue")])
    index.apply((), [piece(1, "topic"), piece(2, "other"), piece(2, "newer")])
    assert (found(index, "queue"), found(index, "topic"), found(index, "other newer")) == ([], [1], [2])
    assert len(index) == 2


# --- asking ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(index: Lexical) -> Lexical:
    """Five pieces that all have the word `queue` and differ in everything one may filter by."""
    index.apply(
        (),
        [
            piece(10, "queue", labels=("tag:a", "file:src/x.py")),
            piece(20, "queue", space="other", labels=("tag:b",)),
            piece(30, "queue", kind="bank", type="", agent=""),
            piece(40, "queue", type="decision", agent="Bob"),
            piece(50, "queue", type="decision", labels=("tag:a", "tag:b")),
        ],
    )
    return index


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (Restriction(), [10, 20, 30, 40, 50]),
        (Restriction(fields=(("space", ("other",)),)), [20]),
        (Restriction(fields=(("space", ("other", "space")),)), [10, 20, 30, 40, 50]),
        (Restriction(fields=(("space", ("nowhere",)),)), []),
        (Restriction(fields=(("kind", ("bank",)),)), [30]),
        (Restriction(fields=(("type", ("decision",)),)), [40, 50]),
        (Restriction(fields=(("agent", ("Bob",)),)), [40]),
        (Restriction(fields=(("agent", ("bob",)),)), []),
        (Restriction(fields=(("label", ("tag:a",)),)), [10, 50]),
        (Restriction(fields=(("label", ("tag:a",)), ("label", ("tag:b",)))), [50]),
        (Restriction(fields=(("label", ("tag:a", "tag:b")),)), [10, 20, 50]),
        (Restriction(fields=(("type", ("decision",)), ("agent", ("ann",)))), [50]),
        (Restriction(without=(("type", ("decision",)),)), [10, 20, 30]),
        (Restriction(without=(("label", ("tag:a",)),)), [20, 30, 40]),
        (Restriction(without=(("space", ("other",)), ("kind", ("bank",)))), [10, 40, 50]),
        (Restriction(after=30), [30, 40, 50]),
        (Restriction(before=30), [10, 20]),
        (Restriction(after=20, before=40), [20, 30]),
        (Restriction(after=40, before=20), []),
        (Restriction(numbers=(10, 40, 99)), [10, 40]),
        (Restriction(numbers=()), []),
        (Restriction(fields=(("type", ("todo",)),), numbers=(10, 40)), [10]),
    ],
)
def test_a_restriction_lets_through_what_fits_it(shelf: Lexical, where: Restriction, numbers: list[int]) -> None:
    assert found(shelf, "queue", where) == numbers
    assert found(shelf, "", where, phrases=("queue",)) == numbers


def test_a_moment_before_1970_and_the_year_9999_can_be_told_apart(index: Lexical) -> None:
    index.apply((), [piece(1, "queue", created=-62_135_596_800), piece(2, "queue", created=253_402_300_799)])
    assert found(index, "queue", Restriction(before=0)) == [1]
    assert found(index, "queue", Restriction(after=0)) == [2]


def test_a_restriction_changes_no_score(shelf: Lexical) -> None:
    everything = dict(shelf.search(TextQuery("queue"), ALL, 9))
    some = shelf.search(TextQuery("queue"), Restriction(fields=(("type", ("decision",)),), after=0), 9)
    assert {number: everything[number] for number, _ in some} == pytest.approx(dict(some))


def test_the_text_counts_more_than_what_was_said_beside_it(index: Lexical) -> None:
    index.apply((), [piece(1, "lunch", context="queue"), piece(2, "queue", context="lunch")])
    assert [number for number, _ in index.search(TextQuery("queue"), ALL, 9)] == [2, 1]


@pytest.mark.parametrize("words", ["", "what is it", "qui est ce", "?!", "\0", "\ud800", "👍", " "])
def test_a_question_of_nothing_but_stop_words_finds_nothing(shelf: Lexical, words: str) -> None:
    assert found(shelf, words) == []
    assert shelf.ceiling(TextQuery(words)) == 0


# --- how good a score is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["queue", "queue retry", "queue retry upload broker", "queue file"])
def test_the_ceiling_is_what_a_text_with_all_the_words_comes_near_to(index: Lexical, words: str) -> None:
    index.apply((), [piece(n, f"lunch number {n}") for n in range(2, 300)])
    index.apply((), [piece(1, f"{words} " * 20)])
    best = index.search(TextQuery(words), ALL, 1)[0][1]
    assert 0.6 * index.ceiling(TextQuery(words)) <= best <= 1.001 * index.ceiling(TextQuery(words))


# --- large and odd -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["aB" * 524_288, "x1" * 524_288, "word " * 209_715, "🙂" * 262_144, "queue\0queue\ud800queue " * 1_000]
)
def test_a_large_or_odd_text_is_taken_and_its_neighbour_is_found(index: Lexical, text: str) -> None:
    """Where a word is too long to be one, only that word is lost."""
    index.apply((), [piece(1, f"{text} needle", context=text), piece(2, "lunch")])
    assert (found(index, "needle"), len(index)) == ([1], 2)


def test_labels_may_be_anything(index: Lexical) -> None:
    labels = ("tag:" + "x" * 100_000, "tag:", "tag:é \0 🙂", "tag:a:b")
    index.apply((), [piece(1, "queue", labels=labels, agent="Zoë d'Arc", type="été")])
    for label in labels[1:]:
        assert found(index, "queue", Restriction(fields=(("label", (label,)),))) == [1]
    assert found(index, "queue", Restriction(fields=(("agent", ("Zoë d'Arc",)), ("type", ("été",))))) == [1]


# --- damage ------------------------------------------------------------------------------------------------------


def _filled(folder: Path) -> None:
    index = Lexical(folder)
    index.apply((), [piece(n, f"queue word{n}", labels=(f"tag:{n}",)) for n in range(1, 200)])
    index.apply([5], [piece(300, "another segment")])
    index.close()


def _opened(folder: Path) -> None:
    """Opens it and uses it a little."""
    index = Lexical(folder)
    try:
        index.apply([7], [piece(400, "queue")])
        index.search(TextQuery("queue word9", phrases=("queue",)), Restriction(fields=(("label", ("tag:9",)),)), 9)
        index.numbers()
    finally:
        index.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "text"
    _filled(folder)
    return folder


FILES = ["meta.json", ".managed.json", "idx", "pos", "store", "term", "fast", "fieldnorm", "del"]


@pytest.mark.parametrize("how", ["empty", "half", "garbled", "gone"])
@pytest.mark.parametrize("which", FILES)
def test_a_damaged_file_is_damage_or_does_no_harm(good: Path, tmp_path: Path, which: str, how: str) -> None:
    """Never another exception: its owner would not know to make the index anew."""
    folder = tmp_path / "text"
    shutil.copytree(good, folder)
    hit = [path for path in folder.iterdir() if path.name == which or path.name.endswith(f".{which}")]
    assert hit
    for path in hit:
        data = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes({"empty": b"", "half": data[: len(data) // 2], "garbled": b"\xff" * len(data)}[how])
    try:
        _opened(folder)
    except Damaged:
        return
    assert which in {".managed.json", "meta.json"} or how == "gone"


def test_an_index_of_another_shape_is_damage(tmp_path: Path) -> None:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("something")
    tantivy.Index(builder.build(), str(tmp_path))
    with pytest.raises(Damaged):
        Lexical(tmp_path)


def test_a_file_where_the_folder_should_be_is_damage(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a folder")
    with pytest.raises(Damaged):
        Lexical(tmp_path / "text")


def test_foreign_files_in_the_folder_are_left_alone(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "text"
    shutil.copytree(good, folder)
    (folder / "notes.txt").write_text("mine")
    _opened(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_in_use_cannot_be_opened_twice(tmp_path: Path) -> None:
    index = Lexical(tmp_path)
    with pytest.raises(Damaged):
        Lexical(tmp_path)
    index.close()
    Lexical(tmp_path).close()


class _FullDisk:
    """A writer that fails to commit, once."""

    def __init__(self, writer: Any, message: str) -> None:
        self._writer, self._message = writer, message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def commit(self) -> None:
        raise OSError(self._message)


@pytest.mark.parametrize(
    ("message", "raised"), [("No space left on device (os error 28)", NoSpace), ("I/O error", Damaged)]
)
def test_a_failed_commit_leaves_what_was_there_and_the_next_one_works(
    index: Lexical, message: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    index.apply((), [piece(1, "queue")])
    with monkeypatch.context() as patch:
        patch.setattr(index, "_writer", _FullDisk(index._writer, message))
        with pytest.raises(raised):
            index.apply([1], [piece(2, "queue")])
    assert found(index, "queue") == [1]

    index.apply((), [replace(piece(3, "queue"), type="issue")])
    assert found(index, "queue") == [1, 3]
