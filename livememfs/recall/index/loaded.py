"""What an index has in memory of its records: columns, merits and vectors of every piece, and which lack a vector.

Owns those four, how they are read from the records or from the snapshot of the last process, and the snapshot that is
left for the next. Refuses to write records. Blocking. Changes are for one thread at a time (the lock of the index); any
thread may ask.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.index import snapshot
from livememfs.recall.index.columns import MOSTLY, Columns
from livememfs.recall.index.exchanged import Damaged, Repairs, Restriction
from livememfs.recall.index.merits import Foremost, Merits, UnaskedMemories, Use
from livememfs.recall.index.snapshot import Snapshot
from livememfs.recall.index.table import Delta, RecordTable
from livememfs.recall.index.vectors import EXACT_UP_TO, Floats, Vectors

LOADED_AT_ONCE = 20_000
"""Vectors brought into memory at once."""
KEPT_FROM = 20_000
"""Pieces from which on what is in memory is kept for the next process."""
_KEPT = "memory"


class Loaded:
    """What is in memory of one table, empty until `load`. `uses`: how often memories were used, kept by the index."""

    def __init__(self, table: RecordTable, folder: Path, model: str, uses: Mapping[tuple[str, str], Use]) -> None:
        self._table, self._folder, self._uses = table, folder, uses
        self.model = model
        # Merits and vectors move their rows when they change: nobody may read them meanwhile. Columns only grow.
        self._near = threading.Lock()
        self.columns, self._merits, self._vectors = Columns(), Merits(), dict[str, Vectors]()
        self._lacking: dict[int, None] = {}
        self.kept_at = ""
        """The step of the snapshot it was loaded from; empty without one."""

    # --- opening and closing --------------------------------------------------------------------------------------

    def load(self, repairs: Repairs) -> None:
        """Have in memory what the records have."""
        try:
            self.kept_at = self._load_snapshot()
        except FileNotFoundError:
            pass
        except (Damaged, OSError, ValueError, KeyError, TypeError):
            repairs.rebuilt.append("snapshot")
        if not self.kept_at:
            self.columns.put(self._table.columns())
            self._merits.put(self._table.merits())
            self.load_vectors(None)
            # In the order of their numbers, and so of time: looked for once, since to look for none takes longest.
            self._lacking = dict.fromkeys(self._table.without_vector(self.model))

    def keep(self) -> None:
        """Write the snapshot for the next process, where reading the records would take long."""
        if len(self.columns) < KEPT_FROM or self.kept_at == self._table.state("step"):
            return
        parts = {"columns": self.columns.kept(), "merits": self._merits.kept()}
        parts |= {f"space {space}": vectors.kept() for space, vectors in self._vectors.items()}
        facts = {part: part_facts for part, (part_facts, _) in parts.items()}
        arrays = {f"{part} {name}": array for part, (_, named) in parts.items() for name, array in named.items()}
        arrays["lacking"] = np.fromiter(self._lacking, np.int64, len(self._lacking))
        # A new number first: the snapshot can then fit no copy of these records that was made before.
        self._table.remember(_KEPT, uuid4().hex)
        snapshot.write(self._folder / _KEPT, {**facts, "of": self._kept_of()}, arrays)

    def _kept_of(self) -> list[str | None]:
        """What a snapshot must be of: these records and no copy of them, at this step, by this model."""
        return [self._table.state(_KEPT), self._table.state("step"), self.model]

    def _load_snapshot(self) -> str:
        """Take what the last process had in memory, if it is of these very records; its step, empty if it is not."""
        kept = Snapshot(self._folder / _KEPT)
        if kept.facts.get("of") != self._kept_of():
            return ""

        def of(part: str) -> tuple[Any, Callable[[str], NDArray[Any]]]:
            return kept.facts[part], lambda name: kept.array(f"{part} {name}")

        columns, merits, prior = Columns.again(*of("columns")), Merits.again(*of("merits")), self.prior
        vectors = {
            part.removeprefix("space "): Vectors.again(*of(part), kept.rows(f"{part} eight"), prior, self._folder)
            for part in kept.facts
            if part.startswith("space ")
        }
        lacking = dict.fromkeys(kept.array("lacking").tolist())
        self.columns, self._merits, self._vectors, self._lacking = columns, merits, vectors, lacking
        return self._table.state("step") or ""

    # --- changing -------------------------------------------------------------------------------------------------

    def note_lacking(self, delta: Delta) -> None:
        """Take note of which pieces of a change have no vector."""
        changed = [piece.number for piece in delta.pieces]
        for number in (*delta.gone, *changed):
            self._lacking.pop(number, None)
        self._lacking.update(dict.fromkeys(self._table.without_vector(self.model, changed)))

    def take(self, delta: Delta) -> None:
        """Bring what is in memory to the step of a change."""
        changed = [piece.number for piece in delta.pieces]
        self.columns.put(self._table.columns(changed))
        gone_of: dict[str, list[int]] = {}
        for number in delta.gone:
            gone_of.setdefault(self.columns.space_of(number), []).append(number)
        with self._near:
            self._merits.remove(delta.gone)
            new = [merit for merit in self._table.merits(changed) if merit.number > self._merits.last]
            self._merits.put(new)
            if new and self._uses:  # a memory that came again has a new number, and weighs as much as before
                self._use(self._uses)
            for space, numbers in gone_of.items():
                if space in self._vectors:
                    self._vectors[space].remove(numbers)
        # A piece without a vector of its new meaning keeps the old vector until then.
        self.load_vectors(self._table.meanings(changed))

    def used(self, uses: Mapping[tuple[str, str], Use]) -> None:
        """Have memories weigh by how often they were used."""
        with self._near:
            self._use(uses)

    def _use(self, uses: Mapping[tuple[str, str], Use]) -> None:
        self._merits.use({number: uses[name] for name, number in self._table.pieces_of(list(uses)).items()})

    def lacking(self, limit: int) -> list[int]:
        """The newest pieces without a vector, oldest first; empty when every piece has one."""
        while self._lacking:
            newest = list(islice(reversed(self._lacking), limit))
            still = self._table.without_vector(self.model, newest)
            for number in set(newest).difference(still):
                del self._lacking[number]
            if still:
                return still
        return []

    def load_vectors(self, meanings: Sequence[bytes] | None) -> None:
        """Have vectors in memory: all that are kept, or those of some meanings. By portions: they come as objects of
        their own, which take several times the room.
        """
        by_space: dict[str, tuple[list[int], list[bytes]]] = {}
        expected = self._table.counts()["pieces"] if meanings is None else 0
        for loaded, (space, number, eight) in enumerate(self._table.vectors(self.model, meanings), 1):
            numbers, rows = by_space.setdefault(space, ([], []))
            if not rows or len(rows[0]) == len(eight):
                numbers.append(number)
                rows.append(eight)
            if loaded % LOADED_AT_ONCE == 0:
                self._put_vectors(by_space, expected)
                by_space = {}
        self._put_vectors(by_space, expected)
        if meanings is None:
            for vectors in self._vectors.values():
                vectors.settle()

    def _put_vectors(self, by_space: Mapping[str, tuple[list[int], list[bytes]]], expected: int) -> None:
        prior = self.prior if by_space else None
        with self._near:
            for space, (numbers, rows) in by_space.items():
                dim = len(rows[0])
                known = prior if prior is not None and len(prior) == dim else None
                if space not in self._vectors:
                    room = expected if len(numbers) == LOADED_AT_ONCE else 0  # it is nearly all there is
                    self._vectors[space] = Vectors(dim, known, expected=room, folder=self._folder)
                vectors = self._vectors[space]
                if vectors.dim == dim:
                    vectors.put(numbers, np.frombuffer(b"".join(rows), np.int8).reshape(-1, dim), more=expected > 0)

    # --- what any text means --------------------------------------------------------------------------------------

    @property
    def prior(self) -> Floats | None:
        """The mean of any texts by this model, None when it has to be computed."""
        kept = self._table.state(f"prior {self.model}")
        return np.frombuffer(bytes.fromhex(kept), np.float32) if kept is not None else None

    def expect(self, prior: Floats) -> None:
        """Keep the mean of any texts. NoSpace, Damaged."""
        self._table.remember(f"prior {self.model}", np.asarray(prior, np.float32).tobytes().hex())
        with self._near:
            for vectors in self._vectors.values():
                if vectors.dim == len(prior):
                    vectors.expect(prior)

    # --- asking ---------------------------------------------------------------------------------------------------

    def near(self, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
        """Pieces near a question by meaning, with their cosines, best first. Labels in `where` are not looked at."""
        spaces = next((values for name, values in where.fields if name == "space"), tuple(self._vectors))
        few = None
        hits: list[tuple[int, float]] = []
        with self._near:
            for space in spaces:
                vectors = self._vectors.get(space)
                if vectors is None or vectors.dim != len(question):
                    continue
                if self._fits_most(where, space, len(vectors)):
                    hits += vectors.search(question, limit, lambda numbers: self.columns.fitting(numbers, where))
                    continue
                few = self.columns.allowed(where, but="space") if few is None else few
                hits += vectors.search(question, limit, few)
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]

    def _fits_most(self, where: Restriction, space: str, count: int) -> bool:
        """Whether most of the many vectors of a space fit a filter."""
        share = self.columns.share(where, space)
        return share > MOSTLY and share * count > EXACT_UP_TO

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        """The memories that come without being asked for, by the numbers of their records."""
        with self._near:
            return self._merits.foremost(spaces, wanted)

    def with_vector(self) -> set[int]:
        """The pieces that have a vector in memory."""
        with self._near:
            return {number for vectors in self._vectors.values() for number in vectors.numbers()}

    def embedded(self) -> int:
        """How many pieces have a vector in memory."""
        with self._near:
            return sum(len(vectors) for vectors in self._vectors.values())
