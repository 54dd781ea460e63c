"""The hooks of Windsurf's Cascade (by its documentation of 2026): what each event tells.

Owns the names of events and fields. Windsurf reads nothing of what a hook prints, so it is answered nothing. Pure; any
thread.
"""

from __future__ import annotations

from typing import Any

from livememfs.agents.contract import Contract, Payload, from_json, occasion, part, session_id, text
from livememfs.observing.capture import Said
from livememfs.records.event import Kind

WINDSURF = "windsurf"


def _said(given: Payload, kind: Kind, **fields: Any) -> Said:
    project = text(part(given, "tool_info"), "cwd")
    when = occasion(given, "execution_id", "timestamp")
    return Said(session_id(given, "trajectory_id"), kind, agent=WINDSURF, project=project, occasion=when, **fields)


def _asked(given: Payload) -> Said:
    return _said(given, "prompt", text=text(part(given, "tool_info"), "user_prompt"))


def _read(given: Payload) -> Said:
    return _said(given, "tool", tool="Read", input={"file_path": text(part(given, "tool_info"), "file_path")})


def _wrote(given: Payload) -> Said:
    told = part(given, "tool_info")
    return _said(given, "tool", tool="Edit", input={"file_path": text(told, "file_path"), "edits": told.get("edits")})


def _ran(given: Payload) -> Said:
    told = part(given, "tool_info")
    return _said(given, "tool", tool="Shell", input={"command": text(told, "command_line")}, output=told.get("output"))


def _called(given: Payload) -> Said:
    told = part(given, "tool_info")
    tool = f"mcp__{text(told, 'mcp_server_name')}__{text(told, 'mcp_tool_name')}"
    arguments = from_json(told.get("mcp_tool_arguments"))
    return _said(given, "tool", tool=tool, input=arguments, output=from_json(told.get("mcp_result")))


def _stopped(given: Payload) -> Said:
    return _said(given, "stop", text=text(part(given, "tool_info"), "response"))


CONTRACTS = tuple(
    Contract(event, said, plain="", agent=WINDSURF)
    for event, said in (
        ("pre_user_prompt", _asked),
        ("post_read_code", _read),
        ("post_write_code", _wrote),
        ("post_run_command", _ran),
        ("post_mcp_tool_use", _called),
        ("post_cascade_response", _stopped),
    )
)
