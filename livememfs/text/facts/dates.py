"""Days and times of day, in every form that English and French have for them.

Owns their keys and their forms, of one word (`2026-11-23`, `23.11.26`, `14h30`) and of several (`lundi 23 novembre`).
Refuses days that no calendar has. Leaves `yesterday` to `relative`. Pure, linear in the text; any thread.
"""

from __future__ import annotations

import re
from datetime import date

from livememfs.text.facts.fact import Fact, all_of, any_of, bare_key, either, number_key, one

_MONTHS = {
    1: "january jan janvier janv",
    2: "february feb février fevrier févr fevr fév",
    3: "march mar mars",
    4: "april apr avril avr",
    5: "may mai",
    6: "june jun juin",
    7: "july jul juillet juil",
    8: "august aug août aout",
    9: "september sept sep septembre",
    10: "october oct octobre",
    11: "november nov novembre",
    12: "december dec décembre decembre déc",
}
MONTH = {name: number for number, names in _MONTHS.items() for name in names.split()}
MONTHS = "|".join(sorted(MONTH, key=len, reverse=True))
GAP = "[ \t\u00a0\u202f]"

OPEN = "open:"
"""Begins an extra key of a day without a year, as in `open:11-23`. `relative` finds the year for it."""

_SEP = rf"(?:{GAP}|-)"
_NTH = r"{}(?:st|nd|rd|th|er|e)?"
_FIRST = rf"(?:{_NTH.format('(?P<first>[0-9]{1,2})')}{GAP}?(?:-|–|—|/|,|&|to|and|au|et){GAP}?)?"
DAY_MONTH = re.compile(
    rf"(?<![\w./:-]){_FIRST}{_NTH.format('(?P<day>[0-9]{1,2})')}{_SEP}(?:of{GAP})?(?P<month>{MONTHS})\b\.?"
    rf"(?:(?:,?{GAP}|-)(?P<year>[0-9]{{4}})\b)?",
    re.I,
)
MONTH_DAY = re.compile(
    rf"(?<!\w)(?=[adfjmnosADFJMNOS])(?P<month>{MONTHS})\b\.?{_SEP}"
    rf"(?:{_FIRST}{_NTH.format('(?P<day>[0-9]{1,2})')}\b(?:,?{GAP}(?P<year>[0-9]{{4}})\b)?(?!:[0-9])|(?P<alone>[0-9]{{4}})\b)",
    re.I,
)
DAY = re.compile(
    rf"(?<!\w)(?:le{GAP}(?P<le>[0-9]{{1,2}}|1er)(?={GAP}?(?:[,.;:!?)(|–—-]|$))(?![.,:-][0-9])"
    rf"|(?P<nth>[0-9]{{1,2}})(?:st|nd|rd|th)\b)",
    re.I | re.M,
)
CLOCK = re.compile(
    rf"(?<![\w.:-])(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-9]{{2}}))?{GAP}?(?P<half>[ap])\.?m\b\.?", re.I
)
HOURS = re.compile(rf"(?<![\w.,:-])(?P<hour>[0-9]{{1,2}}){GAP}h(?:{GAP})?(?P<minute>[0-9]{{2}})\b", re.I)
WEEK = re.compile(
    rf"(?<![\w-])(?:week|semaine|sem\.){GAP}(?:n[°o]\.?{GAP}?)?(?P<week>[0-9]{{1,2}})\b(?![.,:/][0-9])", re.I
)

_YMD = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_DMY = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})")
_DM = re.compile(r"([0-9]{1,2})/([0-9]{1,2})|([0-9]{2})\.([0-9]{2})")
_YM = re.compile(r"((?:19|20)[0-9]{2})-(0[1-9]|1[0-2])")
_MY = re.compile(r"(0?[1-9]|1[0-2])/((?:19|20)[0-9]{2})")
_YW = re.compile(r"([0-9]{4})-?[WS]([0-9]{2})(?:-[1-7])?")
_COMPACT = re.compile(r"((?:19|20)[0-9]{2})([0-9]{2})([0-9]{2})")
_STAMP = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})[Tt]([0-9]{2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,][0-9]+)?)?(?:[Zz]|[+-][0-9:]{2,5})?"
)
_STAMP_INSIDE = re.compile(
    r"(?<![0-9])([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})(?:T([0-9]{2}):?([0-9]{2}):?([0-9]{2})?)?(?![0-9])"
)
_TIME = re.compile(r"([0-9]{1,2})([:h])([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?[Zz]?")
_CENTURY = 2000


