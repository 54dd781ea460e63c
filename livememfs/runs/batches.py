"""Batches: notes that do not fit into one request go out in several, each of which builds on the plan of the last one.

Owns how many tokens of a request are for notes, and the order of the requests; their plans are joined into one, which
is committed as a whole. A note that is too long goes out in parts (`pieces`). Refuses requests over the context window:
the length is estimated before the call, and a request that the endpoint still finds too long is made smaller. Trio
thread only.
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
from livememfs.records.trust import USUAL, Trust
from livememfs.runs.coverage import Coverage
from livememfs.runs.inputs import Inputs
from livememfs.runs.options import RunSettings
from livememfs.runs.pieces import PER_NOTE, Account, NotePiece, piece
from livememfs.runs.result import Planned
from livememfs.text.size import at_most, fitting, tokens

log = structlog.get_logger("livememfs.runs")

MARGIN = 640
"""Tokens of a request that are not counted: the remark about a refused reply, the headings of sections, and what the
notes contradict (`contradictions.ROOM`).
"""
LEAST = PER_NOTE + 160
"""With fewer tokens than this there is no room for notes."""
TIGHTER = 0.6
"""The part of the window that is still counted on after the endpoint found a request with one note too long."""
TIGHTENED = 2
"""Times that the window is taken to be smaller before the run fails."""

InputsT = TypeVar("InputsT", bound=Inputs)
PlanT = TypeVar("PlanT", bound=Planned)
Prompt = Callable[[InputsT], list[ChatMessage]]


@dataclass(frozen=True)
class RequestRoom:
    """Tokens of one request for notes, for files of the bank, and for the outline; `bank` None: it is shown whole."""

    notes: int
    bank: int | None = None
    outline: int = 0


class Joined(ABC, Generic[InputsT, PlanT]):
    """The joined plan of the requests so far."""

    def __init__(self, inputs: InputsT) -> None:
        self._inputs = inputs

    def room(self, window: int, reply: int, prompt: Prompt[InputsT]) -> RequestRoom:
        """What the next request has room for. Raises ContextTooSmall."""
        return RequestRoom(free(window, reply, prompt(replace(self._inputs, notes=()))))

    @abstractmethod
    def part(self, batch: Sequence[NotePiece], room: RequestRoom) -> tuple[InputsT, int]:
        """The inputs of one request, and how many of these pieces it has, from the first on."""

    @abstractmethod
    def add(self, batch: Sequence[NotePiece], plan: PlanT) -> None:
        """Add the plan of one request."""

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


async def decide(
    inputs: InputsT,
    settings: RunSettings,
    prompt: Prompt[InputsT],
    joined: Joined[InputsT, PlanT],
    ask: Callable[[InputsT], Awaitable[PlanT]],
) -> PlanT:
    """The plan for all notes of a run. A note that is too long for any request stays, and the coverage names it.

    :prompt: makes the request for some notes, to estimate its length

    Raises ContextTooSmall when there is no room for notes, NotesTooLong when every note is too long, and what `ask`
    raises. Nothing of the plan is used then.
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


def _class(sent: NotePiece) -> Trust:
    """The class of a piece as far as it matters to what is made of it: the user's words may go out with an agent's."""
    return min(sent.live.trust, USUAL)


def _take(waiting: deque[NotePiece], room: int, most: int, account: Account) -> list[NotePiece]:
    """The next pieces for one request. A piece that is too long is cut; one that cannot be cut is left out.

    All have one class of trust: what a reply makes of a request has the class of the least of what the model was shown.
    """
    batch: list[NotePiece] = []
    left = room
    while waiting and len(batch) < most:
        if waiting[0].size > room and batch:
            break
        if waiting[0].size > room:
            long = waiting.popleft()
            parts = long.cut(room)
            if not parts and long.live.part:  # other parts went out before: as a whole it would go out again
                raise ContextOverflow(f"a line of {long.live.name} does not fit into {room} tokens")
            if not parts:
                account.too_long(long, room)
            waiting.extendleft(reversed(parts))
            continue
        if waiting[0].size > left or (batch and _class(waiting[0]) is not _class(batch[0])):
            break
        batch.append(waiting.popleft())
        left -= batch[-1].size
    return batch
