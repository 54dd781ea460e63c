"""The corpus's vectors as they were computed once, so that each run of the tests need not compute them for a minute.

`python tests/recall/corpus_vectors.py` computes them anew. They are kept in eight bits, as numbers from -127 to 127.
The test fails when it needs a vector that is not kept; `LIVEMEMFS_TEST_LONG=1` computes all of them with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.embed.builtin import Builtin

FILE = Path(__file__).parent / "corpus" / "vectors.npz"


class KeptVectors:
    """The built-in model, asked only for what is not kept. `asked` has the texts and vectors of this time."""

    def __init__(self, model: Builtin, *, kept: bool = True) -> None:
        self._model = model
        self.name = model.name
        self.asked: dict[bytes, NDArray[np.float32]] = {}
        self._kept: dict[bytes, NDArray[np.float32]] = {}
        if kept and FILE.exists():
            with np.load(FILE) as file:
                vectors = file["vectors"].astype(np.float32)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                self._kept = dict(zip((bytes(row) for row in file["texts"]), vectors, strict=True))

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `Builtin.passages`."""
        missing = [text for text in texts if _id("passage", text) not in self._kept]
        if missing:
            self._keep("passage", missing, await self._model.passages(missing))
        return np.stack([self._kept[_id("passage", text)] for text in texts])

    async def question(self, text: str) -> NDArray[np.float32]:
        """As `Builtin.question`."""
        if _id("question", text) not in self._kept:
            self._keep("question", [text], (await self._model.question(text))[None])
        return self._kept[_id("question", text)]

    def _keep(self, kind: str, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        for text, vector in zip(texts, vectors, strict=True):
            self._kept[_id(kind, text)] = self.asked[_id(kind, text)] = vector

    def write(self) -> None:
        """Keep what was asked, in place of what was kept."""
        texts = sorted(self.asked)
        rows = np.stack([self.asked[text] for text in texts])
        rounded = np.round(rows / np.abs(rows).max(axis=1, keepdims=True) * 127).astype(np.int8)
        np.savez_compressed(FILE, texts=np.array([list(text) for text in texts], np.uint8), vectors=rounded)


def _id(kind: str, text: str) -> bytes:
    return sha256(f"{kind}: {text}".encode()).digest()[:12]


if __name__ == "__main__":
    import sys

    import trio

    sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("", "recall")]
    import test_recall_corpus

    trio.run(test_recall_corpus.write_vectors)
