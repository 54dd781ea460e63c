"""The built-in embedding model: multilingual-e5-small, on this machine, without a network.

Owns who may compute when. Passages are done by one thread, one after the other, and questions have threads of their
own: whoever asks waits for no passage, and a large import leaves the other processors alone. Refuses to load anything
before `load` is called. Trio thread only, but for `load`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import trio

from livememfs.recall.embed.base import EmbedStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livememfs.recall.embed.model import Model

NAME = "multilingual-e5-small-1"
"""The number at the end changes whenever the same text would get another vector."""
QUESTIONS_AT_ONCE = 2

# The model was trained with these words in front.
_PASSAGE = "passage: "
_QUESTION = "query: "


class Builtin:
    """See `Embedder`."""

    name = NAME

    def __init__(self, model: Model) -> None:
        self.dim = model.dim
        self._model: Model | None = model
        self._bulk = trio.CapacityLimiter(1)
        self._asking = trio.CapacityLimiter(QUESTIONS_AT_ONCE)
        self._texts = self._questions = self._failures = 0
        self._seconds = 0.0

    @classmethod
    def load(cls) -> Self:
        """Load the model: half a second of work, or more on a busy machine. Call it in a thread, and do not abandon it.

        Raises EmbeddingUnavailable.
        """
        from livememfs.recall.embed.model import Model  # brings numpy and onnxruntime

        return cls(Model())

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.passages`."""
        import numpy as np

        await trio.lowlevel.checkpoint()
        rows = np.empty((len(texts), self.dim), np.float32)
        for number, text in enumerate(texts):
            rows[number] = await self._compute(_PASSAGE + text, self._bulk)
            self._texts += 1
        return rows

    async def question(self, text: str) -> NDArray[np.float32]:
        """See `Embedder.question`."""
        row = await self._compute(_QUESTION + text, self._asking)
        self._questions += 1
        return row

    async def aclose(self) -> None:
        """See `Embedder.aclose`. Whoever waits for a text at work still gets its vector."""
        self._model = None
        await trio.lowlevel.checkpoint()

    def statistics(self) -> EmbedStatistics:
        """Counters, cheap."""
        return EmbedStatistics(self._texts, self._questions, self._seconds, self._failures)

    async def _compute(self, text: str, limiter: trio.CapacityLimiter) -> NDArray[np.float32]:
        model = self._model
        if model is None:
            raise trio.ClosedResourceError("the embedding model was closed")
        try:
            # Never abandoned: a thread that still computes when the interpreter ends makes the process abort. Whoever
            # gives up waits for one text, which takes a tenth of a second at most.
            row, seconds = await trio.to_thread.run_sync(_timed, model, text, limiter=limiter)
        except Exception:
            self._failures += 1
            raise
        self._seconds += seconds
        return row


def _timed(model: Model, text: str) -> tuple[NDArray[np.float32], float]:
    """The vector, and how long it took. Runs in a thread."""
    start = time.perf_counter()
    return model.vector(text), time.perf_counter() - start
