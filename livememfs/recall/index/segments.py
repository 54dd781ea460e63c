"""A segment: an object of vectors in the bucket, for the next host that mounts it.

    {"format": 1, "model": "...", "dim": 384, "count": 2}\n
    count digests of 16 bytes, ascending
    count vectors of `dim` signed bytes, in the same order

Owns that format and the names. The name of a segment is the digest of its bytes: the same vectors are the same object
on every host, and bytes that were cut off or changed do not fit their name. Refuses what `render` cannot have written.
Pure; any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from livememfs.errors import LiveMemError
from livememfs.recall.index.record import DIGEST_BYTES, divided
from livememfs.text.foreign import Unreadable, read_object, take

FORMAT = 1
SUFFIX = ".vec"
MOST_ROWS = 16_384
"""Vectors in one segment: about 6 MB."""
_HEADER_BYTES = 4_000
_MOST_DIM = 8_192


class BadSegment(LiveMemError):
    """An object that should be a segment is none, or not of this model."""


def render(model: str, vectors: Mapping[bytes, bytes]) -> bytes:
    """The bytes of a segment. `vectors`: eight-bit rows of one length, by digest; at least one."""
    meanings = sorted(vectors)
    header = {"format": FORMAT, "model": model, "dim": len(vectors[meanings[0]]), "count": len(meanings)}
    rows = [vectors[meaning] for meaning in meanings]
    return b"".join([json.dumps(header, ensure_ascii=False).encode(), b"\n", *meanings, *rows])


def name_of(data: bytes) -> str:
    """What a segment is called."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest() + SUFFIX


def parse(name: str, data: bytes, model: str) -> tuple[list[bytes], NDArray[np.int8]]:
    """Digests, and their vectors as rows. Raises BadSegment."""
    if name_of(data) != name:
        raise BadSegment("its bytes are not those it was named for", path=name)
    head, newline, body = data[:_HEADER_BYTES].partition(b"\n")
    try:
        header = read_object(head if newline else b"")
        form, dim, count = (take(header, field, int) for field in ("format", "dim", "count"))
        named = take(header, "model", str)
    except Unreadable:
        raise BadSegment("it has no header", path=name) from None
    body = data[len(head) + 1 :]
    fits = 0 < dim <= _MOST_DIM and 0 < count <= MOST_ROWS and len(body) == count * (DIGEST_BYTES + dim)
    if form != FORMAT or named != model or not fits:
        raise BadSegment("it is of another format or of another model", path=name)
    split = count * DIGEST_BYTES
    return divided(body[:split]), np.frombuffer(body, np.int8, offset=split).reshape(count, dim)
