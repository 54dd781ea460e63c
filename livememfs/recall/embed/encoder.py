"""The encoder of multilingual-e5-small as a graph that onnxruntime executes.

Owns which operations there are and how weights are made small. Refuses to run anything. Pure; any thread.

The graph takes one text as `words` (1, tokens, hidden), the vector of each token and that of its place, added; it gives
`mean` (1, hidden). It takes vectors and not numbers of tokens because the table of all words stays outside, in its
file: memory holds only the rows that texts really use. It takes one text because the 8-bit products are scaled by the
largest value around: a text would have another vector beside other texts, and several at once are no faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.embed import onnxfile
from livememfs.recall.embed.weights import Weights

_OWN = "com.microsoft"
"""onnxruntime's own operations: each does in one pass what takes several of the standard's."""
_OPERATORS = (("", 18), (_OWN, 1))
_EPSILON = 1e-12
# 7 bits and not 8: processors without VNNI add two products of 8 bits in 16 and cut off what does not fit. With 7 it
# always fits, and vectors are the same wherever they were made.
_LARGEST = 64
_FAR_CHANNELS = (318, 1462, 354, 408, 778, 658, 1152, 413)
"""In the first layers, the channel after GELU whose values, at one token of a text, are far above those of all others.
Were it rounded with them, one scale for all would make two thirds of the error of the whole encoder.
"""
NOT_FUSED = ("SkipLayerNormFusion", "BiasSkipLayerNormFusion", "BiasGeluFusion")
"""What onnxruntime must not make of this graph (its names of optimizers): fused with what is before it, normalisation
is five times slower, and GELU nearly twice.
"""


def build(weights: Weights) -> bytes:
    """The graph as an ONNX file, for a session with `NOT_FUSED` disabled. Takes a fifth of a second."""
    graph = _Graph(weights)
    last = graph.normalised("words", "emb.ln")
    graph.constant("thirds", np.full(3, weights.hidden, np.int64))
    for number in range(weights.layers):
        last = _layer(graph, number, last)
    tokens = graph.constant("tokens", np.array([1], np.int64))
    graph.add("ReduceMean", [last, tokens], "mean", domain="", keepdims=0)
    inputs = [onnxfile.value("words", onnxfile.FLOAT, [1, "tokens", weights.hidden])]
    outputs = [onnxfile.value("mean", onnxfile.FLOAT, [1, weights.hidden])]
    return onnxfile.file(graph.nodes, graph.tensors, inputs, outputs, operators=_OPERATORS)


def _layer(graph: _Graph, number: int, before: str) -> str:
    """One layer: attention, then two products with GELU between them, each added to what came in."""
    weights, layer = graph.weights, f"l{number}"
    three = graph.product(before, [_Matrix.of(weights, f"{layer}.{part}", weights.hidden) for part in "qkv"])
    parts = [f"{layer}.q", f"{layer}.k", f"{layer}.v"]
    graph.nodes.append(onnxfile.node("Split", [three, "thirds"], parts, axis=-1))
    seen = graph.add("MultiHeadAttention", parts, f"{layer}.seen", num_heads=weights.heads)
    out = graph.product(seen, [_Matrix.of(weights, f"{layer}.ao", weights.hidden)])
    middle = graph.normalised(graph.plus(out, before), f"{layer}.aln")
    return graph.normalised(graph.plus(_wide(graph, number, middle), middle), f"{layer}.oln")


def _wide(graph: _Graph, number: int, middle: str) -> str:
    """The two products with GELU between them; a far channel is computed beside, in 32 bits."""
    weights, layer = graph.weights, f"l{number}"
    up = _Matrix.of(weights, f"{layer}.fi", weights.hidden)
    down = _Matrix.of(weights, f"{layer}.fo", up.bias.size)
    beside = ""
    if number < len(_FAR_CHANNELS):
        far = _FAR_CHANNELS[number]
        alone = graph.add(
            "MatMul",
            [middle, graph.constant(f"{layer}.far.w", up.rows[far][:, None].copy())],
            f"{layer}.far",
            domain="",
        )
        alone = graph.plus(alone, graph.constant(f"{layer}.far.b", up.bias[[far]]))
        alone = graph.add("Gelu", [alone], f"{layer}.far.bent")
        beside = graph.constant(f"{layer}.far.out", down.rows[:, far][None])
        beside = graph.add("MatMul", [alone, beside], f"{layer}.far.seen", domain="")
        up.rows[far], up.bias[far], down.rows[:, far] = 0, 0, 0
    bent = graph.add("Gelu", [graph.product(middle, [up])], f"{layer}.bent")
    out = graph.product(bent, [down])
    return graph.plus(out, beside) if beside else out


@dataclass(frozen=True)
class _Matrix:
    """A matrix, a row for each output, and what is added to its product; both are copies."""

    name: str
    rows: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def of(cls, weights: Weights, name: str, columns: int) -> Self:
        return cls(name, weights.matrix(f"{name}.w", columns), weights.plain(f"{name}.b").copy())


class _Graph:
    """Nodes and constants as they come together. Each method gives the name of what it adds."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnxfile.Message] = []
        self.tensors: list[onnxfile.Message] = []

    def add(self, kind: str, inputs: Sequence[str], out: str, *, domain: str = _OWN, **attributes: float) -> str:
        self.nodes.append(onnxfile.node(kind, inputs, [out], domain=domain, **attributes))
        return out

    def constant(self, name: str, values: NDArray[Any]) -> str:
        self.tensors.append(onnxfile.tensor(name, values))
        return name

    def plus(self, one: str, other: str) -> str:
        return self.add("Add", [one, other], f"{one}+{other}", domain="")

    def normalised(self, values: str, norm: str) -> str:
        inputs = [values, *(self.constant(f"{norm}.{part}", self.weights.plain(f"{norm}.{part}")) for part in "wb")]
        return self.add("LayerNormalization", inputs, f"{norm}.out", domain="", axis=-1, epsilon=_EPSILON)

    def product(self, values: str, matrices: Sequence[_Matrix]) -> str:
        """The values times one matrix, or several side by side, in 8-bit integers with a scale for each output."""
        rows = np.concatenate([matrix.rows for matrix in matrices])
        scales = np.abs(rows).max(axis=1) / _LARGEST
        scales[scales == 0] = 1  # of the row of a far channel
        small = np.rint(rows / scales[:, None]).astype(np.int8)
        name = matrices[0].name
        inputs = [values, self.constant(f"{name}.w", small.T)]
        inputs += [self.constant(f"{name}.scale", scales), self.constant(f"{name}.zero", np.zeros(len(rows), np.int8))]
        inputs.append(self.constant(f"{name}.b", np.concatenate([matrix.bias for matrix in matrices])))
        return self.add("DynamicQuantizeMatMul", inputs, f"{name}.out")
