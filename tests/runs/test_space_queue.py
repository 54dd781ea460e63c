"""The queue of one space: tickets, what waits, what is at work, and the results that are kept."""

from __future__ import annotations

from livememfs.runs.options import RunOptions
from livememfs.runs.result import Metrics, RunResult
from livememfs.runs.space_queue import KEPT_RESULTS, SpaceQueue
from livememfs.testing.clock import START

DIGEST = RunOptions(kind="digest")


def ended(message: str = "", diff: str | None = None) -> RunResult:
    return RunResult("ok", Metrics(), START, message, diff=diff)


async def test_tickets_are_numbered_over_all_kinds_and_the_newest_of_each_is_known() -> None:
    queue = SpaceQueue("alpha")
    assert [queue.of_kind[kind].latest for kind in ("consolidation", "digest")] == [0, 0]

    runs = [queue.queue(options) for options in (RunOptions(), DIGEST, RunOptions())]

    assert [run.ticket for run in runs] == [1, 2, 3]
    assert [queue.of_kind[kind].latest for kind in ("consolidation", "digest")] == [3, 2]
    assert all(run.started is None for run in runs)


async def test_what_is_at_work_comes_before_what_waits_and_other_kinds_are_left_alone() -> None:
    queue = SpaceQueue("alpha")
    one, two, three = (queue.queue(options) for options in (RunOptions(), DIGEST, RunOptions()))
    queue.running = queue.waiting.popleft()

    assert queue.unfinished("consolidation") == [one, three]
    assert queue.unfinished("digest") == [two]
    assert [queue.pending(ticket) for ticket in (1, 2, 3, 4)] == [one, two, three, None]
    assert queue.drop_waiting("consolidation") == [three]
    assert (list(queue.waiting), queue.running) == ([two], one)


async def test_the_last_results_are_kept_and_the_last_diff() -> None:
    queue = SpaceQueue("alpha")
    runs = [queue.queue(RunOptions()) for _ in range(KEPT_RESULTS + 1)]
    queue.running = runs[1]
    queue.finish(runs[0], ended("1", diff="a diff"))
    assert queue.running is runs[1]
    for run in runs[1:]:
        queue.finish(run, ended(str(run.ticket)))

    assert queue.running is None
    assert queue.result(1) is None
    assert [queue.result(ticket) for ticket in (2, KEPT_RESULTS + 1)] == [ended("2"), ended(str(KEPT_RESULTS + 1))]
    assert queue.diff == "a diff"
    digest = queue.queue(DIGEST)
    queue.finish(digest, ended("digest"))
    assert (queue.result(digest.ticket), queue.result(2)) == (ended("digest"), ended("2"))


async def test_whoever_waits_for_a_space_is_woken_by_each_change() -> None:
    queue = SpaceQueue("alpha")
    before = queue.changed
    run = queue.queue(RunOptions())
    assert (before.is_set(), queue.changed.is_set()) == (True, False)
    before = queue.changed
    queue.finish(run, ended())
    assert before.is_set()
