"""What each event of each agent tells, in the form that its program sends, with what is to be read of it.

Claude Code 2.1.197 and Codex 0.169 as their programs sent it; Qwen Code 0.15.10, Gemini CLI 0.61.0, Cline 3.0.65 and
opencode 1.18 as their code makes it; Copilot CLI, Cursor and Windsurf as their references of hooks have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from livememfs.observing.capture import NOT_OBSERVED, SUBAGENT, Said

Sample = tuple[str, dict[str, Any], Said]
"""The name of a file of `.hooks`, what is written into it, and what it tells."""
Event = tuple[str, dict[str, Any], dict[str, Any]]
"""An agent's event: its name, the fields that it alone has, and what is read of these."""

HERE = {"session_id": "s-1", "cwd": "/home/me/p", "transcript_path": "/x", "permission_mode": "default"}
USED = {"tool_use_id": "toolu_1", "tool_name": "Edit", "tool_input": {"file_path": "a"}, "tool_response": {"ok": True}}
FAILED = {**USED, "error": "Exit code 3\nfails", "is_interrupt": False, "duration_ms": 5}
WORDS = {"stop_hook_active": False, "last_assistant_message": "We decide for Postgres"}
EDIT = {"id": "toolu_1", "tool": "Edit", "input": {"file_path": "a"}, "output": {"ok": True}}
SKIPPED = {"skipped": NOT_OBSERVED}
HI = {"kind": "prompt", "text": "Hi"}
OF_SUBAGENT = {"kind": "stop", "id": "subagent a1", "subagent": "a1", "skipped": SUBAGENT}


def samples(events: Mapping[str, Event], every: Mapping[str, Any], said: Said, prefix: str = "") -> dict[str, Sample]:
    """The samples of one agent. `every`: the fields of each of its events, of which `said` is read; `prefix`: that of
    its files.
    """
    return {
        name: (prefix + event, {**every, **given}, replace(said, **read))
        for name, (event, given, read) in events.items()
    }


FAMILY = samples({
    "start": ("SessionStart", {"source": "resume"}, {"kind": "start", "text": "resume"}),
    "start without a reason": ("SessionStart", {}, {"kind": "start", "text": "startup"}),
    "prompt": ("UserPromptSubmit", {"prompt": "Mend it"}, {"kind": "prompt", "text": "Mend it"}),
    "tool": ("PostToolUse", USED, EDIT),
    "tool of a subagent": ("PostToolUse", {**USED, "agent_id": "a1"}, {**EDIT, "subagent": "a1"}),
    "before a tool": ("PreToolUse", USED, {"id": "before toolu_1", **SKIPPED}),
    "failure": ("PostToolUseFailure", FAILED, {**EDIT, "output": {"error": "Exit code 3\nfails"}, "failed": True}),
    "stop": ("Stop", {"stop_hook_active": True}, {"kind": "stop"}),
    "stop with words": ("Stop", WORDS, {"kind": "stop", "text": "We decide for Postgres"}),
    "stop in a subagent": ("Stop", {"agent_id": "a1"}, {**OF_SUBAGENT, "id": ""}),
    "stop of a subagent": ("SubagentStop", {"agent_id": "a1"}, OF_SUBAGENT),
    "last words of a subagent": (
        "SubagentStop", {**WORDS, "agent_id": "a1", "agent_type": "Explore"},
        {"kind": "said", "subagent": "a1", "tool": "Explore", "text": "We decide for Postgres"},
    ),
    "a compaction by a subagent": ("SubagentStop", {**WORDS, "agent_id": "a1", "agent_type": ""}, OF_SUBAGENT),
    "stop of nobody": ("SubagentStop", {}, {"kind": "stop", "skipped": SUBAGENT}),
    "compaction": ("PreCompact", {"trigger": "auto"}, SKIPPED),
    "end": ("SessionEnd", {"reason": "clear"}, {"kind": "end", "text": "clear"}),
    "notification": ("Notification", {"message": "x"}, SKIPPED),
}, HERE, Said("s-1", "tool", agent="claude", project="/home/me/p"))  # fmt: skip
"""Of Claude Code, which others share."""
SHARED = {
    "claude": set(FAMILY),
    "codex": set(FAMILY) - {"failure", "notification"},
    "qwen": set(FAMILY),
    "opencode": {name for name, sample in FAMILY.items() if sample[0] not in ("SubagentStop", "Notification")},
}
FAMILY_OTHERS = samples({
    "tool of codex by its turn": (
        "PostToolUse",
        {"turn_id": "t", "tool_name": "shell", "tool_input": {"command": ["ls"]}, "tool_response": "a"},
        {"agent": "codex", "tool": "shell", "input": {"command": ["ls"]}, "output": "a"},
    ),
    "stop of codex by its turn": ("Stop", {"turn_id": "t"}, {"kind": "stop", "agent": "codex"}),
    "start of codex by its rollout": (
        "SessionStart",
        {"transcript_path": "/h/.codex/sessions/2026/02/20/rollout-2026.jsonl", "model": "gpt-5.5"},
        {"kind": "start", "agent": "codex", "text": "startup"},
    ),
    "cursor runs a hook of claude": (
        "claude.UserPromptSubmit", {"cursor_version": "2026.09.18", "prompt": "Hi"}, {**HI, "agent": "cursor"},
    ),
    "codex: a patch that failed": (
        "codex.PostToolUse",
        {"turn_id": "t", "tool_name": "apply_patch", "tool_use_id": "c1", "tool_input": {"command": "***"},
         "tool_response": "Exit code: 1\nWall time: 0.1 s\nOutput:\nno such file"},
        {"agent": "codex", "id": "c1", "tool": "apply_patch", "input": {"command": "***"}, "failed": True,
         "output": "Exit code: 1\nWall time: 0.1 s\nOutput:\nno such file"},
    ),
    "qwen: a command that failed": (
        "qwen.PostToolUse",
        {"tool_name": "run_shell_command", "tool_use_id": "c1", "tool_input": {"command": "npm test"},
         "tool_response": {"llmContent": "Command: npm test\nExit Code: 2", "returnDisplay": "x"}},
        {"agent": "qwen", "id": "c1", "tool": "run_shell_command", "input": {"command": "npm test"}, "failed": True,
         "output": "Command: npm test\nExit Code: 2"},
    ),
}, HERE, Said("s-1", "tool", agent="claude", project="/home/me/p"))  # fmt: skip

