"""A project as the tests of installing see it: files in a git repository, compared to the byte."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livememfs.agents.install import plan
from livememfs.agents.install.command import HookCommand
from livememfs.agents.install.jsontext import scan
from livememfs.agents.install.plan import Plan
from livememfs.agents.install.tools import AGENTS, AgentName, WantedFile

MOUNT = Path("/mnt/mem")
SERVER = ("/opt/bin/livememfs",)
HOOKS = {
    tool: agent.hooks.path
    for tool, agent in AGENTS.items()
    if agent.hooks is not None and not agent.hooks.path.endswith("/")
}
EVENTS = {
    tool: [name for name, event in agent.hooks.events.items() if not event.starts or agent.rule is None]
    for tool, agent in AGENTS.items()
    if agent.hooks is not None
}
STRICT = {tool for tool, agent in AGENTS.items() if agent.strict}
IMPORT = b"@/mnt/mem/project/context.md"
TOLD = b"What is known about this project: read /mnt/mem/project/context.md before you start."
FORMER = {
    AgentName.CLAUDE_CODE: {
        "SessionStart": None,
        "UserPromptSubmit": None,
        "PreToolUse": "Read",
        "PostToolUse": "*",
        "Stop": None,
    },
    AgentName.CODEX: {"SessionStart": None, "UserPromptSubmit": None, "PostToolUse": None, "Stop": None},
}


def former(tool: AgentName) -> dict[str, bytes]:
    """What version 0.1 made of a project with one line in its rules, without the record."""
    hooks = {}
    for event, matcher in FORMER[tool].items():
        run = {"type": "command", "command": HookCommand(f"{MOUNT}/project", event, former=True).command, "timeout": 10}
        hooks[event] = [{**({"matcher": matcher} if matcher else {}), "hooks": [run]}]
    file, line = ("CLAUDE.md", IMPORT) if tool is AgentName.CLAUDE_CODE else ("AGENTS.md", TOLD)
    return {HOOKS[tool]: json.dumps({"a": 1, "hooks": hooks}).encode(), file: b"# Project\n" + line + b"\n"}


@dataclass(frozen=True)
class Project:
    """A directory with a git repository."""

    path: Path

    @classmethod
    def made(cls, path: Path, files: dict[str, bytes], links: dict[str, str]) -> Project:
        """One with these files committed."""
        project = cls(path)
        path.mkdir()
        for name, data in files.items():
            project.write(name, data)
        for name, target in links.items():
            (path / name).symlink_to(target)
        project.git("init", "-q")
        project.git("config", "core.autocrlf", "false")
        project.git("add", "-A")
        project.git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x")
        return project

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """What git says on standard output."""
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, input=stdin, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def write(self, name: str, data: bytes) -> None:
        """Let a file hold this."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(data)

    def read(self, name: str) -> bytes:
        """What a file holds."""
        return (self.path / name).read_bytes()

    def json(self, name: str) -> Any:
        """The value a JSON file holds."""
        return scan(self.read(name).decode()).value

    def everything(self) -> dict[str, tuple[int, bytes]]:
        """Each file, link and directory but git's: its type and mode, and its bytes."""
        entries = {}
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if name == ".git" or name.startswith(".git/"):
                continue
            mode = path.lstat().st_mode
            link = os.fsencode(path.readlink()) if path.is_symlink() else b""
            entries[name] = mode, link or (path.read_bytes() if stat.S_ISREG(mode) else b"")
        return entries

    def status(self) -> set[str]:
        """The files that git sees as changed."""
        lines = self.git("status", "--porcelain", "--untracked-files=all", "-z").split("\0")
        return {line[3:] for line in lines if line}

    def planned(
        self, tool: AgentName, space: str = "project", mount: Path = MOUNT, *, mcp: bool = False, **more: Any
    ) -> Plan:
        """What an installation would change."""
        more |= {"server": SERVER} if mcp else {}
        return plan.installation(tool, self.path, mount, WantedFile(space=f"{mount}/{space}", **more))

    def install(self, tool: AgentName, space: str = "project", **more: Any) -> Plan:
        """Install, and what was planned."""
        planned = self.planned(tool, space, **more)
        planned.carry_out()
        return planned

    def removal(self, tool: AgentName, *, home: bool = False) -> Plan:
        """What uninstalling would change."""
        return plan.removal(tool, self.path, home=home)

    def uninstall(self, tool: AgentName, *, home: bool = False) -> Plan:
        """Uninstall, and what was planned."""
        planned = self.removal(tool, home=home)
        planned.carry_out()
        return planned
