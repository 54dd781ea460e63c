"""The checks of `livememfs doctor`, one module per subject; and `audit`, which checks what a space remembers.

Owns the form of a check, with the verdict `ok`, `warn` (works, with a limit) or `fail` (must be changed); the last two
come with advice. Owns which check comes next. Refuses to print, to change anything except its own probe objects in the
store, and to show a secret. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from livememfs.errors import LiveMemError, TimedOut

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def next_step(checks: Sequence[Check]) -> str:
    """The next thing to do, in a sentence; empty when every check is ok.

    Checks come in the order of repair: a check can fail only because an earlier one did.
    """
    for verdict in ("fail", "warn"):
        for check in checks:
            if check.verdict == verdict:
                return f"{check.name}: {check.advice or check.found}"
    return ""


async def attempt(
    name: str, work: Callable[[], Awaitable[None]], advice: Callable[[LiveMemError], str] = LiveMemError.advice
) -> Check | None:
    """Run `work`; the failed check if it raises, None if it does not."""
    import trio

    try:
        await work()
    except trio.TooSlowError:
        error: LiveMemError = TimedOut(f"the {name}")
    except LiveMemError as raised:
        error = raised
    else:
        return None
    return Check(name, "fail", str(error), advice(error))
