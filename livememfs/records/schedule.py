"""When spaces are consolidated or digested automatically: the settings `schedule` and `digest_schedule`, as a file or a
variable has them.

Owns their form. Refuses unknown keys, wrong types and a table that would never start a run, with one sentence. Pure;
may be called from any thread.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any, Self

DAILY_TOKENS = "daily_tokens"
ZONE = "zone"
DIGEST_ZONE = "Europe/Paris"
DIGEST_HOURS = tuple(time(hour) for hour in (2, 6, 10, 14, 18, 22))
_STARTS = ("after_notes", "after_idle", "at")
_MANY = 1_000_000_000
"""A greater number of seconds cannot be added to a date."""
_HOUR = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


@dataclass(frozen=True, kw_only=True)
class SpaceSchedule:
    """What starts a run of one space; at least one of the first three is set.

    :after_notes: as soon as so many notes wait
    :after_idle:  so many seconds after the last note was written
    :at:          at these hours, in the local time of the host
    :cooldown:    the least seconds from the end of a scheduled run to the next
    """

    after_notes: int | None = None
    after_idle: float | None = None
    at: tuple[time, ...] = ()
    cooldown: float = 600.0

    @classmethod
    def parse(cls, space: str, table: Mapping[str, Any]) -> Self:
        """The schedule in the table of a space. Raises ValueError."""
        for name, value in table.items():
            fault = _fault(name, value)
            if fault:
                raise ValueError(f"{space}: {fault}")
        if table.keys().isdisjoint(_STARTS) or table.get("at") == []:
            raise ValueError(f"{space}: one of after_notes, after_idle and at says when; without, nothing would run")
        hours = sorted({time.fromisoformat(hour) for hour in table.get("at", ())})
        return cls(**{**table, "at": tuple(hours)})

    def to_json(self) -> dict[str, Any]:
        """The table, without defaults."""
        hours = [f"{hour:%H:%M}" for hour in self.at]
        values = {"after_notes": self.after_notes, "after_idle": self.after_idle, "at": hours or None}
        values |= {"cooldown": self.cooldown if self.cooldown != SpaceSchedule.cooldown else None}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Schedule:
    """The schedules of all spaces, and how many tokens their runs may use in a day; 0: no limit."""

    spaces: Mapping[str, SpaceSchedule] = field(default_factory=dict)
    daily_tokens: int = 1_000_000

    @classmethod
    def parse(cls, value: object) -> Self:
        """The schedule in a table of a file, or in the JSON of a variable. Raises ValueError."""
        if isinstance(value, cls):
            return value
        setting = _decoded(value, '{"project": {"after_notes": 20}}')
        limit = setting.get(DAILY_TOKENS, cls.daily_tokens)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise ValueError(f"{DAILY_TOKENS} is a number, 0 for no limit")
        tables = _tables(setting, DAILY_TOKENS)
        return cls({name: SpaceSchedule.parse(name, table) for name, table in tables.items()}, limit)

    def __str__(self) -> str:
        """As LIVEMEMFS_SCHEDULE has it, without defaults."""
        limit = {DAILY_TOKENS: self.daily_tokens} if self.daily_tokens != Schedule.daily_tokens else {}
        return json.dumps(limit | {name: each.to_json() for name, each in self.spaces.items()}, ensure_ascii=False)


@dataclass(frozen=True)
class DigestSchedule:
    """When spaces are digested: a space whose table sets no time at DIGEST_HOURS.

    :zone: the name of the time zone of all hours
    """

    spaces: Mapping[str, SpaceSchedule] = field(default_factory=dict)
    zone: str = DIGEST_ZONE

    @classmethod
    def parse(cls, value: object) -> Self:
        """The schedule in a table of a file, or in the JSON of a variable. Raises ValueError."""
        if isinstance(value, cls):
            return value
        setting = _decoded(value, '{"zone": "Europe/Paris", "project": {"at": ["06:00", "22:00"]}}')
        zone = setting.get(ZONE, cls.zone)
        if not isinstance(zone, str) or not zone.isprintable() or not zone.strip():
            raise ValueError(f'{ZONE} is the name of a time zone, as "{DIGEST_ZONE}"')
        hours = [f"{hour:%H:%M}" for hour in DIGEST_HOURS]
        spaces = {
            name: SpaceSchedule.parse(name, {**table, "at": hours} if table.keys().isdisjoint(_STARTS) else table)
            for name, table in _tables(setting, ZONE).items()
        }
        return cls(spaces, zone)

    def __str__(self) -> str:
        """As LIVEMEMFS_DIGEST_SCHEDULE has it, without defaults."""
        zone = {ZONE: self.zone} if self.zone != DIGEST_ZONE else {}
        usual = SpaceSchedule(at=DIGEST_HOURS)
        tables = {name: {} if each == usual else each.to_json() for name, each in self.spaces.items()}
        return json.dumps(zone | tables, ensure_ascii=False)


def _decoded(value: object, example: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"this is not JSON; write for example {example}") from None
    if not isinstance(value, dict):
        raise ValueError("it is a table that has a table for each space")
    return value


def _tables(setting: Mapping[str, Any], own: str) -> dict[str, Mapping[str, Any]]:
    """The tables of the spaces; the key `own` is no space."""
    tables = {name: table for name, table in setting.items() if name != own}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"there is no key {ascii(name)[1:-1]}{_suggestion(name, [own])}")
        if not name or name.startswith("_") or "/" in name:
            raise ValueError(f"{name!a} cannot be a space")
    return tables


def _fault(name: str, value: Any) -> str:
    """What is wrong with one key of a space's table; empty when nothing is."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MANY
    if name == "after_notes":
        return "" if number and isinstance(value, int) and value > 0 else "after_notes is a number from 1"
    if name == "after_idle":
        return "" if number and value > 0 else "after_idle is a number of seconds above 0"
    if name == "cooldown":
        return "" if number and value >= 0 else "cooldown is a number of seconds"
    if name == "at":
        hours = isinstance(value, list) and all(isinstance(hour, str) and _HOUR.fullmatch(hour) for hour in value)
        return "" if hours else 'at is a list of hours, as ["03:00", "15:30"]'
    return f"there is no key {ascii(name)[1:-1]}{_suggestion(name, [*_STARTS, 'cooldown'])}"


def _suggestion(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
