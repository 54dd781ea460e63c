"""What a sandbox does to a folder that an agent may write to, on a real mount."""

from __future__ import annotations

import pytest
from cloud import Bucket
from machine import SPACE, StartMount, sh

ONE_COMMAND = """
mkdir .git .codex
unshare -rm sh -c '
    mount -t tmpfs -o ro,mode=555 none .git
    mount --bind .codex .codex
    ! mkdir .git/hooks .codex/hooks
    echo "We chose S3." > "$0"
' "{note}"
rmdir .git .codex
"""


@pytest.mark.parametrize("above", ["", f"{SPACE}/live"])
def test_a_sandbox_mounts_over_names_that_are_not_there(above: str, bucket: Bucket, start_mount: StartMount) -> None:
    """And a command in it writes a note, twice, as each command has a sandbox of its own."""
    mount = start_mount(bucket.environment())
    live, folder = mount.path / SPACE / "live", mount.path / above
    (mount.path / SPACE).mkdir()

    for name in ("one", "two"):
        said = sh(ONE_COMMAND.format(note=live / name), cwd=folder)
        assert said.stderr.count("Read-only file system") == 2
        assert (live / name).read_text().endswith("We chose S3.\n")

    assert not (folder / ".git").exists()
