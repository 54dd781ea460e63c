"""The three agents: which files of a project each reads, and what is put there.

Owns the tables. Event names are each agent's own; the files below `.hooks` are called the same. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from livememfs.agents.install.command import Hook
from livememfs.agents.install.parts import Hooks, Part, Servers
from livememfs.agents.install.textparts import Line, Rule, Table, rule_text

TIMEOUT = 10
"""Seconds after which Claude Code and Codex end a hook."""
RULE = ".cursor/rules/livememfs-context.mdc"


class Tool(StrEnum):
    """The agents there are hooks for."""

    CLAUDE_CODE = "claude-code"
    CURSOR = "cursor"
    CODEX = "codex"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an installation is to do.

    :space:   the absolute path of the space in its mount
    :shared:  hooks of Claude Code go into the settings that are committed
    :mcp:     the MCP server as well
    :context: what `context.md` says; None when it cannot be read
    """

    space: str
    shared: bool = False
    mcp: bool = False
    context: str | None = None

    @property
    def name(self) -> str:
        """The space's name."""
        return self.space.rpartition("/")[2]


CLAUDE_MATCHERS: Mapping[str, str | None] = MappingProxyType(
    {"SessionStart": None, "UserPromptSubmit": None, "PreToolUse": "Read", "PostToolUse": "*", "Stop": None}
)
CODEX_MATCHERS: Mapping[str, str | None] = MappingProxyType(
    {"SessionStart": None, "UserPromptSubmit": None, "PostToolUse": None, "Stop": None}
)
CURSOR_EVENTS = ("beforeSubmitPrompt", "afterShellExecution", "afterMCPExecution", "afterFileEdit", "stop")


def parts(tool: Tool, wanted: Wanted | None, spaces: Collection[str] = ()) -> list[Part]:
    """What each file of a project is to hold, the wanted ones first; without `wanted`, nothing of ours.

    :spaces: further spaces, as absolute paths, whose lines in CLAUDE.md count as ours
    """
    if tool is Tool.CLAUDE_CODE:
        found = _claude_code(wanted, spaces)
    else:
        found = _cursor(wanted) if tool is Tool.CURSOR else _codex(wanted)
    return sorted(found, key=lambda part: not part.wanted)


def _claude_code(wanted: Wanted | None, spaces: Collection[str]) -> list[Part]:
    local = wanted if wanted is not None and not wanted.shared else None
    shared = wanted if wanted is not None and wanted.shared else None
    known = "|".join(re.escape(_import(space)) for space in spaces) or "(?!)"
    return [
        _hooks(".claude/settings.local.json", local, CLAUDE_MATCHERS, _nested(CLAUDE_MATCHERS)),
        _hooks(".claude/settings.json", shared, CLAUDE_MATCHERS, _nested(CLAUDE_MATCHERS)),
        Line("CLAUDE.md", _import(wanted.space) if wanted else None, re.compile(known), _TOLD),
        Servers(".mcp.json", _served(wanted)),
    ]


def _cursor(wanted: Wanted | None) -> list[Part]:
    text = rule_text(f"{_told(wanted.space)}\n" if wanted.context is None else wanted.context) if wanted else None
    return [
        _hooks(".cursor/hooks.json", wanted, CURSOR_EVENTS, lambda hook: {"command": hook.command}, version=True),
        Rule(RULE, text),
        Servers(".cursor/mcp.json", _served(wanted)),
    ]


def _codex(wanted: Wanted | None) -> list[Part]:
    return [
        _hooks(".codex/hooks.json", wanted, CODEX_MATCHERS, _nested(CODEX_MATCHERS)),
        Line("AGENTS.md", _told(wanted.space) if wanted else None, _TOLD, _IMPORTED),
        Table(".codex/config.toml", _served(wanted)),
    ]


def _hooks(
    path: str, wanted: Wanted | None, events: Collection[str], shape: Callable[[Hook], Any], *, version: bool = False
) -> Hooks:
    entries = {event: shape(Hook(wanted.space, event)) for event in events} if wanted is not None else {}
    return Hooks(path, entries, shape, version=version)


def _nested(matchers: Mapping[str, str | None]) -> Callable[[Hook], Any]:
    """How Claude Code and Codex write a hook."""

    def shape(hook: Hook) -> dict[str, Any]:
        matcher = matchers.get(hook.event)
        run = {"type": "command", "command": hook.command, "timeout": TIMEOUT}
        return {**({} if matcher is None else {"matcher": matcher}), "hooks": [run]}

    return shape


def _served(wanted: Wanted | None) -> str | None:
    return wanted.name if wanted is not None and wanted.mcp else None


def _import(space: str) -> str:
    """A line that Claude Code replaces by the file; a blank in the path needs a backslash there."""
    return "@" + f"{space}/context.md".replace(" ", "\\ ")


def _told(space: str) -> str:
    """A line for agents that have no imports."""
    return f"What is known about this project: read {space}/context.md before you start."


def _like(line: str) -> re.Pattern[str]:
    """Such lines for whichever space; `|` stands in its place."""
    before, after = (re.escape(part) for part in line.split("|"))
    return re.compile(f"{before}/.+{after}")


_TOLD, _IMPORTED = _like(_told("|")), _like(_import("|"))
