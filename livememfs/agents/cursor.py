"""The hooks of Cursor: what each event tells, and what it may be answered.

Owns the names of events and fields. Cursor takes no context from a hook; it reads a rule file, which `rulefile` keeps.
Pure; any thread.
"""

from __future__ import annotations

import json
from typing import Any

from livememfs.agents.contract import Contract, Payload, session_id, text
from livememfs.pipelines.capture import Said
from livememfs.records.event import Kind

CURSOR = "cursor"
GO_ON = '{"continue": true}'


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    roots = given.get("workspace_roots")
    project = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else text(given, "cwd")
    session = session_id(given, "conversation_id", "session_id")
    return Said(session=session, kind=kind, agent=CURSOR, project=project, **fields)


def _asked(given: Payload) -> Said:
    return _said(given, "prompt", text=text(given, "prompt"))


def _ran(given: Payload) -> Said:
    return _said(given, "tool", tool="Shell", input={"command": text(given, "command")}, output=given.get("output"))


def _called(given: Payload) -> Said:
    said = given.get("result_json", given.get("output"))
    return _said(given, "tool", tool=text(given, "tool_name"), input=_json(given.get("tool_input")), output=_json(said))


def _edited(given: Payload) -> Said:
    found = {"file_path": text(given, "file_path"), "edits": given.get("edits")}
    return _said(given, "tool", tool="Edit", input=found, output=None)


def _stopped(given: Payload) -> Said:
    return _said(given, "stop")


def _json(value: Any) -> Any:
    """Cursor gives some values as the text of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


CONTRACTS = (
    Contract("beforeSubmitPrompt", _asked, plain=GO_ON),
    Contract("afterShellExecution", _ran),
    Contract("afterMCPExecution", _called),
    Contract("afterFileEdit", _edited),
    Contract("stop", _stopped),
)
