"""The agents: which files each reads, in a project and of a user, and how hooks are written there.

Owns the table. Event names are each agent's own; the exchange files are called the same, behind the agent's name and a
dot. Each agent gets what is known by one channel: its hooks where they can tell it, else a file that it reads as a
rule, which is a real file that the mount keeps. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from livememfs.agents.install.textparts import Extension, TomlTable

TIMEOUT = 5
"""Seconds after which an agent ends a hook; one ends by itself before."""


class AgentName(StrEnum):
    """The agents that can be installed for."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CURSOR = "cursor"
    GEMINI = "gemini"
    QWEN = "qwen"
    OPENCODE = "opencode"
    COPILOT = "copilot"
    WINDSURF = "windsurf"
    CLINE = "cline"
    GOOSE = "goose"
    ZED = "zed"

    @property
    def short(self) -> str:
        """Its name in files and records."""
        return self.value.removesuffix("-code")


# --- how hooks are written ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HookEvent:
    """One event: for which tools, whether a session begins with it, whether nobody need wait for it, and for how many
    seconds the agent lets it go on.
    """

    matcher: str | None = None
    starts: bool = False
    aside: bool = False
    seconds: int = TIMEOUT


Shape = Callable[[HookEvent, str], dict[str, Any]]


def _nested(unit: int) -> Shape:
    """Claude Code and those that follow it; `unit`: what a second is in their timeouts."""

    def shape(event: HookEvent, command: str) -> dict[str, Any]:
        run: dict[str, Any] = {"type": "command", "command": command, "timeout": event.seconds * unit}
        aside = {"async": True} if event.aside else {}
        return {**({} if event.matcher is None else {"matcher": event.matcher}), "hooks": [run | aside]}

    return shape


def _flat(name: str, **more: Any) -> Shape:
    return lambda _, command: {name: command, **more}


