"""A session that uses our tools all the time: none of our own words come back, and everything else is observed."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from livememfs.agents.hooks import Hooks
from livememfs.cache.database import Database
from livememfs.cache.inbox import Inbox
from livememfs.observing.capture import Capture, CaptureSettings
from livememfs.serve.tools import TOOLS
from livememfs.testing.clock import ManualClock
from livememfs.text.own import HEAD, RECORDED, fenced

MOUNT, OWN = "/home/me/memory", "a word of ours"
MARKED = [{"type": "text", "text": fenced(f"- {OWN}")}]
JSON = [{"type": "text", "text": json.dumps({RECORDED: HEAD, "notes": [OWN]})}]
OURS: list[tuple[str, Any, Any]] = [
    ("Read", {"file_path": f"{MOUNT}/p/bank/a.md"}, OWN),
    ("read", {"filePath": f"{MOUNT}/p/bank/a.md"}, OWN),
    ("Grep", {"pattern": "x", "path": f"{MOUNT}/p/live"}, OWN),
    ("Glob", {"pattern": f"{MOUNT}/p/**"}, OWN),
    ("Write", {"file_path": f"{MOUNT}/p/live/a.md", "content": OWN}, None),
    ("Bash", {"command": f"cat {MOUNT}/p/search/x.md"}, {"stdout": OWN}),
    ("Bash", {"command": f"grep -r x {MOUNT}/p/live"}, {"stdout": OWN}),
    ("Bash", {"command": "cat ~/memory/p/bank/a.md | head"}, {"stdout": OWN}),
    ("Bash", {"command": f"echo '{OWN}' > {MOUNT}/p/live/a.md"}, {"stdout": ""}),
    ("Bash", {"command": "livememfs search x"}, {"stdout": OWN}),
    ("memory_by_another_name", {"query": "x"}, MARKED),
    ("memory_by_another_name", {"query": "x"}, JSON),
]
"""Tools of ours by paths, commands and marks, as all agents have them."""
PARTLY = ("Bash", {"command": f"npm test; cat {MOUNT}/p/bank/a.md"}, {"stdout": f"15 passed {OWN}"})
SPELT = {
    "claude": "mcp__livememfs__{}", "codex": "mcp__livememfs__{}", "qwen": "mcp__livememfs__{}",
    "opencode": "livememfs_{}", "gemini": "mcp_livememfs_{}", "copilot": "livememfs-{}", "cline": "livememfs__{}",
    "cursor": "MCP:{}", "windsurf": "{}",
}  # fmt: skip
Payload = tuple[str, dict[str, Any]]


def claude(agent: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    fields = {"tool_name": tool, "tool_input": put, "tool_response": got, "tool_use_id": f"t{number}"}
    return f"{agent}.PostToolUse", {"session_id": "s-1", "cwd": "/home/me/p", **fields}


def gemini(_: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    fields = {"tool_name": tool, "tool_input": put, "tool_response": {"llmContent": got}, "timestamp": f"{number}"}
    return "gemini.AfterTool", {"session_id": "s-1", "cwd": "/home/me/p", **fields}


def copilot(_: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    whole = got[0]["text"] if isinstance(got, list) else json.dumps(got)
    result = {"resultType": "success", "textResultForLlm": whole}
    fields = {"toolName": tool, "toolArgs": json.dumps(put), "toolResult": result, "timestamp": number}
    return "copilot.postToolUse", {"sessionId": "s-1", "cwd": "/home/me/p", **fields}


def cline(_: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    record = {"id": f"t{number}", "name": tool, "input": put, "output": got}
    return "cline.PostToolUse", {"taskId": "s-1", "workspaceRoots": ["/home/me/p"], "tool_result": record}


def cursor(_: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    fields = {"tool_name": tool, "tool_input": put, "tool_output": json.dumps(got), "tool_use_id": f"t{number}"}
    return "cursor.postToolUse", {"conversation_id": "s-1", "workspace_roots": ["/home/me/p"], **fields}


def windsurf(_: str, number: int, tool: str, put: Any, got: Any) -> Payload:
    base = {"trajectory_id": "s-1", "execution_id": str(number)}
    if isinstance(put, dict) and "command" in put:
        info = {"command_line": put["command"], "output": json.dumps(got)}
        return "windsurf.post_run_command", {**base, "tool_info": info}
    if isinstance(put, dict) and "file_path" in put:
        return "windsurf.post_write_code", {**base, "tool_info": {**put, "edits": [{"new_string": str(got)}]}}
    server = "livememfs" if tool in {own.name for own in TOOLS} else "other"
    info = {"mcp_server_name": server, "mcp_tool_name": tool, "mcp_tool_arguments": put, "mcp_result": got}
    return "windsurf.post_mcp_tool_use", {**base, "tool_info": info}


MAKERS: dict[str, Callable[..., Payload]] = {
    **dict.fromkeys(("claude", "codex", "qwen", "opencode"), claude),
    "gemini": gemini, "copilot": copilot, "cline": cline, "cursor": cursor, "windsurf": windsurf,
}  # fmt: skip


class Prehook:
    """One that has nothing to tell."""

    async def turn(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(block="")

    async def forget(self, *_: object) -> None: ...


@pytest.mark.parametrize("agent", MAKERS)
async def test_of_two_hundred_events_none_has_a_word_of_ours_and_the_others_are_observed(agent: str) -> None:
    database = Database(None)
    settings = CaptureSettings(mounted=MOUNT, home="/home/me", own_tools=frozenset(tool.name for tool in TOOLS))
    failed: list[object] = []

    async def page(*_: object) -> str:
        return fenced(OWN)

    capture = Capture(Inbox(database), ManualClock(), settings)
    hooks = Hooks(
        capture,
        Prehook(),  # type: ignore[arg-type]  # it has a `turn`
        page,
        str,
        lambda *failure: failed.append(failure),
    )
    ours = [*OURS, *((SPELT[agent].format(tool.name), {"query": "x"}, {"note": OWN}) for tool in TOOLS)]
    others = 0
    for number in range(200):
        if number % 4 == 3:
            others += 1
            used = ("Bash", {"command": f"npm test {number}"}, {"stdout": f"{number} passed"})
        elif number % 40 == 0:
            others += 1
            used = PARTLY
        else:
            used = ours[number % len(ours)]
        event, fields = MAKERS[agent](agent, number, *used)
        await hooks.answer("alpha", event, json.dumps(fields).encode())
        await trio.lowlevel.checkpoint()

    rows = database.rows("SELECT line FROM event WHERE state = 'waiting'")
    assert failed == []
    assert OWN not in repr(database.rows("SELECT * FROM event"))
    assert len(rows) == others
    assert sum("npm test" in line for (line,) in rows) == others
