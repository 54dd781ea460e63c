"""Whether JSON that somebody sent is of a shape that a request has: looked at before anything parses it.

Owns the limits of depth and of parts. What parses JSON cannot be interrupted, and a few megabytes of small objects take
it long; a text costs little however long it is. Refuses to parse: what is no JSON may pass, and whoever parses it says
so. Pure, in pieces that are each soon done; any thread.
"""

from __future__ import annotations

import re
from functools import partial

from livememfs.concurrency import aside

DEEPEST = 32
MOST_PARTS = 5_000
"""Lists, objects, texts and what stands between two commas; the largest call that a tool takes has some hundreds."""
WINDOW = 1 << 16
"""Bytes that are looked at in one go."""
_PART = re.compile(rb'[\[\]{},"]')
_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


async def fits(body: bytes) -> bool:
    """Whether a body is worth parsing."""
    return await aside(len(body), partial(_fits, body))


def _fits(body: bytes) -> bool:
    depth = parts = at = 0
    while (found := _PART.search(body, at)) is not None:
        at, parts = found.end(), parts + 1
        if found[0] == b'"':
            at = _end_of_text(body, at)
        else:
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if parts > MOST_PARTS or depth > DEEPEST:
            return False
    return True


def _end_of_text(body: bytes, at: int) -> int:
    """Where a text has ended that began before `at`."""
    while at < len(body):
        found = _TEXT.match(body, at, at + WINDOW)
        if found is None or found.end() == at:
            return at + 1  # its quote, or the last byte of a text that has no end
        at = found.end()
    return at
