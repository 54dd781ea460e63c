"""The embedder for tests: it behaves as the protocol says, counts, fails when told to, and needs no model."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from livememfs.errors import ModelUnreachable
from livememfs.recall.embed.base import Embedder, EmbedStatistics
from livememfs.testing.embed import FakeEmbedder


async def test_vectors_are_the_same_each_time_and_of_length_1() -> None:
    one: Embedder = FakeEmbedder()
    other: Embedder = FakeEmbedder()
    texts = ["the cat sat", "", "le chat", "🙂", "\ud800"]

    rows = await one.passages(texts)

    assert rows.shape == (5, one.dim) == (5, 64)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(rows, await other.passages(texts))


async def test_texts_that_share_words_lie_near_each_other() -> None:
    embedder = FakeEmbedder()

    near, far = await embedder.passages(["The train to Lyon is late.", "We bought four green chairs."])
    question = await embedder.question("which train to Lyon?")

    assert question @ near > 0.4 > abs(question @ far)


async def test_no_texts_are_no_rows() -> None:
    assert (await FakeEmbedder(dim=8).passages([])).shape == (0, 8)


async def test_it_counts_what_it_embedded() -> None:
    embedder = FakeEmbedder()
    await embedder.passages(["a", "b"])
    await embedder.passages(["b"])
    await embedder.question("c")

    assert embedder.embedded == ["a", "b", "b"]
    assert embedder.asked == ["c"]
    assert embedder.statistics() == EmbedStatistics(3, 1, 0.0, 0)


async def test_it_fails_while_it_is_told_to() -> None:
    embedder = FakeEmbedder()
    embedder.failure = ModelUnreachable("as told")

    with pytest.raises(ModelUnreachable, match="as told"):
        await embedder.passages(["a"])
    embedder.failure = None
    await embedder.passages(["b"])

    assert embedder.embedded == ["b"]
    assert embedder.statistics().failures == 1


async def test_it_is_slow_when_it_is_told_to(autojump_clock: trio.abc.Clock) -> None:
    embedder = FakeEmbedder()
    embedder.delay = 30
    start = trio.current_time()

    await embedder.question("a")

    assert trio.current_time() - start == pytest.approx(30)
    assert embedder.statistics().seconds == 30


async def test_a_closed_one_says_so() -> None:
    embedder = FakeEmbedder()
    await embedder.aclose()

    with pytest.raises(trio.ClosedResourceError):
        await embedder.question("a")
