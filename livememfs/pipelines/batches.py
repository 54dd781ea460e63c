"""Notes that do not fit into one request: several, in order, each on what the one before has made.

Owns the cutting into batches and the joining of their plans into one, which is committed as a whole. Refuses to send
what the model cannot take: the length is estimated before the call, and a batch that the endpoint finds too long all
the same is cut in two. Trio thread only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Generic, TypeVar

import structlog

from livememfs.errors import ContextOverflow, ContextTooSmall
from livememfs.llm.base import ChatMessage
from livememfs.llm.budget import at_most, split
from livememfs.pipelines.coverage import Coverage, Fate
from livememfs.pipelines.gather import BankFile, Inputs
from livememfs.pipelines.options import ConsolidationSettings
from livememfs.pipelines.plan import FileChange, Plan
from livememfs.records.ledger import Unsourced
from livememfs.records.size import tokens
from livememfs.records.space import Synthesis

log = structlog.get_logger("livememfs.pipelines")

PER_NOTE = 40
"""Tokens that a note costs besides its text: its number, time, author and tags."""
MARGIN = 256

InputsT = TypeVar("InputsT", bound=Inputs)
PlanT = TypeVar("PlanT")


class Joined(ABC, Generic[InputsT, PlanT]):
    """What the batches so far have come to."""

    @abstractmethod
    def part(self, batch: range) -> InputsT:
        """The inputs of one batch."""

    @abstractmethod
    def add(self, batch: range, plan: PlanT) -> None:
        """Take over the plan of one batch."""

    @abstractmethod
    def plan(self) -> PlanT:
        """One plan for all batches."""


class JoinedBank(Joined[Inputs, Plan]):
    """What the batches so far have made of the bank."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._changes: dict[str, FileChange] = {}
        self._fates: dict[int, Fate] = {}
        self._unsourced: list[Unsourced] = []
        self._warnings: list[str] = []
        self._synthesis = inputs.synthesis
        self._text = ""

    def part(self, batch: range) -> Inputs:
        """The inputs of one batch: its notes, and the bank as it is by now."""
        bank = dict(self._inputs.bank)
        for name, change in self._changes.items():
            bank[name] = BankFile(name, change.etag or "", change.content)
        notes = tuple(self._inputs.notes[position] for position in batch)
        return replace(self._inputs, notes=notes, bank=bank, synthesis=self._synthesis)

    def add(self, batch: range, plan: Plan) -> None:
        """Take over the plan of one batch."""
        for change in plan.changes:
            first = self._changes.get(change.name)
            present = self._inputs.bank.get(change.name)
            old, etag = (present.text, present.etag) if present is not None else (None, None)
            edits = (*(first.edits if first else ()), *change.edits)
            self._changes[change.name] = FileChange(change.name, change.content, old, etag, edits)
        self._fates |= {batch[number - 1] + 1: fate for number, fate in plan.coverage.fates.items()}
        self._unsourced += plan.unsourced
        self._warnings += [warning for warning in plan.warnings if warning not in self._warnings]
        self._text = plan.synthesis
        self._synthesis = Synthesis(None, 0, self._inputs.consolidation, plan.synthesis)

    def plan(self) -> Plan:
        """One plan for all batches."""
        changes = tuple(change for change in self._changes.values() if change.content != change.old)
        updated = sum(change.action == "updated" for change in changes)
        unchanged = len(self._inputs.bank) - updated
        coverage = Coverage(dict(sorted(self._fates.items())))
        return Plan(changes, unchanged, self._text, coverage, tuple(self._unsourced), tuple(self._warnings))


async def decide(
    inputs: InputsT,
    settings: ConsolidationSettings,
    prompt: Callable[[InputsT], list[ChatMessage]],
    joined: Joined[InputsT, PlanT],
    ask: Callable[[InputsT], Awaitable[PlanT]],
) -> PlanT:
    """The plan for all notes of a run. A note too long for any request is left out, and so stays.

    :prompt: the request for some notes, by which its length is estimated

    Raises ContextTooSmall when not even one note fits, and what `ask` raises: then nothing of it is used.
    """
    waiting = list(_batches(inputs, settings, prompt(replace(inputs, notes=()))))
    plan: PlanT | None = None
    single = len(waiting) == 1 and len(waiting[0]) == len(inputs.notes)
    while waiting:
        batch = waiting.pop(0)
        try:
            plan = await ask(joined.part(batch))
        except ContextOverflow:
            if len(batch) == 1:
                raise
            middle = batch[len(batch) // 2]
            waiting[:0] = [range(batch.start, middle), range(middle, batch.stop)]
            single = False
            log.info("a request was too long for the model and is cut in two", notes=len(batch))
            continue
        joined.add(batch, plan)
    return plan if single and plan is not None else joined.plan()


def _batches(inputs: Inputs, settings: ConsolidationSettings, empty: list[ChatMessage]) -> tuple[range, ...]:
    fixed = at_most(sum(tokens(message.content) for message in empty)) + MARGIN
    sizes = [at_most(tokens(live.note.body)) + PER_NOTE for live in inputs.notes]
    found = split(sizes, fixed, settings.context_window, settings.reply_tokens)
    if not found.batches:
        raise ContextTooSmall(
            window=settings.context_window, fixed=fixed + min(sizes, default=0), reply=settings.reply_tokens
        )
    return found.batches
