"""The two records of a space: `_meta.json` (data model 4.1) and `_synthesis.md` (data model 4.3).

Owns their fields and their exact form. Refuses a `_meta.json` of another form; reads any synthesis that is text.
Unknown fields are kept. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from livememfs.errors import NotText
from livememfs.records import keys
from livememfs.text import frontmatter
from livememfs.text.fields import split
from livememfs.text.foreign import count, moment, read_object, take
from livememfs.text.times import iso, parse_iso

LEDGER_FIELD = "livememfs_ledger"
ALLOW_WEB = "allow_web"
PROPOSALS = "proposals"


@dataclass(frozen=True)
class Meta:
    """The content of `_meta.json`.

    :space_id:              the name of the space
    :description:           one line, for people
    :owner:                 who created it
    :created_at:            aware, UTC
    :last_consolidation:    aware, UTC; None before the first
    :consolidation_count:   consolidations that were not undone, of any program
    :total_notes_processed: the notes that those runs read
    :version:               of this record's form
    :ledger:                number of the last run of livememfs that wrote this record; 0 when the record does not say
    :extra:                 fields this version does not know, in their order
    """

    space_id: str
    description: str
    owner: str
    created_at: datetime
    last_consolidation: datetime | None = None
    consolidation_count: int = 0
    total_notes_processed: int = 0
    version: int = 1
    ledger: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Meta:
        """The record in an object. Raises ValueError, with the field at fault, for any other object."""
        fields = read_object(data)
        last = take(fields, "last_consolidation", str, "")
        return cls(
            space_id=take(fields, "space_id", str),
            description=take(fields, "description", str, ""),
            owner=take(fields, "owner", str, ""),
            created_at=parse_iso(take(fields, "created_at", str)),
            last_consolidation=parse_iso(last) if last else None,
            consolidation_count=take(fields, "consolidation_count", int, 0),
            total_notes_processed=take(fields, "total_notes_processed", int, 0),
            version=take(fields, "version", int, 1),
            ledger=count(fields.pop(LEDGER_FIELD, None)),
            extra=fields,
        )

    def render(self) -> bytes:
        """The object: indented JSON with a line end, its keys in the order of the data model."""
        last = self.last_consolidation
        fields = {
            "space_id": self.space_id,
            "description": self.description,
            "owner": self.owner,
            "created_at": iso(self.created_at, exact=True),
            "last_consolidation": None if last is None else iso(last, exact=True),
            "consolidation_count": self.consolidation_count,
            "total_notes_processed": self.total_notes_processed,
            "version": self.version,
            **({LEDGER_FIELD: self.ledger} if self.ledger else {}),
            **self.extra,
        }
        text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its escape again

    @property
    def distil(self) -> tuple[str, ...]:
        """Which runs remove notes from `live/`, if the record says so."""
        given = self.extra.get("distil")
        return tuple(kind for kind in given if isinstance(kind, str)) if isinstance(given, list) else ()

    @property
    def allow_web(self) -> bool:
        """Whether words from the web are told to agents that did not ask for them."""
        return self.extra.get(ALLOW_WEB) is True

    def allowing_web(self, allowed: bool) -> Meta:
        """This record with that choice."""
        return self._choosing(ALLOW_WEB, allowed)

    @property
    def proposals(self) -> bool:
        """Whether what digests and observers would add waits until a person accepts it."""
        return self.extra.get(PROPOSALS) is True

    def with_proposals(self, wanted: bool) -> Meta:
        """This record with that choice."""
        return self._choosing(PROPOSALS, wanted)

    def _choosing(self, field_name: str, chosen: bool) -> Meta:
        others = {name: value for name, value in self.extra.items() if name != field_name}
        return replace(self, extra={**others, field_name: True} if chosen else others)

    def after_run(self, now: datetime, notes: int, ledger: int = 0) -> Meta:
        """This record after one more consolidation, which read `notes` notes; `ledger` is its number there."""
        return replace(
            self,
            last_consolidation=now.astimezone(UTC).replace(microsecond=0),
            consolidation_count=self.consolidation_count + 1,
            total_notes_processed=self.total_notes_processed + notes,
            ledger=ledger,
        )

    def with_figures(self, other: Meta, ledger: int) -> Meta:
        """This record with the figures of another. It is written by run `ledger`."""
        return replace(
            self,
            last_consolidation=other.last_consolidation,
            consolidation_count=other.consolidation_count,
            total_notes_processed=other.total_notes_processed,
            ledger=ledger,
        )


@dataclass(frozen=True)
class Synthesis:
    """The synthesis of the last consolidation.

    :consolidated_at: aware, UTC; None when the file does not say
    :notes_processed: in that run
    :number:          the number of that consolidation, from 1; 0 when the file does not say
    :body:            Markdown, unchanged
    """

    consolidated_at: datetime | None
    notes_processed: int
    number: int
    body: str


def render_synthesis(body: str, consolidated_at: datetime, notes_processed: int, number: int) -> bytes:
    """The object `_synthesis.md`."""
    metadata = {
        "consolidated_at": iso(consolidated_at),
        "notes_processed": notes_processed,
        "consolidation_number": number,
    }
    return frontmatter.join(metadata, body).encode()


def parse_synthesis(data: bytes) -> Synthesis:
    """The synthesis in an object; odd front matter is body. Raises NotText."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=keys.SYNTHESIS, detail=f"at offset {error.start}") from error
    metadata, body = split(text)
    return Synthesis(
        consolidated_at=moment(metadata.get("consolidated_at")),
        notes_processed=count(metadata.get("notes_processed")),
        number=count(metadata.get("consolidation_number")),
        body=body,
    )
