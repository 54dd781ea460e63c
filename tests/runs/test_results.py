"""What a run tells of its end, what holds it, what its reply covers, and which runs stand: without a bucket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from livememfs.errors import BadRequest, LiveMemError, ReplyRefused, Unreachable
from livememfs.llm.base import ChatReply
from livememfs.records.ledger import Entry
from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.runs import reply as replies
from livememfs.runs import result as results
from livememfs.runs.consolidation.coverage import overlap_coverage, read_coverage, shares_words
from livememfs.runs.consolidation.hold import FEW_LINES, too_much
from livememfs.runs.coverage import SKIPPED_NOTES, Coverage, Fate, skips_all, words
from livememfs.runs.inputs import Inputs, NoteChoice
from livememfs.runs.ledger import Applied
from livememfs.runs.notes import LiveNote
from livememfs.runs.options import RunKind, RunOptions, RunSettings
from livememfs.runs.pieces import PER_NOTE, Account, piece
from livememfs.runs.result import Metrics
from livememfs.runs.standing import last_standing, standing, taken_back
from livememfs.testing.clock import START
from livememfs.text.facts.sources import unsourced
from livememfs.text.outgoing import Outgoing
from livememfs.text.size import tokens

NOW = datetime(2026, 2, 20, 15, 0, tzinfo=UTC)
APPLIED = Applied(0, ())
META = Meta("alpha", "d", "o", START)


def live(number: int, body: str = "a body", agent: str = "cline") -> LiveNote:
    name = f"n{number}.md"
    return LiveNote(name, f"alpha/live/{name}", "etag", Note(START, agent, "progress", (), "alpha", body))


def inputs(count: int, **fields: Any) -> Inputs:
    return Inputs("alpha", META, "etag", tuple(live(number) for number in range(1, count + 1)), **fields)


class Plan:
    """A plan with nothing but its coverage."""

    unsourced = ()
    warnings = ()

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage


def used(*numbers: int, **fields: Any) -> Coverage:
    return Coverage({number: Fate(("a.md",)) for number in numbers}, **fields)


# --- the end of a run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["consolidation", "digest"])
def test_the_figures_of_a_run_are_those_of_its_kind(kind: RunKind) -> None:
    shown = Metrics().of(kind)

    assert ("memories_stored" in shown, "lines_moved" in shown) == (kind == "digest", kind == "consolidation")
    assert {"notes_processed", "llm_calls", "warnings"} <= shown.keys()
    assert not any(value for name, value in shown.items())


def test_figures_are_read_back_as_far_as_they_are_known() -> None:
    figures = {"notes_processed": 3, "model": "m-1", "warnings": ["no"], "of_a_later_version": 9}

    assert Metrics.read(figures) == Metrics(notes_processed=3, model="m-1")


def test_a_result_is_one_flat_object_and_has_what_its_kind_has() -> None:
    dropped = (Outgoing("a.md", "gone", "dropped", reason="old"),)
    done = results.RunResult("ok", Metrics(notes_processed=2, warnings=("w",)), NOW, "m", dropped=dropped)

    shown = done.to_json()
    assert shown["status"] == shown["state"] == "ok"
    assert (shown["finished_at"], shown["notes_processed"], shown["warnings"]) == ("2026-02-20T15:00:00Z", 2, ["w"])
    assert shown["dropped"] == [{"file": "a.md", "text": "gone", "reason": "old"}]
    assert not shown["dry_run"]
    assert {"accept", "memories"}.isdisjoint(shown)
    assert replace(done, accept=7).to_json()["accept"] == 7
    digest = replace(done, kind="digest", memories=({"text": "x"},))
    assert {"dropped", "memories"}.isdisjoint(digest.to_json())
    assert replace(digest, dry_run=True).to_json()["memories"] == [{"text": "x"}]
    assert "memories" not in replace(done, dry_run=True).to_json()


@pytest.mark.parametrize(
    ("coverage", "failure", "edited", "state", "said"),
    [
        (used(1, 2), None, (), "ok", ""),
        (used(1), None, (), "partial", "1 of 2 notes are not accounted for in the reply and stay: n2.md"),
        (
            used(2, too_long={1: 900}, limit=500),
            None,
            (),
            "partial",
            "1 of 2 notes have a line that is too long for a request, which has room for 500 tokens of notes,"
            " and stay: n1.md (900 tokens)",
        ),
        (
            used(1, 2),
            Unreachable("reset", endpoint="the bucket"),
            (),
            "partial",
            "the bank is written, and notes could not be removed: ",
        ),
        (used(1, 2), None, ("n1.md",), "ok", "edited meanwhile, so they stay: n1.md"),
    ],
)
def test_a_run_is_ok_only_if_no_note_stays_that_should_be_gone(
    coverage: Coverage, failure: LiveMemError | None, edited: tuple[str, ...], state: str, said: str
) -> None:
    done = results.finished(inputs(2), Plan(coverage), Applied(0, edited, failure), Metrics(), NOW, RunOptions())

    assert (done.state, done.error) == (state, failure)
    assert (done.message if state == "ok" else done.reason).startswith(said)
    assert (done.reason == "") == (done.what_to_do == "") == (state == "ok")
    if coverage.missing(2):
        assert done.what_to_do == "touch .consolidate to take these notes up again"
    elif failure is None and state == "partial":
        assert "touch" not in done.what_to_do


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"unreadable": ("a",)}, "not UTF-8 text, so left alone: a"),
        ({"late": ("b",)}, "taken before and stored again by a late upload, so not taken twice: b"),
        ({"unreadable": tuple("x" * 20)}, f"not UTF-8 text, so left alone: {', '.join('x' * 20)}"),
        ({"unreadable": tuple("x" * 21)}, f"not UTF-8 text, so left alone: {', '.join('x' * 20)} and 1 more"),
    ],
)
def test_what_was_left_alone_is_said_in_every_result(fields: Mapping[str, Any], said: str) -> None:
    given, options = inputs(1, **fields), RunOptions(dry_run=True)

    nothing = results.nothing_to_do(given, Metrics(), NOW, options)
    assert (nothing.state, nothing.dry_run) == ("ok", True)
    assert nothing.message == "; ".join(part for part in ("No new notes to consolidate", said) if part)
    done = results.finished(given, Plan(used(1)), APPLIED, Metrics(), NOW, RunOptions())
    assert done.message == said
    dry = results.rehearsed(given, Plan(used(1)), Metrics(), NOW, options, {"diff": "d"})
    assert dry.message == "; ".join(part for part in ("dry run, nothing was written", said) if part)
    assert (dry.state, dry.dry_run, dry.diff) == ("ok", True, "d")


def test_a_dry_run_says_which_notes_would_stay() -> None:
    dry = results.rehearsed(inputs(3), Plan(used(1, 3)), Metrics(), NOW, RunOptions(dry_run=True), {})

    assert dry.message == (
        "dry run, nothing was written; 1 of 3 notes are not accounted for in the reply and stay: n2.md"
    )


def test_a_held_plan_is_accepted_by_its_number() -> None:
    held = results.held_back(inputs(1), 7, ("why", "and why"), Metrics(), NOW, RunOptions())

    assert (held.state, held.accept) == ("held", 7)
    assert held.reason == "the run is held, because why; and why; nothing was changed"
    assert """echo '{"accept": 7}' > .consolidate""" in held.what_to_do
    assert "livememfs consolidate alpha --accept 7" in held.what_to_do


def test_what_failed_before_or_after_the_commit_is_told_apart() -> None:
    error = Unreachable("reset \ud800", endpoint="the bucket")

    failed = results.failed(error, Metrics(), NOW, RunOptions(dry_run=True, kind="digest"))
    assert (failed.state, failed.error, failed.dry_run, failed.kind) == ("error", error, True, "digest")
    assert failed.reason.encode()  # half of a character is shown as its number
    committed = results.committed(error, Metrics(), NOW, RunOptions(kind="digest"))
    assert (committed.state, committed.error, committed.kind) == ("partial", error, "digest")
    assert committed.reason.startswith("the run is committed, and not all of it could be written yet: ")


@pytest.mark.parametrize("failure", [None, Unreachable("reset", endpoint="the bucket")])
def test_an_accepted_plan_says_what_it_dropped_unless_notes_stay(failure: LiveMemError | None) -> None:
    lines = tuple(Outgoing("a.md", f"line {number}", "dropped") for number in range(21))
    entry = _entry(7, outgoing=(Outgoing("a.md", "moved", "moved"), *lines))

    done = results.accepted(entry, Applied(0, ("n1.md",), failure), Metrics(), NOW, "consolidation")

    assert done.message == "the plan of run 7 was accepted; edited meanwhile, so they stay: n1.md"
    assert (done.state, done.error) == ("ok" if failure is None else "partial", failure)
    assert done.dropped == (lines[:20] if failure is None else ())


# --- what holds it -------------------------------------------------------------------------------------------------


def _bank(**files: int) -> dict[str, str]:
    """Files with so many lines that say something."""
    return {f"{name}.md": "".join(f"line {n} of {name}\n" for n in range(lines)) for name, lines in files.items()}


def _gone(**files: int) -> list[Outgoing]:
    return [Outgoing(f"{name}.md", f"line {n}", "dropped") for name, lines in files.items() for n in range(lines)]


@pytest.mark.parametrize(
    ("before", "after", "gone", "said"),
    [
        (_bank(a=10), _bank(a=7), _gone(a=3), ()),  # just the limit
        (_bank(a=10), _bank(a=6), _gone(a=4), ("it would drop 4 of the bank's 10 lines, over the limit of 30%",)),
        (_bank(a=4), _bank(a=2), _gone(a=2), ()),  # fewer than count
        (_bank(a=9), _bank(a=6), _gone(a=3), ("it would drop 3 of the bank's 9 lines, over the limit of 30%",)),
        (
            _bank(a=2),
            {},
            _gone(a=2),
            ("it would drop 2 of the bank's 2 lines, over the limit of 30%", "it would drop all that a.md says"),
        ),
        (_bank(a=2), _bank(a=2), _gone(a=2), ()),  # two lines in the place of two
        (_bank(a=1, b=30), _bank(a=1, b=30), _gone(a=1), ()),
        (_bank(a=1, b=30), _bank(b=30), _gone(a=1), ("it would drop all that a.md says",)),
        (_bank(a=3, b=30), _bank(a=9, b=30), _gone(a=3), ("it would drop all that a.md says",)),
        (
            _bank(a=3, b=3, c=30),
            _bank(c=30),
            _gone(a=3, b=3),
            ("it would drop all that a.md, b.md say",),
        ),
        (_bank(a=10), _bank(a=10), [Outgoing("a.md", f"{n}", "moved") for n in range(9)], ()),
    ],
)
def test_a_run_is_held_that_would_drop_too_much(
    before: Mapping[str, str], after: Mapping[str, str], gone: list[Outgoing], said: tuple[str, ...]
) -> None:
    assert FEW_LINES == 3
    assert too_much(before, after, gone, 0.3) == said


@pytest.mark.parametrize(
    ("fates", "notes", "held"),
    [
        ({n: Fate(skipped="x") for n in range(1, 6)}, 5, True),
        ({n: Fate(skipped="x") for n in range(1, 5)}, 4, False),
        ({n: Fate(skipped="x") for n in range(1, 6)}, 6, False),
        ({**{n: Fate(skipped="x") for n in range(1, 6)}, 6: Fate(("a.md",))}, 6, False),
    ],
)
def test_a_run_is_held_that_would_skip_all_of_many_notes(fates: dict[int, Fate], notes: int, held: bool) -> None:
    assert SKIPPED_NOTES == 5
    assert skips_all(Coverage(fates), notes) == ((f"it would skip all of its {notes} notes",) if held else ())


# --- what a reply covers -------------------------------------------------------------------------------------------


def test_words_that_tell_a_text_from_others_are_long_or_have_a_digit() -> None:
    assert words("The four-word TEXT: a1 of v2, naïve abc") == {"four", "word", "text", "a1", "v2", "naïve"}


@pytest.mark.parametrize(
    ("entries", "fates", "faults"),
    [
        ([{"note": 1, "files": ["a.md"]}, {"note": 2, "skipped": "old"}], {1: Fate(("a.md",)), 2: Fate((), "old")}, []),
        ([{"note": "2", "files": "a.md"}], {2: Fate(("a.md",))}, []),
        ([{"note": 1, "files": ["a.md", "b.md", "a.md"], "skipped": ""}], {1: Fate(("a.md", "b.md"))}, []),
        ([{"note": 1, "files": [], "skipped": "old"}], {1: Fate((), "old")}, []),
        ([], {}, ['"coverage" names no note']),
        ({}, {}, ['"coverage" is not a list']),
        (["x"], {}, ["coverage, entry 1: it is not an object"]),
        ([{"note": 3, "files": ["a.md"]}], {}, ['coverage, entry 1: "note" is not a number from 1 to 2']),
        ([{"note": 0, "files": ["a.md"]}], {}, ['coverage, entry 1: "note" is not a number from 1 to 2']),
        ([{"note": True, "files": ["a.md"]}], {}, ['coverage, entry 1: "note" is not a number from 1 to 2']),
        ([{"note": 1, "files": ["c.md"]}], {}, ["coverage, entry 1: 'c.md' is not a file of this reply"]),
        ([{"note": 1, "files": ["../a.md"]}], {}, ["coverage, entry 1: '../a.md' is not a file of this reply"]),
        ([{"note": 1, "files": [7]}], {}, ["coverage, entry 1: 7 is not a file of this reply"]),
        ([{"note": 1, "files": {"a.md": 1}}], {}, ['coverage, entry 1: "files" is not a list of file names']),
        ([{"note": 1, "skipped": 7}], {}, ['coverage, entry 1: "skipped" gives no reason']),
        ([{"note": 1, "skipped": " "}], {}, ['coverage, entry 1: "skipped" gives no reason']),
        ([{"note": 1}], {}, ['coverage, entry 1: it needs either "files" or "skipped"']),
        (
            [{"note": 1, "files": ["a.md"], "skipped": "x"}],
            {},
            ['coverage, entry 1: it needs either "files" or "skipped"'],
        ),
        ([{"note": 1, "files": ["a.md"], "x": 1}], {}, ["coverage, entry 1: the key 'x' is unknown"]),
        (
            [{"note": 1, "files": ["a.md"]}, {"note": 1, "skipped": "old"}],
            {1: Fate(("a.md",))},
            ["coverage, entry 2: note 1 is there twice"],
        ),
    ],
)
def test_a_coverage_says_what_became_of_each_note_or_what_is_wrong(
    entries: Any, fates: dict[int, Fate], faults: list[str]
) -> None:
    found: list[str] = []

    coverage = read_coverage(entries, 2, {"a.md", "b.md"}, found)

    assert (coverage.fates, found) == (fates, faults)


def test_a_note_that_half_of_is_in_the_files_counts_as_used_where_it_was_taken_in() -> None:
    notes = [live(1, body).note for body in ("alpha beta gamma1 delta", "alpha nothing1 else1", "epsilon")]
    changes = {"new.md": ("", "alpha delta"), "old.md": ("beta", "beta other"), "none.md": ("", "zeta")}

    assert overlap_coverage(notes, changes).fates == {1: Fate(("new.md",))}
    assert overlap_coverage(notes[:1], {"a.md": ("alpha", "alpha delta")}).fates == {1: Fate(("a.md",))}
    assert overlap_coverage(notes[:1], {"a.md": ("", "alpha")}).fates == {}
    assert shares_words(notes, ["nobody", "epsilon"])
    assert not shares_words(notes, ["nobody", ""])


def test_a_note_that_is_neither_used_nor_too_long_is_missing() -> None:
    assert used(2, too_long={4: 1}).missing(5) == [1, 3, 5]


def test_a_note_in_parts_is_covered_when_all_its_parts_are() -> None:
    one, two, three = (piece(number, live(number), "a body") for number in (1, 2, 3))
    account = Account()
    assert account.coverage() == Coverage({}, {}, 0)
    account.add([one, two], Coverage({1: Fate(("a.md",)), 2: Fate(("a.md",))}))
    account.add([two, three], Coverage({1: Fate(("b.md", "a.md")), 2: Fate(skipped="old")}))
    account.add([one, three], Coverage({2: Fate(skipped="new")}))
    account.too_long(piece(5, live(5), "x"), 70)

    coverage = account.coverage()
    assert coverage.fates == {2: Fate(("a.md", "b.md")), 3: Fate((), "old; new")}
    assert (dict(coverage.too_long), coverage.limit) == ({5: tokens("x") + PER_NOTE}, 70)


SECTIONS = "intro words\n\n# One\n\nfirst paragraph\n\nsecond paragraph\n\n# Two\n\nthird\n"


@pytest.mark.parametrize("room", [30, 12, 6])
def test_a_long_note_is_cut_into_parts_that_fit_and_are_the_whole(room: int) -> None:
    whole = piece(1, live(1, SECTIONS), SECTIONS)

    parts = whole.cut(room + PER_NOTE)

    assert "".join(part.live.note.body for part in parts) == SECTIONS
    assert all(part.size <= room + PER_NOTE for part in parts)
    if len(parts) > 1:
        assert [part.live.part for part in parts] == [f"{at} of {len(parts)}" for at in range(1, len(parts) + 1)]
        for one, next_one in pairwise(parts):
            together = one.live.note.body + next_one.live.note.body.partition("\n")[0] + "\n"
            assert tokens(together) + PER_NOTE > room


def test_a_note_that_fits_is_not_cut_and_one_line_never_is() -> None:
    whole = piece(1, live(1, SECTIONS), SECTIONS)

    assert whole.cut(whole.size) == (whole,)
    assert piece(1, live(1), "word " * 200).cut(100 + PER_NOTE) == ()
    again = replace(whole, live=replace(whole.live, part="2 of 3")).cut(12 + PER_NOTE)
    assert again[0].live.part == f"1 of {len(again)} of 2 of 3"


# --- its reply -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "said"), [("length", 'finish_reason is "length"'), ("", "is missing"), ("tool_calls", "tool_calls")]
)
def test_a_reply_that_is_not_complete_is_refused(reason: str, said: str) -> None:
    whole = ChatReply('{"a": 1}', "stop", "m")

    assert replies.decoded(whole) == {"a": 1}
    with pytest.raises(ReplyRefused, match="it is not complete") as refused:
        replies.decoded(replace(whole, finish_reason=reason))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x" * 9, []),
        ("é" * 4, []),
        ("x" * 10, ["the content has 10 bytes, over 9"]),
        ("é" * 5, ["the content has 10 bytes, over 9"]),
        (7, ["the content is a int, not a string"]),
        (" \n", ["the content is empty"]),
        ("a\0", ["the content holds U+0000 NULL"]),
        ("ab\ud800", ["the content holds U+D800, half of a surrogate pair"]),
    ],
)
def test_what_cannot_be_stored_as_a_text_is_said(content: object, said: list[str]) -> None:
    assert replies.text_faults(content, 9) == said


@pytest.mark.parametrize(
    ("content", "old", "faults"),
    [
        ("# A\n", "", 0),
        ("---\na: 1\n---\nb\n", "", 1),
        ("---\na: 1\n---\nb\n", "---\na: 1\n---\nother\n", 0),
        ("---\na: 2\n---\nb\n", "---\na: 1\n---\nb\n", 1),
        ("---\nno mapping\n---\nb\n", "", 1),
        ("---\n", "", 0),
    ],
)
def test_front_matter_belongs_to_notes_unless_it_was_there(content: str, old: str, faults: int) -> None:
    assert len(replies.front_matter_faults(content, old)) == faults


def test_values_of_a_reply_are_shown_short_and_safe() -> None:
    assert replies.shown("é\n" + "x" * 200) == json.dumps("é\n" + "x" * 118)
    assert replies.shown({"a": [1, "b"]}) == '{"a": [1, "b"]}'
    assert replies.shown(["x" * 200]) == '["' + "x" * 118
    assert replies.printable("a\x1b[31m é\u202e") == "a\\x1b[31m é\\u202e"
    assert replies.listed(["f"] * 40) == "; ".join(["f"] * 40)
    assert replies.listed(["f"] * 42) == "; ".join(["f"] * 40) + "; and 2 more"


def test_what_the_notes_the_space_and_the_day_say_is_a_source() -> None:
    given = replace(
        inputs(2, now=datetime(2026, 3, 5, tzinfo=UTC), ledger=6), notes=(live(1, "we use v2.7.1"), live(2))
    )
    sources = replies.sources_of(given, ["see docs/api.md"], [41])

    def odd(line: str) -> list[str]:
        return [fact for each in unsourced("", f"{line}\n", sources) for fact in each.facts]

    for known in ("on 2026-03-05", "version v2.7.1", "written by cline on 2026-02-20", "in docs/api.md", "in n1.md"):
        assert odd(known) == []
    for unknown in ("on 2026-03-06", "version v2.7.2", "in docs/other.md"):
        assert len(odd(unknown)) == 1
    assert unsourced("", "on 2026-03-05\n", replies.sources_of(replace(given, now=None), ()))
    assert replies.hard_facts(odd("on 2026-03-06")) == '"2026-03-06"'


# --- its options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b" {}\n", b"\0", b"\xef\xbb\xbf{}"])
def test_an_empty_file_asks_for_a_run_as_usual(data: bytes) -> None:
    asked = RunOptions.parse(data, kind="digest")
    assert asked == RunOptions(kind="digest")
    assert (asked.dry_run, asked.cancel, asked.accept) == (False, False, None)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"dry_run": True}, RunOptions(dry_run=True)),
        ({"cancel": True, "dry_run": False}, RunOptions(cancel=True)),
        ({"agent": "cline", "max_notes": 1}, RunOptions(agent="cline", max_notes=1)),
        ({"accept": 1}, RunOptions(accept=1)),
        ({"accept": None, "agent": None, "max_notes": None}, RunOptions()),
    ],
)
def test_options_are_read_as_they_are_given(given: dict[str, Any], asked: RunOptions) -> None:
    assert RunOptions.parse(json.dumps(given).encode()) == asked


@pytest.mark.parametrize("data", [b"yes", b"{", b"\xff{}", b"[" * 100_000])
def test_what_is_no_json_asks_for_nothing(data: bytes) -> None:
    with pytest.raises(BadRequest, match=r'write for example {"dry_run": true}'):
        RunOptions.parse(data)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "the options are not a JSON object"),
        ({"dry_run": 1}, "dry_run is true or false"),
        ({"cancel": "yes"}, "cancel is true or false"),
        ({"agent": ""}, "agent is the name of an agent"),
        ({"agent": 1}, "agent is the name of an agent"),
        ({"max_notes": 0}, "max_notes is a number from 1"),
        ({"max_notes": True}, "max_notes is a number from 1"),
        ({"max_notes": 1.5}, "max_notes is a number from 1"),
        ({"accept": -1}, "accept is a number from 1"),
        ({"accept": 1, "dry_run": True}, "accept stands alone"),
        ({"kind": "digest"}, "there is no option 'kind'"),
        ({"x" * 200: 1}, f"there is no option '{'x' * 79}; there are"),
    ],
)
def test_options_that_no_run_has_are_refused(given: Any, said: str) -> None:
    with pytest.raises(BadRequest, match="consolidate") as refused:
        RunOptions.from_json(given)
    assert said in str(refused.value)


def test_a_reply_and_known_memories_have_their_share_of_a_request() -> None:
    assert RunSettings() == RunSettings(500, 100_000, 0.3, 100_000, "list", 0.3)
    assert RunSettings(context_window=8_000, max_tokens=5_000).reply_tokens == 2_000
    assert RunSettings(context_window=8_000, max_tokens=500).reply_tokens == 500
    assert RunSettings(context_window=8_000).known_tokens == 1_000
    assert RunSettings(context_window=80_000).known_tokens == 3_000


# --- which notes, and which runs -----------------------------------------------------------------------------------


def test_a_run_takes_the_oldest_notes_of_its_agent_and_counts_the_rest() -> None:
    notes = [live(1), live(2, agent="Cline"), live(3), live(4)]

    assert NoteChoice(2, NOW).of(notes) == ((notes[0], notes[1]), 2)
    assert NoteChoice(2, NOW, agent="cline").of(notes) == ((notes[0], notes[2]), 1)
    assert NoteChoice(9, NOW, agent="nobody").of(notes) == ((), 0)
    assert not NoteChoice(9, NOW).seal


def test_no_number_of_a_run_is_used_twice() -> None:
    assert inputs(0).number == 1
    assert inputs(0, ledger=4).number == 5
    assert replace(inputs(0, ledger=4), meta=replace(META, ledger=9)).number == 10
    assert replace(inputs(0), meta=replace(META, consolidation_count=3)).consolidation == 4
    assert inputs(3).size == 3 * len("a body")


def _entry(number: int, **fields: Any) -> Entry:
    moment = NOW + timedelta(minutes=number)
    return Entry(number=number, space="alpha", committed_at=moment, host="h", fence=1, **fields)


def test_an_undo_takes_back_the_run_that_it_names_and_all_after_it() -> None:
    runs = [
        _entry(1),
        _entry(2),
        _entry(3, kind="digest"),
        _entry(4),
        _entry(5, kind="undo", undoes=2),
        _entry(6),
        _entry(7, kind="undo", undoes=6),
    ]

    assert [entry.number for entry in standing(runs)] == [7, 5, 1]
    assert taken_back(runs) == {2: 5, 4: 5, 6: 7}
    assert last_standing(runs) == 1
    assert [entry.number for entry in standing(runs[:4])] == [4, 2, 1]
    redone = [*runs, _entry(8, kind="undo", undoes=5)]
    assert [entry.number for entry in standing(redone)] == [8, 4, 2, 1]
    assert taken_back(redone) == {5: 8, 6: 8, 7: 8}
    assert last_standing([]) is None
