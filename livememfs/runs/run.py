"""One run of a space, a consolidation or a digest: from reading the notes to the commit (consolidation 2 to 7).

Owns the course of a run: what is tried again (a reply that cannot be used, once), what ends it (everything else), until
when it can be cancelled (until it begins to write), and its figures. What differs between the two kinds is in a `Work`.
Every failure is a result, never an exception, and leaves all notes where they are. Knows nothing of other runs; see
`queue`. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Generic

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import aside
from livememfs.errors import BadRequest, LiveMemError, ReplyRefused, RunCancelled, TimedOut
from livememfs.llm import builtin
from livememfs.llm.base import ChatMessage, ChatModel, ChatReply
from livememfs.records.ledger import Entry
from livememfs.runs import held
from livememfs.runs.apply import carry_out, finish_open
from livememfs.runs.batches import InputsT, PlanT, decide
from livememfs.runs.entry import Committer
from livememfs.runs.inputs import NoteChoice
from livememfs.runs.kinds import WORKS
from livememfs.runs.ledger import Applied, commit
from livememfs.runs.options import RunOptions, RunSettings
from livememfs.runs.prompt import asked_again
from livememfs.runs.result import (
    Metrics,
    RunResult,
    accepted,
    committed,
    dropped_lines,
    failed,
    finished,
    held_back,
    nothing_to_do,
    rehearsed,
)
from livememfs.runs.work import Work
from livememfs.spaces import backups
from livememfs.spaces.lease import HeldLease, Leases
from livememfs.text.size import at_most, tokens

log = structlog.get_logger("livememfs.runs")


class RunControl:
    """The handles on a run in progress: where it is, and how to stop it.

    `on_change` is called after each change of `phase` (waiting for its turn, gathering, asking, asking again, backing
    up, writing, removing).
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.phase = "gathering"
        self.notes = 0
        self.before_writing = trio.CancelScope()
        # Shielded, so that neither a user nor the end of the mount stops a run between two writes.
        self.while_writing = trio.CancelScope(shield=True)
        self._on_change = on_change

    def report(self, phase: str) -> None:
        """Enter a phase."""
        self.phase = phase
        self._on_change()

    def cancel(self) -> bool:
        """Stop the run, unless it has begun to write: then it is always finished. Returns whether it will stop."""
        if self.phase in ("writing", "removing"):
            return False
        self.before_writing.cancel()
        return True

    def abandon(self) -> None:
        """Stop the run wherever it is, as a crash would: the mount ends and cannot wait any longer."""
        self.before_writing.cancel()
        self.while_writing.cancel()


@dataclass(frozen=True)
class Runner:
    """What all runs have in common. `model` None: the work is done without a model (see `llm.builtin`).

    :host:        this machine's name, for the ledger
    :on_open:     called with a space whose last run is committed and could not be carried out
    :on_rejected: called for each refused reply: space, reason, text
    """

    replica: Replica
    clock: Clock
    model: ChatModel | None
    settings: RunSettings
    leases: Leases
    host: str = ""
    on_open: Callable[[str], None] = lambda _: None
    on_rejected: Callable[[str, str, str], None] = lambda *_: None

    async def run(self, space: str, options: RunOptions, control: RunControl) -> RunResult:
        """One run of one space. Raises nothing except trio.Cancelled."""
        result = await _Run(self, WORKS[options.kind], space, options, control).result()
        log.info(
            f"{options.kind} finished",
            space=space,
            state=result.state,
            dry_run=result.dry_run,
            reason=result.reason,
            **result.metrics.of(options.kind),
        )
        return result


@dataclass
class _Cost:
    """What the model cost so far, with the refused replies."""

    prompt: int = 0
    completion: int = 0
    total: int = 0

    def add(self, figures: Mapping[str, Any]) -> None:
        self.prompt += figures.get("prompt_tokens") or 0
        self.completion += figures.get("completion_tokens") or 0
        self.total += figures.get("total_tokens") or 0


