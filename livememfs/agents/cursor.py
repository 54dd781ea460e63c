"""The hooks of Cursor (from its reference of hooks, and its CLI 2026.09.18): the content of each event, and the
possible answers.

Owns the names of events and fields. `postToolUse` and `postToolUseFailure` report every tool with an id; with them, the
three `after...` events are not needed. Cursor drops a context that is too long, so it is cut here. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from livememfs.agents.contract import (
    Contract,
    Payload,
    always,
    first,
    from_json,
    occasion,
    reader,
    session_id,
    text,
    unobserved,
)
from livememfs.observing.capture import SUBAGENT, Said
from livememfs.records.event import Kind
from livememfs.text.own import END

CURSOR = "cursor"
GO_ON = '{"continue": true}'
MOST = 10_000
"""Most characters of a context; Cursor drops a longer one."""


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    project = first(given.get("workspace_roots")) or text(given, "cwd")
    return Said(session_id(given, "conversation_id", "session_id"), kind, agent=CURSOR, project=project, **fields)


def _tool(given: Payload, tool: str, put: Any, got: Any = None, **fields: Any) -> Said:
    """The use of a tool. Turn and duration distinguish two uses that are otherwise equal."""
    when = occasion(given, "generation_id", "duration")
    return _said(given, "tool", tool=tool, input=put, output=got, occasion=when, **fields)


def _ran(given: Payload) -> Said:
    return _tool(given, "Shell", {"command": text(given, "command")}, given.get("output"))


def _called(given: Payload) -> Said:
    name = text(given, "tool_name")
    result = given.get("result_json", given.get("output"))
    return _tool(given, f"MCP:{name.removeprefix('MCP:')}", from_json(given.get("tool_input")), from_json(result))


def _edited(given: Payload) -> Said:
    return _tool(given, "Edit", {"file_path": text(given, "file_path"), "edits": given.get("edits")})


def _read(given: Payload) -> Said:
    return _tool(given, "Read", {"file_path": text(given, "file_path")}, given.get("content"))


def _used(given: Payload) -> Said:
    put, got = from_json(given.get("tool_input")), from_json(given.get("tool_output"))
    return _tool(given, text(given, "tool_name"), put, got, id=" ".join(text(given, "tool_use_id").split()))


def _failed(given: Payload) -> Said:
    error = text(given, "error_message") or text(given, "failure_type")
    return replace(_used(given), output={"error": error}, failed=True)


def _subagent_stopped(given: Payload) -> Said:
    which = text(given, "subagent_id", "subagent_type") or "subagent"
    words = text(given, "result", "summary")
    if words.strip():
        return _said(given, "said", subagent=which, text=words)
    return _said(given, "stop", subagent=which, skipped=SUBAGENT)


def _unobserved(given: Payload) -> Said:
    return unobserved(_said(given, "tool"), " ".join(text(given, "tool_use_id").split()))


def _flat(event: str, context: str) -> dict[str, Any]:
    if len(context) > MOST:
        context = f"{context[: MOST - len(END) - 2].rpartition(chr(10))[0]}\n{END}\n"
    return {**({"continue": True} if event == "beforeSubmitPrompt" else {}), "additional_context": context}


_prompt = reader(_said, "prompt", "prompt")
_BARE = (
    Contract("beforeSubmitPrompt", _prompt, plain=GO_ON),
    Contract("afterShellExecution", _ran),
    Contract("afterMCPExecution", _called),
    Contract("afterFileEdit", _edited),
    Contract("stop", reader(_said, "stop")),
)
CONTRACTS = (
    *_BARE,
    *(replace(contract, agent=CURSOR) for contract in _BARE[1:]),
    Contract("sessionStart", reader(_said, "start", otherwise="startup"), "context", agent=CURSOR, shape=_flat),
    Contract("beforeSubmitPrompt", _prompt, "recall", GO_ON, agent=CURSOR, shape=_flat),
    Contract("beforeReadFile", _read, agent=CURSOR),
    Contract("preToolUse", _unobserved, agent=CURSOR),
    Contract("postToolUse", _used, agent=CURSOR),
    Contract("postToolUseFailure", _failed, agent=CURSOR),
    Contract("afterAgentResponse", reader(_said, "said", "text"), agent=CURSOR),
    Contract("subagentStop", _subagent_stopped, agent=CURSOR),
    Contract("preCompact", _unobserved, agent=CURSOR, forgets=always),
    Contract("sessionEnd", reader(_said, "end", "reason"), agent=CURSOR),
)
