"""Notices of the operating system about the directory: inotify, FSEvents, ReadDirectoryChangesW, or polling.

Owns the one use of watchfiles. Refuses to be the only source: notices get lost when there are very many, so the mirror
looks at everything now and then as well. Trio thread only; watchfiles has threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path

import structlog
import trio
from watchfiles import awatch

from livememfs.mirror.place import OURS

log = structlog.get_logger("livememfs.mirror")

STEP_MS = 50
POLLED_MS = 1_000


async def watch(top: Path, tell: Callable[[Iterable[str]], None], polled: Callable[[], None]) -> None:
    """Tell of the paths at which something happens, until cancelled. Where the system has no notices left to give, the
    directory is polled, which `polled` is told.
    """
    try:
        await _watch(top, tell, polling=None)
    except OSError as error:
        log.warning("the system gives no notices of changes; the directory is polled", reason=str(error))
        polled()
        await _watch(top, tell, polling=True)


async def _watch(top: Path, tell: Callable[[Iterable[str]], None], *, polling: bool | None) -> None:
    start, ours = f"{top}{os.sep}", f"{top}{os.sep}{OURS}"
    stop = trio.Event()
    notices = awatch(
        top,
        watch_filter=None,
        debounce=4 * STEP_MS,
        step=STEP_MS,
        stop_event=stop,
        force_polling=polling,
        poll_delay_ms=POLLED_MS,
    )
    async with trio.open_nursery() as nursery, aclosing(notices):
        nursery.start_soon(_at_the_end, stop)
        async for found in notices:
            paths = {path[len(start) :] for _, path in found if path.startswith(start) and not path.startswith(ours)}
            if paths:
                tell({path.replace(os.sep, "/") for path in paths})


async def _at_the_end(stop: trio.Event) -> None:
    """The thread of watchfiles looks at this event all the time; a cancellation alone would wait for it for seconds."""
    try:
        await trio.sleep_forever()
    finally:
        stop.set()
