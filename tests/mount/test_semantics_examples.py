"""The examples of docs/semantics.md do what the page says, each in a fresh space of a real mount."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from machine import Mount, clean_environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "semantics.md"
BLOCK = re.compile(r"^```sh example\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXPECTED = "#=> "
EXAMPLES = BLOCK.findall(PAGE.read_text())


def _expected(example: str) -> str:
    """What the page says is printed; an editor may have cut the blank at the end of an empty line."""
    lines = [line for line in example.splitlines() if line.startswith(EXPECTED.rstrip())]
    return "".join(line.removeprefix(EXPECTED.rstrip()).removeprefix(" ") + "\n" for line in lines)


def _title(example: str) -> str:
    return example.splitlines()[0]


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 5
    assert len(EXAMPLES) == PAGE.read_text().count("```sh example")


@pytest.mark.parametrize("example", EXAMPLES, ids=_title)
def test_an_example_prints_what_the_page_says(example: str, folder_mounted: Mount, tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=example,
        cwd=folder_mounted.path / "project",
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.stdout, done.stderr, done.returncode) == (_expected(example), "", 0)
