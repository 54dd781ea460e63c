"""A plan of a consolidation as an entry of the ledger: all that is needed to carry it out, and the notes of each part.

Owns the form of that entry. Refuses to read or write the bucket (`ledger` does). Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from livememfs.records import keys
from livememfs.records.ledger import MOST_LINES, Entry, Part, Write
from livememfs.records.space import render_synthesis
from livememfs.records.trust import stamp
from livememfs.runs.consolidation.inputs import BankInputs
from livememfs.runs.consolidation.plan import BankPlan, FileChange
from livememfs.runs.coverage import words
from livememfs.runs.entry import Committer, note_entry, origins_of
from livememfs.runs.notes import LiveNote
from livememfs.runs.origins import own_text
from livememfs.text.markdown import Document


def entry_of(inputs: BankInputs, plan: BankPlan, now: datetime, by: Committer, metrics: Mapping[str, Any]) -> Entry:
    """The entry of a run that has not been committed yet."""
    notes = {number: inputs.notes[number - 1] for number in plan.coverage.fates}
    processed = len(notes)
    synthesis = render_synthesis(plan.synthesis, now, processed, inputs.consolidation)
    meta = inputs.meta.after_run(now, processed, inputs.number)
    writes = [
        Write(f"{keys.BANK}/{change.name}", change.etag, change.content, was=change.old, meta=stamp(change.trust))
        for change in plan.changes
    ]
    about = stamp(plan.trust)
    writes.append(
        Write(keys.SYNTHESIS, inputs.synthesis_etag, synthesis.decode(), was=inputs.synthesis_text, meta=about)
    )
    writes.append(Write(keys.META, inputs.meta_etag, meta.render().decode()))
    return Entry(
        number=inputs.number,
        space=inputs.space,
        committed_at=now,
        host=by.host,
        fence=by.fence,
        writes=tuple(writes),
        removes=tuple(note_entry(note, plan.coverage.fates[number], number) for number, note in notes.items()),
        parts=tuple(part for change in plan.changes for part in _parts(change, plan, notes)),
        unsourced=plan.unsourced,
        warnings=plan.warnings,
        outgoing=tuple(sorted(plan.outgoing, key=lambda line: line.fate))[:MOST_LINES],  # dropped ones come first
        backup=by.backup,
        metrics=metrics,
        origins=origins_of(notes.values()),
        continues={live.key: live.taken_by for live in notes.values() if live.taken_by},
    )


def _parts(change: FileChange, plan: BankPlan, notes: Mapping[int, LiveNote]) -> list[Part]:
    """The sections of a file with new text of their own, each with the notes that it came from."""
    used = [number for number, fate in plan.coverage.fates.items() if change.name in fate.used_in]
    before = Document(change.old or "")
    known = {own_text(before, section) for section in before.root.walk()}
    after = Document(change.content)
    parts: list[Part] = []
    for section in after.root.walk():
        text = own_text(after, section)
        has_own = "".join(after.lines[section.body : section.own_end]).strip()
        if has_own and text not in known:
            parts.append(Part(change.name, section.path, _sources(words(text), used, notes)))
    return parts


def _sources(added: set[str], used: Sequence[int], notes: Mapping[int, LiveNote]) -> tuple[int, ...]:
    """The notes that share most words with a part; all that were used in its file when none shares a word."""
    shared = {number: len(words(notes[number].note.body) & added) for number in used}
    best = max(shared.values(), default=0)
    return tuple(number for number in used if not best or shared[number] * 2 >= best)
