"""The hooks of Gemini CLI (read in 0.61.0): the content of each event, and the possible answers.

Owns the names of events and fields. Tool calls have no ids, but each payload has the time of its making. Pure; any
thread.
"""

from __future__ import annotations

import re
from typing import Any

from livememfs.agents.contract import Contract, Payload, occasion, reader, session_id, text, unobserved
from livememfs.observing.capture import Said
from livememfs.records.event import SHELLS, Kind

GEMINI = "gemini"
_BADLY = re.compile(r"^Exit Code: 0*[1-9]", re.MULTILINE)


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    return Said(session_id(given, "session_id"), kind, agent=GEMINI, project=text(given, "cwd"), **fields)


def _used(given: Payload) -> Said:
    tool = text(given, "tool_name")
    output, failed = outcome(tool, given.get("tool_response"))
    when = occasion(given, "timestamp")
    put = given.get("tool_input")
    return _said(given, "tool", tool=tool, input=put, output=output, failed=failed, occasion=when)


def outcome(tool: str, response: Any) -> tuple[Any, bool]:
    """The output of a tool, in the version for the model only; and whether it failed."""
    if isinstance(response, dict):
        if response.get("error"):
            return {"error": response["error"], "output": response.get("llmContent")}, True
        response = response.get("llmContent", response)
    shell = tool.lower() in SHELLS and isinstance(response, str)
    return response, shell and _BADLY.search(response[-2_000:]) is not None


def _unobserved(given: Payload) -> Said:
    return unobserved(_said(given, "tool"))


def _forgets(given: Payload) -> bool:
    return text(given, "source") == "clear"


def _compressed(given: Payload) -> bool:
    """Whether the user started the compression. Other triggers mean nothing: Gemini sends one with every request."""
    return text(given, "trigger") == "manual"


CONTRACTS = (
    Contract(
        "SessionStart", reader(_said, "start", "source", otherwise="startup"), "context", agent=GEMINI, forgets=_forgets
    ),
    Contract("BeforeAgent", reader(_said, "prompt", "prompt"), "recall", agent=GEMINI),
    Contract("BeforeTool", _unobserved, agent=GEMINI),
    Contract("AfterTool", _used, agent=GEMINI),
    Contract("AfterAgent", reader(_said, "stop", "prompt_response"), agent=GEMINI),
    Contract("PreCompress", _unobserved, agent=GEMINI, forgets=_compressed),
    Contract("SessionEnd", reader(_said, "end", "reason"), agent=GEMINI),
    Contract("Notification", _unobserved, agent=GEMINI),
)
