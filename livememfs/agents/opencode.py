"""The hooks of opencode (read in 1.18): opencode runs no commands as hooks, so our plugin sends the events of Claude
Code with opencode's own session, tools and inputs (`filePath`, `command`).

Owns the list of these events. Pure; any thread.
"""

from __future__ import annotations

from livememfs.agents.claude import family

OPENCODE = "opencode"
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact",
    "SessionEnd",
)  # fmt: skip
CONTRACTS = family(OPENCODE, EVENTS)
