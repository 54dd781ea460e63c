"""The hooks of Codex (read in 0.169): those of Claude Code, without one for failures.

Owns how a failure is told there: by the text that came out, where it says so. Pure; any thread.
"""

from __future__ import annotations

import re
from dataclasses import replace

from livememfs.agents.claude import CODEX, family, used
from livememfs.agents.contract import Payload
from livememfs.pipelines.capture import Said

EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "PreCompact", "SessionEnd",
)  # fmt: skip
_BADLY = re.compile(r"(?:Exit code:|Process exited with code) 0*[1-9]")


def _used(agent: str, given: Payload) -> Said:
    found = used(agent, given)
    return replace(found, failed=isinstance(found.output, str) and bool(_BADLY.match(found.output)))


CONTRACTS = family(CODEX, EVENTS, use=_used)
