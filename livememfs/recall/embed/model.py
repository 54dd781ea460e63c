"""onnxruntime, and multilingual-e5-small on this machine's processor: texts in, vectors out.

Owns how a session of onnxruntime is made, which uses one thread: the one that calls. Refuses to know of passages and
questions (`inprocess` does) and to wait for anybody. Keeps onnxruntime from telling its makers anything. Blocking; any
thread, several at once.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# From its version 1.32 on it calls a server of Microsoft's from every process, and keeps an id of the machine in
# ~/.cache/Microsoft. It looks for this while it is imported; its function that turns events off comes too late.
os.putenv("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime
from numpy.typing import NDArray

from livememfs.errors import EmbeddingUnavailable
from livememfs.recall.embed import encoder
from livememfs.recall.embed.tokens import Tokenizer
from livememfs.recall.embed.weights import Weights, unpacked

_ERRORS_ONLY = 3


class RuntimeRefuses(Exception):
    """What onnxruntime says of a graph that it does not take."""


def session(graph: bytes | str, **options: Any) -> onnxruntime.InferenceSession:
    """A graph, or the path of one, ready to run. Raises RuntimeRefuses."""
    try:
        return onnxruntime.InferenceSession(graph, _options(), providers=["CPUExecutionProvider"], **options)
    except Exception as error:  # its exceptions have no base of their own
        raise RuntimeRefuses(f"onnxruntime {onnxruntime.__version__} refuses the model: {error}") from error


class OnnxModel:
    """The model, loaded. Takes about half a second. Raises EmbeddingUnavailable.

    :dim: how long a vector is
    """

    def __init__(self, weights: Weights | None = None) -> None:
        weights = weights or Weights()
        self.dim = int(weights.hidden)
        self._tokenizer = Tokenizer(weights.pieces, weights.scores.tolist())
        self._words = weights.packed("emb.word", self.dim)
        # Every text is of the first kind, so what stands for that is added to the places once.
        self._places = weights.plain("emb.pos").reshape(-1, self.dim) + weights.plain("emb.type")[: self.dim]
        try:
            self._session = session(encoder.build(weights), disabled_optimizers=list(encoder.NOT_FUSED))
        except RuntimeRefuses as error:
            raise EmbeddingUnavailable(str(error)) from error

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of length 1. The same text always has the same."""
        numbers = self._tokenizer.numbers(text)
        words = unpacked(self._words[numbers]) + self._places[: len(numbers)]
        [mean] = self._session.run(None, {"words": words[None]})[0]
        return np.asarray(mean / np.linalg.norm(mean), np.float32)


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Both keep memory for the shapes seen so far; texts come in all lengths.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = _ERRORS_ONLY
    return options
