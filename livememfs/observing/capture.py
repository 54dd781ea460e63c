"""Capture: what an agent's hooks and folders report becomes events in the inbox, and nothing else happens then.

Owns which events are not captured and why, and the ids of events that have none. Takes out what is private, our own
words, and what an agent's program wrote around a prompt. Waits only for the local state: the caller is an agent that
wants to go on. Refuses to know how an agent spells its hooks. Trio thread only; a large event is cleaned in a worker
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, get_args

import trio

from livememfs.cache.inbox import Inbox
from livememfs.clock import Clock
from livememfs.memories.dictated import Dictated
from livememfs.observing.own_use import OwnUse
from livememfs.records.event import (
    OBSERVED_KINDS,
    STORED_CHARACTERS,
    Event,
    Kind,
    as_text,
    capped,
    digest_id,
    shortened,
    storable,
)
from livememfs.text.harness import asked
from livememfs.text.own import LEFT_OUT, is_left_out, value_without_own, without_own
from livememfs.text.privacy import redaction as privacy
from livememfs.text.size import tokens

IN_A_THREAD = 64 << 10
"""Characters from which on an event is cleaned in a thread."""
ONLY_OURS = "our own context"
NOISY = "a tool that is not observed"
SUBAGENT = "a subagent's stop"
NOTIFICATION = "a notification or a command of the program, not a prompt"
NOT_OBSERVED = "an event that is not observed"
EMPTY = "nothing was said"
OFF = "observing is off"
REPEAT_SECONDS = 2.0
"""Seconds in which two equal uses of a tool without an id count as one: a hook may be installed twice."""
_LATEST = 1_024
"""Most uses of tools without an id that are remembered."""
_NAMES = ("session", "id", "agent", "subagent", "project", "tool", "occasion", "repository", "branch")
"""The short fields of a report: an agent, or the person who set it up, may put anything into them."""


@dataclass(frozen=True)
class CaptureSettings:
    """What is captured.

    :skip_tools: names of tools that are not observed, in lower case
    :observe:    whether tools, and what an agent says, are observed at all
    :mounted:    where the mount is: what an agent reads of it is known already
    :home:       what `~` is in a command
    :own_tools:  the names of our MCP tools
    """

    skip_tools: frozenset[str] = frozenset()
    observe: bool = True
    mounted: str = ""
    home: str = ""
    own_tools: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Said:
    """What a hook told: the fields of Event, before they are cleaned.

    :id:       the agent's own; empty where it gives none
    :text:     as in Event; of a stop: the agent's last words
    :failed:   a tool failed
    :occasion: without an id: what tells it from another of the same content, such as its turn and its duration
    :skipped:  why it is only counted; empty for what may be captured
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
    failed: bool = False
    occasion: str = ""
    skipped: str = ""
    repository: str = ""
    branch: str = ""
    commit: str = ""


@dataclass(frozen=True)
class PastEvent:
    """An event of the past, cleaned.

    :skipped: why it is only counted; empty for what is observed
    :private: the kinds of private text that were replaced
    """

    event: Event
    skipped: str
    private: tuple[str, ...]


