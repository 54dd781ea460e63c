"""Two statements that cannot both hold, where it is not sure that the newer replaces the older: told as one line.

Owns whether a pair still stands, and the line, with the date of each. A pair is kept as a link `contradicts` of the
newer to the older one; the words of both say whether that link still holds, so that nobody has to take it away when
one of them is edited. Refuses to find pairs. Pure; any thread.
"""

from __future__ import annotations

import time

from livememfs.recall.likeness.correction import Verdict, judged

RELATION = "contradicts"


def stands(older: str, newer: str) -> bool:
    """Whether two texts, one of which was linked to the other, still say what cannot both hold."""
    return judged(older.strip(), newer.strip(), 1.0) is not Verdict.DISTINCT


def told(older: str, said: float, newer: str, last: float) -> str:
    """`2026-03-01: tabs; 2026-11-20: spaces`, of texts and the seconds since 1970 at which they were said. Two of one
    day have the time with it, in UTC.
    """
    one_day = _at("%Y-%m-%d", said) == _at("%Y-%m-%d", last)
    form = "%Y-%m-%d %H:%M" if one_day else "%Y-%m-%d"
    return "; ".join(
        f"{_at(form, at)}: {' '.join(text.split()).rstrip('.')}" for text, at in ((older, said), (newer, last))
    )


def _at(form: str, seconds: float) -> str:
    return time.strftime(form, time.gmtime(seconds))
