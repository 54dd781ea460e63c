"""The hooks of Copilot CLI (1.0.102; fields from GitHub's reference of its hooks): the content of each event, and the
possible answers.

Owns the names of events and fields. An answer is flat. Pure; any thread.
"""

from __future__ import annotations

from typing import Any

from livememfs.agents.contract import (
    Contract,
    Payload,
    always,
    from_json,
    occasion,
    part,
    reader,
    session_id,
    text,
    unobserved,
)
from livememfs.observing.capture import Said
from livememfs.records.event import Kind

COPILOT = "copilot"


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    return Said(session_id(given, "sessionId"), kind, agent=COPILOT, project=text(given, "cwd"), **fields)


def _used(given: Payload) -> Said:
    result, error = part(given, "toolResult"), given.get("error")
    failed = error is not None or text(result, "resultType") not in ("success", "")
    output = error if error is not None else text(result, "textResultForLlm") or given.get("toolResult")
    return _said(
        given,
        "tool",
        tool=text(given, "toolName"),
        input=from_json(given.get("toolArgs")),
        output={"error": output} if failed else output,
        failed=failed,
        occasion=occasion(given, "timestamp"),
    )


def _unobserved(given: Payload) -> Said:
    return unobserved(_said(given, "tool"))


def _flat(_event: str, context: str) -> dict[str, Any]:
    return {"additionalContext": context}


CONTRACTS = (
    Contract(
        "sessionStart", reader(_said, "start", "source", otherwise="startup"), "context", agent=COPILOT, shape=_flat
    ),
    Contract("userPromptSubmitted", reader(_said, "prompt", "prompt"), "recall", agent=COPILOT, shape=_flat),
    Contract("preToolUse", _unobserved, agent=COPILOT),
    Contract("postToolUse", _used, agent=COPILOT),
    Contract("postToolUseFailure", _used, agent=COPILOT),
    Contract("agentStop", reader(_said, "stop"), agent=COPILOT),
    Contract("subagentStop", _unobserved, agent=COPILOT),
    Contract("preCompact", _unobserved, agent=COPILOT, forgets=always),
    Contract("errorOccurred", _unobserved, agent=COPILOT),
    Contract("sessionEnd", reader(_said, "end", "reason"), agent=COPILOT),
)
