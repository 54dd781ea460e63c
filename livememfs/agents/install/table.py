"""The table of agents: the files that each reads, in a project and in the home directory, and the form of its hooks.

Owns the table. Event names are those of the agent; an exchange file has the name AGENT.EVENT. Each agent gets the
context in one way: from its hooks if they can add context, else from a rule file, a real file that the mount keeps up
to date. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from livememfs.agents.install.textparts import Extension, TomlTable

TIMEOUT = 5
"""Seconds after which an agent kills a hook; our hook ends earlier by itself."""


class AgentName(StrEnum):
    """The supported agents."""

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
    """One event.

    :matcher: the tools it is for; None: no such member
    :starts:  whether a session begins with it
    :aside:   whether the agent need not wait for it
    :seconds: the timeout
    """

    matcher: str | None = None
    starts: bool = False
    aside: bool = False
    seconds: int = TIMEOUT


_STARTS = HookEvent(starts=True)
Shape = Callable[[HookEvent, str], dict[str, Any]]


def _events(names: str, **special: HookEvent) -> dict[str, HookEvent]:
    """The events with these names, in this order; `special`: those that differ from most."""
    return {name: special.get(name, HookEvent()) for name in names.split()}


def _nested(unit: int) -> Shape:
    """The form of Claude Code and similar agents; `unit`: a second in the unit of their timeouts."""

    def shape(event: HookEvent, command: str) -> dict[str, Any]:
        run: dict[str, Any] = {"type": "command", "command": command, "timeout": event.seconds * unit}
        aside = {"async": True} if event.aside else {}
        return {**({} if event.matcher is None else {"matcher": event.matcher}), "hooks": [run | aside]}

    return shape


def _flat(name: str, **more: Any) -> Shape:
    return lambda _, command: {name: command, **more}


@dataclass(frozen=True, kw_only=True)
class HookFile:
    """The file with an agent's hooks.

    :path:    its path below a project; with a slash at its end a folder, with one program per event
    :home:    its path below the home directory, for all projects; empty: the same path
    :shared:  the path below a project of settings that are committed, where an agent reads such beside its own
    :tells:   whether a hook can add context, so that the events include the beginning of a session
    :warns:   whether a hook can show the user a message
    :version: a member for the format version in a new file
    """

    path: str
    home: str = ""
    shared: str = ""
    events: Mapping[str, HookEvent]
    shape: Shape
    tells: bool = True
    warns: bool = False
    version: tuple[str, int] | None = None

    def place(self, *, home: bool) -> str:
        """Its path below a project, or below the home directory."""
        return self.home or self.path if home else self.path


@dataclass(frozen=True, kw_only=True)
class RuleFile:
    """A file in a project that an agent reads as a rule.

    :head: the text it begins with
    :line: the path of another file, and the line at its end that refers to this one
    """

    path: str
    head: str
    line: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class ServerFile:
    """The file with an agent's MCP servers: `path` for one project, `home` for all. Empty: there is none."""

    path: str = ""
    home: str = ""
    kind: type[TomlTable] | type[Extension] | None = None
    named: str = "mcpServers"
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent.

    :strict: its name, if it ignores a settings file with comments
    :plugin: instead of all these, a file that is all ours: its paths below a project and below the home directory
    :hint:   what the user must know or do
    """

    hooks: HookFile | None = None
    rule: RuleFile | None = None
    servers: ServerFile = field(default_factory=ServerFile)
    plugin: tuple[str, str] | None = None
    strict: str = ""
    hint: str


# --- the table ---------------------------------------------------------------------------------------------------

_HEAD = "<!-- What livememfs remembers about this project: recorded data, kept up to date by a mount -->\n"
CURSOR_HEAD = "---\ndescription: What livememfs remembers about this project\nalwaysApply: true\n---\n"
_WINDSURF_HEAD = "---\ntrigger: always_on\ndescription: What livememfs remembers about this project\n---\n"
_CLAUDE_EVENTS = _events(
    "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SubagentStop PreCompact SessionEnd",
    SessionStart=_STARTS,
    PreToolUse=HookEvent("Read|Edit|Write|MultiEdit"),
    PostToolUse=HookEvent("*", aside=True),
    PostToolUseFailure=HookEvent("*", aside=True),
)
_CODEX_EVENTS = _events(
    "SessionStart UserPromptSubmit PreToolUse PostToolUse PreCompact SubagentStop Stop SessionEnd",
    SessionStart=_STARTS,
    PreToolUse=HookEvent("apply_patch|Edit|Write"),
    SessionEnd=HookEvent(seconds=3),  # with more, Codex warns in each session
)
_GEMINI_EVENTS = _events(
    "SessionStart BeforeAgent AfterTool AfterAgent SessionEnd", SessionStart=_STARTS, AfterTool=HookEvent("*")
)
_QWEN_EVENTS = _events(
    "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SubagentStop PreCompact SessionEnd",
    SessionStart=_STARTS,
    PostToolUse=HookEvent("*"),
    PostToolUseFailure=HookEvent("*"),
)
_CURSOR_EVENTS = _events(
    "sessionStart beforeSubmitPrompt postToolUse postToolUseFailure afterAgentResponse subagentStop preCompact stop"
    " sessionEnd",
    sessionStart=_STARTS,
)
_COPILOT_EVENTS = _events(
    "sessionStart userPromptSubmitted postToolUse postToolUseFailure agentStop preCompact sessionEnd",
    sessionStart=_STARTS,
)
_CLINE_EVENTS = _events(
    "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse TaskComplete TaskCancel TaskError PreCompact"
    " SessionShutdown",
    TaskStart=_STARTS,
    TaskResume=_STARTS,
)
_WINDSURF_EVENTS = _events("pre_user_prompt post_write_code post_run_command post_mcp_tool_use post_cascade_response")

AGENTS: Mapping[AgentName, Agent] = MappingProxyType(
    {
        AgentName.CLAUDE_CODE: Agent(
            hooks=HookFile(
                path=".claude/settings.local.json",
                home=".claude/settings.json",
                shared=".claude/settings.json",
                events=_CLAUDE_EVENTS,
                shape=_nested(1),
                warns=True,
            ),
            servers=ServerFile(path=".mcp.json", home=".claude.json"),
            strict="Claude Code",
            hint="Claude Code reads hooks when a session begins; `/hooks` lists them",
        ),
        AgentName.CODEX: Agent(
            hooks=HookFile(path=".codex/hooks.json", events=_CODEX_EVENTS, shape=_nested(1), warns=True),
            servers=ServerFile(path=".codex/config.toml", home=".codex/config.toml", kind=TomlTable),
            strict="Codex",
            hint="Codex runs these hooks once you have trusted them: start `codex` and open `/hooks`. Until then"
            " `codex exec` runs none and does not say so. They need the feature `hooks`, which is on unless"
            " ~/.codex/config.toml says otherwise, and those of a project need a project that Codex trusts",
        ),
        AgentName.CURSOR: Agent(
            hooks=HookFile(
                path=".cursor/hooks.json", events=_CURSOR_EVENTS, shape=_flat("command"), version=("version", 1)
            ),
            rule=RuleFile(path=".cursor/rules/livememfs-context.mdc", head=CURSOR_HEAD),
            servers=ServerFile(path=".cursor/mcp.json", home=".cursor/mcp.json"),
            strict="Cursor",
            hint="Cursor reads the rule and the hooks when it opens the project",
        ),
        AgentName.GEMINI: Agent(
            hooks=HookFile(path=".gemini/settings.json", events=_GEMINI_EVENTS, shape=_nested(1000), warns=True),
            servers=ServerFile(path=".gemini/settings.json", home=".gemini/settings.json"),
            hint="Gemini CLI runs hooks of a project in folders it trusts, and asks about each once",
        ),
        AgentName.QWEN: Agent(
            hooks=HookFile(
                path=".qwen/settings.json",
                events=_QWEN_EVENTS,
                shape=_nested(1000),
                warns=True,
                version=("$version", 4),  # without it, Qwen Code rewrites the file and leaves a copy
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
