"""Time that jumps to the next moment something waits for, and stands still while work goes on outside of trio.

Owns the jumps. trio's `MockClock` jumps by itself as soon as its own tasks wait: a server on loopback that thinks, or a
thread that was not given the processor, is nothing to it, and minutes pass in which leases end. Here threads are waited
for, and whatever says so with `outside`. Trio thread only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import TypeVar

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

T = TypeVar("T")
PAUSE = 0.002
"""Real seconds between two looks at what goes on outside."""
_outside: trio.lowlevel.RunVar[list[Callable[[], bool]]] = trio.lowlevel.RunVar("outside")


def run(main: Callable[..., Awaitable[T]], *args: object) -> T:
    """What `main(*args)` returns, in time that begins at 0 and jumps."""
    clock = MockClock()

    async def whole() -> T:
        _outside.set([])
        trio.lowlevel.spawn_system_task(_jump, clock)
        return await main(*args)

    return trio.run(whole, clock=clock)


def timed(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test in such time."""

    @wraps(test)
    def whole(**given: object) -> None:
        run(partial(test, **given))

    return whole


@contextmanager
def outside(is_at_work: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Within this, time stands while `is_at_work()`. Outside of `run` it does nothing."""
    working = _outside.get([])
    working.append(is_at_work)
    try:
        yield
    finally:
        working.remove(is_at_work)


async def _jump(clock: MockClock) -> None:
    threads = trio.to_thread.current_default_thread_limiter()
    own = trio.CapacityLimiter(1)  # or it would be a thread that is waited for
    while True:
        await wait_all_tasks_blocked()
        ahead = trio.lowlevel.current_statistics().seconds_to_next_deadline
        if threads.borrowed_tokens or any(is_at_work() for is_at_work in _outside.get()) or not 0 < ahead < math.inf:
            await trio.to_thread.run_sync(partial(time.sleep, PAUSE), limiter=own)
        else:
            clock.jump(ahead)
