"""The parts for the files of one agent, from the table of agents.

Owns the wishes of an installation, and the files of earlier versions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from livememfs.agents.install.command import MACHINE, HookCommand, memory_off
from livememfs.agents.install.parts import HooksPart, InstalledPart, Servers, SettingsPart
from livememfs.agents.install.plugin import PLUGIN_HEAD, plugin_text
from livememfs.agents.install.table import AGENTS, Agent, AgentName, HookEvent
from livememfs.agents.install.textparts import Line, Plugin, Rule, Script
from livememfs.errors import UsageError

__all__ = ["AGENTS", "AgentName", "WantedFile", "parts"]

FORMER_TIMEOUT = 10
SCRIPT_HEAD = "#!/bin/sh\n# A hook of livememfs, written by `livememfs install`\n"
NOTHING_YET = "Nothing yet: no mount has written this file.\n"


@dataclass(frozen=True, kw_only=True)
class WantedFile:
    """The wishes of an installation.

    :space:   the absolute path of the space in its mount; the path of `.livememfs` there: the space of each project
    :shared:  write the hooks of Claude Code into the committed settings
    :server:  the command of the MCP server, up to `mcp`; None: no server
    :context: the content of `context.md`; None when it cannot be read
    """

    space: str
    shared: bool = False
    server: Sequence[str] | None = None
    context: str | None = None

    @property
    def name(self) -> str:
        """The space's name."""
        return self.space.rpartition("/")[2]

    @property
    def user(self) -> bool:
        """Whether it is for all projects of the user."""
        return self.name == MACHINE

    @property
    def argv(self) -> list[str] | None:
        """The command of the MCP server; None without one."""
        if self.server is None:
            return None
        where = ["--mount", self.space.removesuffix(f"/{MACHINE}")] if self.user else ["--space", self.space]
        return [*self.server, "mcp", *where]


# --- the parts ---------------------------------------------------------------------------------------------------


def parts(
    tool: AgentName, wanted: WantedFile | None, spaces: Collection[str] = (), *, home: bool = False
) -> list[InstalledPart]:
    """The parts for all files of an agent, the wanted ones first; without `wanted`, none is wanted.

    UsageError for a wish that the agent does not support.

    :spaces: further spaces, as absolute paths, whose lines in CLAUDE.md count as ours
    :home:   whether it is the home directory, for all projects
    """
    agent = AGENTS[tool]
    if wanted is not None:
        _check(tool, agent, wanted, home=home)
    all_parts = [
        *_settings(tool, agent, wanted, home=home),
        *_scripts(tool, agent, wanted, home=home),
        *_texts(agent, wanted, home=home),
    ]
    if not home:
        all_parts += _formerly(tool, spaces, {part.path for part in all_parts})
    return sorted(all_parts, key=lambda part: not part.wanted)


def _check(tool: AgentName, agent: Agent, wanted: WantedFile, *, home: bool) -> None:
    place = agent.servers.home if home else agent.servers.path
    if wanted.server is not None and agent.plugin is None and not place:
        raise UsageError(f"{tool} has MCP servers only for all projects: livememfs install {tool} --user --mcp")
    if home and wanted.server is None and agent.hooks is None and agent.plugin is None:
        raise UsageError(f"for all projects {tool} only takes an MCP server: add --mcp")


def _settings(tool: AgentName, agent: Agent, wanted: WantedFile | None, *, home: bool) -> list[InstalledPart]:
    """The JSON files, each with all our entries in it."""
    sides: dict[str, list[HooksPart | Servers]] = {}
    if agent.hooks is not None and not agent.hooks.path.endswith("/"):
        shared = wanted is not None and wanted.shared
        file = agent.hooks
        for path in (file.place(home=True),) if home else filter(None, (file.path, file.shared)):
            is_place = home or (path == file.shared) == shared
            sides.setdefault(path, []).append(_hooks(tool, agent, wanted if is_place else None, home=home))
    servers, place = agent.servers, agent.servers.home if home else agent.servers.path
    argv = wanted.argv if wanted is not None else None
    if place and servers.kind is None:
        sides.setdefault(place, []).append(Servers(argv, servers.named, servers.more))
    files: list[InstalledPart] = [SettingsPart(path, *ours, strict=agent.strict) for path, ours in sides.items()]
    return [*files, servers.kind(place, argv)] if place and servers.kind is not None else files


