"""Questions to the store: who waits for an answer, how long, and what silence means.

Owns what is known of the store's health: since when it fails, whether it has fallen silent, when it may be asked again.
Refuses to repeat anything (`store.retry` does) and to know what was asked. Trio thread only.

Silence: something light has been waiting for a second, and nothing was answered in that second. Whoever has something
to fall back on stops waiting then, and the question goes on for those who come later.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

import structlog
import trio

from livememfs.errors import BucketMissing, Denied, LiveMemError, Throttled, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

log = structlog.get_logger("livememfs.cache")

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds without any answer after which the store counts as silent."""
OUTAGE_PAUSE = 10.0
"""Seconds for which a store that failed is not asked for names that are known: a reader pays for an outage once."""


class StoreQuestions:
    """The questions to one store that are on their way."""

    def __init__(self) -> None:
        self.last_error = ""
        self.failing_since: float | None = None
        self.on_failure: Callable[[], None] = lambda: None
        """Called when the store begins to fail."""
        self._again = float("-inf")
        self._answered = float("-inf")
        self._waiting: dict[int, float] = {}
        self._pending: dict[tuple[str, str], trio.Event] = {}
        self._nursery: trio.Nursery | None = None

    # --- the store's health ---------------------------------------------------------------------------------------

    @property
    def pausing(self) -> bool:
        """Whether the store failed a moment ago and is left alone for names that are known."""
        return trio.current_time() < self._again

    @property
    def silent(self) -> bool:
        """Whether waiting for an answer is likely to be in vain."""
        return trio.current_time() >= self._silent_at()

    def _silent_at(self) -> float:
        if not self._waiting:
            return float("inf")
        return max(next(iter(self._waiting.values())), self._answered) + PATIENCE

    def answered(self) -> None:
        """Take note that the store has said something."""
        self._answered = trio.current_time()

    def remember_error(self, text: str) -> None:
        """Keep the store's last complaint for `status.json`; an empty text says that it answers again."""
        self.last_error = text
        if not text:
            self.answered()
            self._again = float("-inf")
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = trio.current_time()
            self.on_failure()

    # --- asking ---------------------------------------------------------------------------------------------------

    async def call(self, ask: Callable[[], Awaitable[T]], *, bulk: bool = False) -> T:
        """One call of the store. `bulk`: contents are on their way, whose time says nothing about the store."""
        try:
            with self._wait(bulk=bulk):
                answer = await ask()
        except (Unreachable, Throttled, Denied, BucketMissing) as error:
            self.remember_error(str(error))
            if isinstance(error, Unreachable | Throttled):
                self._again = trio.current_time() + OUTAGE_PAUSE
            raise
        except LiveMemError:
            self.answered()
            raise
        self.remember_error("")
        return answer

    @contextmanager
    def _wait(self, *, bulk: bool) -> Iterator[None]:
        ticket = object()
        if not bulk:
            self._waiting[id(ticket)] = trio.current_time()
        try:
            yield
        finally:
            self._waiting.pop(id(ticket), None)

    @asynccontextmanager
    async def single(self, what: tuple[str, str]) -> AsyncIterator[bool]:
        """One request for the same thing at a time; yields whether nobody else was asking."""
        first = True
        while (event := self._pending.get(what)) is not None:
            first = False
            await event.wait()
        event = self._pending[what] = trio.Event()
        try:
            yield first
        finally:
            del self._pending[what]
            event.set()

    def is_listing(self, prefix: str) -> bool:
        """Whether a level below `prefix` is being asked for."""
        return any(kind == "list" and what.startswith(prefix) for kind, what in self._pending)

    async def patiently(self, ask: Callable[[], Awaitable[object]]) -> bool:
        """Ask, and wait for the answer while the store shows signs of life; False when it did not, and asking goes on.

        Raises what `ask` does. Without `run`, there is nobody to go on asking: then it waits until the end.
        """
        if self._nursery is None:
            await ask()
            return True
        done, failures = trio.Event(), list[Exception]()

        async def go_on() -> None:
            try:
                await ask()
            except Exception as error:  # it is whoever asked who hears of it, not everybody who has asked something
                failures.append(error)
                if not isinstance(error, LiveMemError):
                    log.exception("a question to the store failed")
            finally:
                done.set()

        self._nursery.start_soon(go_on)
        while not done.is_set():
            with trio.move_on_at(min(self._silent_at(), trio.current_time() + PATIENCE)):
                await done.wait()
            if not done.is_set() and self.silent:
                return False
        if failures:
            raise failures[0]
        return True

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Go on asking for whoever has stopped waiting, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None
