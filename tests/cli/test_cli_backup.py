"""`livememfs backup ...` on a folder store, without a mount."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def stamp(cli: Cli, project: str) -> str:
    """The stamp of a backup of the space, which has one note."""
    assert cli("note", project, "We chose S3.").code == 0
    return str(cli("backup", "create", project, "--json").json["stamp"])


def notes(store: Path, space: str) -> dict[str, bytes]:
    """The notes of a space by name."""
    return {path.name: path.read_bytes() for path in (store / space / "live").glob("2*.md")}


def test_a_backup_is_made_and_listed(cli: Cli, project: str) -> None:
    made = cli("backup", "create", project)

    assert made.code == 0
    [listed] = cli("backup", "list", "--json").json
    assert f"backup {listed['stamp']} of {project}: 3 objects" in made.out
    assert set(listed) == {"space", "stamp", "objects", "bytes", "automatic", "complete", "about"}
    assert (listed["automatic"], listed["complete"]) == (False, True)
    shown = cli("backup", "list", project).out
    assert "by hand" in shown
    assert " complete" in shown


def test_an_empty_list_says_what_to_do(cli: Cli) -> None:
    assert "livememfs backup create" in cli("backup", "list").out
    cli("backup", "list", "project").shows("no backup of project yet")


def test_a_torn_backup_is_listed_as_incomplete_and_not_restored(
    cli: Cli, project: str, stamp: str, tmp_path: Path
) -> None:
    (tmp_path / "store" / "_backups" / project / stamp / "_meta.json").unlink()

    assert "incomplete" in cli("backup", "list").out
    for command in (["restore", project, stamp, "--replace"], ["download", project, stamp]):
        cli("backup", *command).fails("is incomplete")
    assert cli("backup", "delete", project, stamp).code == 0


def test_a_removed_space_comes_back(cli: Cli, project: str, stamp: str, tmp_path: Path) -> None:
    before = notes(tmp_path / "store", project)
    assert cli("space", "delete", project, "--yes").code == 0

    cli("backup", "restore", project, "latest").shows(f"space {project} is restored from backup {stamp} of {project}")
    assert notes(tmp_path / "store", project) == before != {}
    assert [entry["name"] for entry in cli("space", "list", "--json").json] == [project]


def test_a_space_that_is_there_needs_replace_or_another_name(cli: Cli, project: str, stamp: str) -> None:
    cli("backup", "restore", project, stamp).fails("--replace", "--to")
    assert cli("backup", "restore", project, stamp, "--to", "copy").code == 0
    assert cli("space", "info", "copy", "--json").json["notes"] == 1


def test_replacing_says_how_to_undo_it(cli: Cli, project: str, stamp: str, tmp_path: Path) -> None:
    cli("note", project, "We chose Postgres.")
    before = notes(tmp_path / "store", project)

    ended = cli("backup", "restore", project, stamp, "--replace")
    assert ended.code == 0
    assert len(notes(tmp_path / "store", project)) == 1

    undo = ended.out.split("`")[1].split()
    assert undo[0] == "livememfs"
    assert cli(*undo[1:]).code == 0
    assert notes(tmp_path / "store", project) == before


def test_a_restore_tells_programs_what_it_did(cli: Cli, project: str, stamp: str) -> None:
    done = cli("backup", "restore", project, "latest", "--replace", "--json").json

    saved = cli("backup", "list", project, "--json").json[-1]
    assert saved["automatic"] is True
    figures = {"objects": 4, "removed": 0, "saved": saved["stamp"]}
    assert done == {"space": project, "stamp": stamp, "target": project, **figures}


def test_a_name_that_no_space_can_have_is_refused(cli: Cli, project: str, stamp: str) -> None:
    cli("backup", "restore", project, stamp, "--to", "Copy").fails("cannot be used as a name")


def test_a_download_is_one_archive_named_after_the_backup(
    cli: Cli, project: str, stamp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    made = cli("backup", "download", project, "latest", "--json").json

    assert made["target"] == str(tmp_path / f"{project}-{stamp}.tar.gz")
    with tarfile.open(made["target"]) as archive:
        names = archive.getnames()
    assert f"{project}/{stamp}/_meta.json" in names
    assert len([name for name in names if name.startswith(f"{project}/{stamp}/live/2")]) == 1


def test_a_download_goes_where_it_was_told(cli: Cli, project: str, stamp: str, tmp_path: Path) -> None:
    cli("backup", "download", project, stamp, "-o", str(tmp_path / "a.tgz")).shows(str(tmp_path / "a.tgz"))
    assert cli("backup", "download", project, stamp, "-o", str(tmp_path / "a.rar")).code == 2


def test_a_deleted_backup_is_gone(cli: Cli, project: str, stamp: str, tmp_path: Path) -> None:
    ended = cli("backup", "delete", project, "latest", "--json")

    assert ended.json == {"space": project, "stamp": stamp, "removed_objects": 4}
    assert cli("backup", "list", "--json").json == []
    assert not list((tmp_path / "store").glob("_backups/*/*"))


@pytest.mark.parametrize("verb", ["restore", "download", "delete"])
def test_a_backup_that_is_not_there_is_named(cli: Cli, project: str, stamp: str, verb: str) -> None:
    cli("backup", verb, project, "2001-01-01T00-00-00").fails(
        f"there is no backup 2001-01-01T00-00-00 of {project}; `livememfs backup list {project}`"
    )
