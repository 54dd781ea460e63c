"""Time stamps of ISO 8601, as the data model writes them and as other programs do.

Owns how time stamps in records are read and written: a stamp without an offset is read as UTC, and a written one ends
in `Z`. Never gives a naive datetime. Pure; may be called from any thread.
"""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime, *, exact: bool = False) -> str:
    """An aware datetime in the form of the data model, `2026-02-20T14:00:00Z`.

    Fractions of a second are dropped unless `exact` is set: a stamp that another program wrote must not change.
    """
    text = moment.astimezone(UTC).isoformat(timespec="auto" if exact else "seconds")
    return text.removesuffix("+00:00") + "Z"


def parse_iso(text: str) -> datetime:
    """The aware datetime, in UTC, of an ISO 8601 text: any offset, fractions, or a date alone; no offset means UTC.

    Raises ValueError when the text is no such stamp, or outside of the years 1 to 9999 in UTC.
    """
    moment = datetime.fromisoformat(text.strip().upper())
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is out of range in UTC") from error