@dataclass(frozen=True, kw_only=True)
class HookFile:
    """Where an agent has its hooks.

    :path:    below a project; one that ends with a slash is a folder with a program for each event
    :home:    below the user's home, for all projects
    :tells:   whether a hook can tell the agent what is known, and so a session's begin is one of the events
    :warns:   whether a hook can tell the user something
    :version: the member by which a new file says which form it has
    """

    path: str
    home: str
    events: Mapping[str, HookEvent]
    shape: Shape
    tells: bool = True
    warns: bool = False
    version: tuple[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class RuleFile:
    """A file in a project that an agent reads as a rule, and what it begins with.

    :line: a line at the end of another file that leads to it: that file's path, and the line
    """

    path: str
    head: str
    line: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class ServerFile:
    """Where an agent has its MCP servers; in `path` for one project, in `home` for all. Empty: nowhere."""

    path: str = ""
    home: str = ""
    kind: type[TomlTable] | type[Extension] | None = None
    named: str = "mcpServers"
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What one agent reads.

    :strict: its name, where it reads nothing of a file of settings that has comments
    :plugin: a file that is all ours and does all of it, below a project and below the home
    :hint:   what its user has to know or to do
    """

    hooks: HookFile | None = None
    rule: RuleFile | None = None
    servers: ServerFile = field(default_factory=ServerFile)
    plugin: tuple[str, str] | None = None
    strict: str = ""
    hint: str


# --- the table ---------------------------------------------------------------------------------------------------

_EDITS = "Read|Edit|Write|MultiEdit"
_HEAD = "<!-- What livememfs remembers about this project: recorded data, kept up to date by a mount -->\n"
CURSOR_HEAD = "---\ndescription: What livememfs remembers about this project\nalwaysApply: true\n---\n"
_WINDSURF_HEAD = "---\ntrigger: always_on\ndescription: What livememfs remembers about this project\n---\n"
_CLAUDE_EVENTS = {
    "SessionStart": HookEvent(starts=True),
    "UserPromptSubmit": HookEvent(),
    "PreToolUse": HookEvent(_EDITS),
    "PostToolUse": HookEvent("*", aside=True),
    "PostToolUseFailure": HookEvent("*", aside=True),
    "Stop": HookEvent(),
    "SubagentStop": HookEvent(),
    "PreCompact": HookEvent(),
    "SessionEnd": HookEvent(),
}
_CODEX_EVENTS = {
    "SessionStart": HookEvent(starts=True),
    "UserPromptSubmit": HookEvent(),
    "PreToolUse": HookEvent("apply_patch|Edit|Write"),
    "PostToolUse": HookEvent(),
    "PreCompact": HookEvent(),
    "SubagentStop": HookEvent(),
    "Stop": HookEvent(),
    "SessionEnd": HookEvent(seconds=3),  # Codex warns of more in each session
}
_GEMINI_EVENTS = {
    "SessionStart": HookEvent(starts=True),
    "BeforeAgent": HookEvent(),
    "AfterTool": HookEvent("*"),
    "AfterAgent": HookEvent(),
    "SessionEnd": HookEvent(),
}
_QWEN_EVENTS = {
    "SessionStart": HookEvent(starts=True),
    "UserPromptSubmit": HookEvent(),
    "PostToolUse": HookEvent("*"),
    "PostToolUseFailure": HookEvent("*"),
    "Stop": HookEvent(),
    "SubagentStop": HookEvent(),
    "PreCompact": HookEvent(),
    "SessionEnd": HookEvent(),
}
_CURSOR_EVENTS = {
    "sessionStart": HookEvent(starts=True),
    "beforeSubmitPrompt": HookEvent(),
    "postToolUse": HookEvent(),
    "postToolUseFailure": HookEvent(),
    "afterAgentResponse": HookEvent(),
    "subagentStop": HookEvent(),
    "preCompact": HookEvent(),
    "stop": HookEvent(),
    "sessionEnd": HookEvent(),
}
_COPILOT_EVENTS = {
    "sessionStart": HookEvent(starts=True),
    "userPromptSubmitted": HookEvent(),
    "postToolUse": HookEvent(),
    "postToolUseFailure": HookEvent(),
    "agentStop": HookEvent(),
    "preCompact": HookEvent(),
    "sessionEnd": HookEvent(),
}
_CLINE_EVENTS = {
    "TaskStart": HookEvent(starts=True),
    "TaskResume": HookEvent(starts=True),
    "UserPromptSubmit": HookEvent(),
    "PreToolUse": HookEvent(),
    "PostToolUse": HookEvent(),
    "TaskComplete": HookEvent(),
    "TaskCancel": HookEvent(),
    "TaskError": HookEvent(),
    "PreCompact": HookEvent(),
    "SessionShutdown": HookEvent(),
}
_WINDSURF_EVENTS = {
    "pre_user_prompt": HookEvent(),
    "post_write_code": HookEvent(),
    "post_run_command": HookEvent(),
    "post_mcp_tool_use": HookEvent(),
    "post_cascade_response": HookEvent(),
}

AGENTS: Mapping[AgentName, Agent] = MappingProxyType(
    {
        AgentName.CLAUDE_CODE: Agent(
            hooks=HookFile(
                path=".claude/settings.local.json",
                home=".claude/settings.json",
                events=_CLAUDE_EVENTS,
                shape=_nested(1),
                warns=True,
            ),
            servers=ServerFile(path=".mcp.json", home=".claude.json"),
            strict="Claude Code",
            hint="Claude Code reads hooks when a session begins; `/hooks` lists them",
        ),
        AgentName.CODEX: Agent(
            hooks=HookFile(
                path=".codex/hooks.json",
                home=".codex/hooks.json",
                events=_CODEX_EVENTS,
                shape=_nested(1),
                warns=True,
            ),
            servers=ServerFile(path=".codex/config.toml", home=".codex/config.toml", kind=TomlTable),
            strict="Codex",
            hint="Codex runs these hooks once you have trusted them: start `codex` and open `/hooks`. Until then"
            " `codex exec` runs none and does not say so. They need the feature `hooks`, which is on unless"
            " ~/.codex/config.toml says otherwise, and those of a project need a project that Codex trusts",
        ),
        AgentName.CURSOR: Agent(
            hooks=HookFile(
                path=".cursor/hooks.json",
                home=".cursor/hooks.json",
                events=_CURSOR_EVENTS,
                shape=_flat("command"),
                version=("version", 1),
            ),
            rule=RuleFile(path=".cursor/rules/livememfs-context.mdc", head=CURSOR_HEAD),
            servers=ServerFile(path=".cursor/mcp.json", home=".cursor/mcp.json"),
            strict="Cursor",
            hint="Cursor reads the rule and the hooks when it opens the project",
        ),
        AgentName.GEMINI: Agent(
            hooks=HookFile(
                path=".gemini/settings.json",
                home=".gemini/settings.json",
                events=_GEMINI_EVENTS,
                shape=_nested(1000),
                warns=True,
            ),
            servers=ServerFile(path=".gemini/settings.json", home=".gemini/settings.json"),
            hint="Gemini CLI runs hooks of a project in folders it trusts, and asks about each once",
        ),
        AgentName.QWEN: Agent(
            hooks=HookFile(
                path=".qwen/settings.json",
                home=".qwen/settings.json",
                events=_QWEN_EVENTS,
                shape=_nested(1000),
                warns=True,
                version=("$version", 4),  # or Qwen Code writes the file anew, with a copy beside it
            ),
            servers=ServerFile(path=".qwen/settings.json", home=".qwen/settings.json"),
            hint="Qwen Code reads hooks when it starts; `/hooks` lists them",
        ),
        AgentName.OPENCODE: Agent(
            plugin=(".opencode/plugin/livememfs.js", ".config/opencode/plugin/livememfs.js"),
            hint="opencode loads the plugin when it starts",
        ),
        AgentName.COPILOT: Agent(
            hooks=HookFile(
                path=".github/hooks/livememfs.json",
                home=".copilot/hooks/livememfs.json",
                events=_COPILOT_EVENTS,
                shape=lambda _, command: {"type": "command", "bash": command, "timeoutSec": TIMEOUT},
                version=("version", 1),
            ),
            servers=ServerFile(home=".copilot/mcp-config.json", more={"type": "local", "tools": ["*"]}),
            strict="Copilot CLI",
            hint="paths in .github/hooks are of this machine: keep that file out of commits, or install with --user",
        ),
        AgentName.WINDSURF: Agent(
            hooks=HookFile(
                path=".windsurf/hooks.json",
                home=".codeium/windsurf/hooks.json",
                events=_WINDSURF_EVENTS,
                shape=_flat("command", show_output=False),
                tells=False,
            ),
            rule=RuleFile(path=".windsurf/rules/livememfs-context.md", head=_WINDSURF_HEAD),
            servers=ServerFile(home=".codeium/windsurf/mcp_config.json"),
            strict="Windsurf",
            hint="Windsurf reads rules and hooks when it opens the project",
        ),
        AgentName.CLINE: Agent(
            hooks=HookFile(
                path=".clinerules/hooks/", home=".cline/hooks/", events=_CLINE_EVENTS, shape=_flat("command")
            ),
            rule=RuleFile(path=".clinerules/livememfs-context.md", head=_HEAD),
            servers=ServerFile(home=".cline/data/settings/cline_mcp_settings.json"),
            strict="Cline",
            hint="Cline reads the rule with each task; its extension runs hooks when they are enabled in its settings",
        ),
        AgentName.GOOSE: Agent(
            rule=RuleFile(
                path=".goose/livememfs-context.md", head=_HEAD, line=(".goosehints", "@.goose/livememfs-context.md")
            ),
            servers=ServerFile(home=".config/goose/config.yaml", kind=Extension),
            hint="Goose reads .goosehints when a session begins",
        ),
        AgentName.ZED: Agent(
            rule=RuleFile(
                path=".zed/livememfs-context.md",
                head=_HEAD,
                line=(
                    "AGENTS.md",
                    "What is known about this project: read .zed/livememfs-context.md before you start.",
                ),
            ),
            servers=ServerFile(
                path=".zed/settings.json",
                home=".config/zed/settings.json",
                named="context_servers",
                more={"source": "custom"},
            ),
            hint="Zed reads AGENTS.md where the project has no .rules, .cursorrules, .windsurfrules or .clinerules",
        ),
    }
)
