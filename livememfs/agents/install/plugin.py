"""The plugin for opencode, which has no settings for hooks.

Owns the JavaScript. The plugin sends the payloads of Claude Code's hooks and runs the same line of shell, so it waits
no longer than a hook. It appends the context to the system prompt. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from livememfs.agents.install.command import HookCommand, memory_off

PLUGIN_HEAD = "// livememfs: memory for opencode, written by `livememfs install opencode`\n"
"""The first line of the plugin, by which it is recognised."""
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact", "SessionEnd",
)  # fmt: skip
_BODY = """\
import { spawn } from "node:child_process"

const HOOKS = %(hooks)s
const SERVER = %(server)s
const TOOLS = { bash: "Bash", edit: "Edit", read: "Read", write: "Write" }

const run = (event, session_id, cwd, fields, warn) =>
  new Promise((resolve) => {
    const hook = spawn("sh", ["-c", HOOKS[event]], { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    hook.stdout.on("data", (part) => (said += part))
    hook.stdin.on("error", () => {})
    hook.on("error", () => resolve(""))
    hook.on("exit", () => setTimeout(resolve, 20, ""))
    hook.stdout.on("end", () => {
      let answer = {}
      try {
        answer = JSON.parse(said)
      } catch {}
      if (answer.systemMessage) warn?.(answer.systemMessage)
      resolve(answer.hookSpecificOutput?.additionalContext ?? "")
    })
    hook.stdin.end(JSON.stringify({ session_id, cwd, hook_event_name: event, ...fields }))
  })

export const Livememfs = async ({ client, directory }) => {
  const begun = new Map()
  const told = new Map()
  const warn = (message) => {
    if (!process.stdout.isTTY) console.error(message)
    client.tui.showToast({ body: { message, variant: "warning" } }).catch(() => {})
  }
  const lastWords = async (id) => {
    const found = await client.session.messages({ path: { id } }).catch(() => undefined)
    const last = found?.data?.findLast((one) => one.info.role === "assistant")
    return last?.parts.filter((one) => one.type === "text").map((one) => one.text).join("\\n") ?? ""
  }
  return {
    config: async (config) => {
      if (SERVER) config.mcp = { livememfs: { type: "local", command: SERVER, enabled: true }, ...config.mcp }
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = parts.filter((one) => one.type === "text" && !one.synthetic).map((one) => one.text).join("\\n")
      if (!begun.has(sessionID))
        begun.set(sessionID, await run("SessionStart", sessionID, directory, { source: "startup" }, warn))
      told.set(sessionID, await run("UserPromptSubmit", sessionID, directory, { prompt }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      for (const text of [begun.get(sessionID), told.get(sessionID)]) if (text) system.push(text)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const tool_input = args?.filePath ? { file_path: args.filePath, ...args } : args
      const fields = { tool_name: TOOLS[tool] ?? tool, tool_use_id: callID, tool_input, tool_response: output?.output }
      const failed = output?.metadata?.exit > 0
      run(failed ? "PostToolUseFailure" : "PostToolUse", sessionID, directory, { ...fields, error: output?.output })
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.idle" && begun.has(id))
        await run("Stop", id, directory, { last_assistant_message: await lastWords(id) })
      if (event.type === "session.compacted") await run("PreCompact", id, directory, {})
      if (event.type === "session.deleted" && begun.has(id)) await run("SessionEnd", id, directory, {})
    },
  }
}
"""


def plugin_text(space: str, argv: Sequence[str] | None) -> str:
    """The text of the plugin after its head, for a space. `argv`: the command of the MCP server; None: no server."""
    off = {"SessionStart": memory_off(space)}
    hooks = {event: HookCommand(space, f"opencode.{event}", off.get(event, "")).command for event in EVENTS}
    server = list(argv) if argv is not None else None
    return _BODY % {"hooks": json.dumps(hooks, indent=2), "server": json.dumps(server)}
