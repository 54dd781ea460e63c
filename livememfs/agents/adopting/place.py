"""Where an agent keeps its own memory: Claude Code (read in 2.1.197).

Owns the name of its setting, the files that may have it, the first that counts first, and the folder where it is set
nowhere: `projects/<path>/memory` below its configuration folder, where the path is that of the repository. What an
administrator has set comes before all of them and is not looked at. Blocking; any thread.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from livememfs.agents import projects
from livememfs.agents.install.segments import decoded
from livememfs.agents.install.table import AgentName
from livememfs.errors import UsageError
from livememfs.records import keys
from livememfs.text.foreign import Unreadable, read_object

SETTING = "autoMemoryDirectory"
SETTINGS = ".claude/settings.local.json"
"""The file of a project that gets the setting: it is of this machine, and not committed."""
LONGEST = 200
"""Characters of a path; the program cuts a longer one, and adds a hash."""
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9]")


def check_tool(tool: AgentName) -> None:
    """UsageError for an agent without a memory of its own that a setting can put elsewhere."""
    if tool == AgentName.CODEX:
        raise UsageError(
            "Codex keeps its own memory in ~/.codex/memories, and no setting of it names another folder;"
            " `livememfs install codex` tells it what a space remembers"
        )
    if tool not in keys.ADOPTED:
        raise UsageError(f"{tool} has no folder with a memory of its own; `livememfs install {tool}` connects it")


def folder_of(project: Path, home: Path, configuration: Path) -> Path:
    """The folder with the memory of a project, as the agent would find it now. `configuration` is the agent's own
    folder, `~/.claude` by default.
    """
    for path in (project / SETTINGS, project / ".claude/settings.json", configuration / "settings.json"):
        value = _settings(path).get(SETTING)
        if isinstance(value, str) and value:
            folder = home / value[2:] if value.startswith("~/") else Path(value)
            if folder.is_absolute():
                return folder
    name = _NOT_IN_NAME.sub("-", str(projects.repository_around(project) or project))
    folders = configuration / "projects"
    if len(name) > LONGEST:
        name = next((path.name for path in sorted(folders.glob(f"{name[:LONGEST]}-*"))), name[:LONGEST])
    return folders / name / "memory"


def _settings(path: Path) -> dict[str, Any]:
    """The settings in a file; none where it cannot be read, as for the agent."""
    try:
        return read_object(decoded(path.read_bytes()).encode())
    except (OSError, ValueError, Unreadable):
        return {}
