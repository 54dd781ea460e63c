"""When a schedule starts the next run of a space, as a pure function.

Owns the rules: what starts a run (enough notes, no new note for a while, an hour, a last run too long ago), and what
holds it back (the last run was just now or failed, the day's tokens are used up). Refuses to read anything. Pure; any
thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from livememfs.records.schedule import SpaceSchedule
from livememfs.records.schedule_book import Past

LONGEST_BACK_OFF = timedelta(hours=6)
LEAST_BACK_OFF = 60.0
"""Seconds after a failure, for schedules without a cooldown: each further failure doubles them."""
_DOUBLINGS = 20


@dataclass(frozen=True)
class Waiting:
    """The notes that a run would take: how many, and when the last one was written."""

    notes: int = 0
    written: datetime | None = None


@dataclass(frozen=True)
class Next:
    """The next run of a space: it is due when `when` has come.

    :when:    aware, UTC; None when nothing that is known now starts one
    :why:     after_notes, after_idle, at or catch_up
    :held_by: what puts the run off until `when`, in words; empty: nothing
    """

    when: datetime | None = None
    why: str = ""
    held_by: str = ""

    def is_due(self, now: datetime) -> bool:
        """Whether it should start."""
        return self.when is not None and self.when <= now


def next_run(
    schedule: SpaceSchedule,
    waiting: Waiting,
    past: Past,
    *,
    spent: bool,
    now: datetime,
    zone: tzinfo | None = None,
    catch_up: datetime | None = None,
) -> Next:
    """The next run.

    :spent:    the day's tokens are used up
    :zone:     of the hours; None: that of the machine
    :catch_up: since when a run is due because the last one was too long ago; None: it was not
    """
    triggers = [*_by_notes(schedule, waiting, now), *_by_hours(schedule, past, now, zone)]
    triggers += [(catch_up, "catch_up")] if catch_up is not None else []
    if not triggers:
        return Next()
    when, why = min(triggers)
    holds = [(_rested(schedule, past), "its last run failed" if past.failures else "its last run was just now")]
    if spent:
        holds.append((_tomorrow(now), "the tokens of the day are used up"))
    until, reason = max(holds)
    return Next(until, why, reason) if until > max(when, now) else Next(when, why)


def _by_notes(schedule: SpaceSchedule, waiting: Waiting, now: datetime) -> list[tuple[datetime, str]]:
    written = waiting.written or now
    moments = []
    if schedule.after_notes is not None and waiting.notes >= schedule.after_notes:
        moments.append((written, "after_notes"))
    if schedule.after_idle is not None and waiting.notes:
        moments.append((written + timedelta(seconds=schedule.after_idle), "after_idle"))
    return moments


def _by_hours(schedule: SpaceSchedule, past: Past, now: datetime, zone: tzinfo | None) -> list[tuple[datetime, str]]:
    """The last hour if no run has served it, else the next one: one run serves all hours that were missed."""
    if not schedule.at:
        return []
    moments = sorted(_moments(schedule.at, now, zone))
    last = max((moment for moment in moments if moment <= now), default=None)
    if last is not None and past.served is not None and past.served < last:
        return [(last, "at")]
    return [(min(moment for moment in moments if moment > now), "at")]


def _moments(hours: tuple[time, ...], now: datetime, zone: tzinfo | None) -> list[datetime]:
    """The hours of the days around now. For an hour that a clock change leaves out it is the moment after it."""
    today = now.astimezone(zone).date()
    days = [today + timedelta(days=offset) for offset in (-1, 0, 1)]
    if zone is None:
        return [datetime.combine(day, hour).astimezone(UTC) for day in days for hour in hours]
    return [datetime.combine(day, hour, zone).astimezone(UTC) for day in days for hour in hours]


def _rested(schedule: SpaceSchedule, past: Past) -> datetime:
    """When the pause after the last run ends; it is longer after failures."""
    last = max((moment for moment in (past.started, past.ended) if moment is not None), default=None)
    if last is None:
        return datetime.min.replace(tzinfo=UTC)
    pause = timedelta(seconds=schedule.cooldown)
    if past.failures:
        seconds = max(schedule.cooldown, LEAST_BACK_OFF) * 2 ** min(past.failures, _DOUBLINGS)
        pause = max(pause, min(timedelta(seconds=seconds), LONGEST_BACK_OFF))
    return last + pause


def _tomorrow(now: datetime) -> datetime:
    """The end of the day by which tokens are counted."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
