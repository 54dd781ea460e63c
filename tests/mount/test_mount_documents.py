"""README and the tutorial, typed as they stand in a fresh home, print what they say: on a folder, and on S3 servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchlib.servers import s3_server
from machine import LONG, sh

ROOT = Path(__file__).resolve().parents[2]

PYTHON = sys._base_executable  # type: ignore[attr-defined]  # the interpreter of which .venv was made
INDEX = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
PLAYER = ROOT / "scripts" / "docslib" / "play.py"


def played(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = f"--path={Path(sys.executable).parent}"
    return subprocess.run([sys.executable, PLAYER, path, *arguments], capture_output=True, text=True, check=False)


PLAYED = [("README.md", "folder")]
ALSO = [
    ("docs/tutorial.md", "moto"),
    ("README.md", "moto"),
    ("docs/tutorial.md", "folder"),
    ("README.md", "seaweedfs"),
    ("docs/tutorial.md", "seaweedfs"),
]


@pytest.mark.parametrize(("document", "store"), PLAYED + (ALSO if LONG else []))
def test_a_document_typed_as_it_stands_prints_what_it_says(document: str, store: str, tmp_path: Path) -> None:
    if store == "folder":
        done = played(ROOT / document)
    else:
        with s3_server(store, tmp_path) as server:
            done = played(*(f"--env={name}={value}" for name, value in server.environment().items()), ROOT / document)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not LONG, reason="it builds a whole installation")
def test_on_a_machine_without_it_one_line_of_readme_installs_and_sets_it_up(tmp_path: Path) -> None:
    """A clean checkout in a fresh home; then the documents are played with what that line installed."""
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("scripts/setup && "))
    sh(f"mkdir checkout home && git -C {ROOT} archive HEAD | tar x -C checkout", cwd=tmp_path)
    fresh = {"HOME": str(tmp_path / "home"), "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PYTHON": PYTHON}
    try:
        said = sh(line, cwd=tmp_path / "checkout", env={**fresh, **INDEX}, timeout=280).stdout
        assert (tmp_path / "home/memory/notes/live").is_dir(), said
    finally:
        sh(f"{tmp_path}/checkout/.venv/bin/livememfs umount {tmp_path}/home/memory", env=fresh, status=None)
    installed = f"--path={tmp_path}/checkout/.venv/bin"
    for document in ("README.md", "docs/tutorial.md"):
        done = subprocess.run(
            [sys.executable, PLAYER, installed, ROOT / document], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "printed", ["another\n", "", "one\ntwo\n", "... and more\n"], ids=["other", "nothing", "more", "dots"]
)
def test_a_document_that_says_something_else_is_told_from_one_that_is_right(printed: str, tmp_path: Path) -> None:
    document = tmp_path / "wrong.md"
    document.write_text(f"```console\n$ echo one; echo 2026-01-02\n{printed}2027-03-04\n```\n")
    right = tmp_path / "right.md"
    right.write_text("```console\n$ echo one; echo 2026-01-02\none\n2027-03-04\n$ echo a b c\na ... c\n```\n")

    assert played(document).returncode == 1
    assert played(right).returncode == 0