NOON = "2026-02-20T14:00:00.123Z"
GEMINI = samples({
    "gemini: start": ("SessionStart", {"source": "clear"}, {"kind": "start", "text": "clear"}),
    "gemini: prompt": ("BeforeAgent", {"prompt": "Hi"}, HI),
    "gemini: before": ("BeforeTool", {"tool_name": "x"}, SKIPPED),
    "gemini: tool": (
        "AfterTool",
        {"tool_name": "replace", "tool_input": {"file_path": "a"},
         "tool_response": {"llmContent": "done", "returnDisplay": "a diff"}},
        {"tool": "replace", "input": {"file_path": "a"}, "output": "done", "occasion": NOON},
    ),
    "gemini: failure": (
        "AfterTool",
        {"tool_name": "read_file", "tool_input": {"file_path": "a"},
         "tool_response": {"llmContent": "no file", "error": {"message": "no file"}}},
        {"tool": "read_file", "input": {"file_path": "a"}, "failed": True, "occasion": NOON,
         "output": {"error": {"message": "no file"}, "output": "no file"}},
    ),
    "gemini: stop": (
        "AfterAgent", {"prompt": "Hi", "prompt_response": "Hello", "stop_hook_active": False},
        {"kind": "stop", "text": "Hello"},
    ),
    "gemini: compaction": ("PreCompress", {"trigger": "auto"}, SKIPPED),
    "gemini: end": ("SessionEnd", {"reason": "exit"}, {"kind": "end", "text": "exit"}),
    "gemini: notification": ("Notification", {"message": "x"}, SKIPPED),
}, {"session_id": "s-1", "cwd": "/home/me/p", "timestamp": NOON, "transcript_path": "/x"},
    Said("s-1", "tool", agent="gemini", project="/home/me/p"), "gemini.")  # fmt: skip

COPILOT = samples({
    "copilot: start": ("sessionStart", {"source": "new"}, {"kind": "start", "text": "new"}),
    "copilot: prompt": ("userPromptSubmitted", {"prompt": "Hi"}, HI),
    "copilot: before": ("preToolUse", {"toolName": "x"}, SKIPPED),
    "copilot: tool": (
        "postToolUse",
        {"toolName": "bash", "toolArgs": '{"command": "npm test"}',
         "toolResult": {"resultType": "success", "textResultForLlm": "15 passed"}},
        {"tool": "bash", "input": {"command": "npm test"}, "output": "15 passed", "occasion": "1704614700000"},
    ),
    "copilot: a tool that failed": (
        "postToolUse",
        {"toolName": "bash", "toolArgs": {"command": "npm test"},
         "toolResult": {"resultType": "failure", "textResultForLlm": "2 failed"}},
        {"tool": "bash", "input": {"command": "npm test"}, "output": {"error": "2 failed"}, "failed": True,
         "occasion": "1704614700000"},
    ),
    "copilot: failure": (
        "postToolUseFailure", {"toolName": "edit", "toolArgs": {"path": "a"}, "error": "no such text"},
        {"tool": "edit", "input": {"path": "a"}, "output": {"error": "no such text"}, "failed": True,
         "occasion": "1704614700000"},
    ),
    "copilot: stop": ("agentStop", {"transcriptPath": "/x"}, {"kind": "stop"}),
    "copilot: subagent": ("subagentStop", {}, SKIPPED),
    "copilot: compaction": ("preCompact", {}, SKIPPED),
    "copilot: error": ("errorOccurred", {"error": {}}, SKIPPED),
    "copilot: end": ("sessionEnd", {"reason": "x"}, {"kind": "end", "text": "x"}),
}, {"sessionId": "s-1", "cwd": "/home/me/p", "timestamp": 1704614700000},
    Said("s-1", "tool", agent="copilot", project="/home/me/p"), "copilot.")  # fmt: skip

