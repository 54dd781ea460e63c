"""From the vectors of one model to those of the next, in one index, so that no question in between is without meaning.

Owns which model came before, and its vectors in memory until the next one has a vector for every piece; then they are
forgotten, in the file too. A piece that comes meanwhile gets a vector of both. Refuses to load models (`service` does):
where the former one cannot be had, the next one's vectors are searched as they come, beside the words. Threads: as
`Index`, whose lock it takes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from livememfs.recall.index.exchanged import Repairs
from livememfs.recall.index.loaded import Loaded
from livememfs.recall.index.merits import Use
from livememfs.recall.index.pieces import PieceText
from livememfs.recall.index.table import Delta, RecordTable
from livememfs.recall.index.vectors import Floats, packed

_MODEL, _PLACE = "model", "model place"
"""The states of the records that say which model had a vector for every piece last, and where it was."""


class ChangeOver:
    """What an index has of the model before `model`, which is at `place`, a path or nothing.

    :former:       the name of the one before; empty where there is none, or not any more
    :former_place: the path it was at
    :over:         nothing of it is left
    """

    def __init__(
        self,
        table: RecordTable,
        folder: Path,
        model: str,
        place: str,
        uses: Mapping[tuple[str, str], Use],
        writing: threading.RLock,
    ) -> None:
        self._table, self._folder, self._uses, self._writing = table, folder, uses, writing
        self._model, self._place = model, place
        self.over = False
        self.former = table.model_before(model, table.state(_MODEL))
        self.former_place = table.state(_PLACE) or ""
        self.loaded: Loaded | None = None
        """The former vectors in memory, where they are searched."""

    def begin(self) -> None:
        """Search the former vectors from here on: questions must be of that model."""
        with self._writing:
            loaded = Loaded(self._table, self._folder, self.former, self._uses)
            loaded.load(Repairs())
            self.loaded = loaded

    def apply(self, delta: Delta) -> None:
        """Bring the former vectors to the step of a change."""
        if self.loaded is not None:
            self.loaded.note_lacking(delta)
            self.loaded.take(delta)

    def lacking(self, limit: int) -> list[PieceText]:
        """Texts that have no vector of the former model, newest first."""
        with self._writing:
            numbers = self.loaded.lacking(limit) if self.loaded is not None else []
            return list({text.meaning: text for text in self._table.texts(numbers[::-1]).values()}.values())

    def take_vectors(self, meanings: Sequence[bytes], vectors: Floats) -> None:
        """Take in vectors of the former model. NoSpace, Damaged."""
        with self._writing:
            if self.loaded is not None:
                self._table.keep_packed(self.former, meanings, packed(vectors))
                self.loaded.load_vectors(meanings)

    def end(self) -> None:
        """Every piece has a vector of the model: search these, and forget those of all others. NoSpace, Damaged."""
        if self.over:
            return
        with self._writing:
            self.loaded, self.former = None, ""
            for name, value in ((_MODEL, self._model), (_PLACE, self._place)):
                if (self._table.state(name) or "") != value:
                    self._table.remember(name, value)
        while self._forget_some():
            pass
        self.over = True

    def _forget_some(self) -> bool:
        with self._writing:  # let go in between: others may want to write
            return self._table.forget_others(self._model)
