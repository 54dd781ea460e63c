"""Notes that do not fit into one request: several, in order, each on what the one before has made.

Owns how much of a request goes to what, and the joining of several plans into one, which is committed as a whole. A
bank that leaves too little room is shown in part (`excerpt`), a note that is too long goes out in parts (`pieces`).
Refuses to send what the model cannot take: the length is estimated before the call, and what the endpoint finds too
long all the same is made smaller. Trio thread only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import structlog

from livememfs.concurrency import aside
from livememfs.errors import ContextOverflow, ContextTooSmall, NotesTooLong
from livememfs.llm.base import ChatMessage
from livememfs.records.ledger import Unsourced
from livememfs.records.space import Synthesis
from livememfs.runs.consolidation.excerpt import Excerpt, excerpt
from livememfs.runs.consolidation.gather import BankFile, Inputs
from livememfs.runs.consolidation.plan import FileChange, Plan
from livememfs.runs.coverage import Coverage
from livememfs.runs.options import ConsolidationSettings
from livememfs.runs.pieces import PER_NOTE, Account, Piece, piece
from livememfs.runs.result import Planned
from livememfs.text.outgoing import Reason
from livememfs.text.size import at_most, fitting, tokens

log = structlog.get_logger("livememfs.runs")

MARGIN = 640
"""Tokens of a request that nobody counts: what it says of a reply that could not be used, and the heads of parts."""
LEAST = PER_NOTE + 160
"""Tokens without which there is no room for notes."""
NOTES_SHARE = 8
"""A bank is shown whole while notes have this part of the window left, one in so many."""
SYNTHESIS_SHARE = 8
"""A synthesis is shown up to this part of the window, one in so many."""
TIGHTER = 0.6
"""How much of the window is believed in after the endpoint found a single note too long for it."""
TIGHTENED = 2

InputsT = TypeVar("InputsT", bound=Inputs)
PlanT = TypeVar("PlanT", bound=Planned)
Prompt = Callable[[InputsT], list[ChatMessage]]


@dataclass(frozen=True)
class Room:
    """Tokens of one request for notes, for files of the bank, and for the outline of the others; `bank` None: the
    bank is shown whole.
    """

    notes: int
    bank: int | None = None
    outline: int = 0


class Joined(ABC, Generic[InputsT, PlanT]):
    """What the requests so far have come to."""

    def __init__(self, inputs: InputsT) -> None:
        self._inputs = inputs

    def room(self, window: int, reply: int, prompt: Prompt[InputsT]) -> Room:
        """What the next request has room for. Raises ContextTooSmall."""
        return Room(free(window, reply, prompt(replace(self._inputs, notes=()))))

    @abstractmethod
    def part(self, batch: Sequence[Piece], room: Room) -> tuple[InputsT, int]:
        """The inputs of one request, and for how many of these notes, the first ones."""

    @abstractmethod
    def add(self, batch: Sequence[Piece], plan: PlanT) -> None:
        """Take over the plan of one request."""

    @abstractmethod
    def plan(self, coverage: Coverage) -> PlanT:
        """One plan for all requests."""


def free(window: int, reply: int, messages: Sequence[ChatMessage]) -> int:
    """How many estimated tokens these messages leave. Raises ContextTooSmall when that is too little for any note."""
    fixed = at_most(sum(tokens(message.content) for message in messages)) + MARGIN
    left = fitting(window - fixed - reply)
    if left < LEAST:
        raise ContextTooSmall(window=window, fixed=fixed, reply=reply)
    return left


class JoinedBank(Joined[Inputs, Plan]):
    """What the requests so far have made of the bank."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self._changes: dict[str, FileChange] = {}
        self._unsourced: list[Unsourced] = []
        self._warnings: list[str] = []
        self._reasons: list[Reason] = []
        self._synthesis = inputs.synthesis
        self._window = 0
        self._text = ""

    def room(self, window: int, reply: int, prompt: Prompt[Inputs]) -> Room:
        """All that the bank leaves, if that is enough; else a share for notes, for files that matter to them, and for
        an outline of all.
        """
        self._window = window
        now = self._now(())
        try:
            left = free(window, reply, prompt(now))
        except ContextTooSmall:
            left = 0
        wanted = sum(tokens(live.note.body) + PER_NOTE for live in self._inputs.notes)
        if left >= min(wanted, window // NOTES_SHARE):
            return Room(left)
        left = free(window, reply, prompt(replace(now, excerpt=Excerpt())))
        return Room(left * 3 // 8, left * 3 // 8, left // 4)

    def part(self, batch: Sequence[Piece], room: Room) -> tuple[Inputs, int]:
        """The notes of one request, and the bank as it is by now."""
        now = self._now(batch)
        if room.bank is None:
            return now, len(batch)
        notes = [one.live.note.body for one in batch]
        shown, count = excerpt(now.bank_texts(), notes, room.bank, room.outline)
        return replace(now, notes=now.notes[:count], excerpt=shown), count

    def _now(self, batch: Sequence[Piece]) -> Inputs:
        bank = dict(self._inputs.bank)
        for name, change in self._changes.items():
            bank[name] = BankFile(name, change.etag or "", change.content)
        notes = tuple(one.live for one in batch)
        return replace(self._inputs, notes=notes, bank=bank, synthesis=_shown(self._synthesis, self._window))

    def add(self, batch: Sequence[Piece], plan: Plan) -> None:
        """Take over the plan of one request."""
        for change in plan.changes:
            first = self._changes.get(change.name)
            present = self._inputs.bank.get(change.name)
            old, etag = (present.text, present.etag) if present is not None else (None, None)
            edits = (*(first.edits if first else ()), *change.edits)
            self._changes[change.name] = FileChange(change.name, change.content, old, etag, edits)
        self._unsourced += plan.unsourced
        self._warnings += [warning for warning in plan.warnings if warning not in self._warnings]
        self._reasons += plan.reasons
        self._text = plan.synthesis
        self._synthesis = Synthesis(None, 0, self._inputs.consolidation, plan.synthesis)

    def plan(self, coverage: Coverage) -> Plan:
        """One plan for all requests."""
        changes = tuple(change for change in self._changes.values() if change.content != change.old)
        updated = sum(change.action == "updated" for change in changes)
        unchanged = len(self._inputs.bank) - updated
        said = (tuple(self._unsourced), tuple(self._warnings), tuple(self._reasons))
        return Plan(changes, unchanged, self._text, coverage, *said)


def _shown(synthesis: Synthesis | None, window: int) -> Synthesis | None:
    """A synthesis as far as its share of the window goes: one that a model has made too long would block its space."""
    if synthesis is None or not window or tokens(synthesis.body) <= window // SYNTHESIS_SHARE:
        return synthesis
    size = tokens(synthesis.body)
    end = len(synthesis.body) * (window // SYNTHESIS_SHARE) // size
    return replace(synthesis, body=f"{synthesis.body[:end]}\n[The rest is too long to be shown.]\n")


async def decide(
    inputs: InputsT,
    settings: ConsolidationSettings,
    prompt: Prompt[InputsT],
    joined: Joined[InputsT, PlanT],
    ask: Callable[[InputsT], Awaitable[PlanT]],
) -> PlanT:
    """The plan for all notes of a run. A note too long for any request is left out and named, and so stays.

    :prompt: the request for some notes, by which its length is estimated

    Raises ContextTooSmall when there is no room for notes, NotesTooLong when each of them is too long, and what `ask`
    raises: then nothing of it is used.
    """
    account = Account()
    waiting = deque(piece(number, live, live.note.body) for number, live in enumerate(inputs.notes, 1))
    window, most, tightened = settings.context_window, len(waiting), 0
    while waiting:
        room = await aside(inputs.size, partial(joined.room, window, settings.reply_tokens, prompt))
        batch = _take(waiting, room.notes, max(most, 1), account)
        if not batch:
            break
        part, count = await aside(inputs.size, partial(joined.part, batch, room))
        waiting.extendleft(reversed(batch[count:]))
        batch = batch[:count]
        try:
            plan = await ask(part)
        except ContextOverflow:
            if len(batch) == 1 and tightened == TIGHTENED:
                raise
            log.info("a request was too long for the model and is made smaller", notes=len(batch))
            waiting.extendleft(reversed(batch))
            if len(batch) == 1:
                window, tightened = int(window * TIGHTER), tightened + 1
            most = len(batch) // 2
            continue
        account.add(batch, plan.coverage)
        joined.add(batch, plan)
    coverage = account.coverage()
    if len(coverage.too_long) == len(inputs.notes):
        raise NotesTooLong(count=len(inputs.notes), limit=coverage.limit)
    return joined.plan(coverage)


def _take(waiting: deque[Piece], room: int, most: int, account: Account) -> list[Piece]:
    """The next pieces for one request; those that are too long for any are cut first, or left out and named."""
    batch: list[Piece] = []
    left = room
    while waiting and len(batch) < most:
        if waiting[0].size > room and batch:
            break
        if waiting[0].size > room:
            one = waiting.popleft()
            parts = one.cut(room)
            if not parts and one.live.part:  # what went out of it before must not be told again
                raise ContextOverflow(f"a line of {one.live.name} does not fit into {room} tokens")
            if not parts:
                account.too_long(one, room)
            waiting.extendleft(reversed(parts))
            continue
        if waiting[0].size > left:
            break
        batch.append(waiting.popleft())
        left -= batch[-1].size
    return batch