CLINE = samples({
    "cline: start": ("TaskStart", {"taskStart": {}}, {"kind": "start", "text": "startup"}),
    "cline: resume": ("TaskResume", {"taskResume": {}}, {"kind": "start", "text": "resume"}),
    "cline: prompt": (
        "UserPromptSubmit", {"hookName": "prompt_submit", "userPromptSubmit": {"prompt": "Hi", "attachments": []}}, HI,
    ),
    "cline: before": (
        "PreToolUse", {"tool_call": {"id": "c1", "name": "editor", "input": {"path": "a"}}},
        {"id": "before c1", **SKIPPED},
    ),
    "cline: tool": (
        "PostToolUse",
        {"parent_agent_id": "main", "agent_id": "a1",
         "tool_result": {"id": "c1", "name": "run_commands", "input": {"commands": ["ls"]}, "output": ["a"]},
         "postToolUse": {"toolName": "run_commands", "parameters": {"commands": '["ls"]'}, "success": True}},
        {"id": "c1", "subagent": "a1", "tool": "run_commands", "input": {"commands": ["ls"]}, "output": ["a"],
         "occasion": "2026-02-20T14:00:00Z"},
    ),
    "cline: a tool of the older extension that failed": (
        "PostToolUse",
        {"postToolUse": {"toolName": "execute_command", "parameters": {"command": "npm test"},
                         "result": "2 failed", "success": False, "executionTimeMs": 5}},
        {"tool": "execute_command", "input": {"command": "npm test"}, "output": {"error": "2 failed"},
         "failed": True, "occasion": "2026-02-20T14:00:00Z"},
    ),
    "cline: stop": (
        "TaskComplete",
        {"turn": {"outputText": "Done", "status": "completed"}, "taskComplete": {"taskMetadata": {}}},
        {"kind": "stop", "text": "Done"},
    ),
    "cline: cancel": ("TaskCancel", {"taskCancel": {}}, {"kind": "stop"}),
    "cline: error": ("TaskError", {"error": {"name": "x"}}, {"kind": "stop"}),
    "cline: compaction": ("PreCompact", {"preCompact": {}}, SKIPPED),
    "cline: end": ("SessionShutdown", {"reason": "x"}, {"kind": "end", "text": "x"}),
}, {"clineVersion": "3.0.65", "timestamp": "2026-02-20T14:00:00Z", "taskId": "s-1", "workspaceRoots": ["/home/me/p"],
    "userId": "me", "agent_id": "main", "parent_agent_id": None},
    Said("s-1", "tool", agent="cline", project="/home/me/p"), "cline.")  # fmt: skip

EDITS = [{"old_string": "a", "new_string": "b"}]
WINDSURF = samples({
    "windsurf: prompt": ("pre_user_prompt", {"tool_info": {"user_prompt": "Hi"}}, HI),
    "windsurf: read": (
        "post_read_code", {"tool_info": {"file_path": "/p/a.py"}}, {"tool": "Read", "input": {"file_path": "/p/a.py"}},
    ),
    "windsurf: edit": (
        "post_write_code", {"tool_info": {"file_path": "/p/a.py", "edits": EDITS}},
        {"tool": "Edit", "input": {"file_path": "/p/a.py", "edits": EDITS}},
    ),
    "windsurf: command": (
        "post_run_command", {"tool_info": {"command_line": "ls", "cwd": "/p"}},
        {"project": "/p", "tool": "Shell", "input": {"command": "ls"}},
    ),
    "windsurf: mcp": (
        "post_mcp_tool_use",
        {"tool_info": {"mcp_server_name": "github", "mcp_tool_name": "list", "mcp_tool_arguments": {"a": 1},
                       "mcp_result": "b"}},
        {"tool": "mcp__github__list", "input": {"a": 1}, "output": "b"},
    ),
    "windsurf: stop": (
        "post_cascade_response", {"tool_info": {"response": "Done"}}, {"kind": "stop", "text": "Done"},
    ),
}, {"trajectory_id": "s-1", "execution_id": "e-1", "timestamp": "2026-02-20T14:00:00Z"},
    Said("s-1", "tool", agent="windsurf", occasion="e-1 2026-02-20T14:00:00Z"), "windsurf.")  # fmt: skip

