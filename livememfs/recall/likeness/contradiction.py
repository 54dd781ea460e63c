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
    """`2026-03-01: tabs; 2026-11-20: spaces`, of texts and the seconds since 1970 at which they were said."""
    return f"{_dated(older, said)}; {_dated(newer, last)}"


def _dated(text: str, seconds: float) -> str:
    return f"{time.strftime('%Y-%m-%d', time.gmtime(seconds))}: {' '.join(text.split()).rstrip('.')}"
