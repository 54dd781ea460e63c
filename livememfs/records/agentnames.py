"""One name for each agent, whether it is known by its process, by a hook or by MCP.

Owns the table of known agents and of the names they give themselves. Does not guess: a name that is in no table stays
as it is. Pure; any thread.
"""

from __future__ import annotations

import re

from livememfs.records.keys import AGENT_MAX

_NAMES = "aider amp claude cline codex continue copilot crush cursor gemini goose opencode qwen roo windsurf zed"
AGENTS = frozenset(_NAMES.split())
_PROCESSES = {"cursor-agent": "cursor"}
_CLIENTS = {
    "claude-code": "claude",
    "cline-core": "cline",
    "codex-mcp-client": "codex",
    "copilot-cli": "copilot",
    "cursor-vscode": "cursor",
    "gemini-cli-mcp-client": "gemini",
    "github-copilot-developer": "copilot",
    "qwen-cli-mcp-client": "qwen",
    "roo-code": "roo",
    "visual-studio-code": "copilot",
    "windsurf-client": "windsurf",
}
"""The names of MCP clients, in small letters with a hyphen between the words. More words may follow, as in
`qwen-cli-mcp-client-SERVER`.
"""
_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")
_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+")


def of_process(name: str) -> str:
    """The agent whose program has this name, or an empty string."""
    name = name.removeprefix(".").removesuffix(".exe").removesuffix(".js").removesuffix(".py")
    return name if name in AGENTS else _PROCESSES.get(name, "")


def of_client(name: str) -> str:
    """The agent whose MCP client has this name; an unknown name is returned as one short line, which may be empty."""
    words = _BETWEEN_WORDS.sub("-", name[: 4 * AGENT_MAX].lower()).strip("-")
    if words in AGENTS:
        return words
    for client, agent in _CLIENTS.items():
        if f"{words}-".startswith(f"{client}-"):
            return agent
    return _UNSHOWN.sub(" ", name[: 4 * AGENT_MAX]).strip()[:AGENT_MAX]
