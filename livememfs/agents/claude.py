"""The hooks of Claude Code, which Codex shares: what each event tells, and what it may be answered.

Owns the names of events and fields. An answer holds `hookSpecificOutput` or nothing at all: Codex refuses what it does
not know, and a hook that adds context must never decide anything. Pure; any thread.
"""

from __future__ import annotations

from livememfs.agents.contract import Contract, Payload, session_id, text
from livememfs.pipelines.capture import NOT_OBSERVED, SUBAGENT, Said
from livememfs.records.event import Kind

CLAUDE, CODEX = "claude", "codex"


def _agent(given: Payload) -> str:
    """Codex says which turn it is in; Claude Code does not."""
    return CODEX if "turn_id" in given else CLAUDE


def _said(given: Payload, kind: Kind, *, content: str = "", skipped: str = "", event_id: str = "") -> Said:
    return Said(
        session=session_id(given, "session_id"),
        kind=kind,
        id=event_id,
        agent=_agent(given),
        subagent=text(given, "agent_id"),
        project=text(given, "cwd"),
        text=content,
        skipped=skipped,
    )


def _started(given: Payload) -> Said:
    return _said(given, "start", content=text(given, "source") or "startup")


def _asked(given: Payload) -> Said:
    return _said(given, "prompt", content=text(given, "prompt"))


def _used(given: Payload) -> Said:
    return Said(
        session=session_id(given, "session_id"),
        kind="tool",
        id=text(given, "tool_use_id"),
        agent=_agent(given),
        subagent=text(given, "agent_id"),
        project=text(given, "cwd"),
        tool=text(given, "tool_name"),
        input=given.get("tool_input"),
        output=given.get("tool_response"),
    )


def _stopped(given: Payload) -> Said:
    return _said(given, "stop", skipped=SUBAGENT if text(given, "agent_id") else "")


def _subagent_stopped(given: Payload) -> Said:
    which = text(given, "agent_id")
    return _said(given, "stop", skipped=SUBAGENT, event_id=f"subagent {which}" if which else "")


def _unobserved(given: Payload) -> Said:
    of = text(given, "tool_use_id")
    return _said(given, "tool", skipped=NOT_OBSERVED, event_id=f"before {of}" if of else "")


CONTRACTS = (
    Contract("SessionStart", _started, "context"),
    Contract("UserPromptSubmit", _asked, "recall"),
    Contract("PreToolUse", _unobserved),
    Contract("PostToolUse", _used),
    Contract("Stop", _stopped),
    Contract("SubagentStop", _subagent_stopped),
    Contract("PreCompact", _unobserved),
    Contract("SessionEnd", _unobserved),
    Contract("Notification", _unobserved),
)
