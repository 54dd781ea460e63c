"""What is private stays in the daemon's memory: neither the bucket nor the local state has it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from machine import Mount, sh
from test_mount_watch import until

TOKEN = "gh" + "p_" + "aB3" * 12
SECRET = "the moon is hollow"
TEXT = f"before <private>{SECRET}</private> then {TOKEN} after"
KEPT_WITHIN = 10.0
PUBLIC = "before [private] then [redacted: github-token] after"


def found(text: str, *folders: Path) -> str:
    """The files below some folders that have a text."""
    places = " ".join(str(folder) for folder in folders)
    return sh(f"grep -raFl -e '{text}' {places}", status=None).stdout


def kept(home: Path) -> bool:
    """Whether the local state has the draft. Looked for without another process: each end of one closes the note."""
    return any(b"before [private] then" in path.read_bytes() for path in home.rglob("state.db*"))


def test_neither_the_bucket_nor_the_local_state_has_what_is_private(
    folder_mounted: Mount, folder: Path, tmp_path: Path
) -> None:
    space = folder_mounted / "project"
    home = tmp_path / "home-mnt"

    sh(f"echo '{TEXT}' > live/plan && echo '{TEXT}' > memories/plan && echo '{TEXT}' > self/plan", cwd=space)
    sh(f"echo draft > goals/.x.swp; sed -i 's/after/{TOKEN}/' live/plan", cwd=space)
    sh(f"exec 3<>.recall; echo '{TEXT}' >&3; cat <&3", cwd=space)
    folder_mounted.uploaded()

    assert PUBLIC in sh("cat memories/plan", cwd=space).stdout
    assert found("before [private] then", folder) != ""
    for private in (SECRET, TOKEN):
        assert found(private, folder, home) == ""
    told = [json.loads(line) for line in (folder_mounted / ".livememfs/errors.ndjson").read_text().splitlines()]
    paths = [line["path"] for line in told if line["operation"] == "privacy"]
    assert paths[:3] == ["project/live/plan", "project/memories/plan", "project/self/plan"]
    assert paths[-1] == "project/.recall"


def test_what_a_crash_leaves_of_an_open_note_has_nothing_private(
    folder_mounted: Mount, folder: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home-mnt"
    note = os.open(folder_mounted / "project/live/plan", os.O_WRONLY | os.O_CREAT)
    os.write(note, TEXT.encode())
    until(lambda: kept(home), KEPT_WITHIN)
    folder_mounted.kill()
    with suppress(OSError):
        os.close(note)
    folder_mounted.start()

    recovered = sh("cat .livememfs/recovered/*", cwd=folder_mounted.path).stdout

    assert recovered == PUBLIC
    assert found(SECRET, folder, home) == ""
    assert found(TOKEN, folder, home) == ""
