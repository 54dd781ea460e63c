"""ISO 8601 as the data model writes it, and as others write it.

Owns the one reading and the one writing of time stamps in records. Refuses naive results: what is read without an
offset is taken as UTC, what is written ends in `Z`. Pure; may be called from any thread.
"""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime, *, exact: bool = False) -> str:
    """The form of the data model, `2026-02-20T14:00:00Z`, of an aware datetime.

    Fractions of a second are dropped, unless `exact` asks for them: a stamp that somebody else wrote must survive.
    """
    text = moment.astimezone(UTC).isoformat(timespec="auto" if exact else "seconds")
    return text.removesuffix("+00:00") + "Z"


def parse_iso(text: str) -> datetime:
    """The aware UTC datetime of an ISO 8601 text: any offset, fractions, a date alone; no offset means UTC.

    Raises ValueError when the text is no such stamp or leaves the years 1 to 9999.
    """
    moment = datetime.fromisoformat(text.strip().upper())
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is out of range in UTC") from error
