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
from livememfs.pipelines.capture import Said
from livememfs.records.event import storable

Payload = Mapping[str, Any]
Wants = Literal["nothing", "context", "recall"]
"""What is put into an answer: what is known of the space, or what fits a message."""


@dataclass(frozen=True)
class Contract:
    """One event of one or more agents.

    :event:  as the agent calls it, and the name of its file
    :said:   what a payload tells
    :plain:  the answer when there is nothing to tell
    """

    event: str
    said: Callable[[Payload], Said]
    wants: Wants = "nothing"
    plain: str = "{}"

    def answer(self, context: str) -> str:
        """The answer with this context, or without one."""
        if not context:
            return self.plain
        told = {"hookEventName": self.event, "additionalContext": context}
        return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)


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


def session_id(given: Payload, *names: str) -> str:
    """Which session. HookRefused for a payload that does not say."""
    found = text(given, *names).strip()
    if not found:
        raise HookRefused(path=text(given, "hook_event_name") or "the event", detail=f"it has no {names[0]}")
    return found
