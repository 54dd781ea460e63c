"""How a model comes to read the texts of an index: each once, whatever stands beside it."""

from __future__ import annotations

import numpy as np

from livememfs.recall.index import feeder
from livememfs.recall.index.feeder import BEFORE, TextReader
from livememfs.recall.index.pieces import PieceText
from livememfs.testing.embed import FakeEmbedder, hashed

CHAT = [PieceText("three"), PieceText("two", "one"), PieceText("three", "two"), PieceText("four", "three")]


async def test_a_vector_is_what_a_text_says_and_half_as_much_what_was_said_before() -> None:
    rows = await TextReader(FakeEmbedder()).vectors(CHAT)

    expected = hashed("two", 64) + BEFORE * hashed("one", 64)
    assert np.allclose(rows[1], expected / np.linalg.norm(expected))
    assert np.allclose(rows[0], hashed("three", 64))


async def test_each_text_is_read_once_though_it_stands_before_others_and_comes_again() -> None:
    model = FakeEmbedder()
    reader = TextReader(model)

    first = await reader.vectors(CHAT)
    again = np.concatenate([await reader.vectors([text]) for text in CHAT])

    assert model.embedded == ["three", "two", "one", "four"]
    assert np.allclose(first, again)


async def test_what_is_kept_of_texts_is_bounded_and_what_is_forgotten_is_read_again(monkeypatch) -> None:
    monkeypatch.setattr(feeder, "KEPT", 2)
    model = FakeEmbedder()
    reader = TextReader(model)
    await reader.vectors(CHAT)

    rows = await reader.vectors([PieceText("three"), PieceText("four")])

    assert model.embedded[4:] == ["three"]
    assert np.allclose(rows[0], hashed("three", 64))
