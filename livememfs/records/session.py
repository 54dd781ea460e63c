"""A session of an agent: `session.json`, the prompts beside it, and `summary.md` (claude-mem 2.1, 2.2, 2.4).

Owns the form of the three objects. Fields and lines of other hands are kept. Refuses to know how a session is captured.
Pure; any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from livememfs.records.event import Event
from livememfs.text import frontmatter
from livememfs.text.fields import decode, read_text, split
from livememfs.text.foreign import Unreadable, count, moment, read_object, text
from livememfs.text.times import iso, parse_iso

Status = Literal["active", "completed"]

LAST_KEPT = 64
"""Ids of observations that a session remembers: what the observer is reminded of, and what a summary is made of."""
SUMMARY_FIELDS = ("request", "investigated", "learned", "completed", "next_steps")
_HEADING = re.compile(rf"^## ({'|'.join(SUMMARY_FIELDS).replace('_', ' ')})[ \t]*$", re.MULTILINE | re.IGNORECASE)
"""Ours alone: what a model says may have headings of its own."""


@dataclass(frozen=True)
class Meter:
    """What observing a session has cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Meter) -> Meter:
        """Both together."""
        return Meter(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Meter)))

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Session:
    """What `session.json` says.

    :id:           the agent's id of it
    :source:       why it began last: startup, resume, clear, compact
    :observed:     tool events that are in observations; `skipped`: those that are not
    :observations: names of the objects, the last LAST_KEPT
    :summed_up:    how many tool events there were when `summary.md` was written last
    """

    id: str
    space: str
    created_at: datetime
    updated_at: datetime
    agent: str = ""
    project: str = ""
    source: str = ""
    status: Status = "active"
    prompts: int = 0
    observed: int = 0
    skipped: int = 0
    observations: tuple[str, ...] = ()
    summed_up: int = 0
    model: str = ""
    meter: Meter = Meter()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def with_observations(self, names: Iterable[str]) -> Session:
        """The same, with more observations."""
        return replace(self, observations=tuple(dict.fromkeys((*self.observations, *names)))[-LAST_KEPT:])

    def render(self) -> bytes:
        """The object."""
        value = {
            "session_id": self.id,
            "space": self.space,
            "agent": self.agent,
            "project": self.project,
            "source": self.source,
            "status": self.status,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "prompts": self.prompts,
            "events": {"observed": self.observed, "skipped": self.skipped},
            "observations": list(self.observations),
            "summed_up": self.summed_up,
            "model": self.model,
            "meter": {**{one.name: getattr(self.meter, one.name) for one in fields(Meter)}},
            **self.extra,
        }
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes, *, space: str, session: str, now: datetime) -> Session:
        """The session of an object; a new one for what is none. A field that is odd is as if it were not there."""
        try:
            value = read_object(data)
        except Unreadable:
            return cls(session, space, now, now)
        events, meter, names = value.get("events"), value.get("meter"), value.get("observations")
        return cls(
            id=text(value.get("session_id")) or session,
            space=space,
            created_at=moment(value.get("created_at")) or now,
            updated_at=moment(value.get("updated_at")) or now,
            **{name: text(value.get(name)) for name in ("agent", "project", "source", "model")},
            status="completed" if value.get("status") == "completed" else "active",
            prompts=_number(value, "prompts"),
            observed=_number(events, "observed"),
            skipped=_number(events, "skipped"),
            observations=tuple(map(text, names))[-LAST_KEPT:] if isinstance(names, list) else (),
            summed_up=_number(value, "summed_up"),
            meter=Meter(*(_number(meter, one.name) for one in fields(Meter))),
            extra={name: one for name, one in value.items() if name not in _OURS},
        )


def _number(value: object, name: str) -> int:
    return count(value.get(name)) if isinstance(value, dict) else 0


_OURS = frozenset(
    {
        "session_id", "space", "agent", "project", "source", "status", "created_at", "updated_at", "prompts", "events",
        "observations", "summed_up", "model", "meter",
    }
)  # fmt: skip


# --- prompts ----------------------------------------------------------------------------------------------------


def with_prompts(data: bytes, events: Iterable[Event]) -> bytes:
    """The lines of `prompts.ndjson` and one more for each prompt; what is there stays as it is."""
    lines = [
        json.dumps({"at": iso(one.at), "id": one.id, "prompt": one.text}, ensure_ascii=False) + "\n" for one in events
    ]
    missing = b"\n" if data and not data.endswith(b"\n") else b""
    return data + missing + "".join(lines).encode("utf-8", "replace")


def last_prompts(data: bytes, most: int) -> list[str]:
    """What was asked last, in the order in which it was."""
    found: list[str] = []
    for _, asked in prompts_in(reversed(data.split(b"\n"))):
        found.append(asked)
        if len(found) == most:
            break
    return found[::-1]


def prompts_in(lines: Iterable[bytes]) -> Iterator[tuple[datetime | None, str]]:
    """When something was asked, and what. A line that cannot be read is passed over."""
    for line in lines:
        with suppress(Unreadable):
            value = read_object(line)
            if (asked := text(value.get("prompt"))).strip():
                yield moment(value.get("at")), asked


# --- the summary ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What a session came to. A field that nobody can tell is empty."""

    session: str
    created_at: datetime
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    project: str = ""
    model: str = ""

    def render(self) -> bytes:
        """The object: front matter, and a heading for each field that says something."""
        parts = [
            f"## {name.replace('_', ' ').capitalize()}\n\n{getattr(self, name)}\n"
            for name in SUMMARY_FIELDS
            if getattr(self, name)
        ]
        metadata = {"session": self.session, "project": self.project, "created_at": iso(self.created_at)}
        return frontmatter.join({**metadata, "model": self.model}, "\n".join(parts)).encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes, *, path: str) -> Summary:
        """The summary of an object. NotText."""
        metadata, body = split(decode(data, path))
        pieces = _HEADING.split(body)
        said = {
            heading.strip().lower().replace(" ", "_"): text.strip()
            for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)
        }
        try:
            made = parse_iso(read_text(metadata.get("created_at")) or "")
        except ValueError:
            made = datetime.fromtimestamp(0, UTC)
        known = {name: said.get(name, "") for name in SUMMARY_FIELDS}
        about = {name: read_text(metadata.get(name)) or "" for name in ("session", "project", "model")}
        return cls(created_at=made, **about, **known)
