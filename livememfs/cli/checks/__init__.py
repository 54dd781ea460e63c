"""What `livememfs doctor` looks at, one module for each kind of subject.

Owns a verdict's form: `ok`, `warn` for what works with less, `fail` for what has to change, each of the last two with
what to do; and which one of many comes next. Refuses to print, to change anything but its own probe objects in the
store, and to show a secret. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import trio

from livememfs.errors import LiveMemError, TimedOut

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def next_step(found: Sequence[Check]) -> str:
    """The one thing to do next, in a sentence; empty when all is well.

    The checks come in the order in which things have to be put right: what stands on something broken is broken too.
    """
    for verdict in ("fail", "warn"):
        for one in found:
            if one.verdict == verdict:
                return f"{one.name}: {one.advice or one.found}"
    return ""


async def attempt(
    name: str, work: Callable[[], Awaitable[None]], advice: Callable[[LiveMemError], str] = LiveMemError.advice
) -> Check | None:
    """The failed check that `work` amounts to; None when it went well."""
    try:
        await work()
    except trio.TooSlowError:
        error: LiveMemError = TimedOut(f"the {name}")
    except LiveMemError as raised:
        error = raised
    else:
        return None
    return Check(name, "fail", str(error), advice(error))
