"""An embedding model behind an OpenAI-compatible endpoint.

Owns how texts become requests, and the check of what comes back: a reply counts when it has one vector for each text,
all of one length, of finite numbers. Refuses retries, as the client does, and to add the words that some models want
before a text: only the person who chose the model knows them. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import trio

from livememfs.errors import ModelError
from livememfs.llm.client import OpenAIEmbeddings
from livememfs.recall.embed.base import EmbedStatistics, slug
from livememfs.text.privacy.redaction import redact
from livememfs.text.size import cut_to

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 32
"""Texts in one request."""
MAX_CHARS, MAX_TOKENS = 8_000, 2_000
"""Of a text so much is sent at most: no more than most models take, whatever its script."""


class EndpointEmbedder:
    """See `Embedder`, for the methods too.

    :base_url: the endpoint up to and including `/v1`
    :api_key:  may be empty
    :timeout:  seconds one request may take in all
    """

    def __init__(self, base_url: str, api_key: str, model: str, timeout: float) -> None:
        self.name = slug(model)
        self.dim = 0
        self._client: OpenAIEmbeddings | None = OpenAIEmbeddings(base_url, api_key, model, timeout)
        self._texts = self._questions = self._failures = 0
        self._seconds = 0.0

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Several requests where there are many texts; the first failure is raised."""
        import numpy as np

        await trio.lowlevel.checkpoint()
        rows: list[NDArray[np.float32]] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            rows.extend(await self._ask(batch))
            self._texts += len(batch)
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

    async def question(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32]
        [row] = await self._ask([text])
        self._questions += 1
        return row

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await trio.lowlevel.checkpoint()

    def statistics(self) -> EmbedStatistics:
        return EmbedStatistics(self._texts, self._questions, self._seconds, self._failures)

    async def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._client is None:
            raise trio.ClosedResourceError("the embedding model was closed")
        start = trio.current_time()
        try:
            reply = await self._client.embed([_sendable(text) for text in texts])
            rows = _unit_rows(reply, len(texts))
            if self.dim not in (0, rows.shape[1]):
                raise ModelError(f"its vectors have a length of {rows.shape[1]} now, and had {self.dim} before")
        except ModelError:
            self._failures += 1
            raise
        finally:
            self._seconds += trio.current_time() - start
        self.dim = rows.shape[1]
        return rows


def _sendable(text: str) -> str:
    """What is sent of a text: what is public, Unicode, not too long, and not empty, which some endpoints refuse."""
    return redact(cut_to(text[:MAX_CHARS], MAX_TOKENS)).text.encode("utf-8", "replace").decode() or " "


def _unit_rows(reply: object, count: int) -> NDArray[np.float32]:
    """The vectors of a reply, in the order of the texts, each of length 1. ModelError when anything is odd."""
    import numpy as np

    try:
        rows = np.array(list(_vectors(reply, count)), np.float64)
    except (ValueError, OverflowError):
        raise ModelError("its vectors are not of one length, or hold what is no number") from None
    if rows.ndim != 2 or not rows.size:
        raise ModelError("its vectors are empty")
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is found on the next line
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelError("one of its vectors is zero, or not of finite numbers")
    return np.asarray(rows / lengths, np.float32)


def _vectors(reply: object, count: int) -> Iterator[list[float]]:
    """The lists of numbers of a reply, in the order of their index."""
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ModelError("it did not answer with embeddings; does the URL end in /v1?")
    by_index = {item["index"]: item.get("embedding") for item in data if type(item.get("index")) is int}
    if len(data) != count or by_index.keys() != set(range(count)):
        raise ModelError(f"it answered with {len(data)} vectors to {count} texts, or numbered them wrongly")
    for number in range(count):
        vector = by_index[number]
        if not isinstance(vector, list) or not all(type(value) in (int, float) for value in vector):
            raise ModelError("one of its vectors is no list of numbers")
        yield vector
