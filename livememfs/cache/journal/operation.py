"""One operation of the journal: what was accepted and the bucket does not have yet.

Owns the record and its words; what becomes of one when another takes its place is in `settling`. Pure; the journal
alone changes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from livememfs.store.base import ObjectInfo

Kind = Literal["put", "delete", "meta", "copy"]

FREE = None
"""`base`: the key must be free. Of a removal: nobody knows of a version; what goes is our own write alone, if any."""
ANY = "*"
"""`base`: whatever is there is replaced."""
BEFORE = "<"
"""`base`: the outcome of the operation on the same key that came before."""

NEVER = "!"
"""`base`: no version there is; the bucket's and this one must be settled."""

REMOVAL = "-"
"""In `sent`, behind a removal: what comes after it is not what was removed, were it byte for byte the same."""

COLUMNS = (
    "op_id",
    "kind",
    "key",
    "source",
    "base",
    "blob",
    "base_blob",
    "etag",
    "size",
    "modified",
    "meta",
    "after",
    "tries",
    "sent",
    "error",
    "moved",
)


@dataclass(slots=True, eq=False)
class Operation:
    """A row of `op`, and what only the running process knows of it.

    `etag` is the one the content will have (MD5, as stores give it); the true one is told by the bucket. `not_before`
    and `accepted` are moments of trio's clock. `moved`: it is the content of another key, made from nothing that was
    here; joined as a change of that, it could vanish.
    `origin` is what was accepted, where the content is that joined with another host's: whoever wrote it goes on from
    there. `holds` is the ETag of the content on its way ahead of this one, where this one has all of it. Neither is
    written down: they are about who has the file open, and after a crash nobody has. Who opens it then sees it joined.
    """

    seq: int
    op_id: str
    kind: Kind
    key: str
    source: str = ""
    base: str | None = FREE
    blob: int | None = None
    base_blob: int | None = None
    etag: str = ""
    size: int = 0
    modified: int = 0
    meta: Mapping[str, str] = field(default_factory=dict)
    after: int | None = None
    tries: int = 0
    sent: str = ""
    error: str | None = None
    moved: bool = False
    not_before: float = 0.0
    accepted: float = 0.0
    in_flight: bool = False
    origin: bytes | None = None
    holds: str = ""

    def was_sent_as(self, op_id: str) -> bool:
        """Whether a version with this id is our own work: this operation's, or of one that it took the place of."""
        return op_id in (self.op_id, *self.sent.split())

    @property
    def attempts(self) -> list[str]:
        """The ids of earlier attempts."""
        return [op_id for op_id in self.sent.split() if op_id != REMOVAL]

    @property
    def attempts_since_removal(self) -> list[str]:
        """The same without those of what was removed since."""
        return self.sent.rpartition(REMOVAL)[2].split()

    def sent_by(self) -> str:
        """`sent` of whoever takes the place of this one, which may have arrived."""
        removal = f" {REMOVAL}" if self.kind == "delete" else ""
        return f"{self.sent} {self.op_id}{removal}".strip()

    def info(self) -> ObjectInfo | None:
        """What the key has once this is done; None: nothing."""
        if self.kind == "delete":
            return None
        return ObjectInfo(self.key, self.etag, self.size, self.modified, dict(self.meta))

    def values(self) -> tuple[Any, ...]:
        """The row without its `seq`, in the order of COLUMNS."""
        found = [getattr(self, name) for name in COLUMNS]
        found[COLUMNS.index("meta")] = json.dumps(dict(self.meta))
        return tuple(found)

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Operation:
        """The reverse of `values`, with `seq` in front."""
        named = dict(zip(("seq", *COLUMNS), row, strict=True))
        named["meta"] = json.loads(named["meta"])
        return cls(**named)
