"""An entry of the ledger: it reads back as it was written, and what is none is refused with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from livememfs.records.ledger import Entry, Kind, NoteEntry, Part, Unsourced, Write, digest_mark
from livememfs.text.foreign import Unreadable
from livememfs.text.outgoing import Outgoing

NOW = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)
BARE = Entry(number=7, space="alpha", committed_at=NOW)
NOTE = NoteEntry("alpha/live/n1.md", "e1", "00" * 32, "cline", "2026-02-20T13:00:00Z", "first", ("a.md",), number=1)
FULL = Entry(
    number=8,
    space="alpha",
    kind="undo",
    state="applied",
    committed_at=NOW,
    applied_at=NOW,
    host="h",
    fence=3,
    writes=(Write("bank/a.md", None, "é\n"), Write("bank/b.md", "e2", was="x", meta={"m": "1"})),
    removes=(NOTE,),
    keeps=(replace(NOTE, used_in=(), skipped="old", number=2),),
    digested=("00ff",),
    parts=(Part("a.md", ("A", "B"), (1,)),),
    unsourced=(Unsourced("a.md", 3, "on 2026-03-05", ("2026-03-05",)),),
    warnings=("w",),
    outgoing=(Outgoing("a.md", "gone", "dropped", reason="old"),),
    held=("why",),
    stood_on="ab",
    undoes=7,
    backup="2026-02-20T13-00-00",
    metrics={"notes_processed": 1},
    origins={"alpha/live/n1.md": "a b"},
    continues={"alpha/live/n1.md": 6},
)


@pytest.mark.parametrize("entry", [BARE, FULL])
def test_an_entry_reads_back_as_it_was_with_a_line_for_each_field(entry: Entry) -> None:
    data = entry.render()

    assert Entry.parse(data) == entry
    assert len(data.splitlines()) == len(json.loads(data)) + 2
    assert data.endswith(b"}\n")
    assert ("é".encode() in data) is (entry is FULL)


def test_fields_that_earlier_versions_do_not_know_are_written_only_if_they_say_something() -> None:
    optional = {"keeps", "digested", "outgoing", "held", "stood_on", "origins", "continues"}

    assert json.loads(FULL.render()).keys() - json.loads(BARE.render()).keys() == optional
    assert json.loads(BARE.render())["applied_at"] is None
    assert NoteEntry("k", "e", "0", "a", "t", "f").number == 0
    assert (BARE.fence, BARE.undoes, NOTE.number, replace(NOTE, number=0).skipped) == (0, 0, 1, "")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"form": 2}, "it is not an entry of form 1"),
        ({"form": None}, "it is not an entry of form 1"),
        ({"state": "planned"}, "its state is none of held, committed, applied"),
        ({"kind": "dream"}, "it is of an unknown kind, 'dream'"),
        ({"kind": "x" * 200}, f"it is of an unknown kind, '{'x' * 79}$"),
    ],
)
def test_what_is_no_entry_of_this_version_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        Entry.parse(json.dumps({**json.loads(FULL.render()), **changed}).encode())


@pytest.mark.parametrize("missing", ["number", "writes", "metrics", "undoes", "committed_at"])
def test_an_entry_that_lacks_a_field_is_refused_and_names_it(missing: str) -> None:
    values = json.loads(FULL.render())
    del values[missing]

    with pytest.raises(Unreadable, match=f"^{missing} is missing$"):
        Entry.parse(json.dumps(values).encode())


def test_the_entries_of_the_first_version_are_consolidations() -> None:
    values = json.loads(BARE.render())
    del values["kind"]

    assert Entry.parse(json.dumps(values).encode()) == BARE


@pytest.mark.parametrize(("kind", "changes"), [("consolidation", True), ("undo", True), ("digest", False)])
def test_a_digest_alone_leaves_the_bank_as_it_is(kind: Kind, changes: bool) -> None:
    assert replace(BARE, kind=kind).changes_bank is changes


def test_an_entry_that_was_carried_out_says_when() -> None:
    done = BARE.applied(NOW)

    assert (done.state, done.applied_at) == ("applied", NOW)
    assert (BARE.state, BARE.applied_at) == ("committed", None)


@pytest.mark.parametrize(
    ("write", "removes"),
    [
        (Write("bank/a.md", "e"), True),
        (Write("bank/a.md", "e", ""), False),
        (Write("bank/a.md", "e", copy="_backups/a"), False),
    ],
)
def test_a_write_without_a_text_and_without_a_copy_removes(write: Write, removes: bool) -> None:
    assert write.removes is removes


def test_the_mark_of_a_note_is_of_this_version_alone() -> None:
    marks = {digest_mark(key, etag) for key in ("a", "b\ud800") for etag in ("1", "2")}

    assert {len(mark) for mark in marks} == {16}
    assert len(marks) == 4
    assert digest_mark("a", "1") in marks
