"""A project in a git repository, and a state folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from projects import Project


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where records go: below the test's own directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Project]:
    """`project({"CLAUDE.md": b"..."}, links={"CLAUDE.md": "AGENTS.md"})`: a repository with these files committed."""

    def make(files: dict[str, bytes] | None = None, links: dict[str, str] | None = None) -> Project:
        return Project.made(tmp_path / "project", files or {}, links or {})

    return make


@pytest.fixture
def made(project: Callable[..., Project]) -> Project:
    """A project without files."""
    return project()