# --- keys -------------------------------------------------------------------------------------------------------------


def is_date(month: int, day: int) -> bool:
    """Whether some year has this day, leap days of any month included."""
    return 1 <= month <= 12 and 1 <= day <= 31


def date_keys(year: int, month: int, day: int) -> tuple[str, ...]:
    """Every key of a day: the day itself, its month, its quarter, its week, its year."""
    keys = (f"d:{year:04}-{month:02}-{day:02}", f"ym:{year:04}-{month:02}", f"md:{month:02}-{day:02}", f"n:{year}")
    quarter = (month + 2) // 3
    return (*keys, f"dd:{day}", f"i:q{quarter}", f"i:t{quarter}", *_week_keys(year, month, day))


def day_keys(day: date) -> tuple[str, ...]:
    """`date_keys` of a date."""
    return date_keys(day.year, day.month, day.day)


def _week_keys(year: int, month: int, day: int) -> tuple[str, ...]:
    try:
        iso = date(year, month, day).isocalendar()
    except ValueError:
        return ()
    return f"w:{iso.year}-{iso.week}", f"w:{iso.week}", f"i:w{iso.week}", f"i:s{iso.week}"


def _month_day(text: str, month: int, day: int) -> Fact:
    key = f"{month:02}-{day:02}"
    return one(text, f"md:{key}", f"dd:{day}", f"{OPEN}{key}")


def time_key(hour: int, minute: int) -> str:
    return f"t:{hour:02}:{minute:02}"


def _time_keys(hour: str, minute: str, second: str | None) -> tuple[str, ...]:
    short = time_key(int(hour), int(minute))
    return (short,) if second in (None, "00") else (f"{short}:{second}", short)


def stamps_in(text: str) -> tuple[str, ...]:
    """The keys of the dates in a name such as `20260220T140000_cline_...md`."""
    return tuple(key for match in _STAMP_INSIDE.finditer(text) for key in _stamp_keys(match))


def _stamp_keys(match: re.Match[str]) -> tuple[str, ...]:
    year, _, month, day, hour, minute, second = match.groups()
    if not is_date(int(month), int(day)):
        return ()
    times = _time_keys(hour, minute, second) if hour else ()
    return (*date_keys(int(year), int(month), int(day)), *times)


# --- one word ---------------------------------------------------------------------------------------------------------


def read_stamp(piece: str) -> Fact | None:
    match = _STAMP.fullmatch(piece)
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    if not is_date(int(month), int(day)):
        return None
    days, times = date_keys(int(year), int(month), int(day)), _time_keys(hour, minute, second)
    return Fact(piece, ((days[0], times[0]),), (*days, *times))


def read_date(piece: str) -> Fact | None:
    if match := _YMD.fullmatch(piece):
        month, day = int(match[3]), int(match[4])
        return one(piece, *date_keys(int(match[1]), month, day)) if is_date(month, day) else None
    if match := _DMY.fullmatch(piece):
        return _read_dmy(piece, match)
    if match := _DM.fullmatch(piece):
        return _read_day_and_month(piece, match)
    if match := _YM.fullmatch(piece):
        return one(piece, f"ym:{match[1]}-{match[2]}", f"n:{match[1]}")
    if match := _MY.fullmatch(piece):
        return one(piece, f"ym:{match[2]}-{int(match[1]):02}", f"n:{match[2]}")
    if match := _YW.fullmatch(piece):
        return one(piece, f"w:{match[1]}-{int(match[2])}", f"w:{int(match[2])}", f"n:{match[1]}")
    return None


