"""What waits for a person, on a real mount: `ls` and `cat` show it, `mv` accepts it, `rm` refuses it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from machine import Mount, StartMount, clean_environment, livememfs, sh
from test_mount_watch import until

TOUCH = "touch .digest && cat .digest.wait"
NOTES = "".join(
    f"printf -- '---\\ncategory: decision\\n---\\n{text}\\n' > live/{number}\n"
    for number, text in enumerate(("We chose S3.", "We deploy on Fridays."))
)


def by(who: str, command: str, space: Path, status: int = 0) -> str:
    """A command of a person or an agent; what it printed."""
    done = sh(command, cwd=space, env=clean_environment(Path("/tmp"), LIVEMEMFS_AGENT=who), status=status)
    return done.stdout + done.stderr


@pytest.fixture
def space(mounted: Mount) -> Path:
    """A space in which two memories wait."""
    livememfs("space proposals project", env=mounted.environment)
    space = mounted / "project"
    sh(NOTES, cwd=space)
    sh(TOUCH, cwd=space)
    return space


def names(space: Path) -> list[str]:
    return sorted(name for name in os.listdir(space / ".proposals") if name.endswith(".md"))


def called(space: Path, text: str) -> str:
    """The name of the proposal with a text."""
    (name,) = [name for name in names(space) if text in (space / ".proposals" / name).read_text()]
    return name


def test_mv_accepts_and_rm_refuses_and_other_hosts_see_it(
    space: Path, mounted: Mount, second_mount: StartMount
) -> None:
    good, bad = called(space, "+We chose S3."), called(space, "+We deploy on Fridays.")
    assert "decision" not in sh("ls memories", cwd=space).stdout
    assert json.loads((mounted / ".livememfs/status.json").read_text())["proposals"] == 2

    by("ada", f"mv .proposals/{good} memories/", space)
    by("ada", f"rm .proposals/{bad}", space)

    at_once = sh(f"cat memories/{good}; stat -c %s memories/{good}", cwd=space).stdout
    assert "We chose S3." in at_once
    assert "diff" not in at_once
    other = second_mount() / "project"
    for seen in (space, other):
        assert names(seen) == []
        assert [name for name in os.listdir(seen / "memories") if name.endswith(".md")] == [good]
        assert "We chose S3." in (seen / "memories" / good).read_text()
        decided = sh("head -qn 3 .proposals/.decided/*", cwd=seen).stdout
        assert ("Accepted by ada" in decided, "Refused by ada" in decided) == (True, True)
    assert 'notes_processed": 0' in sh(TOUCH, cwd=space).stdout.splitlines()[-1]
    assert names(space) == []


def test_an_agent_decides_nothing_and_a_move_to_elsewhere_loses_nothing(space: Path) -> None:
    waiting = names(space)
    name = waiting[0]

    for command in (f"mv .proposals/{name} memories/", f"rm -f .proposals/{name}"):
        assert "Operation not permitted" in by("claude", command, space, status=1)
    for place in ("live/", "self/", ".", "memories/other.md"):
        assert "Operation not permitted" in by("ada", f"mv .proposals/{name} {place}", space, status=1)
    assert by("ada", f"echo x > .proposals/{name}", space, status=2)

    assert names(space) == waiting
    assert os.listdir(space / "memories/.history") == []


def test_a_move_out_of_the_mount_decides_nothing_and_rm_decides_after_any_look(space: Path, tmp_path: Path) -> None:
    waiting = names(space)
    first = waiting[0]
    page = (space / ".proposals" / first).read_text()

    for command in (
        f"mv .proposals/{first} {tmp_path}/",
        f"mv .proposals {tmp_path}/all",
        f"""python3 -c 'import shutil; shutil.move(".proposals/{first}", "{tmp_path}/moved.md")'""",
    ):
        assert "Operation not permitted" in by("ada", command, space, status=1)
    assert names(space) == waiting
    assert (tmp_path / first).read_text() == page
    assert "`rm` refuses a proposal" in (space.parent / ".livememfs/errors.ndjson").read_text()

    by("ada", f"cat .proposals/{first}; rm .proposals/{first}", space)
    assert names(space) == waiting[1:]
    assert "Read-only file system" in by("ada", "rm -r .proposals", space, status=1)
    assert names(space) == []


def test_what_waits_is_not_found_and_not_told(space: Path) -> None:
    assert "S3" not in sh("cat context.md", cwd=space).stdout
    search = 'ls "search/in:memories We chose S3"'
    assert sh(search, cwd=space).stdout == ""

    name = called(space, "+We chose S3.")
    by("ada", f"mv .proposals/{name} memories/", space)

    until(lambda: "we-chose-s3" in sh(search, cwd=space).stdout, 20)
