"""A session of an agent: `session.json`, the prompts beside it, and `summary.md` (claude-mem 2.1, 2.2, 2.4).

Owns the form of the three objects. Unknown fields and lines are kept. Does not know how a session is captured. Pure;
any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import islice
from operator import add
from typing import Any, Literal

from livememfs.records.event import Event
from livememfs.records.trust import DERIVED, FIELD, Trust, trust_of
from livememfs.text import frontmatter
from livememfs.text.fields import decode, read_text, split
from livememfs.text.foreign import Unreadable, count, moment, read_object, text
from livememfs.text.times import iso, parse_iso

Status = Literal["active", "completed"]

LAST_KEPT = 64
"""So many observations a session lists. The observer's prompt and the summary are made from these."""
SUMMARY_FIELDS = ("request", "investigated", "learned", "completed", "next_steps")
_HEADING = re.compile(rf"^## ({'|'.join(SUMMARY_FIELDS).replace('_', ' ')})[ \t]*$", re.MULTILINE | re.IGNORECASE)
"""Only these headings: the texts of a model may have others."""


@dataclass(frozen=True)
class Meter:
    """The cost of observing a session."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Meter) -> Meter:
        """The sum of both."""
        return Meter(*map(add, astuple(self), astuple(other)))

    @property
    def tokens(self) -> int:
        """The tokens in and out."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Session:
    """The content of `session.json`.

    :id:           the agent's id of it
    :source:       why it last began: startup, resume, clear, compact
    :observed:     tool events that are in observations; `skipped`: those that are not
    :observations: names of the objects, the last LAST_KEPT
    :summed_up:    how many tool events there were when `summary.md` was last written
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
        """The session with more observations."""
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
            "meter": asdict(self.meter),
            **self.extra,
        }
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes, *, space: str, session: str, now: datetime) -> Session:
        """The session in an object; a new one if it cannot be read. An odd field counts as missing."""
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
            meter=Meter(*(_number(meter, each.name) for each in fields(Meter))),
            extra={name: each for name, each in value.items() if name not in _OURS},
        )


def _number(value: object, name: str) -> int:
    return count(value.get(name)) if isinstance(value, dict) else 0


_OURS = frozenset((
    "session_id", "space", "agent", "project", "source", "status", "created_at", "updated_at", "prompts", "events",
    "observations", "summed_up", "model", "meter",
))  # fmt: skip


# --- prompts ----------------------------------------------------------------------------------------------------


def with_prompts(data: bytes, events: Iterable[Event]) -> bytes:
    """The lines of `prompts.ndjson`, unchanged, and one more for each prompt."""
    values = ({"at": iso(event.at), "id": event.id, "prompt": event.text} for event in events)
    lines = "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values)
    missing = b"\n" if data and not data.endswith(b"\n") else b""
    return data + missing + lines.encode("utf-8", "replace")


def last_prompts(data: bytes, most: int) -> list[str]:
    """The last prompts, the oldest first."""
    return [prompt for _, prompt in islice(prompts_in(reversed(data.split(b"\n"))), most)][::-1]


def prompts_in(lines: Iterable[bytes]) -> Iterator[tuple[datetime | None, str]]:
    """The time and the text of each prompt. A line that cannot be read is ignored."""
    for line in lines:
        with suppress(Unreadable):
            value = read_object(line)
            if (prompt := text(value.get("prompt"))).strip():
                yield moment(value.get("at")), prompt


# --- the summary ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """The summary of a session. An unknown field is empty. `trust`: the class of what it was made of."""

    session: str
    created_at: datetime
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    project: str = ""
    model: str = ""
    trust: str = ""

    @property
    def whose(self) -> Trust:
        """The class, that of tool output where it does not say."""
        return trust_of(None, {FIELD: self.trust}, DERIVED)

    def render(self) -> bytes:
        """The object: front matter, and a heading for each field that is not empty."""
        parts = [
            f"## {name.replace('_', ' ').capitalize()}\n\n{getattr(self, name)}\n"
            for name in SUMMARY_FIELDS
            if getattr(self, name)
        ]
        metadata = {"session": self.session, "project": self.project, "created_at": iso(self.created_at)}
        trust = {"trust": self.trust} if self.trust else {}
        return frontmatter.join({**metadata, "model": self.model, **trust}, "\n".join(parts)).encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes, *, path: str) -> Summary:
        """The summary in an object. Raises NotText."""
        metadata, body = split(decode(data, path))
        pieces = _HEADING.split(body)
        names = (heading.strip().lower().replace(" ", "_") for heading in pieces[1::2])
        texts = dict(zip(names, map(str.strip, pieces[2::2]), strict=True))
        try:
            made = parse_iso(read_text(metadata.get("created_at")) or "")
        except ValueError:
            made = datetime.fromtimestamp(0, UTC)
        known = {name: texts.get(name, "") for name in SUMMARY_FIELDS}
        about = {name: read_text(metadata.get(name)) or "" for name in ("session", "project", "model", "trust")}
        return cls(created_at=made, **about, **known)
