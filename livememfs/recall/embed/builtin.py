"""The built-in embedding model: multilingual-e5-small, on this machine, without a network.

Owns which thread computes what. Passages are done by threads of low priority, so that a large import uses only idle
processors; questions have threads of their own, and wait for no passage. Refuses to load anything before
`load` is called. Trio thread only, but for `load`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeVar

import trio

from livememfs.recall.embed.base import EmbedStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livememfs.recall.embed.model import OnnxModel

T = TypeVar("T")

NAME = "multilingual-e5-small-1"
"""The number at the end changes whenever the same text would get another vector, but for rounding: then all spaces are
embedded anew.
"""
QUESTIONS_AT_ONCE = 2
MOST_PASSAGES_AT_ONCE = 4
NICENESS = 10
"""Of the threads for passages: where others want the processor too, these get about a tenth of it."""
_LOOK_SECONDS = 0.2
"""How often passages at work are asked whether anybody still wants them."""

# The model was trained with these words in front.
_PASSAGE = "passage: "
_QUESTION = "query: "


class Builtin:
    """See `Embedder`, for the methods too."""

    name = NAME

    def __init__(self, model: OnnxModel) -> None:
        self.dim = model.dim
        self._model: OnnxModel | None = model
        self._bulk = trio.CapacityLimiter(1)
        self._workers: ThreadPoolExecutor | None = None
        self._asking = trio.CapacityLimiter(QUESTIONS_AT_ONCE)
        self._texts = self._questions = self._failures = 0
        self._seconds = 0.0

    @classmethod
    def load(cls) -> Self:
        """Load the model: half a second of work, or more on a busy machine. Call it in a thread, and do not abandon it.

        Raises EmbeddingUnavailable.
        """
        from livememfs.recall.embed.model import OnnxModel  # brings numpy and onnxruntime

        return cls(OnnxModel())

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        model = self._opened()
        if self._workers is None:
            at_once = min(_processors(), MOST_PASSAGES_AT_ONCE)
            self._workers = ThreadPoolExecutor(at_once, "passages", initializer=_step_back)
        workers = self._workers
        rows = np.empty((len(texts), self.dim), np.float32)

        def compute() -> None:
            started = [workers.submit(_timed, model, _PASSAGE + text) for text in texts]
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
        row, seconds = await self._counted(lambda: _timed(model, _QUESTION + text), self._asking)
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

    def _opened(self) -> OnnxModel:
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


def _timed(model: OnnxModel, text: str) -> tuple[NDArray[np.float32], float]:
    """The vector, and how long it took. Runs in a thread."""
    start = time.perf_counter()
    return model.vector(text), time.perf_counter() - start
