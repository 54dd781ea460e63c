"""The hooks of Codex (read in 0.169): those of Claude Code, without one for failures.

Owns how a failure is recognised: for a patch by its output; for a command only in the rollout, which has the exit code
before the hook runs. Pure; any thread.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from livememfs.agents.claude import CODEX, family, used
from livememfs.agents.contract import Payload, part
from livememfs.observing.capture import Said
from livememfs.records.event import SHELLS
from livememfs.text.foreign import Unreadable, read_object

EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "PreCompact", "SessionEnd",
)  # fmt: skip
_BADLY = re.compile(r"(?:Exit code:|Process exited with code) 0*[1-9]")


def _used(agent: str, given: Payload) -> Said:
    said = used(agent, given)
    return replace(said, failed=isinstance(said.output, str) and bool(_BADLY.match(said.output)))


def leaves_open(said: Said) -> bool:
    """Whether the payload lacks the exit code of a command."""
    command = said.kind == "tool" and said.agent == CODEX and said.tool.lower() in SHELLS
    return command and bool(said.id) and not (said.failed or said.skipped)


def ended_badly(call: str, lines: list[bytes]) -> bool:
    """Whether the last lines of a rollout show an exit code other than 0 for the command with this id."""
    for line in reversed(lines):
        if call.encode() in line:
            with suppress(Unreadable):
                item = part(part(read_object(line), "payload"), "item")
                if item.get("id") == call and isinstance(item.get("exit_code"), int):
                    return bool(item["exit_code"])
    return False


CONTRACTS = family(CODEX, EVENTS, use=_used)
