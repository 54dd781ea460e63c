"""The dates of a search: `2026-02`, `2026-02-20T14:00Z`, `3d` ago, `today`.

Owns what they name and how they are shown. Refuses to raise: what names no time is None. All days are UTC days. Pure:
the time is passed in. Any thread.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

from livememfs.text.times import parse_iso

_CALENDAR = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
)
_AGO = re.compile(r"([0-9]{1,5})(h|d|w|mo|y)")
_MONTHS = {"mo": 1, "y": 12}


def period(value: str, now: datetime) -> tuple[datetime, datetime | None] | None:
    """The first moment of what a date names and the first one after it; None when it names nothing.

    A time ago lasts until now and therefore has no end.
    """
    try:
        if match := _CALENDAR.fullmatch(value):
            return _calendar_period(*match.groups())
        if match := _INSTANT.fullmatch(value):
            start = parse_iso(value)
            return start, start + (timedelta(seconds=1) if match[1] else timedelta(minutes=1))
        if match := _AGO.fullmatch(value):
            return _ago(now.astimezone(UTC), int(match[1]), match[2]), None
        if value in ("today", "yesterday"):
            midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            start = midnight - timedelta(days=value == "yesterday")
            return start, start + timedelta(days=1)
    except (ValueError, OverflowError):
        pass  # 2026-02-30, or outside the years 1 to 9999
    return None


def _calendar_period(year: str, month: str | None, day: str | None) -> tuple[datetime, datetime]:
    start = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if day:
        return start, start + timedelta(days=1)
    return start, _add_months(start, 1 if month else 12)


def _ago(now: datetime, count: int, unit: str) -> datetime:
    """That long before now, to the second."""
    moment = now.replace(microsecond=0)
    if unit in _MONTHS:
        return _add_months(moment, -count * _MONTHS[unit])
    return moment - count * {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}[unit]


def _add_months(moment: datetime, count: int) -> datetime:
    """The same day `count` months later, or the last day of that month when it is shorter. Raises ValueError."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))


def shown(moment: datetime) -> str:
    """`2026-02-01 00:00 UTC`, with seconds where there are any."""
    seen = moment.astimezone(UTC).replace(tzinfo=None, microsecond=0)
    return f"{seen.isoformat(sep=' ', timespec='seconds' if seen.second else 'minutes')} UTC"
