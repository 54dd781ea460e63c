"""`livememfs space ...` on a folder store, without a mount."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from commandline import Cli


def test_a_space_is_made_with_what_was_said_about_it(cli: Cli) -> None:
    made = cli("space", "create", "project", "--description", "the API", "--owner", "ops", "--rules", "journal")

    assert made.code == 0
    info = cli("space", "info", "project", "--json").json
    assert (info["meta"]["description"], info["meta"]["owner"], info["rules"]) == ("the API", "ops", True)
    assert "journal.md" in cli("space", "rules", "project").out


def test_rules_come_from_a_file_too(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.md"
    rules.write_text("### facts.md\n- What is known\n")

    assert cli("space", "create", "project", "--rules", str(rules)).code == 0
    assert cli("space", "rules", "project").out == rules.read_text()


def test_rules_that_are_neither_a_template_nor_a_file_make_no_space(cli: Cli) -> None:
    cli("space", "create", "project", "--rules", "jurnal").fails(
        "--rules is standard, journal, minimal or a file, and jurnal cannot be read", code=2
    )
    assert cli("space", "list", "--json").json == []


def test_a_space_is_made_once(cli: Cli, project: str) -> None:
    cli("space", "create", project).fails("exists already")


@pytest.mark.parametrize("name", ["Project", "search", "_system", "a/b", ""])
def test_a_name_that_no_space_can_have_is_refused(cli: Cli, name: str) -> None:
    cli("space", "create", name).fails("cannot be used as a name")


def test_the_list_shows_every_space(cli: Cli, project: str) -> None:
    cli("space", "create", "other", "--description", "[red] is no markup")

    shown = cli("space", "list").out
    assert [entry["name"] for entry in cli("space", "list", "--json").json] == ["other", project]
    assert "[red] is no markup" in shown


def test_an_empty_list_says_what_to_do(cli: Cli) -> None:
    assert "livememfs space create" in cli("space", "list").out


def test_a_damaged_space_is_listed_with_its_damage(cli: Cli, project: str, tmp_path: Path) -> None:
    (tmp_path / "store" / project / "_meta.json").write_text("{")

    cli("space", "list").shows("_meta.json cannot be read")
    assert "problem:" in cli("space", "info", project).out


def test_a_space_without_rules_says_so(cli: Cli, project: str) -> None:
    cli("space", "rules", project).fails("there is no project/_rules.md")


def test_the_summary_is_one_page_of_rules_and_bank(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")
    cli("consolidate", project)

    page = cli("space", "summary", project).out

    assert page.startswith("# project\n")
    assert "## _rules.md" in page
    assert "We chose S3." in page


def test_an_export_holds_every_object(cli: Cli, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli("note", project, "We chose S3.")

    ended = cli("space", "export", project, "--json")

    assert ended.json["target"] == str(tmp_path / "project.tar.gz")
    with tarfile.open(tmp_path / "project.tar.gz") as archive:
        names = archive.getnames()
    assert "project/_meta.json" in names
    assert len([name for name in names if name.startswith("project/live/2")]) == 1


def test_nothing_is_removed_without_yes_where_nobody_can_be_asked(cli: Cli, project: str) -> None:
    cli("space", "delete", project).fails("pass --yes", code=2)
    assert cli("space", "info", project).code == 0


def test_yes_removes_all_of_it(cli: Cli, project: str, tmp_path: Path) -> None:
    cli("note", project, "We chose S3.")

    assert cli("space", "delete", project, "--yes").code == 0
    assert cli("space", "list", "--json").json == []
    assert not (tmp_path / "store" / project).exists()


@pytest.mark.parametrize(
    "words",
    ["space info nowhere", "space rules nowhere", "space summary nowhere", "space export nowhere",
     "space delete nowhere", "backup create nowhere", "gc nowhere", "history nowhere", "undo nowhere",
     "memories list nowhere", "memories add nowhere x", "memories forget nowhere x", "note nowhere text",
     "consolidate nowhere", "digest nowhere", "recall nowhere hello", "search x --space nowhere",
     "mcp --space nowhere"],
)  # fmt: skip
def test_a_space_that_is_not_there_is_named(
    cli: Cli, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = cli(*words.split())

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "livememfs: there is no space nowhere; `livememfs space list` lists the spaces\n"
    assert list(tmp_path.glob("nowhere*")) == []


def test_where_there_is_no_space_is_said(cli: Cli, tmp_path: Path) -> None:
    """A folder that was mistyped must not look like a memory that is gone."""
    ended = cli("space", "list", "--store", str(tmp_path / "mistyped"))

    assert ended.out.startswith(f"there is no space in folder {tmp_path}/mistyped yet; ")


def test_whether_the_web_is_told_unasked_is_in_the_record_of_the_space(cli: Cli, project: str, tmp_path: Path) -> None:
    record = tmp_path / "store" / project / "_meta.json"
    cli("space", "allow-web", project).shows("is told unasked, and marked")
    assert json.loads(record.read_bytes())["allow_web"] is True
    assert cli("space", "allow-web", project, "--off", "--json").json == {"space": project, "allow_web": False}
    assert "allow_web" not in json.loads(record.read_bytes())
