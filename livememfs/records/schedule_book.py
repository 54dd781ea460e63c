"""What the hosts of a bucket remember of their scheduled runs: the object `_system/schedule.json`.

Owns its form. Refuses nothing when reading: what cannot be understood was never remembered, and a moment that lies far
ahead was never reached. The worst that costs is a run with nothing to do. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

    :started:  when a host took it on; what began since then has not ended while `ended` is earlier
    :ended:    when a run last ended
    :served:   hours of the schedule up to this moment need no run any more
    :why, host, state, tokens: of the run; `state` is empty while it lasts
    :failures: runs in a row that failed
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
        """What is known of a space's runs of a kind."""
        return (self.digests if kind == "digest" else self.spaces).get(space, Past())

    def used(self, now: datetime) -> int:
        """The tokens of this day."""
        return self.tokens if self.day == day_of(now) else 0

    def with_past(self, space: str, past: Past, kind: Kind = "consolidation") -> Book:
        """The same with another past of one space."""
        if kind == "digest":
            return replace(self, digests={**self.digests, space: past})
        return replace(self, spaces={**self.spaces, space: past})

    def with_tokens(self, tokens: int, now: datetime) -> Book:
        """The same with so many tokens more on this day."""
        return replace(self, day=day_of(now), tokens=self.used(now) + tokens)

    def render(self) -> bytes:
        """The object: JSON."""
        value: dict[str, Any] = {"day": self.day, "tokens": self.tokens, "spaces": _rendered(self.spaces)}
        if self.digests:
            value["digests"] = _rendered(self.digests)
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")

    @classmethod
    def parse(cls, data: bytes, now: datetime) -> Book:
        """What an object remembers, as far as it can be understood."""
        try:
            found = read_object(data)
        except Unreadable:
            return cls()
        known, digests = _pasts(found.get("spaces"), now), _pasts(found.get("digests"), now)
        return cls(text(found.get("day")), count(found.get("tokens")), known, digests)


def day_of(moment: datetime) -> str:
    """The day on which tokens are counted: that of UTC, which all hosts agree on."""
    return moment.astimezone(UTC).date().isoformat()


def _rendered(pasts: Mapping[str, Past]) -> dict[str, Any]:
    return {space: _values(past) for space, past in sorted(pasts.items())}


def _pasts(found: object, now: datetime) -> dict[str, Past]:
    pasts = found.items() if isinstance(found, dict) else ()
    return {space: _past(value, now) for space, value in pasts if isinstance(value, dict)}


def _values(past: Past) -> dict[str, Any]:
    moments = {"started": past.started, "ended": past.ended, "served": past.served}
    values = {name: iso(moment, exact=True) if moment else None for name, moment in moments.items()}
    figures = {"why": past.why, "host": past.host, "state": past.state}
    return {**values, **figures, "tokens": past.tokens, "failures": past.failures}


def _past(value: dict[str, Any], now: datetime) -> Past:
    return Past(
        started=not_ahead(moment(value.get("started")), now),
        ended=not_ahead(moment(value.get("ended")), now),
        served=not_ahead(moment(value.get("served")), now),
        why=text(value.get("why")),
        host=text(value.get("host")),
        state=text(value.get("state")),
        tokens=count(value.get("tokens")),
        failures=count(value.get("failures")),
    )


def not_ahead(moment: datetime | None, now: datetime) -> datetime | None:
    """A moment that another clock may have told; None for one that is still to come."""
    return moment if moment is not None and moment <= now + CLOCKS_DIFFER else None
