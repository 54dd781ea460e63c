"""The built-in embedding model: multilingual-e5-small. See `inprocess` for who computes it when.

Owns its name and its prefixes. Refuses to load anything before `load` is called. Trio thread only, but for `load`.
"""

from __future__ import annotations

from typing import Self

from livememfs.recall.embed.inprocess import InProcess, LocalModel

NAME = "multilingual-e5-small-1"
"""The number at the end changes whenever the same text would get another vector, but for rounding: then all spaces are
embedded anew.
"""


class Builtin(InProcess):
    """See `Embedder`, for the methods too."""

    def __init__(self, model: LocalModel) -> None:
        super().__init__(NAME, model, passage="passage: ", question="query: ")

    @classmethod
    def load(cls) -> Self:
        """Load the model: half a second of work, or more on a busy machine. Call it in a thread, and do not abandon it.

        Raises EmbeddingUnavailable.
        """
        from livememfs.recall.embed.model import OnnxModel  # brings numpy and onnxruntime

        return cls(OnnxModel())