CURSOR = samples({
    "cursor: prompt": ("beforeSubmitPrompt", {"prompt": "Hi"}, HI),
    "cursor: command": (
        "afterShellExecution", {"command": "ls", "output": "a", "duration": 3},
        {"tool": "Shell", "input": {"command": "ls"}, "output": "a", "occasion": "g 3"},
    ),
    "cursor: mcp": (
        "afterMCPExecution", {"tool_name": "find", "tool_input": '{"a": 1}', "result_json": '["b"]'},
        {"tool": "MCP:find", "input": {"a": 1}, "output": ["b"], "occasion": "g"},
    ),
    "cursor: mcp in words": (
        "afterMCPExecution", {"tool_name": "find", "tool_input": "{", "output": "b"},
        {"tool": "MCP:find", "input": "{", "output": "b", "occasion": "g"},
    ),
    "cursor: edit": (
        "afterFileEdit", {"file_path": "/home/me/p/a.py", "edits": EDITS},
        {"tool": "Edit", "occasion": "g", "input": {"file_path": "/home/me/p/a.py", "edits": EDITS}},
    ),
    "cursor: stop": ("stop", {"status": "completed"}, {"kind": "stop"}),
    "cursor: start": ("cursor.sessionStart", {"composer_mode": "agent"}, {"kind": "start", "text": "startup"}),
    "cursor: named prompt": ("cursor.beforeSubmitPrompt", {"prompt": "Hi"}, HI),
    "cursor: read": (
        "cursor.beforeReadFile", {"file_path": "/home/me/p/a.py", "content": "x = 1"},
        {"tool": "Read", "input": {"file_path": "/home/me/p/a.py"}, "output": "x = 1", "occasion": "g"},
    ),
    "cursor: before": (
        "cursor.preToolUse", {"tool_use_id": "call_9\nctc_7", "tool_name": "Shell"},
        {"id": "before call_9 ctc_7", **SKIPPED},
    ),
    "cursor: tool": (
        "cursor.postToolUse",
        {"tool_use_id": "call_9\nctc_7", "tool_name": "Shell", "duration": 48213, "cwd": "/home/me/p",
         "tool_input": {"command": "npm test"}, "tool_output": '{"output": "212 passed", "exitCode": 0}'},
        {"id": "call_9 ctc_7", "tool": "Shell", "input": {"command": "npm test"},
         "output": {"output": "212 passed", "exitCode": 0}, "occasion": "g 48213"},
    ),
    "cursor: failure": (
        "cursor.postToolUseFailure",
        {"tool_use_id": "c1", "tool_name": "Shell", "tool_input": {"command": "npm test"}, "duration": 5,
         "error_message": "2 failed", "failure_type": "error"},
        {"id": "c1", "tool": "Shell", "input": {"command": "npm test"}, "output": {"error": "2 failed"},
         "failed": True, "occasion": "g 5"},
    ),
    "cursor: words": ("cursor.afterAgentResponse", {"text": "Done"}, {"kind": "said", "text": "Done"}),
    "cursor: subagent": (
        "cursor.subagentStop", {"subagent_type": "explore", "status": "completed"},
        {"kind": "stop", "subagent": "explore", "skipped": SUBAGENT},
    ),
    "cursor: words of a subagent": (
        "cursor.subagentStop", {"subagent_type": "explore", "summary": "Found it"},
        {"kind": "said", "subagent": "explore", "text": "Found it"},
    ),
    "cursor: compaction": ("cursor.preCompact", {"trigger": "auto"}, SKIPPED),
    "cursor: end": ("cursor.sessionEnd", {"reason": "completed"}, {"kind": "end", "text": "completed"}),
}, {"conversation_id": "c-1", "generation_id": "g", "workspace_roots": ["/home/me/p", "/q"], "user_email": "a@b"},
    Said("c-1", "tool", agent="cursor", project="/home/me/p"))  # fmt: skip
CURSOR["cursor: no folder"] = (
    "stop", {"conversation_id": "c-1", "cwd": "/r"}, Said("c-1", "stop", agent="cursor", project="/r"),
)  # fmt: skip
BARE = ("afterShellExecution", "afterMCPExecution", "afterFileEdit", "stop")

PAYLOADS: dict[str, Sample] = {
    **FAMILY,
    **{
        f"{agent}: {name}": (f"{agent}.{FAMILY[name][0]}", FAMILY[name][1], replace(FAMILY[name][2], agent=agent))
        for agent, names in SHARED.items()
        for name in sorted(names)
    },
    **FAMILY_OTHERS, **GEMINI, **COPILOT, **CLINE, **WINDSURF, **CURSOR,
    **{f"{name}, named": (f"cursor.{sample[0]}", *sample[1:]) for name, sample in CURSOR.items() if sample[0] in BARE},
}  # fmt: skip
