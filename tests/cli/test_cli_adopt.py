"""`livememfs adopt`: what is asked for first, what is shown, and what is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Cli

SETTINGS = ".claude/settings.local.json"


@pytest.fixture
def own(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The agent's configuration folder; it is set to keep its memory in `memory` there."""
    folder = tmp_path / "configuration"
    (folder / "memory").mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"autoMemoryDirectory": str(folder / "memory")}))
    (folder / "memory/MEMORY.md").write_text("- a\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    return folder


def test_a_dry_run_shows_files_and_settings_and_changes_nothing(cli: Cli, mount: Path, there: Path, own: Path) -> None:
    done = cli("adopt", "claude-code", "project", "--dry-run")
    assert f"copy: {mount}/project/agents/claude-code/MEMORY.md" in done.out
    assert f'+  "autoMemoryDirectory": "{mount}/project/agents/claude-code"' in done.out
    assert not (mount / "project/agents").exists()
    assert not (there / SETTINGS).exists()


def test_it_is_adopted_and_given_back(cli: Cli, mount: Path, there: Path, own: Path) -> None:
    done = json.loads(cli("adopt", "claude-code", "project", "--yes", "--json").out)
    assert (done["done"], done["files"]) == (True, [{"path": "MEMORY.md", "action": "copy"}])
    assert (mount / "project/agents/claude-code/MEMORY.md").read_text() == "- a\n"
    assert cli("adopt", "claude-code", "project", "--yes").out == "nothing needs to change\n"
    (mount / "project/agents/claude-code/MEMORY.md").write_text("- b\n")
    cli("adopt", "--undo", "claude-code", "--yes")
    assert (own / "memory/MEMORY.md").read_text() == "- b\n"
    assert not (there / SETTINGS).exists()


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (("adopt", "claude-code"), 2, "name the space"),
        (("adopt", "--undo", "claude-code", "project"), 2, "takes none"),
        (("adopt", "codex", "project"), 2, "~/.codex/memories"),
        (("adopt", "zed", "project"), 2, "has no folder"),
        (("adopt", "claude-code", "other", "--yes"), 1, "mkdir"),
        (("adopt", "claude-code", "project"), 2, "--yes"),
        (("adopt", "--undo", "claude-code", "--yes"), 1, "was not adopted here"),
        (("adopt", "claude-code", "project", "--mount", "/nowhere"), 2, "nothing is mounted on /nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(
    cli: Cli, mount: Path, there: Path, own: Path, words: tuple[str, ...], status: int, reason: str
) -> None:
    done = cli(*words)
    assert done.code == status
    assert reason in done.err
    assert not (there / SETTINGS).exists()
    assert not (mount / "project/agents").exists()
