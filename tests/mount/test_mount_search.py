"""Searching from a shell, on a real mount with the real model: what agents and people type."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from machine import Mount, StartMount, sh

from livememfs.text.own import HEAD

MEANT_WITHIN = 20.0
NOTES = {
    "decision-database.md": "We chose PostgreSQL for the orders service, because of its JSON columns.",
    "reunion.md": "La réunion d'équipe a lieu le mardi à dix heures, dans la salle bleue.",
    "issue-upload.md": "The upload crashes when S3 answers 503 twice; see src/upload/retry.py.",
    "insight-cache.md": "L'adresse e-mail n'est jamais mise en cache : la loi l'interdit.",
    "quotes.md": 'He said "never on a Friday" and meant deployments.',
}


@pytest.fixture
def project(mounted: Mount) -> Mount:
    """A mount with a space of five notes, of different days: what is written in one sitting belongs together."""
    for day, (name, text) in enumerate(NOTES.items(), 1):
        note = f'---\ntimestamp: "2026-02-0{day}T10:00:00Z"\n---\n{text}'
        (mounted / "project" / "live" / name).write_text(note)
    return mounted


def recalled(mount: Mount) -> Any:
    """The figures of the search."""
    return json.loads((mount / ".livememfs" / "status.json").read_text())["statistics"]["recall"]


def questions(mount: Mount) -> int:
    """How often the search has been asked."""
    return int(recalled(mount)["questions"])


def first(mount: Mount, question: str) -> str:
    """The text of the best hit; empty while there is none."""
    return sh(f'ls -d "search/{question}"/01-* | xargs -rd "\\n" cat', cwd=mount / "project").stdout


def test_a_shell_asks_by_the_name_of_a_file(project: Mount) -> None:
    page = sh('cat "search/which upload crashes.md"', cwd=project / "project").stdout

    assert page.startswith(f"{HEAD}\n# which upload crashes\n")
    assert "1. [The upload crashes when S3 answers 503 twice; see src/upload/retry.py.](<../live/" in page
    assert "tokens)" in page


def test_what_was_found_is_there_to_be_read_and_searched_in_turn(project: Mount) -> None:
    listed = sh("ls search/upload", cwd=project / "project").stdout.split()
    assert listed[0].startswith("01-the-upload-crashes-when-s3")

    found = sh("grep -l retry.py search/upload/*", cwd=project / "project").stdout.split()
    assert found == [f"search/upload/{listed[0]}"]
    assert "503 twice" in first(project, "upload")


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("reunion equipe", "salle bleue"),
        ("réunion d'équipe", "salle bleue"),
        ("type:decision base de données", "PostgreSQL"),
        ("file:retry.py", "503"),
        ("never on a Friday", "deployments"),
    ],
)
def test_accents_quotes_and_filters_are_what_people_type(project: Mount, question: str, found: str) -> None:
    assert found in first(project, question)


def test_a_quoted_phrase_can_be_typed(project: Mount) -> None:
    page = sh("""cat 'search/"never on a Friday".md'""", cwd=project / "project").stdout

    assert page.count("\n1. ") == 1
    assert "\n2. " not in page


def test_meaning_finds_what_words_do_not(project: Mount) -> None:
    until = time.monotonic() + MEANT_WITHIN
    while "PostgreSQL" not in first(project, "which database do we use?"):
        assert time.monotonic() < until
        time.sleep(0.2)  # the model and its vectors come in the background, and no event tells a shell


def test_a_second_machine_finds_by_meaning_and_embeds_nothing(project: Mount, second_mount: StartMount) -> None:
    sh("ls 'search/which database do we use?'", cwd=project / "project")
    until = time.monotonic() + MEANT_WITHIN
    while not (recalled(project)["index"]["embedded"] == len(NOTES) and not recalled(project)["waiting"]):
        assert time.monotonic() < until
        time.sleep(0.2)
    project.stop()

    other = second_mount()
    while "PostgreSQL" not in first(other, "which database do we use?"):
        assert time.monotonic() < until + MEANT_WITHIN
        time.sleep(0.2)

    assert recalled(other)["sharing"]["read"] >= len(NOTES)
    assert recalled(other)["model"]["texts"] == 0
    assert "_index" not in sh("ls -a", cwd=other / "project").stdout


def test_programs_that_walk_the_tree_ask_nothing(project: Mount) -> None:
    before = questions(project)

    sh(
        "find . > /dev/null; grep -r unicorn . ; ls -laR . > /dev/null; ls search/.git search/.vscode",
        cwd=project.path,
        status=2,
    )

    assert questions(project) == before == 0


def test_a_note_is_found_as_soon_as_it_is_closed_and_gone_as_soon_as_it_is_removed(project: Mount) -> None:
    sh("ls search/anything", cwd=project / "project")

    # A question waits for a quarter of a second; on a machine that needs longer the next one finds it.
    sh(
        "echo 'the zeppelin lands at noon' > live/zep.md;"
        " for q in zeppelin 'zeppelin noon' 'zeppelin lands' 'a zeppelin'; do"
        ' grep -q zeppelin "search/$q/"01-* && exit 0; done; exit 1',
        cwd=project / "project",
    )
    sh('rm live/zep.md && test -z "$(ls search/the\\ zeppelin 2>/dev/null | grep zeppelin)"', cwd=project / "project")


def test_all_spaces_are_asked_at_the_root(project: Mount) -> None:
    sh("mkdir other && echo 'S3 bills by the request' > other/live/costs.md", cwd=project.path)

    targets = sh("readlink search/S3/*", cwd=project.path).stdout

    assert "../../project/live/" in targets
    assert "../../other/live/" in targets
