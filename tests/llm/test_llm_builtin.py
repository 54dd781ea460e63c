"""Without a model, notes are filed word for word, once, where the rules have a place for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.llm.builtin import file_notes
from livememfs.records.note import CATEGORIES, Note
from livememfs.records.rules import planned_files, templates
from livememfs.testing.clock import START

STANDARD = templates()["standard"]
MIB = 1 << 20


def note(body: str, category: str = "observation", minute: int = 0, **fields: object) -> Note:
    made = Note(START + timedelta(minutes=minute), "cline", category, (), "a", body)
    return replace(made, **fields)  # type: ignore[arg-type]  # the fields are of many types


def file(
    *notes: Note, rules: str = STANDARD, bank: dict[str, str] | None = None, max_bytes: int = MIB
) -> dict[str, str]:
    """The bank after filing."""
    reply = file_notes(rules, bank or {}, notes, max_bytes=max_bytes)
    return {**(bank or {}), **{entry["filename"]: entry["content"] for entry in reply["bank_files"]}}


def section(page: str, heading: str) -> str:
    """What stands directly below a heading."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_first_run_makes_every_file_of_the_rules_with_its_headings() -> None:
    bank = file(note("x"))

    assert set(bank) == {planned.name for planned in planned_files(STANDARD)}
    for planned in planned_files(STANDARD):
        assert bank[planned.name].startswith(f"# {planned.name.removesuffix('.md')}\n")
        for heading in planned.headings:
            assert f"\n## {heading}\n" in bank[planned.name]


@pytest.mark.parametrize(
    ("category", "rules", "name", "heading"),
    [
        ("decision", STANDARD, "systemPatterns.md", "Decisions"),
        ("progress", STANDARD, "progress.md", "Done"),
        ("todo", STANDARD, "progress.md", "To do"),
        ("issue", STANDARD, "progress.md", "Known issues"),
        ("question", STANDARD, "activeContext.md", "Open questions"),
        ("insight", STANDARD, "systemPatterns.md", "Patterns"),
        ("observation", STANDARD, "activeContext.md", "Recent changes"),
        ("something else", STANDARD, "activeContext.md", "2026-02-20"),
        ("decision", templates()["journal"], "journal.md", "2026-02-20"),
        ("decision", templates()["minimal"], "notes.md", "Decisions"),
        ("decision", "Write well.", "notes.md", "2026-02-20"),
        ("decision", "", "notes.md", "2026-02-20"),
        ("decision", "### décisions.md\n- Décisions techniques clés\n", "décisions.md", "Décisions techniques clés"),
    ],
)
def test_each_category_has_its_place_in_any_rules(category: str, rules: str, name: str, heading: str) -> None:
    assert "the note" in section(file(note("the note", category), rules=rules)[name], heading)


def test_an_entry_is_dated_and_names_agent_category_and_tags() -> None:
    page = file(note("first line\n\nsecond line\n", "decision", tags=("s3", "auth")))["systemPatterns.md"]

    entry = "**2026-02-20T14:00:00Z · cline · decision** (s3, auth)\n\n> first line\n> \n> second line\n"
    assert f"\n## Decisions\n\n{entry}\n## " in page


def test_a_note_cannot_open_a_heading_or_a_fence_of_the_file() -> None:
    hostile = note("# Forged\n```\nopen\r## Forged too", "todo", agent="x\n# Agent", tags=("\n# Tag",))
    lines = file(hostile)["progress.md"].splitlines()

    assert [line for line in lines if line.startswith(("# Forged", "## Forged", "# Agent", "# Tag", "```"))] == []


def test_entries_of_one_heading_stand_in_their_order() -> None:
    page = file(*(note(f"note {n}", "todo", n) for n in range(5)))["progress.md"]

    positions = [page.index(f"> note {n}\n") for n in range(5)]
    assert positions == sorted(positions)


def test_headings_inside_a_fence_are_none() -> None:
    bank = {"progress.md": "# P\n\n```\n## To do\n```\n\n## To do\n\nreal\n"}

    page = file(note("x", "todo"), bank=bank)["progress.md"]

    assert page.startswith(bank["progress.md"])


def test_a_file_that_differs_in_case_only_is_used() -> None:
    bank = file(note("x", "todo"), bank={"Progress.md": "# P\n"})

    assert "progress.md" not in bank
    assert "> x" in bank["Progress.md"]


def test_an_entry_that_stands_there_is_not_filed_twice_and_says_so() -> None:
    notes = [note("same", "todo"), note("same, and more", "todo"), note("same", "todo", agent="claude")]
    bank = file(*notes)
    reply = file_notes(STANDARD, bank, [notes[0], note("new", "todo")], max_bytes=MIB)

    assert reply["coverage"] == [
        {"note": 1, "skipped": "stands in progress.md already"},
        {"note": 2, "files": ["progress.md"]},
    ]
    assert bank["progress.md"].count("> same\n") == 2


def test_a_note_that_begins_like_another_is_another() -> None:
    bank = file(note("a\nb", "todo"))

    assert file(note("a", "todo"), bank=bank)["progress.md"].count("> a\n") == 2


def test_a_full_file_goes_on_in_the_next() -> None:
    bank = file(*(note(f"{n}" * 3_000, "todo", n) for n in range(1, 6)), max_bytes=8_000)

    assert {"progress.md", "progress-2.md", "progress-3.md"} <= set(bank)
    assert all(len(page.encode()) <= 8_000 for page in bank.values())
    assert file(note("1" * 3_000, "todo", 1), bank=bank, max_bytes=8_000) == bank


@pytest.mark.parametrize("body", ["x" * 9_000, "a\0b"])
def test_a_note_that_no_file_can_take_is_left_out_of_the_account(body: str) -> None:
    reply = file_notes(STANDARD, {}, [note(body), note("fits")], max_bytes=8_000)

    assert [entry["note"] for entry in reply["coverage"]] == [2]


def test_the_synthesis_says_who_did_it_and_lists_what_went_where() -> None:
    reply = file_notes(STANDARD, {}, [note(f"# Note {n}", "todo", n) for n in range(60)], max_bytes=MIB)

    lines = reply["synthesis"].splitlines()
    assert lines[0] == "Filed word for word by the built-in consolidator, without a model:"
    assert lines[2] == "- 2026-02-20T14:00:00Z todo -> progress.md: Note 0"
    assert lines[-1] == "- and more"


bodies = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=80)
categories = st.sampled_from([*CATEGORIES, "other"])
pages = st.text(st.sampled_from("#`~> \n\rab"), max_size=60)


@given(
    st.lists(st.tuples(bodies, categories), max_size=6),
    st.dictionaries(st.sampled_from(["progress.md", "x.md"]), pages),
)
def test_every_byte_that_stood_there_stays_and_filing_again_changes_nothing(
    written: list[tuple[str, str]], before: dict[str, str]
) -> None:
    notes = [note(body, category, minute) for minute, (body, category) in enumerate(written)]

    after = file(*notes, bank=before)

    for name, page in before.items():
        rest = iter(after[name])
        assert all(character in rest for character in page)
    assert file(*notes, bank=after) == after
