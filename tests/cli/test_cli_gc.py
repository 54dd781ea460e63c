"""`livememfs gc` on a folder store: it lists, and removes only when told to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from commandline import Cli

MONTHS = 90 * 86_400


@pytest.fixture
def picture(tmp_path: Path, project: str) -> Path:
    """An object in `live/` that is no note, written three months ago."""
    path = tmp_path / "store" / project / "live" / "picture.png"
    path.write_bytes(b"not a note")
    os.utime(path, (time.time() - MONTHS,) * 2)
    return path


def test_without_anything_left_behind_it_says_so(cli: Cli, project: str) -> None:
    assert cli("note", project, "We chose S3.").code == 0

    ended = cli("gc")

    assert (ended.code, ended.out) == (0, "nothing is left behind\n")
    assert cli("gc", project, "--json").json == {"found": [], "objects": 0, "bytes": 0, "removed": None}


def test_it_lists_with_size_and_reason_and_removes_nothing(cli: Cli, project: str, picture: Path) -> None:
    ended = cli("gc", project)

    ended.shows("no-note", f"{project}/live/picture.png", "1 object (10 B)")
    assert "--delete" in ended.err
    assert picture.read_bytes() == b"not a note"


def test_delete_removes_it_and_names_the_backup_that_has_it(
    cli: Cli, project: str, picture: Path, tmp_path: Path
) -> None:
    ended = cli("gc", "--delete")

    ended.shows("1 object removed")
    assert not picture.exists()
    [backup] = cli("backup", "list", project, "--json").json
    assert f"livememfs backup download {project} {backup['stamp']}" in ended.out
    copy = tmp_path / "store" / "_backups" / project / backup["stamp"] / "live" / "picture.png"
    assert copy.read_bytes() == b"not a note"


def test_programs_get_what_was_found_and_what_became_of_it(cli: Cli, project: str, picture: Path) -> None:
    listed = cli("gc", "--json").json
    done = cli("gc", "--delete", "--json").json

    assert listed["found"] == done["found"]
    assert set(listed["found"][0]) == {"kind", "space", "key", "why", "objects", "bytes", "modified"}
    assert (listed["removed"], listed["bytes"]) == (None, 10)
    assert (done["removed"]["objects"], done["removed"]["kept"]) == (1, [])
    assert list(done["removed"]["backups"]) == [project]


def test_how_old_it_must_be_can_be_said(cli: Cli, picture: Path) -> None:
    assert cli("gc", "--older-than", "100", "--json").json["found"] == []
    assert len(cli("gc", "--older-than", "80", "--json").json["found"]) == 1
    assert cli("gc", "--older-than", "0").code == 2


def test_an_age_before_all_time_is_refused(cli: Cli, project: str) -> None:
    cli("gc", project, "--older-than", "999999999999").fails("36500", code=2)
    assert cli("gc", project, "--older-than", "36500").code == 0
