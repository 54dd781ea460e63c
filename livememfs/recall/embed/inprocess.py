"""An embedding model in this process, on its processors, without a network.

Owns which thread computes what. Passages are done by threads of low priority, so that a large import uses only idle
processors; questions have threads of their own, and wait for no passage. A text is computed alone: in 8 bits it would
have another vector beside other texts, and several at once are no faster. Refuses to know models (`builtin` and
`folder` do). Trio thread only.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from livememfs.recall.embed.base import EmbedStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

QUESTIONS_AT_ONCE = 2
MOST_PASSAGES_AT_ONCE = 4
NICENESS = 10
"""Of the threads for passages: where others want the processor too, these get about a tenth of it."""
_LOOK_SECONDS = 0.2
"""How often passages at work are asked whether anybody still wants them."""


class LocalModel(Protocol):
    """A model, loaded. `vector` computes in the thread that calls; several may call at once."""

    dim: int

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of length 1."""


class InProcess:
    """See `Embedder`, for the methods too.

    :passage, question: the words that the model was trained to see in front of each
    """

    def __init__(self, name: str, model: LocalModel, *, passage: str, question: str) -> None:
        self.name, self.dim = name, model.dim
        self._model: LocalModel | None = model
        self._passage, self._question = passage, question
        self._bulk = trio.CapacityLimiter(1)
        self._workers: ThreadPoolExecutor | None = None
        self._asking = trio.CapacityLimiter(QUESTIONS_AT_ONCE)
        self._texts = self._questions = self._failures = 0
        self._seconds = 0.0

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        model = self._opened()
        if self._workers is None:
            at_once = min(_processors(), MOST_PASSAGES_AT_ONCE)
            self._workers = ThreadPoolExecutor(at_once, "passages", initializer=_step_back)
        workers = self._workers
        rows = np.empty((len(texts), self.dim), np.float32)

        def compute() -> None:
            started = [workers.submit(_timed, model, self._passage + text) for text in texts]
            try:
                _collect(started, rows)
            finally:
                done = [task.result()[1] for task in started if not task.cancelled() and task.exception() is None]
                self._texts += len(done)
                self._seconds += sum(done)

        await self._counted(compute, self._bulk)
        return rows

    async def question(self, text: str) -> NDArray[np.float32]:
        model = self._opened()
        row, seconds = await self._counted(lambda: _timed(model, self._question + text), self._asking)
        self._seconds += seconds
        self._questions += 1
        return row

    async def aclose(self) -> None:
        """A caller that waits for a text at work still gets its vector."""
        self._model = None
        workers, self._workers = self._workers, None
        if workers is not None:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(lambda: workers.shutdown(cancel_futures=True))
        await trio.lowlevel.checkpoint()

    def statistics(self) -> EmbedStatistics:
        return EmbedStatistics(self._texts, self._questions, self._seconds, self._failures)

    def _opened(self) -> LocalModel:
        if self._model is None:
            raise trio.ClosedResourceError("the embedding model was closed")
        return self._model

    async def _counted(self, work: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
        """The result of some work in a thread. It is never abandoned: a thread that still computes when the interpreter
        ends makes the process abort. A cancelled caller waits for the texts at work, a tenth of a second each.
        """
        try:
            return await trio.to_thread.run_sync(work, limiter=limiter)
        except Exception:
            self._failures += 1
            raise


def _processors() -> int:
    """How many this process may use; macOS does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _step_back() -> None:
    """Give this thread a low priority; where that is not allowed, it computes all the same."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _collect(started: Sequence[Future[tuple[NDArray[np.float32], float]]], rows: NDArray[np.float32]) -> None:
    """Put the vectors into their rows; when this returns or raises, no text is at work any more. Raises trio.Cancelled
    soon after the caller was cancelled.
    """
    try:
        left = set(started)
        while left:
            _, left = wait(left, _LOOK_SECONDS, FIRST_COMPLETED)
            trio.from_thread.check_cancelled()
        for number, future in enumerate(started):
            rows[number] = future.result()[0]
    finally:
        for future in started:
            future.cancel()
        wait(started)


def _timed(model: LocalModel, text: str) -> tuple[NDArray[np.float32], float]:
    """The vector, and how long it took. Runs in a thread."""
    start = time.perf_counter()
    return model.vector(text), time.perf_counter() - start
