"""The timeline: observations by day, then by file, one dense line each (claude-mem 5.1).

Owns the lines and what they cost. The same observations give the same bytes: no clock, no "ago", characters of the
basic plane only. Refuses to read and to choose. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from itertools import groupby

from livememfs.records.observation import ICONS, Observation
from livememfs.text.own import basic
from livememfs.text.size import tokens

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Not the C library's, which depend on where it runs."""
NO_FILE = "(no file)"


def line(one: Observation, *, marked: bool = False) -> str:
    """One observation: id, time in UTC, icon, title, and what it costs to read all of it."""
    at = one.created_at.astimezone(UTC)
    title = " ".join(one.title.split()).replace("|", "/") or one.type
    return basic(f"{'> ' if marked else ''}#{one.id} {at:%H:%M} {ICONS[one.type]} {title} ~{one.tokens}")


def day_title(day: date) -> str:
    """`### Nov 23, 2026`."""
    return f"### {_MONTHS[day.month - 1]} {day.day}, {day.year}"


def file_of(one: Observation) -> str:
    """The file that an observation stands under: the first that was changed, else the first that was read."""
    name = next(iter((*one.files_modified, *one.files_read)), "")
    return basic(" ".join(name.split())) or NO_FILE


def timeline(observations: Iterable[Observation], *, mark: str = "", newest_first: bool = True) -> str:
    """The lines under their days and files. `mark`: the id of one that stands out."""
    ordered = sorted(observations, key=lambda one: (_day(one), one.created_at, one.id))
    days = [(day, list(found)) for day, found in groupby(ordered, key=_day)]
    parts: list[str] = []
    for day, found in reversed(days) if newest_first else days:
        parts.append(day_title(day))
        files: dict[str, list[Observation]] = {}
        for one in found:
            files.setdefault(file_of(one), []).append(one)
        for name, beside in files.items():
            parts.append(f"**{name}**")
            parts += [line(one, marked=one.id == mark) for one in beside]
    return "\n".join(parts)


def fitting(observations: Sequence[Observation], budget: int) -> list[Observation]:
    """As many of the newest as a timeline of about `budget` tokens holds. `observations` stand newest first."""
    found: list[Observation] = []
    days: set[date] = set()
    files: set[tuple[date, str]] = set()
    spent = 0
    for one in observations:
        day, name = _day(one), file_of(one)
        cost = tokens(line(one) + "\n") + tokens(day_title(day) + "\n") * (day not in days)
        cost += tokens(f"**{name}**\n") * ((day, name) not in files)
        if spent + cost > budget:
            break
        spent += cost
        found.append(one)
        days.add(day)
        files.add((day, name))
    return found


def legend(observations: Iterable[Observation]) -> str:
    """What the icons mean, of those that are used."""
    used = {one.type for one in observations}
    return ", ".join(f"{icon} {name}" for name, icon in ICONS.items() if name in used)


def _day(one: Observation) -> date:
    moment: datetime = one.created_at.astimezone(UTC)
    return moment.date()
