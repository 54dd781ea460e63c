"""The hooks of Claude Code (read in 2.1.197), which Codex, Qwen Code and the plugin for opencode share: the content of
each event, and the possible answers.

Owns the names of events and fields. An answer has `hookSpecificOutput` or is empty: Codex refuses unknown fields, and a
hook that adds context must never decide anything. Before a compaction the answer is empty: Claude Code would put it
into the compacted conversation. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from livememfs.agents.contract import Contract, Payload, always, file_of, reader, session_id, text, unobserved
from livememfs.observing.capture import SUBAGENT, Said
from livememfs.records.event import Kind

CLAUDE, CODEX, CURSOR = "claude", "codex", "cursor"


def _agent(given: Payload) -> str:
    """The agent behind a shared hook: only Codex has turns or a rollout; Cursor runs the hooks of Claude Code, too."""
    if "cursor_version" in given:
        return CURSOR
    return CODEX if "turn_id" in given or "/rollout-" in text(given, "transcript_path") else CLAUDE


def _said(agent: str, given: Payload, kind: Kind, **fields: Any) -> Said:
    return Said(
        session=session_id(given, "session_id"),
        kind=kind,
        agent=agent if agent and "cursor_version" not in given else _agent(given),
        subagent=text(given, "agent_id"),
        project=text(given, "cwd"),
        **fields,
    )


def used(agent: str, given: Payload) -> Said:
    """A tool was used."""
    said = _said(agent, given, "tool", id=text(given, "tool_use_id"), tool=text(given, "tool_name"))
    return replace(said, input=given.get("tool_input"), output=given.get("tool_response"))


def _failed(agent: str, given: Payload) -> Said:
    return replace(used(agent, given), output={"error": text(given, "error")}, failed=True)


def _stopped(agent: str, given: Payload) -> Said:
    if text(given, "agent_id"):
        said = _subagent_stopped(agent, given)
        return said if said.kind == "said" else replace(said, id="")
    return _said(agent, given, "stop", text=text(given, "last_assistant_message"))


def _subagent_stopped(agent: str, given: Payload) -> Said:
    """The answer of a subagent. One with an empty type did a compaction, and its answer is not new."""
    which, words = text(given, "agent_id"), text(given, "last_assistant_message")
    if words.strip() and which and given.get("agent_type") != "":
        return _said(agent, given, "said", tool=text(given, "agent_type"), text=words)
    return _said(agent, given, "stop", skipped=SUBAGENT, id=f"subagent {which}" if which else "")


def _unobserved(agent: str, given: Payload) -> Said:
    return unobserved(_said(agent, given, "tool"), text(given, "tool_use_id"))


def _path(given: Payload) -> str:
    return file_of(text(given, "tool_name"), given.get("tool_input"))


def _forgets(given: Payload) -> bool:
    """Whether a session starts with an empty conversation, and has lost what it was told."""
    return text(given, "source") in ("clear", "compact")


def family(
    agent: str = "",
    events: Collection[str] = (),
    *,
    use: Callable[[str, Payload], Said] = used,
) -> tuple[Contract, ...]:
    """The contracts of an agent for these events; no `events`: for all. `agent` empty: the payload names it."""
    said = partial(_said, agent)
    whole = (
        Contract("SessionStart", reader(said, "start", "source", otherwise="startup"), "context", forgets=_forgets),
        Contract("UserPromptSubmit", reader(said, "prompt", "prompt"), "recall"),
        Contract("PreToolUse", partial(_unobserved, agent), "file", path=_path),
        Contract("PostToolUse", partial(use, agent)),
        Contract("PostToolUseFailure", partial(_failed, agent)),
        Contract("Stop", partial(_stopped, agent)),
        Contract("SubagentStop", partial(_subagent_stopped, agent)),
        Contract("PreCompact", partial(_unobserved, agent), plain="", forgets=always),
        Contract("SessionEnd", reader(said, "end", "reason")),
        Contract("Notification", partial(_unobserved, agent)),
    )
    return tuple(replace(contract, agent=agent) for contract in whole if not events or contract.event in events)


CONTRACTS = (*family(), *family(CLAUDE))
