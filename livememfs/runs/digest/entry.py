"""A digest as an entry of the ledger: the key and content of each new memory, and the fate of each note.

Owns what is decided only once, so that a second attempt stores the same objects. Refuses to write anything (`ledger`
does). Any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any

from livememfs.memories.merging import CORRECTS
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.ledger import Entry, Unsourced, Write, digest_mark
from livememfs.records.memory import CATEGORIES, TYPES, Memory, canonical_name, expiry, sealed
from livememfs.records.proposal import Proposal
from livememfs.records.proposal import key_of as proposal_key
from livememfs.records.trust import stamp, with_trust
from livememfs.runs.coverage import Fate
from livememfs.runs.digest.inputs import DigestInputs, takes_notes
from livememfs.runs.digest.plan import DigestFact, DigestPlan
from livememfs.runs.entry import Committer, note_entry, origins_of
from livememfs.text.privacy import redaction as privacy

SOURCE = "digest"
KEPT_MARKS = 4_096
"""Most marks of notes that are gone: an undo may bring such notes back, and they must not be digested twice."""


def entry_of(inputs: DigestInputs, plan: DigestPlan, now: datetime, by: Committer, metrics: Mapping[str, Any]) -> Entry:
    """The entry of a digest that has not been committed yet. Raises TooLarge."""
    writes: list[Write] = []
    unsourced: list[Unsourced] = []
    used: dict[int, list[str]] = {}
    taken = set(inputs.taken)
    for fact in plan.facts:
        key = fact.same_as
        if not key:
            write = _write(inputs, fact, now, taken)
            writes.append(_proposed(inputs, fact, write, now) if inputs.meta.proposals else write)
            key = write.key
            if fact.unsourced:
                unsourced.append(Unsourced(key, 1, fact.content, fact.unsourced))
        for number in fact.sources:
            used.setdefault(number, []).append(key)
    leaving = leaving_notes(inputs, plan)
    notes = {
        number: note_entry(inputs.notes[number - 1], _fate(fate, used.get(number, ())), number)
        for number, fate in plan.coverage.fates.items()
    }
    return Entry(
        number=inputs.number,
        space=inputs.space,
        kind="digest",
        committed_at=now,
        host=by.host,
        fence=by.fence,
        writes=tuple(writes),
        removes=tuple(note for number, note in notes.items() if number in leaving),
        keeps=tuple(note for number, note in notes.items() if number not in leaving),
        digested=_digested(inputs, [(note.key, note.etag) for note in notes.values()]),
        unsourced=tuple(unsourced),
        warnings=plan.warnings,
        backup=by.backup,
        metrics=metrics,
        origins=origins_of(inputs.notes[number - 1] for number in leaving),
        continues={live.key: live.taken_by for live in inputs.notes if live.taken_by},
    )


def leaving_notes(inputs: DigestInputs, plan: DigestPlan) -> frozenset[int]:
    """The notes that leave `live/`, by number: those that were judged, if only digests take notes of the space.

    Without a model a skipped note was not judged, so it stays.
    """
    if not takes_notes(inputs.meta):
        return frozenset()
    fates = plan.coverage.fates
    return frozenset(number for number, fate in fates.items() if fate.used_in or not plan.verbatim)


def _fate(fate: Fate, written: Sequence[str]) -> Fate:
    return Fate(tuple(dict.fromkeys(written)), fate.skipped)


def _write(inputs: DigestInputs, fact: DigestFact, now: datetime, taken: set[str]) -> Write:
    """The write of a fact as a new memory, under a name that is free."""
    memory = _memory(inputs, fact, now)
    while True:
        name = canonical_name(memory, token_hex(4))
        parsed = keys.MemoryName.parse(name)
        assert parsed is not None  # it is canonical
        if parsed.id not in taken:
            break
    taken.add(parsed.id)
    key = f"{fact.collection}/{name}"
    # A note of another program may have had something private in it, and a reply may repeat it.
    data, _ = privacy.redact_file(sealed(memory, f"{inputs.space}/{key}"))
    return Write(key, None, data.decode(), meta=stamp(fact.trust))


def _proposed(inputs: DigestInputs, fact: DigestFact, write: Write, now: datetime) -> Write:
    """The write of a proposal in place of a memory."""
    notes = ", ".join(inputs.notes[number - 1].name for number in fact.sources)
    by, content = f"digest {inputs.number}", write.content or ""
    proposal = Proposal(target=write.key, content=content, meta=write.meta, by=by, why=f"from {notes}", at=now)
    key = proposal_key(inputs.space, proposal.name).removeprefix(f"{inputs.space}/")
    return Write(key, None, proposal.render().decode())


def _memory(inputs: DigestInputs, fact: DigestFact, now: datetime) -> Memory:
    notes = [inputs.notes[number - 1].name.removesuffix(".md") for number in fact.sources]
    return Memory(
        collection=fact.collection,
        type=fact.type,
        content=f"{fact.content}\n",
        importance=TYPES[fact.type] if fact.importance is None else round(fact.importance, 4),
        created_at=now,
        updated_at=now,
        category=fact.category or next(iter(CATEGORIES[fact.collection]), ""),
        subjects=fact.subjects,
        source=SOURCE,
        expires_at=expiry(fact.ttl, now) if fact.ttl else None,
        space_id=inputs.space,
        extra=with_trust({"from": notes}, fact.trust)
        | ({"unsourced": list(fact.unsourced)} if fact.unsourced else {})
        | ({CORRECTS: [id_of(fact.corrects.rpartition("/")[2])]} if fact.corrects else {}),
    )


def _digested(inputs: DigestInputs, read: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The marks of all notes that digests have read; of notes that are gone only the newest marks."""
    marks = dict.fromkeys((*inputs.digested, *(digest_mark(key, etag) for key, etag in read)))
    gone = [mark for mark in marks if mark not in inputs.there]
    dropped = set(gone[:-KEPT_MARKS])
    return tuple(mark for mark in marks if mark not in dropped)
