"""The ledger of a space: one entry for each run that changed it, `{space}/_ledger/{n:08d}.json` (design rule 4).

Owns the form of an entry. An entry alone is enough to carry the run out again: it has the new content of each object,
the version that this replaces, and the notes that are removed. Writing it is the commit of the run. Refuses entries of
an unknown form, because a run must not be carried out by half. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal

from livememfs.text.foreign import RUN_BYTES, Unreadable, build, read_object
from livememfs.text.outgoing import Outgoing
from livememfs.text.times import iso

MOST_LINES = 1_000
"""The most outgoing lines that an entry lists; its metrics count all of them."""
FORM = 1
_OPTIONAL = ("keeps", "digested", "outgoing", "held", "stood_on", "origins", "continues", "by")
"""Fields that an entry has only if they are not empty. Versions that do not know such a field ignore it."""

State = Literal["held", "committed", "applied"]
STATES: tuple[State, ...] = ("held", "committed", "applied")
Kind = Literal["consolidation", "undo", "digest", "edit"]
CHANGES_BANK: Mapping[Kind, bool] = {"consolidation": True, "undo": True, "digest": False, "edit": True}
"""Each kind of run, and whether it changes the bank: an undo takes back only runs that do."""


@dataclass(frozen=True)
class Write:
    """One object that a run writes or removes.

    :key:     relative to the space
    :before:  the etag of the version that is replaced; None: the object is new
    :content: the new text; None with `copy`, and for an object that is removed
    :copy:    a key in the bucket: the object becomes a copy of that one
    :was:     the text that is replaced, if no earlier entry of the ledger has it
    :meta:    its user metadata
    """

    key: str
    before: str | None
    content: str | None = None
    copy: str = ""
    was: str | None = None
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def removes(self) -> bool:
        """Whether the object is removed."""
        return self.content is None and not self.copy


@dataclass(frozen=True)
class NoteEntry:
    """A note that a run read, and the result. It is removed from `live/` only if it still has the version `etag`.

    :sha256:  of its bytes, in hex
    :used_in: the bank files or the memories that were made from it
    :skipped: why none was made from it
    :number:  its number in the run, from 1
    """

    key: str
    etag: str
    sha256: str
    agent: str
    timestamp: str
    first_line: str
    used_in: tuple[str, ...] = ()
    skipped: str = ""
    number: int = 0


@dataclass(frozen=True)
class Part:
    """A part of a bank file that a run wrote, and the numbers of the notes it was made from."""

    file: str
    heading: tuple[str, ...]
    notes: tuple[int, ...]


@dataclass(frozen=True)
class Unsourced:
    """A line that a run wrote, with facts that have no source."""

    file: str
    line: int
    text: str
    facts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run.

    :number:     from 1, without gaps between runs that livememfs made
    :fence:      of the lease under which it was committed
    :writes:     in the order in which they are made: bank or rules, synthesis, `_meta.json`; of a digest the memories
    :removes:    notes that are removed last; a note that the reply did not account for is not among them
    :keeps:      notes that a digest read and that stay
    :digested:   marks of the notes that digests read up to this one, the oldest first (see `digest_mark`)
    :undoes:     the first of the runs that an undo takes back; 0 for a consolidation
    :outgoing:   lines that the run took out of the bank, the first `MOST_LINES`
    :held:       why a person had to accept it, one sentence each; empty: nobody had to
    :stood_on:   a digest of the bank that a held plan was made for (see `held.stood_on`)
    :by:         who asked for an edit; empty for other kinds
    :backup:     stamp of the backup that was made before; empty when there was none
    :metrics:    the figures of the run as `.consolidate` shows them
    :origins:    the ids of the writes that a removed note comes from, separated by spaces, by the key of the note
    :continues:  the number of an earlier run that removed an earlier version of a note, by the key of the note
    """

    number: int
    space: str
    kind: Kind = "consolidation"
    state: State = "committed"
    committed_at: datetime
    applied_at: datetime | None = None
    host: str = ""
    fence: int = 0
    writes: tuple[Write, ...] = ()
    removes: tuple[NoteEntry, ...] = ()
    keeps: tuple[NoteEntry, ...] = ()
    digested: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    unsourced: tuple[Unsourced, ...] = ()
    warnings: tuple[str, ...] = ()
    outgoing: tuple[Outgoing, ...] = ()
    held: tuple[str, ...] = ()
    stood_on: str = ""
    undoes: int = 0
    backup: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    continues: Mapping[str, int] = field(default_factory=dict)
    by: str = ""
    form: int = FORM

    @property
    def changes_bank(self) -> bool:
        """Whether runs of this kind change the bank."""
        return CHANGES_BANK[self.kind]

    def applied(self, now: datetime) -> Entry:
        """The same run, carried out."""
        return replace(self, state="applied", applied_at=now)

    def render(self) -> bytes:
        """The object of this entry: JSON, one line for each field."""
        values = {name: value for name, value in asdict(self).items() if value or name not in _OPTIONAL}
        values["committed_at"] = iso(self.committed_at)
        values["applied_at"] = iso(self.applied_at) if self.applied_at else None
        lines = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace")

    @classmethod
    def parse(cls, data: bytes) -> Entry:
        """The entry in an object. Raises Unreadable for any other object, and for an entry of a later form."""
        values = read_object(data, most=RUN_BYTES)
        if values.get("form") != FORM:
            raise Unreadable(f"it is not an entry of form {FORM}")
        if values.get("state") not in STATES:
            raise Unreadable(f"its state is none of {', '.join(STATES)}")
        if values.get("kind", "consolidation") not in CHANGES_BANK:
            raise Unreadable(f"it is of an unknown kind, {ascii(values['kind'])[:80]}")
        missing = {each.name for each in fields(cls)} - values.keys() - {"kind", *_OPTIONAL}
        if missing:
            raise Unreadable(f"{min(missing)} is missing")
        return build(cls, values)


def digest_mark(key: str, etag: str) -> str:
    """The mark by which a ledger records that a digest read this version of a note: 16 hexadecimal digits."""
    return blake2b(f"{key}\0{etag}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
