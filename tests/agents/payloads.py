"""What each event of each agent tells, in the form that its program sends, with what is to be read of it.

Claude Code 2.1.197 and Codex 0.169 as their programs sent it; Qwen Code 0.15.10, Gemini CLI 0.61.0, Cline 3.0.65 and
opencode 1.18 as their code makes it; Copilot CLI, Cursor and Windsurf as their references of hooks have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from livememfs.observing.capture import NOT_OBSERVED, SUBAGENT, Said

Sample = tuple[str, dict[str, Any], Said]
"""The name of a file of `.hooks`, what is written into it, and what it tells."""

HERE = {"session_id": "s-1", "cwd": "/home/me/p", "transcript_path": "/x", "permission_mode": "default"}
ROOM = {"conversation_id": "c-1", "generation_id": "g", "workspace_roots": ["/home/me/p", "/q"], "user_email": "a@b"}
SAID = Said("s-1", "tool", agent="claude", project="/home/me/p")
CURSOR = Said("c-1", "tool", agent="cursor", project="/home/me/p")
USED = {"tool_use_id": "toolu_1", "tool_name": "Edit", "tool_input": {"file_path": "a"}, "tool_response": {"ok": True}}
FAILED = {**USED, "error": "Exit code 3\nfails", "is_interrupt": False, "duration_ms": 5}
COMMAND = {"command": "ls", "output": "a", "duration": 3}
WORDS = {"stop_hook_active": False, "last_assistant_message": "We decide for Postgres"}
EDIT = replace(SAID, id="toolu_1", tool="Edit", input={"file_path": "a"}, output={"ok": True})
BROKEN = replace(EDIT, output={"error": "Exit code 3\nfails"}, failed=True)

FAMILY: dict[str, Sample] = {
    "start": ("SessionStart", {**HERE, "source": "resume"}, replace(SAID, kind="start", text="resume")),
    "start without a reason": ("SessionStart", HERE, replace(SAID, kind="start", text="startup")),
    "prompt": ("UserPromptSubmit", {**HERE, "prompt": "Mend it"}, replace(SAID, kind="prompt", text="Mend it")),
    "tool": ("PostToolUse", {**HERE, **USED}, EDIT),
    "tool of a subagent": ("PostToolUse", {**HERE, **USED, "agent_id": "a1"}, replace(EDIT, subagent="a1")),
    "before a tool": ("PreToolUse", {**HERE, **USED}, replace(SAID, id="before toolu_1", skipped=NOT_OBSERVED)),
    "failure": ("PostToolUseFailure", {**HERE, **FAILED}, BROKEN),
    "stop": ("Stop", {**HERE, "stop_hook_active": True}, replace(SAID, kind="stop")),
    "stop with words": ("Stop", {**HERE, **WORDS}, replace(SAID, kind="stop", text="We decide for Postgres")),
    "stop in a subagent": (
        "Stop",
        {**HERE, "agent_id": "a1"},
        replace(SAID, kind="stop", subagent="a1", skipped=SUBAGENT),
    ),
    "stop of a subagent": (
        "SubagentStop",
        {**HERE, "agent_id": "a1"},
        replace(SAID, kind="stop", id="subagent a1", subagent="a1", skipped=SUBAGENT),
    ),
    "last words of a subagent": (
        "SubagentStop",
        {**HERE, **WORDS, "agent_id": "a1", "agent_type": "Explore"},
        replace(SAID, kind="said", subagent="a1", tool="Explore", text="We decide for Postgres"),
    ),
    "a compaction by a subagent": (
        "SubagentStop",
        {**HERE, **WORDS, "agent_id": "a1", "agent_type": ""},
        replace(SAID, kind="stop", id="subagent a1", subagent="a1", skipped=SUBAGENT),
    ),
    "stop of nobody": ("SubagentStop", HERE, replace(SAID, kind="stop", skipped=SUBAGENT)),
    "compaction": ("PreCompact", {**HERE, "trigger": "auto"}, replace(SAID, skipped=NOT_OBSERVED)),
    "end": ("SessionEnd", {**HERE, "reason": "clear"}, replace(SAID, kind="end", text="clear")),
    "notification": ("Notification", {**HERE, "message": "x"}, replace(SAID, skipped=NOT_OBSERVED)),
}
"""Of Claude Code, which others share."""
SHARED = {
    "claude": set(FAMILY),
    "codex": set(FAMILY) - {"failure", "notification"},
    "qwen": set(FAMILY),
    "opencode": {name for name, one in FAMILY.items() if one[0] not in ("SubagentStop", "Notification")},
}

GEMINI = {"session_id": "s-1", "cwd": "/home/me/p", "timestamp": "2026-02-20T14:00:00.123Z", "transcript_path": "/x"}
OF_GEMINI = replace(SAID, agent="gemini")
COPILOT = {"sessionId": "s-1", "cwd": "/home/me/p", "timestamp": 1704614700000}
OF_COPILOT = replace(SAID, agent="copilot")
CLINE = {
    "clineVersion": "3.0.65", "timestamp": "2026-02-20T14:00:00Z", "taskId": "s-1", "workspaceRoots": ["/home/me/p"],
    "userId": "me", "agent_id": "main", "parent_agent_id": None,
}  # fmt: skip
OF_CLINE = replace(SAID, agent="cline")
WINDSURF = {"trajectory_id": "s-1", "execution_id": "e-1", "timestamp": "2026-02-20T14:00:00Z"}
OF_WINDSURF = Said("s-1", "tool", agent="windsurf", occasion="e-1 2026-02-20T14:00:00Z")

OTHERS: dict[str, Sample] = {
    "tool of codex by its turn": (
        "PostToolUse",
        {**HERE, "turn_id": "t", "tool_name": "shell", "tool_input": {"command": ["ls"]}, "tool_response": "a"},
        replace(SAID, agent="codex", tool="shell", input={"command": ["ls"]}, output="a"),
    ),
    "stop of codex by its turn": ("Stop", {**HERE, "turn_id": "t"}, replace(SAID, kind="stop", agent="codex")),
    "start of codex by its rollout": (
        "SessionStart",
        {**HERE, "transcript_path": "/h/.codex/sessions/2026/02/20/rollout-2026.jsonl", "model": "gpt-5.5"},
        replace(SAID, kind="start", agent="codex", text="startup"),
    ),
    "cursor runs a hook of claude": (
        "claude.UserPromptSubmit",
        {**HERE, "cursor_version": "2026.09.18", "prompt": "Hi"},
        replace(SAID, kind="prompt", agent="cursor", text="Hi"),
    ),
    "codex: a patch that failed": (
        "codex.PostToolUse",
        {**HERE, "turn_id": "t", "tool_name": "apply_patch", "tool_use_id": "c1", "tool_input": {"command": "***"},
         "tool_response": "Exit code: 1\nWall time: 0.1 s\nOutput:\nno such file"},
        replace(SAID, agent="codex", id="c1", tool="apply_patch", input={"command": "***"}, failed=True,
                output="Exit code: 1\nWall time: 0.1 s\nOutput:\nno such file"),
    ),
    "qwen: a command that failed": (
        "qwen.PostToolUse",
        {**HERE, "tool_name": "run_shell_command", "tool_use_id": "c1", "tool_input": {"command": "npm test"},
         "tool_response": {"llmContent": "Command: npm test\nExit Code: 2", "returnDisplay": "x"}},
        replace(SAID, agent="qwen", id="c1", tool="run_shell_command", input={"command": "npm test"}, failed=True,
                output="Command: npm test\nExit Code: 2"),
    ),
    "gemini: start": (
        "gemini.SessionStart", {**GEMINI, "source": "clear"}, replace(OF_GEMINI, kind="start", text="clear"),
    ),
    "gemini: prompt": ("gemini.BeforeAgent", {**GEMINI, "prompt": "Hi"}, replace(OF_GEMINI, kind="prompt", text="Hi")),
    "gemini: before": ("gemini.BeforeTool", {**GEMINI, "tool_name": "x"}, replace(OF_GEMINI, skipped=NOT_OBSERVED)),
    "gemini: tool": (
        "gemini.AfterTool",
        {**GEMINI, "tool_name": "replace", "tool_input": {"file_path": "a"},
         "tool_response": {"llmContent": "done", "returnDisplay": "a diff"}},
        replace(OF_GEMINI, tool="replace", input={"file_path": "a"}, output="done", occasion=GEMINI["timestamp"]),
    ),
    "gemini: failure": (
        "gemini.AfterTool",
        {**GEMINI, "tool_name": "read_file", "tool_input": {"file_path": "a"},
         "tool_response": {"llmContent": "no file", "error": {"message": "no file"}}},
        replace(OF_GEMINI, tool="read_file", input={"file_path": "a"}, failed=True, occasion=GEMINI["timestamp"],
                output={"error": {"message": "no file"}, "output": "no file"}),
    ),
    "gemini: stop": (
        "gemini.AfterAgent",
        {**GEMINI, "prompt": "Hi", "prompt_response": "Hello", "stop_hook_active": False},
        replace(OF_GEMINI, kind="stop", text="Hello"),
    ),
    "gemini: compaction": (
        "gemini.PreCompress", {**GEMINI, "trigger": "auto"}, replace(OF_GEMINI, skipped=NOT_OBSERVED),
    ),
    "gemini: end": ("gemini.SessionEnd", {**GEMINI, "reason": "exit"}, replace(OF_GEMINI, kind="end", text="exit")),
    "gemini: notification": (
        "gemini.Notification", {**GEMINI, "message": "x"}, replace(OF_GEMINI, skipped=NOT_OBSERVED),
    ),
    "copilot: start": (
        "copilot.sessionStart", {**COPILOT, "source": "new"}, replace(OF_COPILOT, kind="start", text="new"),
    ),
    "copilot: prompt": (
        "copilot.userPromptSubmitted", {**COPILOT, "prompt": "Hi"}, replace(OF_COPILOT, kind="prompt", text="Hi"),
    ),
    "copilot: before": ("copilot.preToolUse", {**COPILOT, "toolName": "x"}, replace(OF_COPILOT, skipped=NOT_OBSERVED)),
    "copilot: tool": (
        "copilot.postToolUse",
        {**COPILOT, "toolName": "bash", "toolArgs": '{"command": "npm test"}',
         "toolResult": {"resultType": "success", "textResultForLlm": "15 passed"}},
        replace(OF_COPILOT, tool="bash", input={"command": "npm test"}, output="15 passed", occasion="1704614700000"),
    ),
    "copilot: a tool that failed": (
        "copilot.postToolUse",
        {**COPILOT, "toolName": "bash", "toolArgs": {"command": "npm test"},
         "toolResult": {"resultType": "failure", "textResultForLlm": "2 failed"}},
        replace(OF_COPILOT, tool="bash", input={"command": "npm test"}, output={"error": "2 failed"}, failed=True,
                occasion="1704614700000"),
    ),
    "copilot: failure": (
        "copilot.postToolUseFailure",
        {**COPILOT, "toolName": "edit", "toolArgs": {"path": "a"}, "error": "no such text"},
        replace(OF_COPILOT, tool="edit", input={"path": "a"}, output={"error": "no such text"}, failed=True,
                occasion="1704614700000"),
    ),
    "copilot: stop": ("copilot.agentStop", {**COPILOT, "transcriptPath": "/x"}, replace(OF_COPILOT, kind="stop")),
    "copilot: subagent": ("copilot.subagentStop", COPILOT, replace(OF_COPILOT, skipped=NOT_OBSERVED)),
    "copilot: compaction": ("copilot.preCompact", COPILOT, replace(OF_COPILOT, skipped=NOT_OBSERVED)),
    "copilot: error": ("copilot.errorOccurred", {**COPILOT, "error": {}}, replace(OF_COPILOT, skipped=NOT_OBSERVED)),
    "copilot: end": ("copilot.sessionEnd", {**COPILOT, "reason": "x"}, replace(OF_COPILOT, kind="end", text="x")),
    "cline: start": ("cline.TaskStart", {**CLINE, "taskStart": {}}, replace(OF_CLINE, kind="start", text="startup")),
    "cline: resume": ("cline.TaskResume", {**CLINE, "taskResume": {}}, replace(OF_CLINE, kind="start", text="resume")),
    "cline: prompt": (
        "cline.UserPromptSubmit",
        {**CLINE, "hookName": "prompt_submit", "userPromptSubmit": {"prompt": "Hi", "attachments": []}},
        replace(OF_CLINE, kind="prompt", text="Hi"),
    ),
    "cline: before": (
        "cline.PreToolUse",
        {**CLINE, "tool_call": {"id": "c1", "name": "editor", "input": {"path": "a"}}},
        replace(OF_CLINE, id="before c1", skipped=NOT_OBSERVED),
    ),
    "cline: tool": (
        "cline.PostToolUse",
        {**CLINE, "parent_agent_id": "main", "agent_id": "a1",
         "tool_result": {"id": "c1", "name": "run_commands", "input": {"commands": ["ls"]}, "output": ["a"]},
         "postToolUse": {"toolName": "run_commands", "parameters": {"commands": '["ls"]'}, "success": True}},
        replace(OF_CLINE, id="c1", subagent="a1", tool="run_commands", input={"commands": ["ls"]}, output=["a"],
                occasion=CLINE["timestamp"]),
    ),
    "cline: a tool of the older extension that failed": (
        "cline.PostToolUse",
        {**CLINE, "postToolUse": {"toolName": "execute_command", "parameters": {"command": "npm test"},
                                  "result": "2 failed", "success": False, "executionTimeMs": 5}},
        replace(OF_CLINE, tool="execute_command", input={"command": "npm test"}, output={"error": "2 failed"},
                failed=True, occasion=CLINE["timestamp"]),
    ),
    "cline: stop": (
        "cline.TaskComplete",
        {**CLINE, "turn": {"outputText": "Done", "status": "completed"}, "taskComplete": {"taskMetadata": {}}},
        replace(OF_CLINE, kind="stop", text="Done"),
    ),
    "cline: cancel": ("cline.TaskCancel", {**CLINE, "taskCancel": {}}, replace(OF_CLINE, kind="stop")),
    "cline: error": ("cline.TaskError", {**CLINE, "error": {"name": "x"}}, replace(OF_CLINE, kind="stop")),
    "cline: compaction": ("cline.PreCompact", {**CLINE, "preCompact": {}}, replace(OF_CLINE, skipped=NOT_OBSERVED)),
    "cline: end": ("cline.SessionShutdown", {**CLINE, "reason": "x"}, replace(OF_CLINE, kind="end", text="x")),
    "windsurf: prompt": (
        "windsurf.pre_user_prompt",
        {**WINDSURF, "tool_info": {"user_prompt": "Hi"}},
        replace(OF_WINDSURF, kind="prompt", text="Hi"),
    ),
    "windsurf: read": (
        "windsurf.post_read_code",
        {**WINDSURF, "tool_info": {"file_path": "/p/a.py"}},
        replace(OF_WINDSURF, tool="Read", input={"file_path": "/p/a.py"}),
    ),
    "windsurf: edit": (
        "windsurf.post_write_code",
        {**WINDSURF, "tool_info": {"file_path": "/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}},
        replace(OF_WINDSURF, tool="Edit",
                input={"file_path": "/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}),
    ),
    "windsurf: command": (
        "windsurf.post_run_command",
        {**WINDSURF, "tool_info": {"command_line": "ls", "cwd": "/p"}},
        replace(OF_WINDSURF, project="/p", tool="Shell", input={"command": "ls"}),
    ),
    "windsurf: mcp": (
        "windsurf.post_mcp_tool_use",
        {**WINDSURF, "tool_info": {"mcp_server_name": "github", "mcp_tool_name": "list", "mcp_tool_arguments": {"a": 1},
                                   "mcp_result": "b"}},
        replace(OF_WINDSURF, tool="mcp__github__list", input={"a": 1}, output="b"),
    ),
    "windsurf: stop": (
        "windsurf.post_cascade_response",
        {**WINDSURF, "tool_info": {"response": "Done"}},
        replace(OF_WINDSURF, kind="stop", text="Done"),
    ),
    "cursor: prompt": ("beforeSubmitPrompt", {**ROOM, "prompt": "Hi"}, replace(CURSOR, kind="prompt", text="Hi")),
    "cursor: command": (
        "afterShellExecution",
        {**ROOM, **COMMAND},
        replace(CURSOR, tool="Shell", input={"command": "ls"}, output="a", occasion="g 3"),
    ),
    "cursor: mcp": (
        "afterMCPExecution",
        {**ROOM, "tool_name": "find", "tool_input": '{"a": 1}', "result_json": '["b"]'},
        replace(CURSOR, tool="MCP:find", input={"a": 1}, output=["b"], occasion="g"),
    ),
    "cursor: mcp in words": (
        "afterMCPExecution",
        {**ROOM, "tool_name": "find", "tool_input": "{", "output": "b"},
        replace(CURSOR, tool="MCP:find", input="{", output="b", occasion="g"),
    ),
    "cursor: edit": (
        "afterFileEdit",
        {**ROOM, "file_path": "/home/me/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
        replace(CURSOR, tool="Edit", occasion="g",
                input={"file_path": "/home/me/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}),
    ),
    "cursor: stop": ("stop", {**ROOM, "status": "completed"}, replace(CURSOR, kind="stop")),
    "cursor: no folder": ("stop", {"conversation_id": "c-1", "cwd": "/r"}, replace(CURSOR, kind="stop", project="/r")),
    "cursor: start": (
        "cursor.sessionStart", {**ROOM, "composer_mode": "agent"}, replace(CURSOR, kind="start", text="startup"),
    ),
    "cursor: named prompt": (
        "cursor.beforeSubmitPrompt", {**ROOM, "prompt": "Hi"}, replace(CURSOR, kind="prompt", text="Hi"),
    ),
    "cursor: read": (
        "cursor.beforeReadFile",
        {**ROOM, "file_path": "/home/me/p/a.py", "content": "x = 1"},
        replace(CURSOR, tool="Read", input={"file_path": "/home/me/p/a.py"}, output="x = 1", occasion="g"),
    ),
    "cursor: before": (
        "cursor.preToolUse",
        {**ROOM, "tool_use_id": "call_9\nctc_7", "tool_name": "Shell"},
        replace(CURSOR, id="before call_9 ctc_7", skipped=NOT_OBSERVED),
    ),
    "cursor: tool": (
        "cursor.postToolUse",
        {**ROOM, "tool_use_id": "call_9\nctc_7", "tool_name": "Shell", "duration": 48213, "cwd": "/home/me/p",
         "tool_input": {"command": "npm test"}, "tool_output": '{"output": "212 passed", "exitCode": 0}'},
        replace(CURSOR, id="call_9 ctc_7", tool="Shell", input={"command": "npm test"},
                output={"output": "212 passed", "exitCode": 0}, occasion="g 48213"),
    ),
    "cursor: failure": (
        "cursor.postToolUseFailure",
        {**ROOM, "tool_use_id": "c1", "tool_name": "Shell", "tool_input": {"command": "npm test"}, "duration": 5,
         "error_message": "2 failed", "failure_type": "error"},
        replace(CURSOR, id="c1", tool="Shell", input={"command": "npm test"}, output={"error": "2 failed"}, failed=True,
                occasion="g 5"),
    ),
    "cursor: words": ("cursor.afterAgentResponse", {**ROOM, "text": "Done"}, replace(CURSOR, kind="said", text="Done")),
    "cursor: subagent": (
        "cursor.subagentStop",
        {**ROOM, "subagent_type": "explore", "status": "completed"},
        replace(CURSOR, kind="stop", subagent="explore", skipped=SUBAGENT),
    ),
    "cursor: words of a subagent": (
        "cursor.subagentStop",
        {**ROOM, "subagent_type": "explore", "summary": "Found it"},
        replace(CURSOR, kind="said", subagent="explore", text="Found it"),
    ),
    "cursor: compaction": ("cursor.preCompact", {**ROOM, "trigger": "auto"}, replace(CURSOR, skipped=NOT_OBSERVED)),
    "cursor: end": (
        "cursor.sessionEnd", {**ROOM, "reason": "completed"}, replace(CURSOR, kind="end", text="completed"),
    ),
}  # fmt: skip
BARE = ("afterShellExecution", "afterMCPExecution", "afterFileEdit", "stop")

PAYLOADS: dict[str, Sample] = {
    **FAMILY,
    **{
        f"{agent}: {name}": (f"{agent}.{FAMILY[name][0]}", FAMILY[name][1], replace(FAMILY[name][2], agent=agent))
        for agent, names in SHARED.items()
        for name in sorted(names)
    },
    **OTHERS,
    **{f"{name}, named": (f"cursor.{one[0]}", *one[1:]) for name, one in OTHERS.items() if one[0] in BARE},
}
