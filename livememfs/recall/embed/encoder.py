"""The encoder of multilingual-e5-small as a graph that onnxruntime executes.

Owns which operations there are and how weights are made small. Refuses to run anything. Pure; any thread.

The graph takes one text as `words` (1, tokens, hidden), the vector of each token and that of its place, added; it gives
`mean` (1, hidden). It takes vectors and not numbers of tokens because the table of all words stays outside, in its
file: memory holds only the rows that texts really use. It takes one text because the 8-bit products are scaled by the
largest value around: a text would have another vector beside other texts, and several at once are no faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.embed import onnxfile
from livememfs.recall.embed.weights import PER_BLOCK, Weights

_OWN = "com.microsoft"
"""onnxruntime's own operations: each does in one pass what takes several of the standard's."""
_OPERATORS = (("", 18), (_OWN, 1))
_EPSILON = 1e-12
# 7 bits and not 8: processors without VNNI add two products of 8 bits in 16 and cut off what does not fit. With 7 it
# always fits, and vectors are the same wherever they were made.
_LARGEST = 64
_IN_8_BITS = 4
"""How `MatMulNBits` may round what it multiplies."""


def build(weights: Weights) -> bytes:
    """The graph as an ONNX file. Takes a fifth of a second."""
    graph = _Graph(weights)
    graph.add("LayerNormalization", ["words", *graph.norm("emb.ln")], "in", domain="", axis=-1, epsilon=_EPSILON)
    graph.constant("thirds", np.full(3, weights.hidden, np.int64))
    last = "in"
    for number in range(weights.layers):
        last = _layer(graph, f"l{number}", last)
    tokens = graph.constant("tokens", np.array([1], np.int64))
    graph.add("ReduceMean", [last, tokens], "mean", domain="", keepdims=0)
    inputs = [onnxfile.value("words", onnxfile.FLOAT, [1, "tokens", weights.hidden])]
    outputs = [onnxfile.value("mean", onnxfile.FLOAT, [1, weights.hidden])]
    return onnxfile.file(graph.nodes, graph.tensors, inputs, outputs, operators=_OPERATORS)


def _layer(graph: _Graph, layer: str, before: str) -> str:
    """One layer: attention, then two products with GELU between them, each added to what came in."""
    hidden = graph.weights.hidden
    three = graph.product(before, [f"{layer}.q.w", f"{layer}.k.w", f"{layer}.v.w"], hidden)
    parts = [f"{layer}.q", f"{layer}.k", f"{layer}.v"]
    graph.nodes.append(onnxfile.node("Split", [three, "thirds"], parts, axis=-1))
    bias = graph.constant(f"{layer}.qkv.b", np.concatenate([graph.weights.plain(f"{part}.b") for part in parts]))
    seen = graph.add("MultiHeadAttention", [*parts, bias], f"{layer}.seen", num_heads=graph.weights.heads)
    out = graph.product(seen, [f"{layer}.ao.w"], hidden)
    middle = graph.joined(out, before, f"{layer}.aln", f"{layer}.ao.b")
    wide = graph.product(middle, [f"{layer}.fi.w"], hidden)
    bent = graph.add("BiasGelu", [wide, graph.plain(f"{layer}.fi.b")], f"{layer}.bent")
    out = graph.fine_product(bent, f"{layer}.fo.w", graph.weights.plain(f"{layer}.fi.b").size)
    return graph.joined(out, middle, f"{layer}.oln", f"{layer}.fo.b")


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

    def plain(self, name: str) -> str:
        return self.constant(name, self.weights.plain(name))

    def norm(self, name: str) -> list[str]:
        return [self.plain(f"{name}.w"), self.plain(f"{name}.b")]

    def joined(self, values: str, before: str, norm: str, bias: str) -> str:
        """The sum of both and of the bias, normalised."""
        inputs = [values, before, *self.norm(norm), self.plain(bias)]
        return self.add("SkipLayerNormalization", inputs, f"{norm}.out", epsilon=_EPSILON)

    def product(self, values: str, names: Sequence[str], columns: int) -> str:
        """The values times one matrix, or several side by side, in 8-bit integers with a scale for each output."""
        rows = np.concatenate([self.weights.matrix(name, columns) for name in names])
        scales = np.abs(rows).max(axis=1) / _LARGEST
        small = np.rint(rows / scales[:, None]).astype(np.int8)
        name = names[0]
        inputs = [values, self.constant(name, small.T)]
        inputs += [self.constant(f"{name}.scale", scales), self.constant(f"{name}.zero", np.zeros(len(rows), np.int8))]
        return self.add("DynamicQuantizeMatMul", inputs, f"{name}.out")

    def fine_product(self, values: str, name: str, columns: int) -> str:
        """The values times one matrix in the 4 bits it came with, where each 32 values have a scale of their own.

        It takes twice the time, and is worth it after GELU: a few values there are far above all others, and one scale
        for all of them makes two thirds of the error of the whole encoder.
        """
        blocks = self.weights.packed(name, columns)
        halves = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=-1)
        neighbours = halves[..., ::2] | halves[..., 1::2] << 4  # the runtime wants two neighbours in a byte
        scales = blocks["scale"].astype(np.float32).reshape(-1)
        inputs = [values, self.constant(name, neighbours), self.constant(f"{name}.scale", scales)]
        return self.add(
            "MatMulNBits",
            inputs,
            f"{name}.out",
            N=len(blocks),
            K=columns,
            bits=4,
            block_size=PER_BLOCK,
            accuracy_level=_IN_8_BITS,
        )
