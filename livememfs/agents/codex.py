"""The hooks of Codex (read in 0.169): those of Claude Code, without one for failures.

Owns how a failure is told there: by the text that came out of a patch; by the rollout alone of a command, which has
its exit code before the hook runs. Pure; any thread.
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
    found = used(agent, given)
    return replace(found, failed=isinstance(found.output, str) and bool(_BADLY.match(found.output)))


def leaves_open(said: Said) -> bool:
    """Whether a hook does not tell how a command ended."""
    command = said.kind == "tool" and said.agent == CODEX and said.tool.lower() in SHELLS
    return command and bool(said.id) and not (said.failed or said.skipped)


def ended_badly(call: str, lines: list[bytes]) -> bool:
    """Whether the last lines of a rollout have another exit code than 0 of the command with this id."""
    for line in reversed(lines):
        if call.encode() in line:
            with suppress(Unreadable):
                item = part(part(read_object(line), "payload"), "item")
                if item.get("id") == call and isinstance(item.get("exit_code"), int):
                    return bool(item["exit_code"])
    return False


CONTRACTS = family(CODEX, EVENTS, use=_used)
