"""The record of scheduled runs that all hosts of a bucket share: the object `_system/schedule.json`.

Owns its form. Refuses nothing when reading: a value that cannot be read, or a moment far in the future, counts as
missing. At worst this starts a run that has nothing to do. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from livememfs.records.ledger import Kind
from livememfs.text.foreign import Unreadable, count, moment, read_object, text
from livememfs.text.times import iso

CLOCKS_DIFFER = timedelta(hours=1)
"""How far ahead of ours another host's clock may be."""


@dataclass(frozen=True, kw_only=True)
class Past:
    """The last scheduled run of a space.

    :started:  when a host began it; while `ended` is earlier, the run has not ended
    :ended:    when a run last ended
    :served:   the hours of the schedule up to this moment need no run any more
    :why, host, state, tokens: of the run; `state` is empty while the run lasts
    :failures: how many runs in a row failed
    """

    started: datetime | None = None
    ended: datetime | None = None
    served: datetime | None = None
    why: str = ""
    host: str = ""
    state: str = ""
    tokens: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Book:
    """All spaces, and the tokens that scheduled runs have used on `day` (`2026-02-20`, in UTC).

    :spaces:  their consolidations
    :digests: their digests
    """

    day: str = ""
    tokens: int = 0
    spaces: Mapping[str, Past] = field(default_factory=dict)
    digests: Mapping[str, Past] = field(default_factory=dict)

    def past(self, space: str, kind: Kind = "consolidation") -> Past:
        """The record of a space's runs of one kind."""
        return (self.digests if kind == "digest" else self.spaces).get(space, Past())

    def used(self, now: datetime) -> int:
        """The tokens used on this day."""
        return self.tokens if self.day == day_of(now) else 0

    def with_past(self, space: str, past: Past, kind: Kind = "consolidation") -> Book:
        """The book with a new record of one space."""
        if kind == "digest":
            return replace(self, digests={**self.digests, space: past})
        return replace(self, spaces={**self.spaces, space: past})

    def with_tokens(self, tokens: int, now: datetime) -> Book:
        """The book with more tokens used on this day."""
        return replace(self, day=day_of(now), tokens=self.used(now) + tokens)

    def render(self) -> bytes:
        """The object: JSON."""
        value: dict[str, Any] = {"day": self.day, "tokens": self.tokens, "spaces": _rendered(self.spaces)}
        if self.digests:
            value["digests"] = _rendered(self.digests)
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")

    @classmethod
    def parse(cls, data: bytes, now: datetime) -> Book:
        """The book in an object, as far as it can be read."""
        try:
            value = read_object(data)
        except Unreadable:
            return cls()
        spaces, digests = _pasts(value.get("spaces"), now), _pasts(value.get("digests"), now)
        return cls(text(value.get("day")), count(value.get("tokens")), spaces, digests)


def day_of(moment: datetime) -> str:
    """The day for which tokens are counted, in UTC, so that it is the same on all hosts."""
    return moment.astimezone(UTC).date().isoformat()


def _rendered(pasts: Mapping[str, Past]) -> dict[str, Any]:
    return {space: _values(past) for space, past in sorted(pasts.items())}


def _values(past: Past) -> dict[str, Any]:
    values = asdict(past).items()
    return {name: iso(value, exact=True) if isinstance(value, datetime) else value for name, value in values}


def _pasts(values: object, now: datetime) -> dict[str, Past]:
    pasts = values.items() if isinstance(values, dict) else ()
    return {space: _past(value, now) for space, value in pasts if isinstance(value, dict)}


def _past(value: dict[str, Any], now: datetime) -> Past:
    fields: dict[str, Any] = {name: text(value.get(name)) for name in ("why", "host", "state")}
    fields |= {name: count(value.get(name)) for name in ("tokens", "failures")}
    fields |= {name: not_ahead(moment(value.get(name)), now) for name in ("started", "ended", "served")}
    return Past(**fields)


def not_ahead(moment: datetime | None, now: datetime) -> datetime | None:
    """A moment, if it is not in the future by more than clocks may differ; else None."""
    return moment if moment is not None and moment <= now + CLOCKS_DIFFER else None
