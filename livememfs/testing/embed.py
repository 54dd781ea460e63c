"""A double of an embedding model, and the answers of an embeddings endpoint.

Owns deterministic vectors: texts that share words lie near each other, others do not, and the same text always has the
same vector. Fails and takes time only where a test says so. Trio thread only; delays use trio's clock, so
`autojump_clock` makes them free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
import trio
from numpy.typing import NDArray

from livememfs.recall.embed.base import EmbedStatistics
from livememfs.recall.service import Patience
from livememfs.testing.llm import LLMRequest, Scripted

PATIENT = Patience(20.0, 20.0, 20.0)
"""For a `Recall` whose questions wait until everything is indexed, however busy the machine is."""


class FakeEmbedder:
    """A bag of words, hashed: see `Embedder`.

    :embedded: every passage that was embedded, in order; its length is how much work was done
    :asked:    every question
    :failure:  raised by each call while it is set
    :delay:    seconds that each call takes
    """

    def __init__(self, dim: int = 64, name: str = "fake-1") -> None:
        self.name = name
        self.dim = dim
        self.embedded: list[str] = []
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.delay = 0.0
        self._failures = 0
        self._seconds = 0.0
        self._closed = False

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.passages`."""
        await self._work()
        self.embedded += texts
        rows = [hashed(text, self.dim) for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

    async def question(self, text: str) -> NDArray[np.float32]:
        """See `Embedder.question`."""
        await self._work()
        self.asked.append(text)
        return hashed(text, self.dim)

    async def aclose(self) -> None:
        """See `Embedder.aclose`."""
        self._closed = True
        await trio.lowlevel.checkpoint()

    def statistics(self) -> EmbedStatistics:
        """Counters."""
        return EmbedStatistics(len(self.embedded), len(self.asked), self._seconds, self._failures)

    async def _work(self) -> None:
        await trio.sleep(self.delay)
        if self._closed:
            raise trio.ClosedResourceError("the embedding model was closed")
        self._seconds += self.delay
        if self.failure is not None:
            self._failures += 1
            raise self.failure


def hashed(text: str, dim: int) -> NDArray[np.float32]:
    """A vector of length 1 in which each word of the text has its place and its sign. No words: the first place."""
    vector = np.zeros(dim, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        number = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        vector[(number >> 1) % dim] += 1 if number & 1 else -1
    if not vector.any():
        vector[0] = 1
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def vectors_reply(vectors: Iterable[object], **extra: object) -> Scripted:
    """The answer of an embeddings endpoint, for `ScriptedLLM`: these vectors, whatever they are, numbered in order."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return Scripted(body=json.dumps({"object": "list", "model": "scripted", "data": data, **extra}).encode())


def hashed_reply(request: LLMRequest, dim: int = 64) -> Scripted:
    """The answer of an endpoint that embeds like `FakeEmbedder`: `ScriptedLLM(responder=hashed_reply)`."""
    return vectors_reply(hashed(text, dim).tolist() for text in request.body["input"])
