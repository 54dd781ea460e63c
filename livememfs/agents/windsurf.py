"""The hooks of Windsurf's Cascade (from its documentation of 2026): the content of each event.

Owns the names of events and fields. Windsurf ignores the output of a hook, so every answer is empty. Pure; any
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
    info = part(given, "tool_info")
    return _said(given, "tool", tool="Edit", input={"file_path": text(info, "file_path"), "edits": info.get("edits")})


def _ran(given: Payload) -> Said:
    info = part(given, "tool_info")
    return _said(given, "tool", tool="Shell", input={"command": text(info, "command_line")}, output=info.get("output"))


def _called(given: Payload) -> Said:
    info = part(given, "tool_info")
    tool = f"mcp__{text(info, 'mcp_server_name')}__{text(info, 'mcp_tool_name')}"
    arguments = from_json(info.get("mcp_tool_arguments"))
    return _said(given, "tool", tool=tool, input=arguments, output=from_json(info.get("mcp_result")))


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
