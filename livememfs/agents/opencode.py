"""What the plugin for opencode tells (read in 1.18): opencode runs no commands as hooks, and a plugin of ours posts the
events of Claude Code with opencode's own session, tools and inputs (`filePath`, `command`).

Owns which of them there are. Pure; any thread.
"""

from __future__ import annotations

from livememfs.agents.claude import family

OPENCODE = "opencode"
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact",
    "SessionEnd",
)  # fmt: skip
CONTRACTS = family(OPENCODE, EVENTS)