def _estimated(prompt: int, completion: int) -> dict[str, int]:
    """Figures of a call for which the endpoint gives none: without them the limit of a day would never be reached."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


@dataclass
class _Run(Generic[InputsT, PlanT]):
    """One run and its state so far."""

    at: Runner
    work: Work[InputsT, PlanT]
    space: str
    options: RunOptions
    control: RunControl
    cost: _Cost = field(default_factory=_Cost)
    started: float = field(default_factory=trio.current_time)
    requests_before: int = 0
    inputs: InputsT | None = None
    answered_by: str = ""
    held: HeldLease | None = None
    backup: str = ""
    calls: int = 0
    committed: int = 0

    async def result(self) -> RunResult:
        self.requests_before = self._requests()
        try:
            return await self._run()
        except LiveMemError as error:
            reason = error
        except Exception as error:  # a bug may end this run, but not the mount
            log.exception(f"{self.work.kind} broke down", space=self.space)
            reason = LiveMemError(f"internal error: {type(error).__name__}")
        return failed(reason, self._metrics(), self.at.clock.now(), self.options)

    async def _run(self) -> RunResult:
        control = self.control
        prepared: PlanT | Entry | RunResult | None = None
        async with AsyncExitStack() as stack:
            with control.before_writing:
                if self.options.dry_run:
                    prepared = await self._prepare(0)
                else:
                    control.report("waiting for its turn")
                    self.held = await stack.enter_async_context(self.at.leases.hold(self.space))
                    control.report("gathering")
                    last = await finish_open(self.at.replica, self.at.clock, self.space)
                    if self.options.accept is not None:
                        prepared = await self._prepare_held(self.options.accept)
                    else:
                        prepared = await self._prepare(last.number if last else 0)
            # No await from here until the phase is `writing`: a cancellation comes either before it, or too late.
            if prepared is None or control.before_writing.cancel_called:
                raise RunCancelled
            if isinstance(prepared, RunResult):
                return prepared
            control.report("writing")
            with control.while_writing:
                return await self._accept(prepared) if isinstance(prepared, Entry) else await self._write(prepared)
            if self.held is not None:
                self.held.abandon()
            raise TimedOut("the store, while the run was writing,")
        raise AssertionError("the stack suppresses no exception")

    async def _prepare(self, ledger: int) -> PlanT | RunResult:
        """The part of a run before the writes: the plan, or the result when there is nothing to write."""
        limit = min(self.options.max_notes or self.at.settings.max_notes, self.at.settings.max_notes)
        options, settings = self.options, self.at.settings
        known, now = settings.known_tokens, self.at.clock.now()
        choice = NoteChoice(limit, now, options.agent, seal=not options.dry_run, ledger=ledger, known=known)
        inputs = self.inputs = await self.work.gather(self.at.replica, self.space, choice)
        if not inputs.notes:
            return nothing_to_do(inputs, self._metrics(), self.at.clock.now(), self.options)
        self.control.notes = len(inputs.notes)
        plan = await self._decide(inputs)
        plan = await self.work.accounted(inputs, plan)
        too_much = partial(self.work.too_much, inputs, plan, self.at.settings)
        why = await aside(inputs.size, too_much) if self.at.model is not None else ()
        if why and not self.options.dry_run:
            return await self._hold(inputs, plan, why)
        if not self.options.dry_run:
            if self.work.takes_away(inputs, plan):
                self.control.report("backing up")
                self.backup = await self._back_up()
            return plan
        shown = await trio.to_thread.run_sync(self.work.preview, inputs, plan, abandon_on_cancel=True)
        metrics = self._metrics(plan, gone=self.work.leaving(inputs, plan))
        result = rehearsed(inputs, plan, metrics, self.at.clock.now(), self.options, shown)
        would = f"a run with this plan would be held: {'; '.join(why)}"
        return replace(result, message=f"{result.message}; {would}") if why else result

    async def _hold(self, inputs: InputsT, plan: PlanT, why: tuple[str, ...]) -> RunResult:
        """Keep the plan for a person to accept; change nothing else."""
        assert self.held is not None
        now = self.at.clock.now()
        # A person accepts the plan that was read, by its number: no other plan may get that number.
        inputs = replace(inputs, ledger=max(inputs.ledger, *await held.waiting(self.at.replica, self.space), 0))
        leaving = self.work.leaving(inputs, plan)
        figures = {**self._metrics(plan, gone=leaving).of(self.work.kind), "ledger": inputs.number}
        entry = self.work.entry(inputs, plan, now, Committer(self.at.host, self.held.fence, ""), figures)
        entry = replace(entry, state="held", held=why, stood_on=self.work.stood_on(inputs))
        await held.keep(self.at.replica, entry)
        shown = await trio.to_thread.run_sync(self.work.preview, inputs, plan, abandon_on_cancel=True)
        metrics = replace(self._metrics(plan), notes_processed=0)
        result = held_back(inputs, entry.number, why, metrics, now, self.options)
        return replace(result, dropped=dropped_lines(entry.outgoing), **shown)

    async def _prepare_held(self, number: int) -> Entry:
        """The held plan of a number, ready to be committed. HeldPlanStale when what it was made from has changed."""
        assert self.held is not None
        entry = await held.read(self.at.replica, self.space, number)
        if entry.kind != self.work.kind:
            raise BadRequest(path=self.space, detail=f"the plan of run {number} is that of a {entry.kind}")
        self.control.notes = len(entry.removes) + len(entry.keeps)
        await held.check(self.at.replica, entry)
        self.control.report("backing up")
        self.backup = await self._back_up()
        await held.check(self.at.replica, entry)  # again: the backup took its time
        now, host = self.at.clock.now(), self.at.host
        return replace(entry, state="committed", committed_at=now, host=host, fence=self.held.fence, backup=self.backup)

    async def _back_up(self) -> str:
        """Back the space up for undo, and remove the oldest automatic backups. Returns the stamp."""
        read = {live.key: live.etag for live in self.inputs.notes} if self.inputs is not None else {}
        backup = await backups.create_as_read(self.at.replica, self.at.clock, self.space, read)
        await backups.prune(self.at.replica, self.space)
        return backup.stamp

    async def _write(self, plan: PlanT) -> RunResult:
        inputs, lease, clock = self.inputs, self.held, self.at.clock
        assert inputs is not None
        assert lease is not None
        await lease.check()
        await self.work.check(self.at.replica, inputs, plan)
        leaving = self.work.leaving(inputs, plan)
        metrics = {**self._metrics(plan, gone=leaving).of(self.work.kind), "ledger": inputs.number}
        by = Committer(self.at.host, lease.fence, self.backup)
        entry = self.work.entry(inputs, plan, clock.now(), by, metrics)
        applied = await self._commit(entry)
        if isinstance(applied, LiveMemError):
            return committed(applied, self._metrics(plan), clock.now(), self.options)
        metrics_now = self._metrics(plan, gone=leaving - len(entry.removes) + applied.removed)
        result = finished(inputs, plan, applied, metrics_now, clock.now(), self.options)
        return replace(result, dropped=dropped_lines(entry.outgoing))

    async def _accept(self, entry: Entry) -> RunResult:
        assert self.held is not None
        await self.held.check()
        applied = await self._commit(entry)
        await held.discard(self.at.replica, self.space, entry.number)
        metrics = Metrics.read(entry.metrics)
        if isinstance(applied, LiveMemError):
            return committed(applied, metrics, self.at.clock.now(), self.options)
        return accepted(entry, applied, metrics, self.at.clock.now(), self.options.kind)

    async def _commit(self, entry: Entry) -> Applied | LiveMemError:
        """Commit a run and carry it out. Returns the error if that failed before a note was removed."""
        await commit(self.at.replica, entry)
        self.committed = entry.number
        try:
            applied = await carry_out(self.at.replica, self.at.clock, entry, self.control.report)
        except LiveMemError as error:
            self.at.on_open(self.space)
            return error
        if applied.failure is not None:
            self.at.on_open(self.space)
        return applied

    # --- the model ------------------------------------------------------------------------------------------

    async def _decide(self, inputs: InputsT) -> PlanT:
        """One plan for all notes: from one request, or from several, each of which builds on the one before."""
        model, work = self.at.model, self.work
        if model is None:
            return work.without_model(inputs)
        ask = lambda part: self._ask_for_plan(model, part)  # noqa: E731 - one line, used once
        return await decide(inputs, self.at.settings, work.prompt, work.joined(inputs), ask)

    async def _ask_for_plan(self, model: ChatModel, inputs: InputsT) -> PlanT:
        """Ask the model. When its reply is refused, ask once more, with the reason."""
        messages = await aside(inputs.size, partial(self.work.prompt, inputs))
        self.control.report("asking")
        try:
            return await self._plan(await self._ask(model, messages), inputs, last=False)
        except ReplyRefused as refused:
            faults = str(refused.values["detail"])
            self.cost.add(refused.values)
        log.info("the model's reply was refused, asking once more", space=self.space, faults=faults)
        self.control.report("asking again")
        try:
            return await self._plan(await self._ask(model, asked_again(messages, faults)), inputs, last=True)
        except ReplyRefused as refused:
            self.cost.add(refused.values)
            raise

    async def _plan(self, reply: ChatReply, inputs: InputsT, *, last: bool) -> PlanT:
        try:
            size = inputs.size + len(reply.text)
            return await aside(size, partial(self.work.plan, reply, inputs, self.at.settings, last=last))
        except ReplyRefused as refused:
            self.at.on_rejected(self.space, str(refused), reply.text)
            raise

    async def _ask(self, model: ChatModel, messages: Sequence[ChatMessage]) -> ChatReply:
        settings = self.at.settings
        prompt = sum(tokens(message.content) for message in messages)
        room = max(settings.context_window - at_most(prompt), settings.reply_tokens)
        self.calls += 1
        reply = await model.chat(
            messages,
            max_tokens=min(settings.max_tokens, room),
            temperature=settings.temperature,
            schema=self.work.schema,
        )
        self.cost.add(asdict(reply) if reply.total_tokens else _estimated(prompt, tokens(reply.text)))
        self.answered_by = reply.model
        return reply

    # --- the figures ----------------------------------------------------------------------------------------

    def _requests(self) -> int:
        return sum(self.at.replica.store.statistics().requests.values())

    def _metrics(self, plan: PlanT | None = None, *, gone: int = 0) -> Metrics:
        """The figures so far; `gone` of its notes are finished for this kind of run."""
        configured = self.at.model.name if self.at.model else builtin.NAME
        waiting = len(self.inputs.notes) + self.inputs.remaining if self.inputs else 0
        return Metrics(
            notes_processed=len(plan.coverage.fates) if plan else 0,
            notes_remaining=waiting - gone,
            llm_tokens_used=self.cost.total,
            llm_prompt_tokens=self.cost.prompt,
            llm_completion_tokens=self.cost.completion,
            duration_seconds=round(trio.current_time() - self.started, 3),
            model=self.answered_by or configured,
            llm_calls=self.calls,
            store_requests=self._requests() - self.requests_before,
            unsourced=len(plan.unsourced) if plan else 0,
            warnings=plan.warnings if plan else (),
            ledger=self.committed,
            **(self.work.figures(plan) if plan else {}),
        )
