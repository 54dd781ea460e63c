"""The runs of all spaces, consolidations and digests: one at a time in each, requests queued and coalesced.

Owns which run covers which request. A request joins a waiting run with the same options. It never joins a run at work:
that one may have read the notes before the last one was written. No request is refused. Questions about one kind of run
are answered for that kind alone. Refuses to poll: a caller that waits is woken by each change and once a second.

Trio thread only. Only `wait`, `run_once`, `recover` and `drain` await, so every other method is one step for all tasks.
Two hosts are kept apart by the lease of each space (see `lease`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import Starts
from livememfs.errors import RunCancelled
from livememfs.llm.base import ChatModel
from livememfs.records import keys
from livememfs.runs.apply import Recovery
from livememfs.runs.options import CONTROLS, RunKind, RunOptions, RunSettings
from livememfs.runs.result import STATES, Metrics, RunResult, failed
from livememfs.runs.run import Runner
from livememfs.runs.space_queue import SpaceQueue, Ticketed
from livememfs.spaces.entries import is_entry
from livememfs.spaces.lease import Leases

PROGRESS_EVERY = 1.0
"""Seconds between two lines of progress while nothing changes."""
DRAIN_TIMEOUT = 60.0


@dataclass(frozen=True)
class RunQueueStatistics:
    """Counters since the start: runs by how they ended, requests that joined a waiting run, runs now, and the tokens
    that runs took.
    """

    ok: int
    partial: int
    held: int
    error: int
    joined: int
    queued: int
    running: int
    tokens: int


class RunQueue:
    """Requests in, results out. Runs live in `nursery` and end with it; `drain` ends them in good order.

    `on_rejected(space, reason, text)` is called for each refused reply, `on_failed(space, result)` for each run that
    ended in an error and was not cancelled, or that is held.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        model: ChatModel | None,
        settings: RunSettings | None = None,
        *,
        nursery: Starts,
        host: str = "",
        on_rejected: Callable[[str, str, str], None] = lambda *_: None,
        on_failed: Callable[[str, RunResult], None] = lambda *_: None,
    ) -> None:
        self.leases = Leases(replica, clock, f"{host}/{replica.identity}", nursery)
        self._runner = Runner(
            replica,
            clock,
            model,
            settings or RunSettings(),
            self.leases,
            host,
            on_open=self._finish_later,
            on_rejected=on_rejected,
        )
        self._recovery = Recovery(replica, clock, self.leases)
        self._clock = clock
        self._on_failed = on_failed
        self._nursery = nursery
        self._spaces: dict[str, SpaceQueue] = {}
        self._closing = False
        self._ended = dict.fromkeys(STATES, 0)
        self._joined = 0
        self._tokens = 0

    # --- asking ---------------------------------------------------------------------------------------------

    def touch(self, space: str, options: RunOptions | None = None) -> int:
        """Ask for a run; returns the ticket of the run that covers this request.

        With `cancel` in the options no run is made: see `cancel`; the ticket is the newest one.
        """
        wanted = options or RunOptions()
        state = self._space(space)
        if wanted.cancel:
            self.cancel(space, wanted.kind)
            return state.of_kind[wanted.kind].latest
        for run in state.waiting:
            if run.options == wanted:
                self._joined += 1
                return run.ticket
        run = state.queue(wanted)
        if self._closing:
            self._drop_waiting(state, wanted.kind)
        elif not state.served:
            state.served = True
            self._nursery.start_soon(self._serve, state)
        return run.ticket

    def cancel(self, space: str, kind: RunKind = "consolidation") -> bool:
        """Stop the run of a space unless it is writing, and every run that waits; whether there was any to stop."""
        state = self._space(space)
        unfinished = state.unfinished(kind)
        self._drop_waiting(state, kind)
        running = state.running if state.running in unfinished else None
        return (running is not None and running.control.cancel()) or any(run is not running for run in unfinished)

    async def run_once(self, space: str, options: RunOptions | None = None) -> RunResult:
        """Ask for a run and wait for its result. Cancelling this cancels the run, unless it is writing."""
        state = self._space(space)
        ticket = self.touch(space, options)
        try:
            while (run := state.pending(ticket)) is not None:
                await state.changed.wait()
        except trio.Cancelled:
            if run is not None:
                run.control.cancel()
            raise
        return state.result(ticket) or self._cancelled(options or RunOptions())

    # --- looking --------------------------------------------------------------------------------------------

    def latest(self, space: str, kind: RunKind = "consolidation") -> int:
        """The newest ticket of a space: its run and those before cover every request so far. 0 before the first."""
        return self._space(space).of_kind[kind].latest

    def status(self, space: str, kind: RunKind = "consolidation") -> dict[str, Any]:
        """What a space's runs of a kind are doing, or how the last one ended, as JSON-able values."""
        state = self._space(space)
        results = state.of_kind[kind].results
        if unfinished := state.unfinished(kind):
            last = next(reversed(results.values()), None)
            return {**self._progress(state, unfinished[0]), "last": last.to_json() if last else None}
        if not results:
            return {"space": space, "status": "idle", "state": "idle"}
        ticket = next(reversed(results))
        return self._outcome(state, ticket, results[ticket])

    def asked(self) -> list[str]:
        """The spaces that any caller has named since the start."""
        return list(self._spaces)

    def is_busy(self, space: str) -> bool:
        """Whether a run of any kind waits or is at work."""
        state = self._space(space)
        return state.running is not None or bool(state.waiting)

    def diff(self, space: str) -> str | None:
        """What the last dry or held run would change; None when there was none."""
        return self._space(space).diff

    async def wait(
        self, space: str, ticket: int | None = None, kind: RunKind = "consolidation"
    ) -> AsyncIterator[dict[str, Any]]:
        """Progress of a run, at once, after each change and each second; the last value is its result.

        Without a ticket it is the newest run of that kind. For a space without runs, and for a ticket whose result is
        not kept any more, the only value is `status`.
        """
        state = self._space(space)
        number = state.of_kind[kind].latest if ticket is None else ticket
        while (run := state.pending(number)) is not None:
            changed = state.changed
            yield self._progress(state, run)
            if changed is state.changed:
                with trio.move_on_after(PROGRESS_EVERY):
                    await changed.wait()
        result = state.result(number)
        yield self._outcome(state, number, result) if result is not None else self.status(space, kind)

    def statistics(self) -> RunQueueStatistics:
        """Counters, cheap."""
        spaces = self._spaces.values()
        return RunQueueStatistics(
            **self._ended,
            joined=self._joined,
            queued=sum(len(state.waiting) for state in spaces),
            running=sum(state.running is not None for state in spaces),
            tokens=self._tokens,
        )

    # --- running --------------------------------------------------------------------------------------------

    async def drain(self, timeout: float = DRAIN_TIMEOUT) -> None:
        """End everything: runs that wait or ask a model are cancelled; a run that writes is waited for.

        After `timeout` seconds a run that still writes is stopped where it is; the next run carries it out. Requests
        from now on end as cancelled.
        """
        self._closing = True
        for state in self._spaces.values():
            for kind in CONTROLS:
                self.cancel(state.name, kind)
        with trio.move_on_after(timeout) as patience:
            await self._until_idle()
        if patience.cancelled_caught:
            for state in self._spaces.values():
                if state.running is not None:
                    state.running.control.abandon()
            await self._until_idle()

    async def recover(self, spaces: Iterable[str]) -> None:
        """Carry out the runs in these spaces that were committed by a process that died."""
        for space in spaces:
            await self._recovery.finish(space)

    def _finish_later(self, space: str) -> None:
        if not self._closing:
            self._nursery.start_soon(self._recovery.insist, space)

    def heard(self, change: Change) -> None:
        """A subscriber of the stream of changes: finishes another host's run, if that host dies."""
        parsed = keys.parse(change.key)
        if parsed.kind == "ledger" and change.kind == "put" and change.origin == "remote" and is_entry(parsed.name):
            self._finish_later(parsed.space)

    async def _until_idle(self) -> None:
        for state in list(self._spaces.values()):
            while state.running is not None:
                await state.changed.wait()

    async def _serve(self, state: SpaceQueue) -> None:
        """Run what waits in one space, one after the other."""
        try:
            while state.waiting:
                await self._run_next(state)
        finally:
            state.served = False  # no await since the loop's condition: no request came in between

    async def _run_next(self, state: SpaceQueue) -> None:
        run = state.running = state.waiting.popleft()
        run.started = trio.current_time()
        state.notify()
        result = self._cancelled(run.options)
        try:
            result = await self._runner.run(state.name, run.options, run.control)
        finally:  # also when the nursery is cancelled: other tasks wait for this result
            self._ended[result.state] += 1
            self._tokens += result.metrics.llm_tokens_used
            state.finish(run, result)
        if result.state in ("held", "error") and not isinstance(result.error, RunCancelled):
            self._on_failed(state.name, result)

    def _drop_waiting(self, state: SpaceQueue, kind: RunKind) -> None:
        for run in state.drop_waiting(kind):
            self._ended["error"] += 1
            state.finish(run, self._cancelled(run.options))

    def _cancelled(self, options: RunOptions) -> RunResult:
        return failed(RunCancelled(), Metrics(), self._clock.now(), options)

    def _space(self, name: str) -> SpaceQueue:
        return self._spaces.setdefault(name, SpaceQueue(name))

    def _progress(self, state: SpaceQueue, run: Ticketed) -> dict[str, Any]:
        working = run is state.running
        state_name = "running" if working else "queued"
        value: dict[str, Any] = {
            "space": state.name,
            "run": run.ticket,
            "status": state_name,
            "state": state_name,
            "phase": run.control.phase if working else "queued",
            "elapsed_seconds": round(trio.current_time() - run.started, 1) if run.started is not None else 0.0,
            "dry_run": run.options.dry_run,
            "queued": sum(other.options.kind == run.options.kind for other in state.waiting),
        }
        if run.control.notes:
            value["notes"] = run.control.notes
        return value

    def _outcome(self, state: SpaceQueue, ticket: int, result: RunResult) -> dict[str, Any]:
        return {"space": state.name, "run": ticket, **result.to_json()}
