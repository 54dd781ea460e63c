"""Ending a mount that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_without_a_mount_there_is_nothing_to_stop_and_the_process_goes_on() -> None:
    """A process of its own: libfuse would take this one down."""
    done = subprocess.run(
        [sys.executable, "-c", "from livememfs.fuse import mount; print(mount.stop())"],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "False\n")
