"""The queue of one space: the run at work, the waiting runs, and the last results.

Owns the tickets. Runs of all kinds are in one queue; results are kept by kind. Refuses to decide which request joins
which run (`queue` does). Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import trio

from livememfs.runs.options import CONTROLS, RunKind, RunOptions
from livememfs.runs.result import RunResult
from livememfs.runs.run import RunControl

KEPT_RESULTS = 64


@dataclass(eq=False)
class Ticketed:
    """One run, waiting or at work."""

    ticket: int
    options: RunOptions
    control: RunControl
    started: float | None = None


@dataclass(eq=False)
class KindOutcomes:
    """The newest ticket and the last results of one kind of run."""

    latest: int = 0
    results: OrderedDict[int, RunResult] = field(default_factory=OrderedDict)


@dataclass(eq=False)
class SpaceQueue:
    """The queue of one space."""

    name: str
    waiting: deque[Ticketed] = field(default_factory=deque)
    running: Ticketed | None = None
    served: bool = False
    issued: int = 0
    of_kind: dict[RunKind, KindOutcomes] = field(default_factory=lambda: {kind: KindOutcomes() for kind in CONTROLS})
    diff: str | None = None
    changed: trio.Event = field(default_factory=trio.Event)

    def notify(self) -> None:
        """Wake everyone who waits for this space."""
        self.changed.set()
        self.changed = trio.Event()

    def queue(self, options: RunOptions) -> Ticketed:
        """A new run at the end."""
        self.issued += 1
        run = Ticketed(self.issued, options, RunControl(self.notify))
        self.of_kind[options.kind].latest = run.ticket
        self.waiting.append(run)
        self.notify()
        return run

    def finish(self, run: Ticketed, result: RunResult) -> None:
        """Keep a result."""
        results = self.of_kind[run.options.kind].results
        results[run.ticket] = result
        while len(results) > KEPT_RESULTS:
            results.popitem(last=False)
        if result.diff is not None:
            self.diff = result.diff
        if run is self.running:
            self.running = None
        self.notify()

    def unfinished(self, kind: RunKind) -> list[Ticketed]:
        """The runs of a kind that are not finished, the one at work first."""
        return [run for run in (self.running, *self.waiting) if run is not None and run.options.kind == kind]

    def drop_waiting(self, kind: RunKind) -> list[Ticketed]:
        """Take the runs of a kind out of the queue."""
        dropped = [run for run in self.waiting if run.options.kind == kind]
        self.waiting = deque(run for run in self.waiting if run.options.kind != kind)
        return dropped

    def pending(self, ticket: int) -> Ticketed | None:
        """The run of this ticket while it is not finished."""
        candidates = [self.running, *self.waiting]
        return next((run for run in candidates if run is not None and run.ticket == ticket), None)

    def result(self, ticket: int) -> RunResult | None:
        """How the run of this ticket ended, while that is kept."""
        results = (outcomes.results.get(ticket) for outcomes in self.of_kind.values())
        return next((result for result in results if result is not None), None)
