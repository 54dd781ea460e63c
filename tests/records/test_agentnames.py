"""An agent has one name, whichever way it is recognised."""

from pathlib import Path

import pytest

from livememfs.records import agentnames
from livememfs.tree.writer import agent_of

CLIENTS = {
    "claude-code": "claude",
    "codex-mcp-client": "codex",
    "copilot-cli": "copilot",
    "gemini-cli-mcp-client": "gemini",
    "opencode": "opencode",
    "qwen-cli-mcp-client-notes": "qwen",
    "cursor-vscode": "cursor",
    "github-copilot-developer": "copilot",
    "Visual Studio Code": "copilot",
    "Cline": "cline",
    "@cline/core": "cline",
    "windsurf-client": "windsurf",
    "goose": "goose",
    "Zed": "zed",
}
"""The first six are the names that the programs really sent."""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_mcp_has_the_short_name_of_its_agent(client: str) -> None:
    assert agentnames.of_client(client) == CLIENTS[client]
    assert CLIENTS[client] in agentnames.AGENTS


def test_a_client_that_nobody_knows_keeps_its_name_in_one_line() -> None:
    assert agentnames.of_client("Ada's agent") == "Ada's agent"
    assert agentnames.of_client("claude-ai") == "claude-ai"
    assert agentnames.of_client("my\nown\x00\u202eagent \ud800") == "my own agent"
    assert agentnames.of_client(" \n") == ""
    assert len(agentnames.of_client("x" * 10_000)) == 64


@pytest.mark.parametrize(
    ("program", "agent"),
    [("claude", "claude"), ("cursor-agent", "cursor"), (".cline", "cline"), ("claude.exe", "claude"), ("vim", "me")],
)
def test_a_process_has_the_short_name_of_its_agent(tmp_path: Path, program: str, agent: str) -> None:
    """The test writes the kernel's folder of the process."""
    process = tmp_path / "7"
    process.mkdir()
    (process / "comm").write_text(program + "\n")
    (process / "stat").write_text(f"7 ({program}) S 1 " + "0 " * 30)
    assert agent_of(7, "me", proc=tmp_path) == agent
