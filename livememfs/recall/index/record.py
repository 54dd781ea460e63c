"""What can be found: a note, a section of a bank file, a memory, an observation, a summary.

Owns the shape of a record and the pieces in which its text is indexed. Refuses to read a bucket and to decide what is
relevant. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from livememfs.recall.index.manner import Manner
from livememfs.records.keys import COLLECTIONS, OBSERVATIONS, UNTIL
from livememfs.records.observation import SUPERSEDED
from livememfs.records.trust import BY_KIND, FIELD, USUAL, Trust

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that can be found.

    :ref:     what it is called everywhere: the object's key, and `#` with the path of headings for a part of one
    :etag:    the object's version that was read
    :kind:    `live`, `bank`, `synthesis`, `observations`, `sessions`, `agents`, one of keys.COLLECTIONS
    :type:    the note's category, the memory's or the observation's type, or that of an agent's own file
    :created: seconds since 1970
    :labels:  pairs of field and value: `tag`, `concept`, `file`, `subject`; `trust` where it is not that of the kind;
              `superseded_by` and `contradicted_by` with the names of newer observations; `standing` of an instruction
              or a preference
    :pieces:  texts that are found one by one, the whole first
    :links:   pairs of a relation and the id of another memory of the space, or of another observation
    :channel: where it was said, for those who ask for what was said there
    :updated: seconds since 1970 of its last change
    """

    ref: str
    key: str
    etag: str
    kind: str
    space: str
    type: str
    agent: str
    title: str
    created: int
    importance: float
    labels: tuple[tuple[str, str], ...]
    pieces: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    channel: str = ""
    updated: int = 0

    @property
    def text(self) -> str:
        """The whole of it."""
        return self.pieces[0] if self.pieces else ""

    @property
    def trust(self) -> Trust:
        """Whose words it has."""
        labelled = next((Trust.named(value) for name, value in self.labels if name == FIELD), None)
        return labelled or BY_KIND.get(self.kind, USUAL)

    @property
    def mark(self) -> str:
        """What is said of it wherever it is shown: `from tool output`, and which newer observation corrects it."""
        newer = [f"superseded by #{name[-8:]}" for field, name in self.labels if field == SUPERSEDED]
        return ", ".join(filter(None, (self.trust.mark, *newer[-1:])))

    @property
    def marks(self) -> str:
        """The same behind its type: ` (from tool output)`; empty for an agent's words and what stands above them."""
        return f" ({self.mark})" if self.mark else ""

    @property
    def own_id(self) -> str:
        """What other records of its kind call it in their links; empty where none do."""
        is_observation = self.kind == OBSERVATIONS
        return self.key.rpartition("/")[2].removesuffix(".md") if is_observation else self.memory_id

    @property
    def memory_id(self) -> str:
        """What other memories of the space call it; empty for what is no memory."""
        if self.kind not in COLLECTIONS:
            return ""
        return self.key.rpartition("/")[2].removesuffix(".md").partition(UNTIL)[0]


@dataclass(frozen=True, slots=True)
class Brief:
    """What of a record is needed to rank it: hundreds are looked at for each that is shown.

    :id:     its number in the table
    :manner: how it speaks
    """

    id: int
    kind: str
    space: str
    type: str
    agent: str
    created: int
    manner: Manner


def digest(text: str) -> bytes:
    """What a text is known by: two records with the same text share a vector."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def divided(digests: bytes) -> list[bytes]:
    """Digests that were joined."""
    return [digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)]
