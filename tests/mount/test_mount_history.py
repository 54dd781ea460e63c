"""`.history/` and `.why/` through the kernel, and an undo by the command while the space is mounted."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

import pytest
from cloud import Bucket
from machine import Mount, livememfs, sh

TOUCH = "touch .consolidate && cat .consolidate.wait"


def copy_of(mount: Mount, target: Path) -> list[str]:
    """Copy the bank out with `cp`; the names of its files."""
    sh(f"cp -r bank '{target}'", cwd=mount / "project")
    return sh("find . -type f -name '*.md' | sort", cwd=target).stdout.split()


@pytest.fixture
def banks(mounted: Mount, tmp_path: Path) -> list[tuple[Path, list[str]]]:
    """Copies of the bank after each of two runs."""
    found = []
    for number in (1, 2):
        sh(f"echo 'We chose the number {number}.' > live/decision-{number}", cwd=mounted / "project")
        sh(TOUCH, cwd=mounted / "project")
        found.append((tmp_path / f"bank-{number}", copy_of(mounted, tmp_path / f"bank-{number}")))
    return found


def test_every_run_can_be_copied_out_compared_and_searched(
    mounted: Mount, banks: list[tuple[Path, list[str]]], tmp_path: Path
) -> None:
    project = mounted / "project"
    assert sorted(os.listdir(project / ".history")) == ["1", "2"]
    assert {".history", ".why"} <= set(os.listdir(project))

    for number, (kept, names) in enumerate(banks, 1):
        past = tmp_path / f"past-{number}"
        sh(f"cp -r .history/{number} '{past}'", cwd=project)
        assert filecmp.cmpfiles(past, kept, names, shallow=False) == (names, [], [])
        assert sh("find . -type f | sort", cwd=past).stdout.split() == names
    found = sh("grep -rl 'number 1' .history | sort", cwd=project).stdout.split()
    assert [path.split("/")[1] for path in found] == ["1", "2"]
    assert sh("diff -r .history/2 bank", cwd=project).stdout == ""
    assert "number 2" in sh("diff -r .history/1 .history/2", cwd=project, status=1).stdout


def test_why_leads_from_a_bank_file_to_its_notes(mounted: Mount, banks: list[tuple[Path, list[str]]]) -> None:
    project = mounted / "project"
    [name] = sh("grep -l 'number 2' bank/*", cwd=project).stdout.split()

    page = sh(f"cat .why/{name.removeprefix('bank/')}", cwd=project).stdout

    assert "- run 2, " in page
    assert ": We chose the number 2." in page
    size = sh(f"stat -c %s .why/{name.removeprefix('bank/')}", cwd=project).stdout
    assert int(size) == len(page.encode())
    assert sorted(os.listdir(project / ".why")) == sorted(os.listdir(project / "bank"))


def test_every_change_is_refused_as_read_only(mounted: Mount, banks: list[tuple[Path, list[str]]]) -> None:
    [name, *_] = [path.removeprefix("./") for path in banks[0][1]]
    for change in (
        f"echo x >> .history/1/{name}",
        f": > .why/{name}",
        f"rm -f .history/1/{name}",
        "rm -rf .history/1",
        "mkdir .history/9",
        f"mv .history/1/{name} out.md",
        "mv .why other",
        "touch .history/1/new",
        f"chmod 777 .history/1/{name}",
    ):
        done = sh(change, cwd=mounted / "project", status=None)
        assert done.returncode != 0, change
        assert "Read-only file system" in done.stderr, f"{change}: {done.stderr}"
    assert "livememfs undo" in (mounted / ".livememfs/errors.ndjson").read_text()


def test_an_undo_by_the_command_shows_on_the_mount(
    mounted: Mount, bucket: Bucket, banks: list[tuple[Path, list[str]]]
) -> None:
    project = mounted / "project"
    said = livememfs("undo project", env=mounted.environment).stdout

    assert "as it was before run 2" in said
    sh("for i in $(seq 120); do ls live | grep -q . && exit 0; sleep 0.1; done; exit 1", cwd=project)
    sh("for i in $(seq 60); do [ -e .history/3 ] && exit 0; sleep 0.1; done; exit 1", cwd=project)
    assert sh("diff -r .history/1 .history/3", cwd=project).stdout == ""
    kept, names = banks[0]
    wanted = {f"project/bank/{name.removeprefix('./')}": (kept / name).read_bytes() for name in names}
    assert {key: bucket.get(key) for key in bucket.keys("project/bank/") if key.endswith(".md")} == wanted
    assert "number 2" in sh("cat live/*", cwd=project).stdout
    sh("for i in $(seq 60); do diff -r .history/1 bank && exit 0; sleep 0.1; done; exit 1", cwd=project)

    sh(TOUCH, cwd=project)
    assert "number 2" in sh("cat bank/*.md", cwd=project).stdout
    assert livememfs("history project", env=mounted.environment).stdout.count("applied") == 3
