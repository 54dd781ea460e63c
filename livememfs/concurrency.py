"""Many things side by side, one failure out, and nobody kept waiting by what takes long.

Owns the manners of our nurseries: whoever awaits learns of a failure as itself, never as a group that no `except` below
would match. Owns the few threads for what computes, and how long the trio thread is held by what cannot leave it.
Refuses to swallow anything. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import trio

from livememfs.errors import LiveMemError

T = TypeVar("T")

AT_ONCE = 8
THREADS = 3
"""For what computes. Each of them that has the interpreter keeps the trio thread from it for a moment."""
IN_A_STEP = 256
"""Things that are looked at before the others have their turn."""
_threads: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("livememfs.threads")

LARGE = 1 << 16
"""Characters from which on work with a text is done in a thread."""
A_NAME = 64
"""Of how many characters the look at a name takes as long."""


async def aside(size: int, work: Callable[[], T]) -> T:
    """`work()`, in a thread when the text it looks at is large: everybody else would wait for it."""
    return work() if size < LARGE else await in_thread(work, abandon=True)


async def in_thread(work: Callable[[], T], *, abandon: bool = False) -> T:
    """`work()` in one of the few threads for what computes. `abandon`: nobody waits for it who is cancelled."""
    try:
        limiter = _threads.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS)
        _threads.set(limiter)
    return await trio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=abandon)


async def in_steps(items: Sequence[T], work: Callable[[T], object]) -> None:
    """`work(item)` for each, where it has to be on the trio thread; now and then the others have their turn."""
    for start in range(0, len(items), IN_A_STEP):
        for item in items[start : start + IN_A_STEP]:
            work(item)
        await trio.lowlevel.checkpoint()


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
    """`await work(item)` for all items, `at_once` of them side by side, started in their order.

    The first LiveMemError stops the rest and is raised as itself, not inside an exception group.
    """
    waiting = iter(items)
    failures: list[LiveMemError] = []

    async def worker() -> None:
        for item in waiting:
            try:
                await work(item)
            except LiveMemError as error:
                failures.append(error)
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(worker)
    if failures:
        raise failures[0]


def the_one(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that says it best: an interrupt, else a failure we can explain, else the group itself."""
    interrupt, _ = group.split(KeyboardInterrupt)
    if interrupt is not None:
        return KeyboardInterrupt()
    explained, rest = group.split(LiveMemError)
    if rest is not None or explained is None:  # something we cannot explain is a bug, and its traceback is needed
        return group
    error: BaseException = explained
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
