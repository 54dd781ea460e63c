"""One consolidation, from reading the space to removing its notes (consolidation 2 to 7).

Owns the course of a run: what is tried again (a reply that cannot be used, once), what ends it (everything else), when
it can still be cancelled (until it begins to write), and its figures. Every failure is a result, never an exception,
and leaves all notes where they are. Knows nothing of other runs; see `queue`. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError, ModelTimedOut, ReplyRefused, RunCancelled, TimedOut
from livememfs.llm import builtin
from livememfs.llm.base import ChatMessage, ChatModel, ChatReply
from livememfs.llm.budget import estimate
from livememfs.pipelines import backups
from livememfs.pipelines.batches import decide
from livememfs.pipelines.check import check_unchanged
from livememfs.pipelines.diff import render_diff
from livememfs.pipelines.gather import Inputs, gather
from livememfs.pipelines.lease import Held, Leases
from livememfs.pipelines.ledger import carry_out, commit, finish_open
from livememfs.pipelines.options import ConsolidationSettings, RunOptions
from livememfs.pipelines.plan import MAX_FILE_BYTES, Plan, make_plan, plan_from_reply
from livememfs.pipelines.prompts import asked_again, consolidation_prompt
from livememfs.pipelines.reply_schema import REPLY_SCHEMA
from livememfs.pipelines.result import Metrics, RunResult, committed, failed, finished, nothing_to_do, rehearsed
from livememfs.pipelines.transaction import Origin, entry_of

log = structlog.get_logger("livememfs.pipelines")


class RunControl:
    """The handles on a run in progress: where it is, and how to stop it.

    `on_change` is called after each change of `phase` (waiting for its turn, gathering, asking, asking again, backing
    up, writing, removing).
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.phase = "gathering"
        self.notes = 0
        self.before_writing = trio.CancelScope()
        # Shielded, so that neither a user nor a shutdown stops the writes half-way.
        self.while_writing = trio.CancelScope(shield=True)
        self._on_change = on_change

    @property
    def is_writing(self) -> bool:
        """Whether the run is past the point from which it is always finished."""
        return self.phase in ("writing", "removing")

    def report(self, phase: str) -> None:
        """Enter a phase."""
        self.phase = phase
        self._on_change()

    def cancel(self) -> bool:
        """Stop the run, unless it is writing; whether it will stop."""
        if self.is_writing:
            return False
        self.before_writing.cancel()
        return True

    def abandon(self) -> None:
        """Stop the run wherever it is, as a crash would, for a shutdown that cannot wait any longer."""
        self.before_writing.cancel()
        self.while_writing.cancel()


@dataclass(frozen=True)
class Consolidator:
    """Everything that runs have in common. `model` None files notes without a model (see `llm.builtin`).

    :host:        this machine's name, for the ledger
    :on_open:     told of a space whose last run is committed and could not be carried out
    :on_rejected: told of each reply that was refused: space, reason, text
    """

    replica: Replica
    clock: Clock
    model: ChatModel | None
    settings: ConsolidationSettings
    leases: Leases
    host: str = ""
    on_open: Callable[[str], None] = lambda _: None
    on_rejected: Callable[[str, str, str], None] = lambda *_: None

    async def run(self, space: str, options: RunOptions, control: RunControl) -> RunResult:
        """One run of one space. Raises nothing but what cancels it from outside."""
        result = await _Run(self, space, options, control).result()
        log.info(
            "consolidation finished",
            space=space,
            state=result.state,
            dry_run=result.dry_run,
            reason=result.reason,
            **asdict(result.metrics),
        )
        return result


@dataclass
class _Cost:
    """What the model cost so far, refused replies included."""

    prompt: int = 0
    completion: int = 0
    total: int = 0

    def add(self, figures: Mapping[str, Any]) -> None:
        self.prompt += figures.get("prompt_tokens") or 0
        self.completion += figures.get("completion_tokens") or 0
        self.total += figures.get("total_tokens") or 0


