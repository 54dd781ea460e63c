"""The hooks of Qwen Code (read in 0.15.10): those of Claude Code, with tools of its own and MCP tools spelt alike.

Owns how a command that failed is told: by the text that came out. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import replace

from livememfs.agents.claude import family, used
from livememfs.agents.contract import Payload
from livememfs.agents.gemini import outcome
from livememfs.observing.capture import Said

QWEN = "qwen"


def _used(agent: str, given: Payload) -> Said:
    found = used(agent, given)
    output, failed = outcome(found.tool, found.output)
    return replace(found, output=output, failed=failed)


CONTRACTS = tuple(
    replace(one, begins=one.event == "UserPromptSubmit")  # without a terminal it has no SessionStart
    for one in family(QWEN, use=_used)
)
