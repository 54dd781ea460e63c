"""`livememfs history` and `livememfs undo` on a folder store, without a mount."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def twice(cli: Cli, project: str) -> str:
    """A space with two runs."""
    for text in ("We chose S3.", "We chose Postgres."):
        cli("note", project, text, "--category", "decision")
        assert cli("consolidate", project).code == 0
    return project


def space(store: Path, name: str) -> dict[str, bytes]:
    """Bank, synthesis and notes of a space by path."""
    folder = store / name
    paths = [folder / "_synthesis.md", *(folder / "bank").rglob("*.md"), *(folder / "live").glob("2*.md")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_runs_are_listed_the_newest_first(cli: Cli, twice: str) -> None:
    ended = cli("history", twice)

    assert ended.code == 0
    header, *rows = ended.out.splitlines()
    assert " ".join(header.split()) == "RUN WHEN KIND HOST MODEL NOTES IN NOTES LEFT FILES UNSOURCED STATE"
    assert [row.split()[0] for row in rows] == ["2", "1"]
    assert all("consolidation" in row and "builtin" in row and row.rstrip().endswith("applied") for row in rows)


def test_programs_get_the_same_figures(cli: Cli, twice: str) -> None:
    [second, first] = cli("history", twice, "--json").json

    assert (second["run"], first["run"]) == (2, 1)
    assert (second["kind"], second["notes_in"], second["notes_left"], second["files"]) == ("consolidation", 1, 0, 1)
    assert (first["state"], first["taken_back_by"], first["undoes"]) == ("applied", None, None)


def test_an_empty_history_says_what_to_do(cli: Cli, project: str) -> None:
    cli("history", project).shows("livememfs consolidate project")
    assert cli("history", project, "--json").json == []


def test_an_entry_that_cannot_be_read_is_named_and_hides_no_other(cli: Cli, twice: str, tmp_path: Path) -> None:
    (tmp_path / "store" / twice / "_ledger/00000001.json").write_text("{}")

    ended = cli("history", twice, "--json")

    assert ended.code == 0
    assert [entry["run"] for entry in ended.json] == [2]
    assert "run 1 of project cannot be read: it is not an entry of form 1" in ended.err


def test_an_undo_says_how_to_undo_it(cli: Cli, twice: str, tmp_path: Path) -> None:
    before = space(tmp_path / "store", twice)

    ended = cli("undo", twice)
    ended.shows("project: as it was before run 2; 1 bank file changed, 1 note back")
    assert space(tmp_path / "store", twice) != before
    assert [row.split()[0] for row in cli("history", twice).out.splitlines()[1:]] == ["3", "2", "1"]
    assert "taken back by 3" in cli("history", twice).out

    again = ended.out.split("`")[1].split()
    assert again == ["livememfs", "undo", twice, "3"]
    assert cli(*again[1:]).code == 0
    assert space(tmp_path / "store", twice) == before


def test_an_undo_tells_programs_what_it_did(cli: Cli, twice: str) -> None:
    done = cli("undo", twice, "1", "--json").json

    assert (done["run"], done["kind"], done["undoes"], done["notes_restored"]) == (3, "undo", 1, 2)
    assert (done["state"], done["notes_left"]) == ("applied", 2)


@pytest.mark.parametrize(
    ("arguments", "reason"), [(["7"], "there is no run 7 of project"), ([], "could be taken back")]
)
def test_a_run_that_is_not_there_is_named(cli: Cli, project: str, arguments: list[str], reason: str) -> None:
    cli("undo", project, *arguments).fails(reason, "`livememfs history project`")


def test_a_run_whose_backup_is_gone_is_named(cli: Cli, twice: str) -> None:
    stamp = cli("history", twice, "--json").json[0]["backup"]
    assert cli("backup", "delete", twice, stamp).code == 0

    cli("undo", twice).fails(f"run 2 of project cannot be taken back: its backup {stamp} is gone")
