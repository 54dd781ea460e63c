"""A measurement from beginning to end: each workload on each place, round after round.

Owns the order: places take turns within a round, so that whatever else the machine does hits all of them alike. Refuses
to count what it cannot attribute: requests are taken between two points where nothing is left to store. Main thread.
"""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchlib.places import OurMount, Place
from benchlib.seed import SPACES
from benchlib.workloads import Sizes, Workload

IDLE_SECONDS = 10.0


@dataclass
class Row:
    """What was measured of one workload on one place.

    Per round, seconds of each operation and requests in all; for a round in which an operation failed, only why.
    `pages` are seconds that the LIST pages of what was listed take by themselves.
    """

    workload: str
    place: str
    rounds: list[list[float]] = field(default_factory=list)
    requests: list[Counter[str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)


@dataclass
class Cost:
    """Requests of something that is not timed, per round."""

    what: str
    place: str
    requests: list[Counter[str]] = field(default_factory=list)


def measure(
    places: Sequence[Place], chosen: Sequence[Workload], sizes: Sizes, rounds: int, *, limit: float = 300.0
) -> list[Row]:
    """The rows, workload by workload. A cold workload has none for a place that cannot be cold.

    A workload that takes longer than `limit` seconds has failed.
    """
    rows = {
        (workload.name, place.label): Row(workload.name, place.label)
        for workload in chosen
        for place in places
        if place.can_be_cold or not workload.cold
    }
    for number in range(rounds):
        for which, place in enumerate(places):
            place.refresh()
            for workload in chosen:
                row = rows.get((workload.name, place.label))
                if row is not None:
                    _tell(f"round {number + 1}: {workload.name} on {place.label}")
                    _measure_one(place, workload, sizes, f"bench-{which}-{number}", row, limit)
                    if workload.listed and isinstance(place, OurMount):
                        folder = f"{SPACES[workload.space]}/{workload.listed}"
                        row.pages.append(place.list_pages(folder, getattr(sizes, workload.space)))
            place.leave()
    return list(rows.values())


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the middle of whatever the block does when time is up. An outer timer goes on after it."""

    def stop(*_: object) -> None:
        raise TimeoutError(errno.ETIME, f"took over {seconds:.0f} s")

    handler = signal.signal(signal.SIGALRM, stop)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, handler)


def _measure_one(place: Place, workload: Workload, sizes: Sizes, new_space: str, row: Row, limit: float) -> None:
    if workload.cold:
        place.refresh()
    try:
        space = place.space(workload.space, new_space)
        with _at_most(limit):
            workload.prepare(space, sizes)
            place.settle()
        with _at_most(limit):
            samples = workload.work(space, sizes)
            requests = place.settle()
    except OSError as error:
        row.failures.append(error.strerror or str(error))
        return
    row.rounds.append(samples)
    if requests is not None:
        row.requests.append(requests)


def measure_costs(mount: OurMount, rounds: int, *, idle: bool) -> list[Cost]:
    """What everyday things cost in requests on a mount of ours; `idle`: also what doing nothing costs."""
    costs: dict[str, Cost] = {}

    def take(what: str, work: Callable[..., object], *arguments: object) -> None:
        _tell(f"requests: {what} on {mount.label}")
        mount.settle()
        work(*arguments)
        requests = mount.settle()
        costs.setdefault(what, Cost(what, mount.label)).requests.append(requests or Counter())

    for number in range(rounds):
        mount.refresh()
        notes = mount.space("notes", "") / "live"
        take("ls of all notes, cold", _run, "ls", notes)
        take("ls again", _run, "ls", notes)
        some = min(notes.iterdir())
        take("cat of one note, first", _run, "cat", some)
        take("cat again", _run, "cat", some)
        new = notes / f"new-{number}.md"
        take("one new note", new.write_text, "One more.\n")
        new.unlink()
    if idle:
        spaces = mount.figures()["replica"]["watcher"]["spaces"]
        take(f"nothing, for {IDLE_SECONDS:.0f} s, {spaces} spaces", time.sleep, IDLE_SECONDS)
    mount.leave()
    return list(costs.values())


def _run(*command: str | Path) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _tell(what: str) -> None:
    """Progress, for people."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
