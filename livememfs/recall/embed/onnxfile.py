"""As much of ONNX's file format as a graph of ours needs, written.

Owns the encoding: protocol-buffer messages, each made from its parts. Refuses to check a graph, which the runtime does
when it loads it, and to read one. With it, nobody has to install the package onnx for the sake of one small graph.
Pure; any thread.

The numbers are the field numbers of `onnx.proto`, which never change their meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Message = Sequence[bytes | memoryview]
"""An encoded message in pieces, which are put together once, at the end: weights are large."""

FLOAT = 1
"""An element type, as `onnx.proto` numbers them."""

_IR_VERSION = 8
_ELEMENT_TYPES = {np.dtype("f4"): FLOAT, np.dtype("u1"): 2, np.dtype("i1"): 3, np.dtype("i8"): 7}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_SIZED, _FOUR_BYTES = 2, 5  # wire types


def node(kind: str, inputs: Iterable[str], outputs: Iterable[str], *, domain: str = "", **attributes: float) -> Message:
    """One operation (NodeProto). An attribute is an integer or a float by its Python type."""
    parts = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs]
    parts += [_text(4, kind), *(_sized(5, _attribute(name, value)) for name, value in attributes.items())]
    return _joined(*parts, _text(7, domain))


def tensor(name: str, values: NDArray[Any]) -> Message:
    """A constant (TensorProto). The values are not copied: they must stay as they are until the file is made."""
    dims = [_number(1, size) for size in values.shape]
    content = _sized(9, [np.ascontiguousarray(values).data.cast("B")])
    return _joined(*dims, _number(2, _ELEMENT_TYPES[values.dtype]), _text(8, name), content)


def value(name: str, element_type: int, shape: Iterable[int | str]) -> Message:
    """An input or output (ValueInfoProto). A size that is a name is left open."""
    sizes = [_sized(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape]
    kind = _joined(_number(1, element_type), _sized(2, _joined(*sizes)))
    return _joined(_text(1, name), _sized(2, _sized(1, kind)))


def file(
    nodes: Iterable[Message],
    tensors: Iterable[Message],
    inputs: Iterable[Message],
    outputs: Iterable[Message],
    *,
    operators: Iterable[tuple[str, int]],
) -> bytes:
    """The whole file (ModelProto). `operators`: which version of which set of operations the nodes mean."""
    parts = [_sized(1, part) for part in nodes] + [_text(2, "graph")] + [_sized(5, part) for part in tensors]
    parts += [_sized(11, part) for part in inputs] + [_sized(12, part) for part in outputs]
    sets = [_sized(8, _joined(_text(1, domain), _number(2, version))) for domain, version in operators]
    return b"".join(_joined(_number(1, _IR_VERSION), *sets, _sized(7, _joined(*parts))))


def _attribute(name: str, value: float) -> Message:
    if isinstance(value, int):
        return _joined(_text(1, name), _number(3, value), _number(20, _ATTRIBUTE_INT))
    number = [_varint(2 << 3 | _FOUR_BYTES), struct.pack("<f", value)]
    return _joined(_text(1, name), number, _number(20, _ATTRIBUTE_FLOAT))


def _joined(*parts: Message) -> Message:
    return [piece for part in parts for piece in part]


def _number(field: int, value: int) -> Message:
    return [_varint(field << 3), _varint(value % 2**64)]  # a negative number is its two's complement in 64 bits


def _text(field: int, text: str) -> Message:
    return _sized(field, [text.encode()])


def _sized(field: int, message: Message) -> Message:
    return [_varint(field << 3 | _SIZED), _varint(sum(map(len, message))), *message]


def _varint(value: int) -> bytes:
    """Seven bits to a byte, the lowest first; the eighth bit says that more follow."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
