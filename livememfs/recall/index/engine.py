"""What every index can do, wherever it keeps its parts: one interface for feeding and for asking.

Owns the interface alone. The engine of one machine is `Index`, in a folder of the cache; that of a team is `Postgres`,
in a database many mounts share. Every method blocks: for worker threads. One may write at a time, any may ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from livememfs.recall.index.exchanged import Linked, Restriction, Stored, TextQuery
from livememfs.recall.index.merits import Foremost, UnaskedMemories, Use
from livememfs.recall.index.pieces import PieceText
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.vectors import Floats

if TYPE_CHECKING:
    from livememfs.recall.index.changeover import ChangeOver

Read = tuple[str, str, str, Sequence[Record]]
"""An object that was read: key, etag, space, what can be found in it."""


@dataclass(frozen=True)
class IndexStatistics:
    """What the index has, and what was repaired since it was opened: parts made anew, steps done again.

    :vectors:  vectors that are kept, by the digest of their text
    :embedded: pieces that have a vector
    :lost_links: links of memories to names that no memory has; they are passed over
    :model:    the model that makes the vectors
    :searched: the model whose vectors are searched: the one before it, until every piece has a vector of `model`
    """

    objects: int
    records: int
    pieces: int
    vectors: int
    embedded: int
    rebuilt: tuple[str, ...]
    redone: int
    links: int = 0
    lost_links: int = 0
    model: str = ""
    searched: str = ""


class Engine(Protocol):
    """An open index. `model`: the model that makes the vectors; `change`: what is left of the one before it, where an
    index can tell.
    """

    model: str
    change: ChangeOver | None = None

    # --- feeding --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        """Etags of what is indexed below a prefix, by key."""

    def apply(self, gone: Iterable[str], read: Iterable[Read]) -> None:
        """Forget objects and take others in; found by their words when this returns. NoSpace, Damaged."""

    def unembedded(self, limit: int) -> list[PieceText]:
        """Texts that have no vector yet, newest first."""

    def take_vectors(self, meanings: Sequence[bytes], vectors: Floats) -> None:
        """Take in vectors, of length 1, by the meanings of their texts; found when this returns. NoSpace, Damaged."""

    @property
    def prior(self) -> Floats | None:
        """The mean of any texts by the model whose vectors are searched, None when it is not known."""

    def expects(self) -> bool:
        """Whether the mean of any texts by `model` is known, or has to be computed."""

    def expect(self, prior: Floats) -> None:
        """Keep the mean of any texts. NoSpace, Damaged."""

    # --- asking ---------------------------------------------------------------------------------------------------

    def text(self, asked: TextQuery, where: Restriction, limit: int) -> tuple[list[tuple[int, float]], float]:
        """Pieces that have the words, with their scores, best first; and the score of a piece that had all of them."""

    def near(self, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
        """Pieces near a question by meaning, with their cosines, best first."""

    def strict(self, where: Restriction, limit: int) -> list[Stored]:
        """The records that fit a filter, newest first."""

    def fitting(self, where: Restriction, *, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
        """The pieces of all records that fit a filter; `files`: parts of names, one of which they must have."""

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        """What ranking needs of the record of each piece, and which of its pieces it is."""

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """Records by their numbers; one that has gone meanwhile is left out."""

    def called(self, refs: Sequence[str]) -> dict[str, Stored]:
        """Records by their `ref`; a memory that ends also by the `ref` that it would have without its end."""

    def naming(self, space: str, files: Sequence[str], limit: int) -> list[Stored]:
        """The records of a space that name one of these files exactly, newest first; of very many, the last ones."""

    def spelt(self, field: str, spaces: Sequence[str]) -> list[str]:
        """Every value that `type` or `agent` has had in these spaces, as it is written."""

    def linked(self, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
        """The links from and to these records, where the other record exists and fits a filter; each way the newest."""

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        """The memories that come without being asked for, by the numbers of their records."""

    def used(self, uses: Mapping[tuple[str, str], Use]) -> None:
        """Take note of how often memories were used, by space and id. Kept as long as the engine is open."""

    def vectors_of(self, ids: Sequence[int]) -> dict[int, Floats]:
        """The vectors of the first pieces of records, of length 1, by the records' numbers; of those that have one."""

    # --- looking after it -----------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """What is wrong with the index as it stands, in words; empty when nothing is."""

    def statistics(self) -> IndexStatistics:
        """Counts, by a few queries."""

    def close(self) -> None:
        """Let go of everything. Nobody may be asking any more."""
