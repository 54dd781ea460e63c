"""Concurrent work with one failure as its result, threads for long computations, and background tasks.

Owns the rules of our nurseries: a caller gets a failure as itself, never inside a group that no `except` would match. A
background task that fails is started again, counted and shown (`Background`). Owns the few threads for computations,
and how long work on the trio thread may hold it. Refuses to swallow an error. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog
import trio

from livememfs.errors import LiveMemError

log = structlog.get_logger("livememfs.background")

T = TypeVar("T")

AT_ONCE = 8
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a failed task is started again; the pause doubles each time, up to the second value."""
WELL = 300.0
"""Seconds that a task must run before its last failure is forgotten: some tasks do nothing for a minute."""
THREADS = 1
"""Threads for computations. Several share one interpreter: they do no more work, and each delays the trio thread by one
more step. With three, ten clients that read a large bank delayed a `stat` by 180 ms; with one, by 66.
"""
IN_A_STEP = 256
"""Items that are worked on before other tasks may run."""
_threads: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("livememfs.threads")

LARGE = 1 << 16
"""Characters from which on a text is worked on in a thread."""
A_NAME = 64
"""The work on one name takes as long as that on so many characters of text."""


async def aside(size: int, work: Callable[[], T]) -> T:
    """`work()`, in a thread if its text is large: on the trio thread all other tasks would wait."""
    return work() if size < LARGE else await in_thread(work, abandon=True)


async def in_thread(work: Callable[[], T], *, abandon: bool = False) -> T:
    """`work()` in a thread for computations. `abandon`: a cancelled caller does not wait for its end."""
    try:
        limiter = _threads.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS)
        _threads.set(limiter)
    return await trio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=abandon)


async def in_steps(items: Sequence[T], work: Callable[[T], object]) -> None:
    """`work(item)` for each on the trio thread; other tasks may run after every IN_A_STEP items."""
    for start in range(0, len(items), IN_A_STEP):
        for item in items[start : start + IN_A_STEP]:
            work(item)
        await trio.lowlevel.checkpoint()


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
    """`await work(item)` for all items, `at_once` of them at the same time, started in order.

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
    """The exception to raise for a group: an interrupt, else a single known error, else the group itself."""
    interrupt, _ = group.split(KeyboardInterrupt)
    if interrupt is not None:
        return KeyboardInterrupt()
    explained, rest = group.split(LiveMemError)
    if rest is not None or explained is None:  # an unknown error is a bug, and its traceback is needed
        return group
    error: BaseException = explained
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# --- background tasks ------------------------------------------------------------------------------------------


class Starts(Protocol):
    """Starts tasks, like a nursery."""

    def start_soon(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run it at the same time."""


@dataclass(frozen=True)
class BackgroundStatistics:
    """Failures since the start, by the name of the task; and the number of tasks that failed lately."""

    failures: Mapping[str, int]
    failing: int


@dataclass
class _Task:
    failures: int = 0
    reason: str = ""
    well_at: float = float("-inf")


@dataclass
class Background:
    """The background tasks of one process. `tell(name, reason)` is called for each new failure."""

    tell: Callable[[str, str], None] = lambda *_: None
    _tasks: dict[str, _Task] = field(default_factory=dict)

    async def keep(
        self,
        name: str,
        work: Callable[..., Awaitable[Any]],
        *,
        task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run `work` to its end, and again after a pause when it fails.

        With a `task_status`, `work` gets one too; a failure before its `started()` is raised to the starter.
        """
        pause, once = FIRST_PAUSE, _Once(task_status)
        starts = task_status is not trio.TASK_STATUS_IGNORED
        run = partial(work, task_status=once) if starts else work
        while True:
            begun = trio.current_time()
            try:
                await run()
                return
            except BaseException as raised:
                if starts and not once.told:
                    raise
                pause = FIRST_PAUSE if trio.current_time() - begun >= WELL else pause
                self._take_note(name, raised, pause)
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def once(self, name: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Run `work` once; a failure is only counted."""
        try:
            await work()
        except BaseException as raised:
            self._take_note(name, raised, 0.0)

    def beside(self, nursery: trio.Nursery, name: str) -> Starts:
        """Starts tasks in a nursery; a failure of one does not end the nursery."""
        return _Beside(self, nursery, name)

    def _take_note(self, name: str, raised: BaseException, pause: float) -> None:
        """Count a failure. A cancellation, an interrupt or an exit is raised again, because it must end everything."""
        failure, rest = raised, None
        if isinstance(raised, BaseExceptionGroup):
            failed, rest = raised.split(Exception)
            failure = the_one(failed) if failed is not None else raised
            while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
                failure = failure.exceptions[0]
        if not isinstance(failure, Exception):
            raise raised
        self._failed(name, failure, pause)
        if rest is not None:
            raise rest

    def _failed(self, name: str, error: Exception, pause: float) -> None:
        task, now = self._tasks.setdefault(name, _Task()), trio.current_time()
        explained = isinstance(error, LiveMemError)
        reason = str(error) if explained else f"internal error: {type(error).__name__}; see the log"
        is_news = now >= task.well_at or reason != task.reason
        task.failures, task.reason, task.well_at = task.failures + 1, reason, now + pause + WELL
        if is_news:
            log.error("a background task failed", task=name, reason=reason, exc_info=None if explained else error)
            self.tell(name, reason)

    def failing(self) -> dict[str, str]:
        """The reasons of tasks that failed lately, by name."""
        now = trio.current_time()
        return {name: task.reason for name, task in sorted(self._tasks.items()) if now < task.well_at}

    def statistics(self) -> BackgroundStatistics:
        """Counters, cheap."""
        failures = {name: task.failures for name, task in self._tasks.items()}
        return BackgroundStatistics(failures, len(self.failing()))


@dataclass(frozen=True)
class _Beside:
    background: Background
    nursery: trio.Nursery
    name: str

    def start_soon(self, work: Callable[..., Awaitable[Any]], *args: Any) -> None:
        self.nursery.start_soon(self.background.once, self.name, partial(work, *args))


@dataclass
class _Once:
    """Passes on only the first `started()`: a task that runs again must not report a second time."""

    status: trio.TaskStatus[Any]
    told: bool = False

    def started(self, value: Any = None) -> None:
        if not self.told:
            self.told = True
            self.status.started(value)
