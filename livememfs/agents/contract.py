"""What a hook of an agent is to the rest: an event's name, how its JSON is read, and what it is answered.

Owns the shape of a contract and the reading of fields with good will. Refuses payloads that name no session
(HookRefused). Pure; any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from livememfs.errors import HookRefused
from livememfs.observing.capture import NOT_OBSERVED, Said
from livememfs.records.event import EDITS, READS, paths_of, storable

Payload = Mapping[str, Any]
Wants = Literal["nothing", "context", "recall", "file"]
"""What is put into an answer: what is known of the space, what fits a message, or what is known of a file."""


def nested(event: str, context: str) -> dict[str, Any]:
    """How most agents are told a context."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}


def no_file(_given: Payload) -> str:
    """Of most events."""
    return ""


def never(_given: Payload) -> bool:
    """What most events say of what a session was told: that it stays."""
    return False


def always(_given: Payload) -> bool:
    """The session forgets what it was told."""
    return True


@dataclass(frozen=True)
class Contract:
    """One event of an agent.

    :event:   as the agent calls it
    :said:    what a payload tells
    :plain:   the answer when there is nothing to tell
    :agent:   whose it is, in the name of its file; empty where the payload alone tells
    :path:    the file that a tool is about to read or edit
    :begins:  whether a session may begin with it, and is told then what one begins with
    :forgets: whether the session no longer has before it what it was told
    :shape:   the JSON of an answer, by event and context
    """

    event: str
    said: Callable[[Payload], Said]
    wants: Wants = "nothing"
    plain: str = "{}"
    agent: str = ""
    path: Callable[[Payload], str] = no_file
    begins: bool = False
    forgets: Callable[[Payload], bool] = never
    shape: Callable[[str, str], dict[str, Any]] = nested

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.agent}.{self.event}" if self.agent else self.event

    def answer(self, context: str) -> str:
        """The answer with this context, or without one."""
        return json.dumps(self.shape(self.event, context), ensure_ascii=False) if context else self.plain


def payload(data: bytes, *, path: str) -> Payload:
    """The JSON object in a request. HookRefused."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HookRefused(path=path, detail=f"it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise HookRefused(path=path, detail="it is no JSON object")
    found: Payload = storable(value)
    return found


def text(given: Payload, *names: str) -> str:
    """The first of some fields that is a text; empty where none is."""
    return next((value for name in names if isinstance(value := given.get(name), str)), "")


def part(given: Payload, name: str) -> Payload:
    """A field that is an object; an empty one where it is none."""
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def from_json(value: Any) -> Any:
    """Some agents give some values as the text of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def first(value: Any) -> str:
    """The first text of a list; empty where there is none."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""


def session_id(given: Payload, *names: str) -> str:
    """Which session. HookRefused for a payload that does not say."""
    found = text(given, *names).strip()
    if not found:
        raise HookRefused(path=text(given, "hook_event_name") or "the event", detail=f"it has no {names[0]}")
    return found


def file_of(tool: str, given: Any) -> str:
    """The file that a tool reads or edits; empty for any other tool."""
    return next(paths_of(tool, given), "") if tool.lower() in READS | EDITS else ""


def occasion(given: Payload, *names: str) -> str:
    """What tells an event from another of the same content."""
    return " ".join(str(value) for name in names if isinstance(value := given.get(name), str | int | float))


def unobserved(said: Said, before: str = "") -> Said:
    """An event that is counted alone; `before` is the id of the use of a tool that it comes before."""
    event_id = f"before {before}" if before else ""
    return Said(said.session, "tool", event_id, said.agent, said.subagent, said.project, skipped=NOT_OBSERVED)
