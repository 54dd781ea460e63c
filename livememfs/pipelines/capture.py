"""Capture: what an agent's hooks and folders tell becomes events in the inbox, and nothing else happens then.

Owns what is not captured and why, that nothing private and nothing of our own words gets in, and the ids of events that
have none. Waits for the local state alone: who calls is an agent that wants to go on. Refuses to know how an agent
spells its hooks. Trio thread only; what is large is cleaned in a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import trio

from livememfs.cache.inbox import Inbox
from livememfs.clock import Clock
from livememfs.records import privacy
from livememfs.records.event import (
    STORED_CHARACTERS,
    Event,
    Kind,
    as_text,
    capped,
    digest_id,
    shortened,
    storable,
)
from livememfs.records.own import value_without_own, without_own
from livememfs.records.size import tokens

IN_A_THREAD = 64 << 10
"""Characters from which on an event is cleaned in a thread."""
ONLY_OURS = "our own context"
NOISY = "a tool that is not observed"
SUBAGENT = "a subagent's stop"
NOTIFICATION = "a notification, not a prompt"
NOT_OBSERVED = "an event that is not observed"
EMPTY = "nothing was said"
OFF = "observing is off"
_NAMES = ("session", "id", "agent", "subagent", "project", "tool")
"""The short fields of what a hook told: an agent, or whoever sets one up, may put anything into them."""
_NOTIFICATIONS = (
    "<task-notification",
    "<task_notification",
    "<system-notification",
    "<local-command-",
    "<bash-notification",
)


@dataclass(frozen=True)
class CaptureSettings:
    """What is captured.

    :skip_tools: names of tools that are not observed, in lower case
    :observe:    whether tools are observed at all
    :mounted:    where the mount is: what an agent reads of it is known already
    """

    skip_tools: frozenset[str] = frozenset()
    observe: bool = True
    mounted: str = ""


@dataclass(frozen=True)
class Said:
    """What a hook told: the fields of Event, before they are cleaned.

    :id:      the agent's own; empty where it gives none
    :skipped: why it is only counted; empty for what may be captured
    """

    session: str
    kind: Kind
    id: str = ""
    agent: str = ""
    subagent: str = ""
    project: str = ""
    tool: str = ""
    input: Any = None
    output: Any = None
    text: str = ""
    skipped: str = ""


class Capture:
    """The way into one inbox. `woken(space, session)` hears of each new event; `redacted(space, kinds)` of what was
    replaced because it is private.
    """

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        settings: CaptureSettings | None = None,
        *,
        woken: Callable[[str, str], None] = lambda *_: None,
        redacted: Callable[[str, tuple[str, ...]], None] = lambda *_: None,
    ) -> None:
        self._inbox, self._clock, self.settings = inbox, clock, settings or CaptureSettings()
        self._woken, self._redacted = woken, redacted
        self._counts = {"captured": 0, "repeated": 0, "redacted": 0}

    async def take(self, space: str, said: Said) -> Said:
        """Accept what a hook told; what it is without anything private. Durable when this returns. NoSpace."""
        said = replace(said, **{one.name: storable(getattr(said, one.name)) for one in fields(said)})
        size = len(as_text(said.input)) + len(as_text(said.output)) + len(said.text)
        if size > IN_A_THREAD:
            clean, found, event_id = await trio.to_thread.run_sync(self._cleaned, said)
        else:
            clean, found, event_id = self._cleaned(said)
        if found:
            self._counts["redacted"] += 1
            self._redacted(space, found)
        self._accept(space, clean, event_id)
        return clean

    def _cleaned(self, said: Said) -> tuple[Said, tuple[str, ...], str]:
        """Without what is private and what is ours, shortened; with the kinds of what was private, and its id."""
        given, in_given = privacy.redact_value(value_without_own(said.input))
        gave, in_gave = privacy.redact_value(value_without_own(said.output))
        text = privacy.redact(without_own(said.text))
        named = {name: privacy.redact(getattr(said, name)) for name in _NAMES}
        in_names = (kind for one in named.values() for kind in one.found)
        found = tuple(sorted({*in_given, *in_gave, *text.found, *in_names}))
        names: dict[str, Any] = {name: one.text for name, one in named.items()}
        clean = replace(said, input=given, output=gave, text=text.text, **names)
        return clean, found, clean.id or digest_id(clean.kind, clean.tool, given, gave, text.text)

    def _accept(self, space: str, said: Said, event_id: str) -> None:
        reason = self._not_captured(said)
        if not said.id and (said.kind != "tool" or said.skipped):
            # The same may be asked twice; twice at the same point of a session it is two hooks that say so.
            event_id = f"{event_id}-{self._before(space, said)}"
        now = self._clock.now()
        event = Event(
            id=event_id,
            session=said.session,
            kind=said.kind,
            at=now,
            agent=said.agent,
            subagent=said.subagent,
            project=said.project,
            tool=said.tool,
            input=capped(said.input, STORED_CHARACTERS),
            output=capped(said.output, STORED_CHARACTERS),
            text=shortened(said.text, STORED_CHARACTERS),
            tokens=tokens(as_text(said.input)) + tokens(as_text(said.output)) if said.kind == "tool" else 0,
        )
        at = int(now.timestamp())
        line = "" if reason else event.to_json()
        if self._inbox.add(space, said.session, event_id, said.kind, line, at=at, skipped=reason):
            self._counts["captured"] += not reason
            if not reason:
                self._woken(space, said.session)
        else:
            self._counts["repeated"] += 1

    def _before(self, space: str, said: Said) -> int:
        """How far a session has come, for an event that has no id."""
        kinds = [kind for kind in ("start", "prompt", "tool", "stop") if kind != said.kind or said.skipped]
        return self._inbox.count(space, said.session, *kinds)

    def _not_captured(self, said: Said) -> str:
        """Why an event is only counted; empty when it is captured."""
        if said.skipped:
            return said.skipped
        if said.kind == "prompt":
            if said.text.lstrip().startswith(_NOTIFICATIONS):
                return NOTIFICATION
            return "" if said.text.strip() else EMPTY
        if said.kind != "tool":
            return ""
        if not self.settings.observe:
            return OFF
        if said.tool.lower() in self.settings.skip_tools:
            return NOISY
        return ONLY_OURS if self._is_ours(said) else ""

    def _is_ours(self, said: Said) -> bool:
        """Whether a tool only looked at what the mount shows."""
        given = said.input if isinstance(said.input, dict) else {}
        path = next((given[name] for name in ("file_path", "path") if isinstance(given.get(name), str)), "")
        return bool(self.settings.mounted) and f"{path}/".startswith(f"{self.settings.mounted}/")

    def statistics(self) -> dict[str, int]:
        """Events captured, repeated, and with something private in them, since the start."""
        return dict(self._counts)