class Capture:
    """The way into one inbox. `woken(space, session)` is called for each new event, `redacted(space, kinds)` for what
    was replaced because it is private, and `heard(space, event)` for what an agent did with anything but this memory,
    whether it is observed or not.
    """

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        settings: CaptureSettings | None = None,
        *,
        woken: Callable[[str, str], None] = lambda *_: None,
        redacted: Callable[[str, tuple[str, ...]], None] = lambda *_: None,
        heard: Callable[[str, Event], None] = lambda *_: None,
    ) -> None:
        self._inbox, self._clock, self.settings = inbox, clock, settings or CaptureSettings()
        self._woken, self._redacted, self._heard = woken, redacted, heard
        self._own = OwnUse(self.settings.mounted, self.settings.home, self.settings.own_tools)
        self._latest: dict[tuple[str, str, str], tuple[str, datetime]] = {}
        self._counts = {"captured": 0, "repeated": 0, "redacted": 0}
        self.dictated = Dictated()

    def heard(self, space: str, said: Said) -> None:
        """Take note of what a user has dictated, as a hook told: any process writes to the files of a session."""
        if said.kind == "prompt" and not said.skipped and not said.subagent:
            self.dictated.heard(space, said.text, self._clock.now())

    async def take(self, space: str, said: Said) -> Said:
        """Accept what a hook told. Returns it without what is private, and with the reason if it is only counted.

        A stop with words becomes two events. Durable when this returns. NoSpace.
        """
        said = _storable(said)
        size = len(as_text(said.input)) + len(as_text(said.output)) + len(said.text)
        if size > IN_A_THREAD:
            clean, private, event_id = await trio.to_thread.run_sync(self._cleaned, said)
        else:
            clean, private, event_id = self._cleaned(said)
        if private:
            self._counts["redacted"] += 1
            self._redacted(space, private)
        if clean.kind == "stop" and clean.text.strip():
            words = replace(clean, kind="said", id="", skipped=clean.skipped or ("" if self.settings.observe else OFF))
            self._accept(space, words, digest_id("said", clean.subagent, clean.text))
            event_id, clean = clean.id or digest_id("stop", "", None, None, ""), replace(clean, text="")
        self._accept(space, clean, event_id)
        return clean

    def _cleaned(self, said: Said) -> tuple[Said, tuple[str, ...], str]:
        """Without what is private and what is ours, shortened, and with the reason why it is only counted; with the
        kinds of what was private, and its id.
        """
        given, in_given = privacy.redact_value(value_without_own(said.input))
        gave, in_gave = privacy.redact_value(value_without_own(said.output))
        text = privacy.redact(without_own(said.text))
        named = {name: privacy.redact(getattr(said, name)) for name in _NAMES}
        in_names = (kind for redacted in named.values() for kind in redacted.found)
        private = tuple(sorted({*in_given, *in_gave, *text.found, *in_names}))
        names: dict[str, Any] = {name: redacted.text for name, redacted in named.items()}
        clean = replace(said, input=given, output=gave, text=text.text, **names)
        if said.kind == "prompt":  # after it was redacted: no tag hides the mark that opens what is private
            clean = replace(clean, text=asked(text.text))
        clean = self._judged(said, clean)
        parts = (clean.kind, clean.tool, given, gave, text.text, *filter(None, [clean.occasion]))
        if clean.kind == "said":  # by the words alone: an agent may tell them as it speaks and as it stops
            parts = ("said", clean.subagent, clean.text)
        return clean, private, clean.id or digest_id(*parts)

    def _judged(self, said: Said, clean: Said) -> Said:
        """The event with the reason why it is only counted, or without an output that may be our own words."""
        if clean.skipped:
            return clean
        if clean.kind == "prompt" and not clean.text:
            return replace(clean, skipped=NOTIFICATION if said.text.strip() else EMPTY)
        if clean.kind not in OBSERVED_KINDS:
            return clean
        if not self.settings.observe:
            return replace(clean, skipped=OFF)
        if clean.kind == "said":
            return clean if clean.text.strip() else replace(clean, skipped=EMPTY)
        if clean.tool.lower() in self.settings.skip_tools:
            return replace(clean, skipped=NOISY)
        use = self._own.of(said.tool, said.input, said.project)
        if use == "all" or is_left_out(clean.output):
            return replace(clean, skipped=ONLY_OURS)
        return replace(clean, output=LEFT_OUT) if use == "part" else clean

    def _accept(self, space: str, said: Said, event_id: str) -> None:
        now = self._clock.now()
        if not said.id:
            event_id = self._own_id(space, said, event_id, now)
        event = _event(said, event_id, now)
        at, line = int(now.timestamp()), "" if said.skipped else event.to_json()
        if self._inbox.add(space, said.session, event_id, said.kind, line, at=at, skipped=said.skipped):
            self._counts["captured"] += not said.skipped
            if not said.skipped:
                self._woken(space, said.session)
            if said.skipped in ("", OFF, NOISY):
                self._heard(space, event)
        else:
            self._counts["repeated"] += 1

    def _own_id(self, space: str, said: Said, event_id: str, now: datetime) -> str:
        """The id of an event whose agent gives none, the same for two hooks that report one event.

        Equal prompts and answers are one event at the same point of a session; equal uses of a tool within a moment.
        """
        if said.kind != "tool" or said.skipped:
            return f"{event_id}-{self._before(space, said)}"
        which = (space, said.session, event_id)
        known, since = self._latest.pop(which, ("", now))
        if not known or not 0 <= (now - since).total_seconds() < REPEAT_SECONDS:
            known, since = f"{event_id}-{int(now.timestamp() * 1_000):x}", now
        self._latest[which] = known, since
        while len(self._latest) > _LATEST:
            del self._latest[next(iter(self._latest))]
        return known

    def _before(self, space: str, said: Said) -> int:
        """The point that a session has reached. Words of an agent come just before its stop, and count with it."""
        apart = {"stop", "end"} if said.kind == "said" else set()
        kinds = [kind for kind in get_args(Kind) if (kind != said.kind or said.skipped) and kind not in apart]
        return self._inbox.count(space, said.session, *kinds)

    def past(self, said: Said, at: datetime) -> PastEvent:
        """What `take` would make of something that an agent did at `at`, without accepting it. It needs an id. Pure."""
        clean, private, event_id = self._cleaned(_storable(said))
        return PastEvent(_event(clean, event_id, at), clean.skipped, private)

    def statistics(self) -> dict[str, int]:
        """Events captured, repeated, and with something private in them, since the start."""
        return dict(self._counts)


def _storable(said: Said) -> Said:
    """Without what no JSON can hold."""
    return replace(said, **{part.name: storable(getattr(said, part.name)) for part in fields(said)})


def _event(said: Said, event_id: str, at: datetime) -> Event:
    """The event, with long fields shortened."""
    return Event(
        id=event_id,
        session=said.session,
        kind=said.kind,
        at=at,
        agent=said.agent,
        subagent=said.subagent,
        project=said.project,
        tool=said.tool,
        input=capped(said.input, STORED_CHARACTERS),
        output=capped(said.output, STORED_CHARACTERS),
        text=shortened(said.text, STORED_CHARACTERS),
        tokens=tokens(as_text(said.input)) + tokens(as_text(said.output)) if said.kind == "tool" else 0,
        failed=said.failed,
        repository=said.repository,
        branch=said.branch,
        commit=said.commit,
    )