@dataclass
class _Run:
    """One run and what it has found out so far."""

    at: Consolidator
    space: str
    options: RunOptions
    control: RunControl
    cost: _Cost = field(default_factory=_Cost)
    started: float = field(default_factory=trio.current_time)
    asked_before: int = 0
    inputs: Inputs | None = None
    answered_by: str = ""
    held: Held | None = None
    backup: str = ""
    calls: int = 0
    committed: int = 0

    async def result(self) -> RunResult:
        self.asked_before = self._asked()
        try:
            return await self._run()
        except LiveMemError as error:
            reason = error
        except Exception as error:  # a bug must cost this run, not the mount it runs in
            log.exception("consolidation broke down", space=self.space)
            reason = LiveMemError(f"internal error: {type(error).__name__}")
        return failed(reason, self._metrics(), self.at.clock.now(), self.options)

    async def _run(self) -> RunResult:
        control = self.control
        prepared: Plan | RunResult | None = None
        async with AsyncExitStack() as stack:
            with control.before_writing:
                if self.options.dry_run:
                    prepared = await self._prepare(0)
                else:
                    control.report("waiting for its turn")
                    self.held = await stack.enter_async_context(self.at.leases.hold(self.space))
                    control.report("gathering")
                    last = await finish_open(self.at.replica, self.at.clock, self.space)
                    prepared = await self._prepare(last.number if last else 0)
            # No await from here to the commit: a cancellation comes either before, or too late.
            if prepared is None or control.before_writing.cancel_called:
                raise RunCancelled
            if isinstance(prepared, RunResult):
                return prepared
            control.report("writing")
            with control.while_writing:
                return await self._write(prepared)
            if self.held is not None:
                self.held.abandon()
            raise TimedOut("the store, while the run was writing,")
        raise AssertionError("the stack swallows nothing")

    async def _prepare(self, ledger: int) -> Plan | RunResult:
        """Everything that changes nothing: the plan, or already the result when there is nothing to write."""
        limit = min(self.options.max_notes or self.at.settings.max_notes, self.at.settings.max_notes)
        seal = not self.options.dry_run
        inputs = self.inputs = await gather(
            self.at.replica, self.space, max_notes=limit, agent=self.options.agent, seal=seal, ledger=ledger
        )
        if not inputs.notes:
            return nothing_to_do(inputs, self._metrics(), self.at.clock.now(), self.options)
        self.control.notes = len(inputs.notes)
        plan = await self._decide(inputs)
        if not self.options.dry_run:
            if plan.coverage.fates:
                self.control.report("backing up")
                self.backup = await self._back_up()
            return plan
        diff = await trio.to_thread.run_sync(render_diff, inputs, plan, abandon_on_cancel=True)
        metrics = self._metrics(plan, gone=len(plan.coverage.fates))
        return rehearsed(inputs, plan, metrics, self.at.clock.now(), diff)

    async def _back_up(self) -> str:
        """The space as it is now, for undo; the oldest backups that were made so go."""
        made = await backups.create(self.at.replica, self.at.clock, self.space, automatic=True)
        await backups.prune(self.at.replica, self.space)
        return made.stamp

    async def _write(self, plan: Plan) -> RunResult:
        inputs, held, replica, clock = self.inputs, self.held, self.at.replica, self.at.clock
        assert inputs is not None
        assert held is not None
        await held.check()
        await check_unchanged(replica, inputs, plan)
        metrics = {**asdict(self._metrics(plan, gone=len(plan.coverage.fates))), "ledger": inputs.number}
        origin = Origin(self.at.host, held.fence, self.backup)
        entry = entry_of(inputs, plan, clock.now(), origin, metrics)
        await commit(replica, entry)
        self.committed = entry.number
        try:
            applied = await carry_out(replica, clock, entry, self.control.report)
        except LiveMemError as error:
            self.at.on_open(self.space)
            return committed(error, self._metrics(plan), clock.now())
        if applied.failure is not None:
            self.at.on_open(self.space)
        return finished(inputs, plan, applied, self._metrics(plan, gone=applied.removed), clock.now())

    # --- the model ------------------------------------------------------------------------------------------

    async def _decide(self, inputs: Inputs) -> Plan:
        """One plan for all notes: of one request, or of several in order, each on what the one before has made."""
        model = self.at.model
        if model is None:
            notes = [live.note for live in inputs.notes]
            reply = builtin.file_notes(inputs.rules, inputs.bank_texts(), notes, max_bytes=MAX_FILE_BYTES)
            return make_plan(reply, inputs, lenient=True)  # word for word, so whatever it looks like is in the notes
        return await decide(inputs, self.at.settings, lambda part: self._ask_for_plan(model, part))

    async def _ask_for_plan(self, model: ChatModel, inputs: Inputs) -> Plan:
        """Ask, and ask once more when the reply could not be used, saying why."""
        messages = consolidation_prompt(inputs)
        self.control.report("asking")
        try:
            return self._plan(await self._ask(model, messages), inputs)
        except ReplyRefused as refused:
            faults = str(refused.values["detail"])
            self._refused(refused)
        log.info("the model's reply was refused, asking once more", space=self.space, faults=faults)
        self.control.report("asking again")
        try:
            return self._plan(await self._ask(model, asked_again(messages, faults)), inputs)
        except ReplyRefused as refused:
            self._refused(refused)
            raise

    def _plan(self, reply: ChatReply, inputs: Inputs) -> Plan:
        try:
            settings = self.at.settings
            overlap, lenient = settings.coverage == "overlap", settings.unsourced == "list"
            return plan_from_reply(reply, inputs, overlap=overlap, lenient=lenient)
        except ReplyRefused as refused:
            self.at.on_rejected(self.space, str(refused), reply.text)
            raise

    def _refused(self, refused: ReplyRefused) -> None:
        self.cost.add(refused.values)

    async def _ask(self, model: ChatModel, messages: Sequence[ChatMessage]) -> ChatReply:
        settings = self.at.settings
        asked = sum(estimate(message.content, settings.chars_per_token) for message in messages)
        room = max(settings.context_window - asked, settings.reply_tokens)
        self.calls += 1
        with trio.move_on_after(settings.timeout):
            reply = await model.chat(
                messages,
                max_tokens=min(settings.max_tokens, room),
                temperature=settings.temperature,
                schema=REPLY_SCHEMA,
            )
            self.cost.add(asdict(reply))
            self.answered_by = reply.model
            return reply
        raise ModelTimedOut(f"{settings.timeout:g}")

    # --- the figures ----------------------------------------------------------------------------------------

    def _asked(self) -> int:
        return sum(self.at.replica.store.statistics().requests.values())

    def _metrics(self, plan: Plan | None = None, *, gone: int = 0) -> Metrics:
        """The figures so far; `gone` notes have left, or would leave, `live/`."""
        configured = self.at.model.name if self.at.model else builtin.NAME
        waiting = len(self.inputs.notes) + self.inputs.remaining if self.inputs else 0
        actions = [change.action for change in plan.changes] if plan else []
        return Metrics(
            notes_processed=len(plan.coverage.fates) if plan else 0,
            notes_remaining=waiting - gone,
            bank_files_updated=actions.count("updated"),
            bank_files_created=actions.count("created"),
            bank_files_unchanged=plan.unchanged if plan else 0,
            synthesis_size=len(plan.synthesis.encode()) if plan else 0,
            llm_tokens_used=self.cost.total,
            llm_prompt_tokens=self.cost.prompt,
            llm_completion_tokens=self.cost.completion,
            duration_seconds=round(trio.current_time() - self.started, 3),
            model=self.answered_by or configured,
            llm_calls=self.calls,
            store_requests=self._asked() - self.asked_before,
            unsourced=len(plan.unsourced) if plan else 0,
            warnings=plan.warnings if plan else (),
            ledger=self.committed,
        )
