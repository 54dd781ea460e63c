"""Days that a text means without their date: `yesterday`, `vendredi dernier`, `in two weeks`, `le 15`.

Owns what such words mean in English and French, counted from the time at which the text was written. Refuses to choose:
`next Monday` may be either of two days, so both count. Pure, linear in the text; any thread may call it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta

from livememfs.text.facts.dates import GAP, MONTH, MONTHS, OPEN, day_keys, time_key
from livememfs.text.facts.quantities import NUMBER_WORDS

_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
)
_WEEKDAY = {name: number for names in _WEEKDAYS for number, name in enumerate(names.split())}
_DAYS_OFF = {
    **dict.fromkeys(("avant-hier", "day before yesterday"), -2),
    **dict.fromkeys(("yesterday", "hier", "last night"), -1),
    **dict.fromkeys(("tomorrow", "demain"), 1),
    **dict.fromkeys(("après-demain", "day after tomorrow"), 2),
}
_BACK = r"last|past|derni[eè]re?|passée?"
_AHEAD = r"next|coming|prochaine?"
_BESIDE_IT = {"previous": -1, "précédent": -1, "précédente": -1, "following": 1, "suivant": 1, "suivante": 1}
"""Words that may count from another day than that on which the text was written."""
_WHICH = f"{_BACK}|{_AHEAD}"
_ANY = f"{_WHICH}|{'|'.join(_BESIDE_IT)}"
_COUNT = r"[0-9]{1,3}|[^\W\d_]{1,12}(?:-[^\W\d_]{1,9})?"
_UNIT = r"minutes?|min|hours?|heures?|h|days?|jours?|j|weeks?|semaines?|months?|mois|years?|ans?|années?|fortnight"
_AMOUNT = rf"(?P<count>{_COUNT}){GAP}?(?P<unit>{_UNIT})\b"
_LONG_MONTHS = "|".join(name for name in MONTH if len(name) > 5 or name in ("avril", "june", "juin", "july", "août"))
"""Names that are months even without a word before them."""
_SEP = rf"(?:{GAP}|-)"
_HALF_A_YEAR = 200
"""A day without a year is in a year in which it is at most so many days away."""


def said_days(text: str, written: datetime, known: Iterable[str]) -> set[str]:
    """Keys of the days and times that a text means. `known`: the keys of its own facts, for days without a year."""
    text = text.casefold()
    keys = {key for pattern, read in _READERS for match in pattern.finditer(text) for key in read(match, written)}
    for key in known:
        if key.startswith(OPEN):
            month, day = map(int, key.removeprefix(OPEN).split("-"))
            keys.update(_keys(_near(month, day, written.date())))
    return keys


def _keys(days: Iterable[date]) -> Iterator[str]:
    for day in days:
        yield from day_keys(day)


def _near(month: int, day: int, around: date) -> Iterator[date]:
    for year in (around.year - 1, around.year, around.year + 1):
        if 1 <= year <= 9999 and 1 <= month <= 12 and day <= monthrange(year, month)[1]:
            near = date(year, month, day)
            if abs((near - around).days) <= _HALF_A_YEAR:
                yield near


def _moved(written: datetime, days: float) -> list[datetime]:
    try:
        return [written + timedelta(days=days)]
    except OverflowError:
        return []


# --- what was said ----------------------------------------------------------------------------------------------------


def _day_off(match: re.Match[str], written: datetime) -> Iterable[str]:
    return _keys(_moved(written, _DAYS_OFF[match[0]]))


def _amount(match: re.Match[str], written: datetime) -> Iterable[str]:
    """`in two weeks`, `il y a 3 jours`; of a number of minutes or hours also the time of day."""
    parts = match.groupdict()
    word = parts["count"]
    if not word.isdigit() and word not in ("a", "an") and word not in NUMBER_WORDS:
        return []
    count = 1 if word in ("a", "an") else int(NUMBER_WORDS.get(word, word))
    count = -count if parts.get("ago") or parts.get("back") else count
    unit = parts["unit"]
    if unit.startswith(("min", "h")):
        moved = _moved(written, count / (24 if unit.startswith("h") else 1440))
        return [*_keys(moved), *(time_key(moment.hour, moment.minute) for moment in moved)]
    if unit.startswith(("month", "mois")):
        return _months(written, count)
    if unit.startswith(("y", "a")):
        return _months(written, 12 * count)
    days = count * (14 if unit == "fortnight" else 7 if unit.startswith(("week", "semaine")) else 1)
    weeks = [days - days // abs(days)] if days in (8, -8, 15, -15) else []  # `quinze jours` are two weeks
    return _keys(moved for each in (days, *weeks) for moved in _moved(written, each))


def _months(written: datetime, count: int) -> list[str]:
    """The keys of the day that is so many months away, and of its month."""
    months = written.year * 12 + written.month - 1 + count
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        return []
    return list(day_keys(date(year, month, min(written.day, monthrange(year, month)[1]))))


def _weekday(match: re.Match[str], written: datetime) -> Iterable[str]:
    """The last or the next such day. With `last` or `next` also the one of the week before or after."""
    days = (_WEEKDAY[match["day"]] - written.weekday()) % 7
    which = f"{match['before'] or ''} {match['after'] or ''}"
    back, ahead = days - 7, days or 7
    if re.search(_BACK, which):
        return _keys(day for off in (back, *_beside(written, back, -7)) for day in _moved(written, off))
    if re.search(_AHEAD, which):
        return _keys(day for off in (ahead, *_beside(written, ahead, 7)) for day in _moved(written, off))
    return _keys(day for off in (0 if not days else back, ahead) for day in _moved(written, off))


def _beside(written: datetime, off: int, week: int) -> tuple[int, ...]:
    """A week further, if the day is in this week: `next Friday`, written on a Monday."""
    return (off + week,) if 0 <= written.weekday() + off < 7 else ()


def _period(match: re.Match[str], written: datetime) -> Iterable[str]:
    """`last week`, `le mois prochain`; a week has the keys of its Monday, Friday and Sunday."""
    parts = match.groupdict()
    which, unit = parts["which"], parts["unit"]
    off = _BESIDE_IT.get(which) or (-1 if re.fullmatch(_BACK, which) else 1 if re.fullmatch(_AHEAD, which) else 0)
    if unit.startswith(("week", "semaine")):
        monday = 7 * off - written.weekday()
        return _keys(day for days in (0, 4, 6) for day in _moved(written, monday + days))
    months = _months(written, off if unit.startswith(("month", "mois")) else 12 * off)
    return [key for key in months if key.startswith(("ym:", "n:") if unit.startswith(("month", "mois")) else "n:")]


def _end(match: re.Match[str], written: datetime) -> Iterable[str]:
    """`the end of the month`, `fin de semaine`, and the weekend."""
    unit, day = match["unit"] or "", written.date()
    if unit.startswith(("month", "mois")):
        return day_keys(day.replace(day=monthrange(day.year, day.month)[1]))
    if unit in MONTH:
        near = _near(MONTH[unit], 15, day)
        return _keys(middle.replace(day=monthrange(middle.year, middle.month)[1]) for middle in near)
    if unit.startswith(("year", "an")):
        return day_keys(date(day.year, 12, 31))
    return _keys(end for days in (4, 5, 6) for end in _moved(written, days - written.weekday()))


def _day_of_month(match: re.Match[str], written: datetime) -> Iterable[str]:
    """`le 15` is in this month, in the last or in the next."""
    day = int(re.sub(r"\D", "", match["day"]))
    months = {moved.date() for days in (-1, 0, 31) for moved in _moved(written.replace(day=1), days)}
    return _keys(month.replace(day=day) for month in months if 1 <= day <= monthrange(month.year, month.month)[1])


def _month(match: re.Match[str], written: datetime) -> Iterable[str]:
    """`in March`, in the year in which it is near."""
    near = _near(MONTH[match["month"] or match["alone"]], 15, written.date())
    return [key for day in near for key in day_keys(day) if key.startswith(("ym:", "n:", "i:q", "i:t"))]


def _hour(match: re.Match[str], _: datetime) -> Iterable[str]:
    return [time_key(12 if match[0] in ("noon", "midi") else 0, 0)]


_Reader = Callable[[re.Match[str], datetime], Iterable[str]]
_PATTERNS: tuple[tuple[str, _Reader], ...] = (
    (rf"(?:{'|'.join(sorted(_DAYS_OFF, key=len, reverse=True))})\b", _day_off),
    (rf"(?:in|within|dans|d'ici|sous){GAP}{_AMOUNT}", _amount),
    (rf"(?P<back>il{GAP}y{GAP}a|depuis|since|last|past){GAP}{_AMOUNT}", _amount),
    (rf"{_AMOUNT}{GAP}(?:(?P<ago>ago|earlier|before|plus{GAP}tôt)|later|from{GAP}now|plus{GAP}tard)\b", _amount),
    (rf"(?:(?P<before>{_WHICH}){GAP})?(?P<day>{'|'.join(_WEEKDAY)})\b(?:{GAP}(?P<after>{_WHICH})\b)?", _weekday),
    (rf"(?P<which>{_ANY}|this|cette|ce){GAP}(?P<unit>week|month|year|semaine|mois|année)\b", _period),
    (rf"(?P<unit>semaine|mois|an|année){GAP}(?P<which>{_ANY})\b", _period),
    (
        rf"(?:end{GAP}of{GAP}(?:the{GAP}|this{GAP})?|fin{GAP}(?:du{GAP}|de{GAP}(?:la{GAP})?|d')?|week-?(?=end))"
        rf"(?P<unit>week|month|year|semaine|mois|année|{MONTHS})?",
        _end,
    ),
    (rf"the{GAP}(?P<day>[0-9]{{1,2}}(?:st|nd|rd|th))\b", _day_of_month),
    (rf"le{GAP}(?P<day>1er|[0-9]{{1,2}})\b", _day_of_month),
    (
        rf"(?:(?:in|en|since|depuis|by|until|before|avant|après|after|of|de|début|fin|mid|early|late|d'ici|mi){_SEP}"
        rf"(?P<month>{MONTHS})|(?P<alone>{_LONG_MONTHS}))\b",
        _month,
    ),
    (r"(?:noon|midi|midnight|minuit)\b", _hour),
)
_READERS = tuple((re.compile(rf"\b{pattern}"), read) for pattern, read in _PATTERNS)
