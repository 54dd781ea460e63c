"""What users install, tried where nothing else is. Takes many minutes, a mirror of Debian and a package index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="LIVEMEMFS_TEST_LONG is not set"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes roots"),
    pytest.mark.timeout(3_600),
]


def test_a_release_is_used_in_bare_roots_and_says_what_it_is(tmp_path: Path, figures: Callable[[str], None]) -> None:
    """The wheels, the Debian package, and the image where buildah is: each installed by its line, mounted, removed."""
    if shutil.which("mmdebstrap") is None and shutil.which("debootstrap") is None:
        pytest.skip("apt-get install mmdebstrap")
    done = subprocess.run(
        [ROOT / "scripts" / "release", tmp_path / "dist"], capture_output=True, text=True, timeout=3_500, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^check-deb: one command to a memory that was .*: [0-9.]+ s$", done.stdout, re.MULTILINE)
    for line in done.stdout.splitlines():
        if line.startswith(("[", "check-", "image: ")):
            figures(line)
    names = {path.name for path in (tmp_path / "dist").iterdir()}
    summed = (tmp_path / "dist" / "SHA256SUMS").read_text()
    assert all(name in summed for name in names - {"SHA256SUMS"})
    assert {Path(name).suffix for name in names} >= {".whl", ".deb", ".json"}
