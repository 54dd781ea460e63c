"""The embedding models of one search: the one that is configured, and the one before it while its vectors are searched.

Owns which of them reads a question, and the remarks on what is missing. Refuses to fail: without a model, words alone
are searched. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog
import trio

if TYPE_CHECKING:
    from livememfs.recall.embed.base import Embedder
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.vectors import Floats

log = structlog.get_logger("livememfs.recall")

SILENT = "by words alone: the model that knows meanings does not answer"
UNLOADED = "by words alone: the model that knows meanings is not loaded"

OpenModel = Callable[[], Awaitable["Embedder | None"]]
OpenFormer = Callable[[str, str], Awaitable["Embedder | None"]]


class Meanings:
    """The models, none before they are loaded.

    :open_former: the model of a name and a path, None where it needs settings that are gone
    :model:       the one that is configured
    :former:      the one before it
    :loaded:      there is one that reads questions, or none will come
    """

    def __init__(self, open_model: OpenModel, open_former: OpenFormer | None) -> None:
        self._open_model, self._open_former = open_model, open_former
        self.model: Embedder | None = None
        self.former: Embedder | None = None
        self._index: Engine | None = None
        self.loaded = trio.Event()

    async def load_former(self, index: Engine) -> None:
        """Have the former vectors searched, if there are any and the model can still be had that reads questions for
        them. It comes first: it can answer at once.
        """
        self._index, change = index, index.change
        if change is None or not change.former or self._open_former is None:
            return
        try:
            self.former = await self._open_former(change.former, change.former_place)
            if self.former is not None:
                await trio.to_thread.run_sync(change.begin)
                self.loaded.set()
        except Exception as error:  # then they are of no use; the new ones come
            log.warning("the former model is not used", model=change.former, reason=str(error) or type(error).__name__)

    async def load(self) -> str:
        """Load the model; the reason why there is none, for people."""
        try:
            self.model = await self._open_model()
        except Exception as error:  # no failure of a model may end the mount
            reason = str(error) or type(error).__name__
            log.warning("searching by words alone" if self.asked is None else "the former model goes on", reason=reason)
            return reason
        finally:
            self.loaded.set()
        return ""

    @property
    def asked(self) -> Embedder | None:
        """The model of the vectors that are searched."""
        change = self._index.change if self._index is not None else None
        is_former = change is not None and change.loaded is not None
        return self.former if is_former and self.former is not None else self.model

    async def question(self, text: str, notes: list[str]) -> Floats | None:
        """The vector of a question; None, and a remark, where there is no model."""
        vector = await self._read(lambda model: model.question(text))
        if vector is None:
            notes.append(UNLOADED if self.asked is None else SILENT)
        return vector

    async def passage(self, text: str, notes: list[str]) -> Floats | None:
        """The vector of a text as it is kept; None, and a remark, where there is no model."""

        async def read(model: Embedder) -> Floats:
            row: Floats = (await model.passages([text]))[0]
            return row

        vector = await self._read(read)
        if vector is None:
            notes.append(SILENT)
        return vector

    async def _read(self, read: Callable[[Embedder], Awaitable[Floats]]) -> Floats | None:
        """What the model reads whose vectors are searched; once more where that has become another one meanwhile."""
        while (model := self.asked) is not None:
            vector = None
            with suppress(Exception):
                vector = await read(model)
            if model is self.asked:
                return vector
        return None

    async def aclose(self) -> None:
        """Let go of them."""
        for model in (self.model, self.former):
            if model is not None:
                await model.aclose()