def _read_dmy(piece: str, match: re.Match[str]) -> Fact | None:
    """`03/04/2026` is a day in April or in March, and `1.12.26` may be a version."""
    first, mark, second, year = int(match[1]), match[2], int(match[3]), int(match[4])
    short = len(match[4]) == 2
    days = [(year + short * _CENTURY, second, first), (year + short * _CENTURY, first, second)]
    if short and mark == "-":
        days.append((first + _CENTURY, second, year))
    dates = [one(piece, *date_keys(*day)) for day in days if is_date(*day[1:])]
    if short and mark == ".":
        dates.append(one(piece, f"n:{piece}", f"n:{match[1]}.{match[3]}", f"v:{first}"))
    return any_of(piece, dates) if dates else None


def _read_day_and_month(piece: str, match: re.Match[str]) -> Fact | None:
    """`23/11` may be a day, or 23 out of 11; `23.11` may be a number."""
    days, months = match[1] or match[3], match[2] or match[4]
    dates = [
        _month_day(piece, month, day)
        for day, month in ((int(days), int(months)), (int(months), int(days)))
        if is_date(month, day) and (match[1] or day == int(days))
    ]
    if not dates:
        return None
    texts = (days, months) if match[1] else (piece,)
    says = tuple(key(text) for text in texts for key in (number_key, bare_key))
    return any_of(piece, [Fact(piece, (tuple(map(number_key, texts)),), says), *dates])


def read_time(piece: str) -> Fact | None:
    """A time of day; `1h30` may also be a duration."""
    match = _TIME.fullmatch(piece)
    if match is None or int(match[1]) > 24 or int(match[3]) > 59:
        return None
    time = one(piece, *_time_keys(match[1], match[3], match[4]))
    if match[2] == ":":
        return time
    return any_of(piece, [time, one(piece, f"q:s:{int(match[1]) * 3600 + int(match[3]) * 60}")])


def read_compact(digits: str) -> tuple[str, ...]:
    """The keys of `20260220` as a day; empty for a number that is no day."""
    match = _COMPACT.fullmatch(digits)
    return date_keys(*map(int, match.groups())) if match and is_date(int(match[2]), int(match[3])) else ()


# --- several words ----------------------------------------------------------------------------------------------------


def read_named(match: re.Match[str]) -> Fact | None:
    """A day with the name of its month, or a month with its year: the match of DAY_MONTH or MONTH_DAY."""
    parts = match.groupdict()
    month, day = MONTH[parts["month"].lower()], int(parts["day"] or 0)
    year = parts["year"] or parts.get("alone") or ""
    if not day:
        return one(match[0], f"ym:{year}-{month:02}", f"n:{year}")
    days = [int(parts["first"]), day] if parts["first"] else [day]
    if not all(1 <= each <= 31 for each in days):
        return None
    if not year:
        return all_of(match[0], [_month_day(match[0], month, each) for each in days])
    return all_of(match[0], [one(match[0], *date_keys(int(year), month, each)) for each in days])


def read_day(match: re.Match[str]) -> Fact | None:
    """`the 23rd`, which may also be a rank."""
    digits = re.sub(r"\D", "", match["le"] or match["nth"])
    return either(match[0], number_key(digits), f"dd:{int(digits)}")


def read_clock(match: re.Match[str]) -> Fact | None:
    """A time of twelve hours."""
    hour = int(match["hour"])
    if not 1 <= hour <= 12:
        return None
    return one(match[0], time_key(hour % 12 + (12 if match["half"] in "pP" else 0), int(match["minute"] or 0)))


def read_hours(match: re.Match[str]) -> Fact | None:
    """`14 h 30`."""
    return read_time(f"{match['hour']}h{match['minute']}")


def read_week(match: re.Match[str]) -> Fact:
    """A week by its number."""
    return either(match[0], number_key(match["week"]), f"w:{int(match['week'])}")
