"""From `livememfs install` to what an agent has: hooks, the rule that the mount keeps, an MCP server that connects."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from machine import SPACE, Mount, sh
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from test_mount_watch import until

from livememfs.agents.install import plan
from livememfs.agents.install.tools import AgentName

WITHIN = 30.0
OTHERS = (
    ("gemini", ".gemini/settings.json", False),
    ("zed", ".zed/settings.json", False),
    ("copilot", ".copilot/mcp-config.json", True),
    ("goose", ".config/goose/config.yaml", True),
)
"""Forms of which another one is always tried, or that only say the same words in another file."""
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
        ["livememfs", *words], cwd=cwd, env=mount.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hook(command: str, event: str, where: Path, **fields: object) -> str:
    """What an agent does: the command of its settings, with the event's JSON on standard input."""
    given = json.dumps({"session_id": "s1", "cwd": "/p", "hook_event_name": event, **fields})
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=where, input=given, capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stderr == ""
    return done.stdout


def commands_of(settings: Path) -> dict[str, str]:
    """The command of each event, as Claude Code reads them."""
    found = json.loads(settings.read_text())["hooks"]
    return {event: entries[0]["hooks"][0]["command"] for event, entries in found.items()}


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
    commands = commands_of(project / ".claude" / "settings.local.json")
    context = folder_mounted / SPACE / "context.md"

    assert hook(commands["PostToolUse"], "PostToolUse", project, **EDIT) == "{}"
    assert hook(commands["Stop"], "Stop", project) == "{}"

    until_has(context, "Edited login.py")
    until_has(project / ".cursor" / "rules" / "livememfs-context.mdc", "Edited login.py")
    answer = json.loads(hook(commands["SessionStart"], "SessionStart", project, source="startup"))
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert answer["hookSpecificOutput"]["additionalContext"] == context.read_text()
    changed = sh("git status --short", cwd=project).stdout
    assert changed == "?? .claude/\n?? .cursor/\n"

    livememfs(folder_mounted, "uninstall", "claude-code", "--yes", cwd=project)
    livememfs(folder_mounted, "uninstall", "cursor", "--yes", cwd=project)
    assert sh("git status --short", cwd=project).stdout == ""
    assert sorted(path.name for path in project.iterdir()) == [".git", "CLAUDE.md"]


# --- the MCP server ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "file", "user"),
    [
        ("claude-code", ".mcp.json", False),
        ("codex", ".codex/config.toml", False),
        ("opencode", ".opencode/plugin/livememfs.js", False),
        ("claude-code", ".claude.json", True),
        *(OTHERS if os.environ.get("LIVEMEMFS_TEST_LONG") else ()),
    ],
)
async def test_the_server_that_is_written_connects_from_anywhere_to_the_space_that_is_meant(
    folder_mounted: Mount, project: Path, tmp_path: Path, tool: str, file: str, user: bool
) -> None:
    """Started by the SDK's client as the file says, with an environment that names neither store nor command."""
    home = tmp_path / "home-mnt"
    (home / ".local").mkdir()
    (home / ".local" / "state").symlink_to(home / "state")
    where = ["--user"] if user else ["--space", SPACE]
    livememfs(
        folder_mounted, "install", tool, *where, "--mount", str(folder_mounted.path), "--mcp", "--yes", cwd=project
    )
    standing = plan.standing(AgentName(tool), home if user else project, home=user)
    assert standing.server
    assert all(json.dumps(word) in (home if user else project).joinpath(file).read_text() for word in standing.server)

    command, *arguments = standing.server
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    started = StdioServerParameters(command=command, args=arguments, env=environment, cwd=project if user else "/")
    async with stdio_client(started) as (received, sent), ClientSession(received, sent) as session:
        await session.initialize()
        assert len((await session.list_tools()).tools) > 5
        await session.call_tool("live_note", {"content": f"Written by {tool}.", "category": "insight"})

    space = "project-of-mine" if user else SPACE
    notes = [path.read_text() for path in (folder_mounted / space / "live").iterdir()]
    assert any(f"Written by {tool}." in text for text in notes)


# --- all projects ------------------------------------------------------------------------------------------------


def test_one_installation_serves_all_projects_each_with_a_space_of_its_own(
    folder_mounted: Mount, project: Path, tmp_path: Path
) -> None:
    """Worktrees are one project, a file names another space, a stranger of the same name gets another one."""
    home = tmp_path / "home-mnt"
    livememfs(
        folder_mounted, "install", "claude-code", "--user", "--mount", str(folder_mounted.path), "--yes", cwd=home
    )
    commands = commands_of(home / ".claude" / "settings.json")
    sh("git worktree add -q ../tree", cwd=project)
    (project / "src").mkdir()
    named, plain, twin = (tmp_path / name for name in ("named", "plain", "twins/project of mine"))
    for folder in (named, plain, twin):
        folder.mkdir(parents=True)
    (named / ".livememfs.toml").write_text('space = "project"\ncolour = "red"\n')
    sh("git init -q .", cwd=twin)

    def told(folder: Path, session: str) -> str:
        given = {**EDIT, "session_id": session, "cwd": str(folder), "tool_use_id": session}
        return hook(commands["PostToolUse"], "PostToolUse", folder, **given)

    for number, folder in enumerate((project / "src", tmp_path / "tree", named, plain, twin)):
        assert told(folder, f"s{number}") == "{}"

    def sessions(space: str) -> set[str]:
        return {path.name for path in (folder_mounted / space / "sessions").iterdir()}

    spaces = {path.name for path in folder_mounted.path.iterdir()} - {".livememfs", "search"}
    [other] = spaces - {"project", "project-of-mine"}
    assert other.startswith("project-of-mine-")
    wanted = {"project-of-mine": {"s0", "s1"}, "project": {"s2"}, other: {"s4"}}
    until(lambda: all(sessions(space) for space in spaces) and len(sessions("project-of-mine")) == 2, WITHIN)
    assert {space: sessions(space) for space in spaces} == wanted
    errors = (folder_mounted / ".livememfs/errors.ndjson").read_text()
    assert "it has other keys than `space`, which are ignored: colour" in errors
    assert json.loads(hook(commands["SessionStart"], "SessionStart", twin, cwd=str(twin)))["hookSpecificOutput"]

    said = livememfs(folder_mounted, "doctor", "--json", cwd=project)
    hooks = [one for one in json.loads(said)["checks"] if one["name"] == "hooks"]
    assert [one["verdict"] for one in hooks] == ["ok"]
    assert f"claude-code in all projects: {len(commands)} answer" in hooks[0]["found"]
    assert sessions("project-of-mine") == {"s0", "s1"}
