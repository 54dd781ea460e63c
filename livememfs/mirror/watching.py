"""Notices of the operating system about the directory: inotify, FSEvents, ReadDirectoryChangesW, or polling.

Owns the one use of watchfiles. Refuses to be the only source: notices get lost when there are very many, so the mirror
looks at everything now and then as well. Trio thread only; watchfiles has threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path

import structlog
import trio
from watchfiles import awatch

from livememfs.mirror.place import OURS

log = structlog.get_logger("livememfs.mirror")

STEP_MS = 50
POLLED_MS = 1_000
UNREAD_SECONDS = 1.0
"""Between two looks at everything because of names that watchfiles cannot tell of."""


async def watch(
    top: Path, tell: Callable[[Iterable[str]], None], polled: Callable[[], None], scan: Callable[[], Awaitable[None]]
) -> None:
    """Tell of the paths at which something happens, until cancelled. Where the system has no notices left to give, the
    directory is polled, which `polled` is told. `scan` looks at everything, when notices were lost.
    """
    polling: bool | None = None
    while True:
        try:
            await _watch(top, tell, polling=polling)
        except OSError as error:
            if polling:
                raise
            log.warning("the system gives no notices of changes; the directory is polled", reason=str(error))
            polled()
            polling = True
        except RuntimeError as error:  # a name that is not UTF-8: it takes the notices of all others with it
            log.debug("notices were lost", reason=str(error))
            await trio.sleep(UNREAD_SECONDS)
            await scan()


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
    failed: BaseException | None = None
    async with trio.open_nursery() as nursery, aclosing(notices):
        nursery.start_soon(_at_the_end, stop)
        try:
            async for found in notices:
                inside = (path for _, path in found if path.startswith(start) and not path.startswith(ours))
                if paths := {path[len(start) :].replace(os.sep, "/") for path in inside}:
                    tell(paths)
        except* (OSError, RuntimeError) as errors:  # out of a nursery, and watchfiles has one, they come in groups
            failed = errors
        nursery.cancel_scope.cancel()
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    if failed is not None:
        raise failed


async def _at_the_end(stop: trio.Event) -> None:
    """The thread of watchfiles looks at this event all the time; a cancellation alone would wait for it for seconds."""
    try:
        await trio.sleep_forever()
    finally:
        stop.set()
