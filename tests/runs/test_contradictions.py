"""What notes contradict in what is known is found among many lines, and shown to the model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.runs.consolidation.inputs import BankFile, BankInputs
from livememfs.runs.consolidation.prompt import consolidation_prompt
from livememfs.runs.contradictions import ROOM, contradicted, statements
from livememfs.runs.digest.inputs import DigestInputs, KnownMemory
from livememfs.runs.digest.prompt import digest_prompt
from livememfs.runs.notes import LiveNote
from livememfs.runs.prompt import as_json
from livememfs.text.size import tokens

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
BANK = """# Delivery

- The team deploys the web shop with **Ansible**.
- The web shop listens on port 8080. Its logs are kept for 30 days.

## People

1. Irma leads the crew.
"""


def notes(*texts: str) -> tuple[LiveNote, ...]:
    found = []
    for number, text in enumerate(texts):
        note = Note.parse(text.encode(), path="n", name=f"{number}.md")
        found.append(LiveNote(f"{number}.md", f"alpha/live/{number}.md", "e", note))
    return tuple(found)


def bank(*files: tuple[str, str], said: tuple[LiveNote, ...]) -> BankInputs:
    inputs = BankInputs("alpha", Meta("alpha", "a space", "me", NOW), "e", notes=said, now=NOW)
    return replace(inputs, bank={name: BankFile(name, "e", text) for name, text in files})


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("We deploy the web shop with Terraform now.", "The team deploys the web shop with Ansible."),
        ("The web shop listens on port 9090.", "The web shop listens on port 8080."),
    ],
)
def test_the_line_that_a_note_makes_wrong_is_found(said: str, line: str) -> None:
    found = contradicted({"delivery.md": BANK}, notes("Nothing new today at all.", f"Good talk. {said}"))
    assert found == [{"note": 2, "instead_of": line, "in": "delivery.md"}]


def test_what_only_adds_something_is_not_shown() -> None:
    said = "The web shop has a new logo. Its search listens on port 9090. Omar leads the support team."
    assert contradicted({"delivery.md": BANK}, notes(said)) == []


def test_a_line_is_found_among_thousands_that_share_its_words() -> None:
    many = "\n".join(f"- The web shop number {number} sells crew shirts of kind {number}." for number in range(5_000))
    found = contradicted({"a.md": many, "delivery.md": BANK}, notes("The web shop listens on port 9090."))
    assert [finding["in"] for finding in found] == ["delivery.md"]


def test_what_is_shown_has_room_in_any_request() -> None:
    lines = "\n".join(f"- The service number{number} listens on port {number}." for number in range(200))
    said = "\n".join(f"The service number{number} listens on port {number + 1000}." for number in range(200))
    found = contradicted({"a.md": lines}, notes(said))
    assert len(found) > 3
    assert sum(tokens(as_json(finding)) for finding in found) <= ROOM


def test_statements_are_sentences_without_marks() -> None:
    assert list(statements(BANK)) == [
        "The team deploys the web shop with Ansible.",
        "The web shop listens on port 8080.",
        "Its logs are kept for 30 days.",
        "Irma leads the crew.",
    ]


def test_a_consolidation_is_shown_what_its_notes_contradict_and_no_empty_section() -> None:
    asked = consolidation_prompt(bank(("delivery.md", BANK), said=notes("The web shop listens on port 9090.")))
    assert '"instead_of": "The web shop listens on port 8080."' in asked[-1].content
    asked = consolidation_prompt(bank(("delivery.md", BANK), said=notes("Omar joined the support team.")))
    assert "## Contradictions" not in asked[-1].content


def test_a_digest_is_shown_what_its_notes_contradict() -> None:
    known = (KnownMemory("memories/m.md", "fact", "Sophie est malade", ("sophie",)),)
    inputs = DigestInputs(
        "alpha", Meta("alpha", "a space", "me", NOW), "e", notes=notes("Sophie est guérie."), now=NOW, known=known
    )
    assert '"instead_of": "Sophie est malade"' in digest_prompt(inputs)[-1].content
