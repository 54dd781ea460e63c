"""Checks received JSON before it is parsed: it may not have too many or too deep parts.

Owns the limits of depth and parts. A JSON parser cannot be interrupted, and needs long for a few megabytes of small
objects; a long string costs little. Refuses to parse: text that is no JSON passes here, and the parser refuses it.
Pure, in short steps; any thread.
"""

from __future__ import annotations

import re
from functools import partial

from livememfs.concurrency import aside

DEEPEST = 32
MOST_PARTS = 5_000
"""Counts brackets, strings and commas; the largest valid call of a tool has some hundreds."""
WINDOW = 1 << 16
"""Bytes matched in one step."""
_PART = re.compile(rb'[\[\]{},"]')
_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


async def fits(body: bytes) -> bool:
    """Whether a body is worth parsing."""
    return await aside(len(body), partial(_fits, body))


def _fits(body: bytes) -> bool:
    depth = parts = at = 0
    while (mark := _PART.search(body, at)) is not None:
        at, parts = mark.end(), parts + 1
        if mark[0] == b'"':
            at = _end_of_text(body, at)
        else:
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(mark[0], 0)
        if parts > MOST_PARTS or depth > DEEPEST:
            return False
    return True


def _end_of_text(body: bytes, at: int) -> int:
    """The end of a string that began before `at`."""
    while at < len(body):
        inner = _TEXT.match(body, at, at + WINDOW)
        if inner is None or inner.end() == at:
            return at + 1  # its closing quote, or the last byte of a string without an end
        at = inner.end()
    return at
