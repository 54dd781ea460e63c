"""Rules: which files they plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records.names import check_bank_name
from livememfs.records.rules import DEFAULT, PlannedFile, planned_files, templates


def names(text: str) -> list[str]:
    """The names of the planned files."""
    return [planned.name for planned in planned_files(text)]


@pytest.mark.parametrize(
    ("template", "files"),
    [
        ("standard", "projectbrief.md productContext.md systemPatterns.md techContext.md activeContext.md progress.md"),
        ("journal", "journal.md"),
        ("minimal", "notes.md"),
    ],
)
def test_each_template_plans_its_files(template: str, files: str) -> None:
    assert names(templates()[template]) == files.split()


def test_each_planned_file_of_the_templates_has_sections() -> None:
    for text in templates().values():
        assert all(len(planned.headings) >= 2 for planned in planned_files(text))


def test_the_default_is_a_template_and_the_table_is_the_callers_own() -> None:
    table = templates()
    assert DEFAULT in table
    table.clear()

    assert templates()


def test_numbered_headings_as_live_memory_writes_them() -> None:
    text = (
        "# Rules\n\n## Structure\n\n### 1. projectbrief.md\n- But du projet\n- Périmètre : ce qui en fait partie\n\n"
        "### 2. api/specs.md\n"
    )

    assert planned_files(text) == [
        PlannedFile("projectbrief.md", ("But du projet", "Périmètre")),
        PlannedFile("api/specs.md", ()),
    ]


def test_files_in_bullets_count_where_no_heading_names_one() -> None:
    text = (
        "# Files\n- `journal.md`: what happened\n  - Days\n  - Weeks\n- **bank/people.md** - who is who\n\nSee x.md.\n"
    )

    assert planned_files(text) == [PlannedFile("journal.md", ("Days", "Weeks")), PlannedFile("people.md", ())]


@pytest.mark.parametrize(
    ("bullet", "section"),
    [
        ("Goal", "Goal"),
        ("Goal: what is built", "Goal"),
        ("**Open questions** and who knows", "Open questions"),
        ("`Setup`: how to start", "Setup"),
        ("Format : ## YYYY-MM-DD per day", "Format"),
        ("What works - checked", "What works"),
        ("What works (checked)", "What works"),
        ("One sentence. And another.", "One sentence"),
        ("Version 2.0 and later", "Version 2.0 and later"),
        ("x" * 200, "x" * 80),
    ],
)
def test_a_bullet_becomes_a_short_heading(bullet: str, section: str) -> None:
    assert planned_files(f"### a.md\n- {bullet}\n") == [PlannedFile("a.md", (section,))]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("### a.md\n- One\n  - inner\n- Two\n", ("One", "Two")),
        ("### a.md\n- One\n\n## How\n- Not a section\n", ("One",)),
        ("### a.md\n- One\n### a.md\n- One\n- Two\n", ("One", "Two")),
    ],
    ids=["only the outer bullets", "up to the next heading", "of a file that is named twice"],
)
def test_the_sections_of_a_file_are_the_bullets_below_it(text: str, sections: tuple[str, ...]) -> None:
    assert planned_files(text) == [PlannedFile("a.md", sections)]


def test_what_stands_in_a_fence_is_an_example() -> None:
    text = "### a.md\n```markdown\n### b.md\n- x\n```\n~~~~\n### c.md\n~~~\n### d.md\n~~~~\n### e.md\n"

    assert names(text) == ["a.md", "e.md"]


@pytest.mark.parametrize(
    "text", ["", "# Rules\n\nWrite what you like.\n", "### ../evil.md\n", "### _rules.md\n", "### .md\n"]
)
def test_rules_that_name_no_possible_file_plan_none(text: str) -> None:
    assert planned_files(text) == []


@given(
    st.lists(
        st.sampled_from(["# ", "### a.md", "- ", "b.md", "`", "**", "```", "\n", "  ", "x: y", "1. "])
        | st.text(max_size=5)
    ).map("".join)
)
def test_any_text_plans_only_possible_files(text: str) -> None:
    for planned in planned_files(text):
        assert check_bank_name(planned.name) == planned.name
        assert len(set(planned.headings)) == len(planned.headings)
