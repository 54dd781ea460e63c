"""From `livememfs install` to what an agent reads: hooks, the import, and the rule that the mount keeps."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from machine import SPACE, Mount, sh

WITHIN = 30.0
EDIT = {
    "tool_name": "Edit",
    "tool_use_id": "t1",
    "tool_input": {"file_path": "/p/login.py", "old_string": "a", "new_string": "b"},
    "tool_response": {},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in git."""
    folder = tmp_path / "project of mine"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("# Mine\n")
    sh("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm first", cwd=folder)
    return folder


def livememfs(mount: Mount, *words: str, cwd: Path) -> str:
    done = subprocess.run(
        ["livememfs", *words], cwd=cwd, env=mount.environment, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout


def hook(command: str, event: str, cwd: Path, **fields: object) -> str:
    """What an agent does: the command of its settings, with the event's JSON on standard input."""
    given = json.dumps({"session_id": "s1", "cwd": "/p", "hook_event_name": event, **fields})
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=cwd, input=given, capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stderr == ""
    return done.stdout


def until_has(path: Path, text: str) -> None:
    until = time.monotonic() + WITHIN
    while text not in path.read_text():
        assert time.monotonic() < until, path.read_text()
        time.sleep(0.1)


def test_what_an_agent_did_is_in_the_next_agents_context_and_nothing_is_left_after_uninstall(
    folder_mounted: Mount, project: Path
) -> None:
    livememfs(
        folder_mounted,
        "install",
        "claude-code",
        "--space",
        SPACE,
        "--mount",
        str(folder_mounted.path),
        "--yes",
        cwd=project,
    )
    livememfs(
        folder_mounted, "install", "cursor", "--space", SPACE, "--mount", str(folder_mounted.path), "--yes", cwd=project
    )
    settings = json.loads((project / ".claude" / "settings.local.json").read_text())
    commands = {event: found[0]["hooks"][0]["command"] for event, found in settings["hooks"].items()}
    imported = (project / "CLAUDE.md").read_text().splitlines()[-1]
    assert imported.startswith("@")
    context = Path(imported.removeprefix("@").replace("\\ ", " "))

    assert hook(commands["PostToolUse"], "PostToolUse", project, **EDIT) == "{}"
    assert hook(commands["Stop"], "Stop", project) == "{}"

    until_has(context, "Edited login.py")
    until_has(project / ".cursor" / "rules" / "livememfs-context.mdc", "Edited login.py")
    answer = json.loads(hook(commands["SessionStart"], "SessionStart", project, source="startup"))
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert answer["hookSpecificOutput"]["additionalContext"] == context.read_text()
    changed = sh("git status --short", cwd=project).stdout
    assert changed == " M CLAUDE.md\n?? .claude/\n?? .cursor/\n"

    livememfs(folder_mounted, "uninstall", "claude-code", "--yes", cwd=project)
    livememfs(folder_mounted, "uninstall", "cursor", "--yes", cwd=project)
    assert sh("git status --short", cwd=project).stdout == ""
    assert sorted(path.name for path in project.iterdir()) == [".git", "CLAUDE.md"]