def _wanted_hooks(tool: AgentName, agent: Agent, wanted: WantedFile | None, *, home: bool) -> dict[str, HookCommand]:
    hooks: dict[str, HookCommand] = {}
    if wanted is not None and (file := agent.hooks) is not None:
        tells = file.tells and (home or agent.rule is None)
        for name, event in file.events.items():
            if tells or not event.starts:
                off = memory_off(wanted.space) if event.starts and file.warns else ""
                hooks[name] = HookCommand(wanted.space, f"{tool.short}.{name}", off)
    return hooks


def _hooks(tool: AgentName, agent: Agent, wanted: WantedFile | None, *, home: bool) -> HooksPart:
    assert agent.hooks is not None  # the caller checked
    file = agent.hooks
    return HooksPart(
        _wanted_hooks(tool, agent, wanted, home=home),
        lambda name, hook: file.shape(file.events.get(name, HookEvent()), hook.command),
        lambda name, hook: _former_shape(tool, name, hook.command),
        file.version,
    )


def _former_shape(tool: AgentName, name: str, command: str) -> dict[str, Any]:
    """An entry as version 0.1 wrote it."""
    if tool is AgentName.CURSOR:
        return {"command": command}
    matcher = {"PreToolUse": "Read", "PostToolUse": "*"}.get(name) if tool is AgentName.CLAUDE_CODE else None
    run = {"type": "command", "command": command, "timeout": FORMER_TIMEOUT}
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": [run]}


def _scripts(tool: AgentName, agent: Agent, wanted: WantedFile | None, *, home: bool) -> list[InstalledPart]:
    """Hooks that are programs."""
    if (file := agent.hooks) is None or not file.path.endswith("/"):
        return []
    hooks = _wanted_hooks(tool, agent, wanted, home=home)
    folder = file.place(home=home)
    lines = {name: f"{hooks[name].command}\n" if name in hooks else None for name in file.events}
    return [Script(f"{folder}{name}", SCRIPT_HEAD, line) for name, line in lines.items()]


def _texts(agent: Agent, wanted: WantedFile | None, *, home: bool) -> list[InstalledPart]:
    """Files and lines that are no settings."""
    texts: list[InstalledPart] = []
    if agent.rule is not None and not home:
        text = None if wanted is None else wanted.context or NOTHING_YET
        texts.append(Rule(agent.rule.path, agent.rule.head, text))
        if agent.rule.line is not None:
            path, line = agent.rule.line
            texts.append(Line(path, line if wanted else None, re.compile(re.escape(line)), re.compile("(?!)")))
    if agent.plugin is not None:
        plugin = plugin_text(wanted.space, wanted.argv) if wanted is not None else None
        texts.append(Plugin(agent.plugin[home], PLUGIN_HEAD, plugin))
    return texts


def _formerly(tool: AgentName, spaces: Collection[str], taken: Collection[str]) -> list[InstalledPart]:
    """Lines of version 0.1. They are removed now: with them the context came twice."""
    # Claude Code replaces such a line with the file. Blanks in the path have a backslash.
    imports = ["@" + f"{space}/context.md".replace(" ", "\\ ") for space in spaces]
    known = re.compile("|".join(map(re.escape, imports)) or "(?!)")
    lines = {
        AgentName.CLAUDE_CODE: Line("CLAUDE.md", None, known, _TOLD),
        AgentName.CODEX: Line("AGENTS.md", None, _TOLD, _IMPORTED),
    }
    return [line for agent, line in lines.items() if agent is tool and line.path not in taken]


_TOLD = re.compile(r"What is known about this project: read /.+/context\.md before you start\.")
_IMPORTED = re.compile(r"@/.+/context\.md")
