"""The hooks of Cline (read in 3.0.65; also the older fields of the extension): the content of each event, and the
possible answers.

Owns the names of events and fields. Cline reads `contextModification`; `cancel` is always false. Pure; any thread.
"""

from __future__ import annotations

from typing import Any

from livememfs.agents.contract import (
    Contract,
    Payload,
    always,
    file_of,
    first,
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

CLINE = "cline"


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    subagent = text(given, "agent_id") if text(given, "parent_agent_id") else ""
    project = first(given.get("workspaceRoots"))
    return Said(session_id(given, "taskId"), kind, agent=CLINE, subagent=subagent, project=project, **fields)


def _started(given: Payload) -> Said:
    return _said(given, "start", text="resume" if "taskResume" in given else "startup")


def _asked(given: Payload) -> Said:
    return _said(given, "prompt", text=text(part(given, "userPromptSubmit"), "prompt"))


def _used(given: Payload) -> Said:
    use, record = part(given, "postToolUse"), part(given, "tool_result")
    parameters = {name: from_json(value) for name, value in part(use, "parameters").items()}
    error = record.get("error") or (use.get("result") if use.get("success") is False else None)
    return _said(
        given,
        "tool",
        id=text(record, "id"),
        tool=text(record, "name") or text(use, "toolName", "tool"),
        input=record.get("input", parameters),
        output={"error": error} if error else record.get("output", use.get("result")),
        failed=bool(error),
        occasion=occasion(given, "timestamp"),
    )


def _stopped(given: Payload) -> Said:
    done = part(part(given, "taskComplete"), "taskMetadata")
    return _said(given, "stop", text=text(part(given, "turn"), "outputText") or text(done, "result"))


def _unobserved(given: Payload) -> Said:
    return unobserved(_said(given, "tool"), text(part(given, "tool_call"), "id"))


def _path(given: Payload) -> str:
    call, use = part(given, "tool_call"), part(given, "preToolUse")
    return file_of(text(call, "name") or text(use, "toolName", "tool"), call.get("input", use.get("parameters")))


def _modified(_event: str, context: str) -> dict[str, Any]:
    return {"cancel": False, "contextModification": context}


CONTRACTS = (
    Contract("TaskStart", _started, "context", agent=CLINE, shape=_modified),
    Contract("TaskResume", _started, "context", agent=CLINE, shape=_modified),
    Contract("UserPromptSubmit", _asked, "recall", agent=CLINE, shape=_modified),
    Contract("PreToolUse", _unobserved, "file", agent=CLINE, path=_path, shape=_modified),
    Contract("PostToolUse", _used, agent=CLINE),
    Contract("TaskComplete", _stopped, agent=CLINE),
    Contract("TaskCancel", _stopped, agent=CLINE),
    Contract("TaskError", _stopped, agent=CLINE),
    Contract("PreCompact", _unobserved, agent=CLINE, forgets=always),
    Contract("SessionShutdown", reader(_said, "end", "reason"), agent=CLINE),
)
