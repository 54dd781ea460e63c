"""The contract of a hook: the name of an event, how its JSON is read, and how it is answered.

Owns the form of a contract, and lenient readers of fields. Refuses payloads that name no session (HookRefused). Pure;
any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from livememfs.errors import HookRefused
from livememfs.observing.capture import NOT_OBSERVED, Said
from livememfs.records.event import EDITS, READS, Kind, paths_of, storable

Payload = Mapping[str, Any]
Wants = Literal["nothing", "context", "recall", "file"]
"""The content of an answer: the context of the space, memories for a message, or the observations of a file."""


def nested(event: str, context: str) -> dict[str, Any]:
    """An answer with a context, in the form of most agents."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}


def always(_given: Payload) -> bool:
    """The session always loses what it was told."""
    return True


@dataclass(frozen=True)
class Contract:
    """One event of an agent.

    :event:   the agent's name for it
    :said:    reads a payload as an event
    :plain:   the answer without a context
    :agent:   the agent in the name of its file; empty if only the payload names the agent
    :path:    gives the file that a tool is about to read or edit
    :begins:  whether a session may begin with this event; if it does, the answer starts with the context
    :forgets: whether the conversation of the session no longer has what it was told
    :shape:   makes the JSON of an answer from event and context
    """

    event: str
    said: Callable[[Payload], Said]
    wants: Wants = "nothing"
    plain: str = "{}"
    agent: str = ""
    path: Callable[[Payload], str] = lambda _: ""
    begins: bool = False
    forgets: Callable[[Payload], bool] = lambda _: False
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
    request: Payload = storable(value)
    return request


def text(given: Payload, *names: str) -> str:
    """The first of these fields that is a string; empty without one."""
    return next((value for name in names if isinstance(value := given.get(name), str)), "")


def part(given: Payload, name: str) -> Payload:
    """A field that is an object; an empty object for any other value."""
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def from_json(value: Any) -> Any:
    """A value, parsed if it is a string of JSON: some agents send values so."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def first(value: Any) -> str:
    """The first string of a list; empty without one."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""


def session_id(given: Payload, *names: str) -> str:
    """The id of the session. HookRefused for a payload without one."""
    name = text(given, *names).strip()
    if not name:
        raise HookRefused(path=text(given, "hook_event_name") or "the event", detail=f"it has no {names[0]}")
    return name


def file_of(tool: str, given: Any) -> str:
    """The file that a tool reads or edits; empty for any other tool."""
    return next(paths_of(tool, given), "") if tool.lower() in READS | EDITS else ""


def occasion(given: Payload, *names: str) -> str:
    """A text that distinguishes an event from another one with the same content."""
    return " ".join(str(value) for name in names if isinstance(value := given.get(name), str | int | float))


def reader(make: Callable[..., Said], kind: Kind, *names: str, otherwise: str = "") -> Callable[[Payload], Said]:
    """Reads events of one kind. `make` makes an event of the agent; its text is the first of these fields."""
    return lambda given: make(given, kind, text=text(given, *names) or otherwise)


def unobserved(said: Said, before: str = "") -> Said:
    """An event that is only counted. `before`: the id of the tool call that it precedes."""
    event_id = f"before {before}" if before else ""
    return Said(said.session, "tool", event_id, said.agent, said.subagent, said.project, skipped=NOT_OBSERVED)
