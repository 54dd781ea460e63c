"""What an embedding model is to the rest of livememfs: a name, a length, and two calls.

Owns the protocol, its values, and how names are spelt. Refuses to say where vectors are kept or how they are compared.
Passages and questions are different calls because some models embed them differently; vectors of two models must never
be compared, which is why the name is part of whatever a vector is stored under. Trio thread only; the values may be
used from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy takes a third of a second to import, and whoever only names the types should not wait for it
    import numpy as np
    from numpy.typing import NDArray

_NAME_CHARS = 64


@dataclass(frozen=True)
class EmbedStatistics:
    """Counters since the start: passages and questions embedded, seconds of work or waiting on a reply, failures."""

    texts: int
    questions: int
    seconds: float
    failures: int


class Embedder(Protocol):
    """Anything that turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """The model's stable name, of `a-z`, `0-9`, `.` and `-`; that of a folder has `:` and `@` too. A model that
        gives other vectors has another name.
        """

    @property
    def dim(self) -> int:
        """How long a vector is; 0 while an endpoint has not answered yet."""

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, in their order. Any text is fine; of a long one the beginning counts.

        Raises ModelError.
        """

    async def question(self, text: str) -> NDArray[np.float32]:
        """The vector, of length 1, that lies near those of passages which answer `text`. Raises ModelError."""

    async def aclose(self) -> None:
        """Let go of the model. Afterwards every call raises trio.ClosedResourceError."""

    def statistics(self) -> EmbedStatistics:
        """Counters, cheap."""


def slug(model: str) -> str:
    """A model's name as it can stand in a key. One that keeps too little of it to tell models apart gets a number."""
    plain = re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip(".-")
    if plain and len(plain) <= _NAME_CHARS:
        return plain
    number = sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: _NAME_CHARS - 9]}-{number}".lstrip("-")
