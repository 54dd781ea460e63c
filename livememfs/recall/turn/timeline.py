"""The timeline: observations by day, then by file, one dense line each (claude-mem 5.1).

Owns the lines and what they cost. The same observations give the same bytes: no clock, no "ago", characters of the
basic plane only. Refuses to read and to choose. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from itertools import groupby

from livememfs.records.observation import CONTRADICTED, CONTRADICTS, ICONS, SUPERSEDED, Observation
from livememfs.records.trust import Trust, least
from livememfs.text.own import basic
from livememfs.text.size import tokens

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Not the C library's, which depend on where it runs."""
_LINKED = ((SUPERSEDED, "superseded by"), (CONTRADICTS, "contradicts"), (CONTRADICTED, "contradicted by"))
NO_FILE = "(no file)"


def line(observation: Observation, *, marked: bool = False) -> str:
    """One observation: id, time in UTC, icon, title, and what it costs to read all of it."""
    at = observation.created_at.astimezone(UTC)
    title = " ".join(observation.title.split()).replace("|", "/") or observation.type
    marks = [Trust.WEB.mark] if observation.trust is Trust.WEB else []
    marks += [f"{word} #{name[-8:]}" for field, word in _LINKED for name in observation.linked(field)[-1:]]
    said = f" ({', '.join(marks)})" if marks else ""
    return basic(
        f"{'> ' if marked else ''}#{observation.id} {at:%H:%M} {ICONS[observation.type]} {title}{said}"
        f" ~{observation.tokens}"
    )


def day_title(day: date) -> str:
    """`### Nov 23, 2026`."""
    return f"### {_MONTHS[day.month - 1]} {day.day}, {day.year}"


def file_of(observation: Observation) -> str:
    """The file that an observation stands under: the first that was changed, else the first that was read."""
    name = next(iter((*observation.files_modified, *observation.files_read)), "")
    return basic(" ".join(name.split())) or NO_FILE


def timeline(observations: Iterable[Observation], *, mark: str = "", newest_first: bool = True) -> str:
    """The lines under their days and files. `mark`: the id of one that stands out."""
    ordered = sorted(observations, key=lambda observation: (_day(observation), observation.created_at, observation.id))
    days = [(day, list(observed)) for day, observed in groupby(ordered, key=_day)]
    parts: list[str] = []
    for day, observed in reversed(days) if newest_first else days:
        parts.append(day_title(day))
        files: dict[str, list[Observation]] = {}
        for observation in observed:
            files.setdefault(file_of(observation), []).append(observation)
        for name, beside in files.items():
            parts.append(f"**{name}**")
            parts += [line(observation, marked=observation.id == mark) for observation in beside]
    return "\n".join(parts)


def fitting(observations: Sequence[Observation], budget: int) -> list[Observation]:
    """As many of the newest as a timeline of about `budget` tokens holds. `observations` stand newest first."""
    shown: list[Observation] = []
    days: set[date] = set()
    files: set[tuple[date, str]] = set()
    spent = 0
    for observation in observations:
        day, name = _day(observation), file_of(observation)
        cost = tokens(line(observation) + "\n") + tokens(day_title(day) + "\n") * (day not in days)
        cost += tokens(f"**{name}**\n") * ((day, name) not in files)
        if spent + cost > budget:
            break
        spent += cost
        shown.append(observation)
        days.add(day)
        files.add((day, name))
    return shown


def legend(observations: Iterable[Observation]) -> str:
    """What the icons mean, of those that are used, and whose words the lines have that say nothing of it."""
    shown = list(observations)
    used = {observation.type for observation in shown}
    icons = ", ".join(f"{icon} {name}" for name, icon in ICONS.items() if name in used)
    low = least(observation.trust for observation in shown if observation.trust is not Trust.WEB)
    return f"{icons}; {low.mark}" if low.mark else icons


def _day(observation: Observation) -> date:
    moment: datetime = observation.created_at.astimezone(UTC)
    return moment.date()
