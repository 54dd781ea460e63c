"""Joins the plans of several requests of one consolidation, and decides how much of the bank each request shows.

Owns the joined bank. A bank that leaves too little room for notes is shown in part (`excerpt`). Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from livememfs.errors import ContextTooSmall
from livememfs.records.ledger import Unsourced
from livememfs.records.space import Synthesis
from livememfs.records.trust import USUAL, Trust, least
from livememfs.runs.batches import Joined, Prompt, RequestRoom, free
from livememfs.runs.consolidation.excerpt import Excerpt, excerpt
from livememfs.runs.consolidation.inputs import BankFile, BankInputs
from livememfs.runs.consolidation.plan import BankPlan, FileChange
from livememfs.runs.coverage import Coverage, words
from livememfs.runs.pieces import PER_NOTE, NotePiece
from livememfs.text.outgoing import Reason
from livememfs.text.size import tokens

NOTES_SHARE = 8
"""A bank is shown whole while it leaves one part in so many of the window to notes."""
SYNTHESIS_SHARE = 8
"""A synthesis is shown up to one part in so many of the window."""


class JoinedBank(Joined[BankInputs, BankPlan]):
    """The bank as the requests so far have changed it."""

    def __init__(self, inputs: BankInputs) -> None:
        super().__init__(inputs)
        self._changes: dict[str, FileChange] = {}
        self._unsourced: list[Unsourced] = []
        self._warnings: list[str] = []
        self._reasons: list[Reason] = []
        self._synthesis, self._trust = inputs.synthesis, inputs.synthesis_trust
        self._window = 0
        self._text = ""

    def room(self, window: int, reply: int, prompt: Prompt[BankInputs]) -> RequestRoom:
        """All that the whole bank leaves, if that is enough; else shares for notes, for the files near to them, and for
        the outline.
        """
        self._window = window
        now = self._now(())
        try:
            left = free(window, reply, prompt(now))
        except ContextTooSmall:
            left = 0
        wanted = sum(tokens(live.note.body) + PER_NOTE for live in self._inputs.notes)
        if left >= min(wanted, window // NOTES_SHARE):
            return RequestRoom(left)
        left = free(window, reply, prompt(replace(now, excerpt=Excerpt())))
        return RequestRoom(left * 3 // 8, left * 3 // 8, left // 4)

    def part(self, batch: Sequence[NotePiece], room: RequestRoom) -> tuple[BankInputs, int]:
        """The notes of one request, and the bank as it is by now."""
        now = self._now(batch)
        if room.bank is None:
            return now, len(batch)
        notes = [sent.live.note.body for sent in batch]
        shown, count = excerpt(now.bank_texts(), notes, room.bank, room.outline)
        return replace(now, notes=now.notes[:count], excerpt=shown), count

    def _now(self, batch: Sequence[NotePiece]) -> BankInputs:
        bank = dict(self._inputs.bank)
        for name, change in self._changes.items():
            bank[name] = BankFile(name, change.etag or "", change.content, change.trust)
        notes = tuple(sent.live for sent in batch)
        return replace(self._inputs, notes=notes, bank=bank, synthesis=_shown(self._synthesis, self._window))

    def add(self, batch: Sequence[NotePiece], plan: BankPlan) -> None:
        """Add the plan of one request. A file has the class of the least of what was ever worked into it."""
        seen, bank = least(sent.live.trust for sent in batch), self._now(()).bank
        low = [*bank.values(), BankFile("", "", self._synthesis.body if self._synthesis else "", self._trust)]
        for change in plan.changes:
            was = bank[change.name].trust if change.name in bank else USUAL
            trust = moved(change, [file for file in low if file.name != change.name], min(was, seen, USUAL))
            first = self._changes.get(change.name)
            present = self._inputs.bank.get(change.name)
            old, etag = (present.text, present.etag) if present is not None else (None, None)
            edits = (*(first.edits if first else ()), *change.edits)
            self._changes[change.name] = FileChange(change.name, change.content, old, etag, edits, trust)
        self._unsourced += plan.unsourced
        self._warnings += [warning for warning in plan.warnings if warning not in self._warnings]
        self._reasons += plan.reasons
        self._text, self._trust = plan.synthesis, min(self._trust, seen, USUAL)
        self._synthesis = Synthesis(None, 0, self._inputs.consolidation, plan.synthesis)

    def plan(self, coverage: Coverage) -> BankPlan:
        """One plan for all requests."""
        changes = tuple(change for change in self._changes.values() if change.content != change.old)
        updated = sum(change.action == "updated" for change in changes)
        unchanged = len(self._inputs.bank) - updated
        remarks = (tuple(self._unsourced), tuple(self._warnings), tuple(self._reasons))
        return BankPlan(changes, unchanged, self._text, coverage, *remarks, trust=self._trust)


def word_for_word(plan: BankPlan, inputs: BankInputs) -> BankPlan:
    """A plan that no model made: each file has the class of the least of the notes that are in it."""
    fates = plan.coverage.fates.items()
    used = {
        change.name: [inputs.notes[number - 1] for number, fate in fates if change.name in fate.used_in]
        for change in plan.changes
    }
    was = {name: file.trust for name, file in inputs.bank.items()}
    changes = [
        replace(change, trust=least((USUAL, was.get(change.name, USUAL), *(live.trust for live in used[change.name]))))
        for change in plan.changes
    ]
    trust = least((USUAL, inputs.synthesis_trust, *(live.trust for live in inputs.notes)))
    return replace(plan, changes=tuple(changes), trust=trust)


SHARED = 0.6
"""The share of a new line's words from which on it counts as taken from a line of another file."""


def moved(change: FileChange, others: Sequence[BankFile], trust: Trust) -> Trust:
    """The class of a changed file: at most that of the files from which it has taken lines."""
    lower = [file for file in others if file.trust < trust and file.text]
    before = set((change.old or "").splitlines())
    new = [words(line) for line in change.content.splitlines() if line not in before] if lower else []
    taken = [
        file.trust
        for file in lower
        for line in map(words, (file.text or "").splitlines())
        if line and any(mine and len(mine & line) >= SHARED * len(mine) for mine in new)
    ]
    return least((*taken, trust))


def _shown(synthesis: Synthesis | None, window: int) -> Synthesis | None:
    """A synthesis, cut to its share of the window: a model may write one so long that no notes fit beside it."""
    if synthesis is None or not window or tokens(synthesis.body) <= window // SYNTHESIS_SHARE:
        return synthesis
    size = tokens(synthesis.body)
    end = len(synthesis.body) * (window // SYNTHESIS_SHARE) // size
    return replace(synthesis, body=f"{synthesis.body[:end]}\n[The rest is too long to be shown.]\n")
