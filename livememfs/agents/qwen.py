"""The hooks of Qwen Code (read in 0.15.10): those of Claude Code, with its own tool names; MCP tools have the same
names.

Owns how a failed command is recognised: by its output. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import replace

from livememfs.agents.claude import family, used
from livememfs.agents.contract import Payload
from livememfs.agents.gemini import outcome
from livememfs.observing.capture import Said

QWEN = "qwen"


def _used(agent: str, given: Payload) -> Said:
    said = used(agent, given)
    output, failed = outcome(said.tool, said.output)
    return replace(said, output=output, failed=failed)


CONTRACTS = tuple(
    replace(contract, begins=contract.event == "UserPromptSubmit")  # without a terminal it has no SessionStart
    for contract in family(QWEN, use=_used)
)
