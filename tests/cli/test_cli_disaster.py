"""What docs/operations.md says of disasters, done: the bucket is lost, and there is an export."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commandline import Cli


def contents(store: Path) -> dict[str, bytes]:
    """Every object of the space by its key, but those that are there for their names."""
    files = (path for path in (store / "project").rglob("*") if path.is_file() and path.stat().st_size)
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in files}


def test_an_export_that_is_unpacked_into_a_new_store_is_the_space_again(cli: Cli, project: str, tmp_path: Path) -> None:
    old, new, archive = tmp_path / "store", tmp_path / "new", tmp_path / "project.tar.gz"
    cli("note", project, "We chose S3.", "--category", "decision")
    cli("consolidate", project)
    cli("note", project, "It rains.")
    cli("memories", "add", project, "David is my brother")
    assert cli("space", "export", project, str(archive)).code == 0
    new.mkdir()

    subprocess.run(["tar", "xzf", archive, "-C", new], check=True, timeout=20)

    assert contents(new) == contents(old)
    assert "We chose S3." in cli("space", "summary", project, "--store", str(new)).out
    assert cli("note", project, "On it goes.", "--store", str(new)).code == 0
    assert cli("consolidate", project, "--store", str(new)).code == 0
    assert "It rains." in cli("space", "summary", project, "--store", str(new)).out
