"""Consolidations and digests, from settings: their queue, the schedule, and the report of failures.

Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from livememfs.app.basics import Basics
from livememfs.cache.replica import Replica
from livememfs.concurrency import Starts
from livememfs.config import Settings
from livememfs.errors import LiveMemError, RunFailed
from livememfs.runs.options import CONTROLS, RunSettings
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import RunResult
from livememfs.runs.schedule.scheduler import Scheduler
from livememfs.tree.rejected import RejectedReplies
from livememfs.tree.space.control import with_refused_replies

if TYPE_CHECKING:
    from livememfs.app import App, Keep
    from livememfs.llm.base import ChatModel

RECOVERY_SECONDS = 60.0
"""How long after the start this process looks for unfinished runs of other hosts."""


def open_consolidations(
    basics: Basics, *, replica: Replica, model: ChatModel | None, nursery: Starts, rejected: RejectedReplies
) -> RunQueue:
    """The queue of runs. `rejected` keeps the replies of the model that were refused."""

    def failed(space: str, result: RunResult) -> None:
        outcome = with_refused_replies(rejected, consolidations.status(space, result.kind))
        error = RunFailed(result.reason, advice=outcome.get("what_to_do", result.what_to_do))
        control = CONTROLS[result.kind]
        basics.errors.record(control.removeprefix("."), f"{space}/{control}", error)

    consolidations = RunQueue(
        replica,
        basics.clock,
        model,
        consolidation_settings(basics.settings),
        nursery=nursery,
        host=basics.settings.host_name,
        on_rejected=rejected.keep,
        on_failed=failed,
    )
    return consolidations  # `failed` refers to it by this name


def consolidation_settings(settings: Settings) -> RunSettings:
    """The settings of consolidations."""
    return RunSettings(
        max_notes=settings.consolidation_max_notes,
        max_tokens=settings.llmaas_max_tokens,
        temperature=settings.llmaas_temperature,
        context_window=settings.context_window,
        unsourced=settings.unsourced,
        drop_limit=settings.drop_limit,
    )


def open_scheduler(basics: Basics, *, replica: Replica, consolidations: RunQueue) -> Scheduler | None:
    """The scheduler of runs; None without a mount or a schedule."""
    settings, digests = basics.settings, basics.settings.digest_schedule
    if basics.mountpoint is None or not (settings.schedule.spaces or digests.spaces):
        return None
    return Scheduler(
        replica,
        basics.clock,
        consolidations,
        settings.schedule,
        host=settings.host_name,
        digests=digests,
        digest_zone=settings.digest_zone if digests.spaces else None,
    )


def look_after(app: App, keep: Keep) -> None:
    """Start finishing the runs that a crash left unfinished, and running by the schedule."""
    app.replica.changes.subscribe(app.consolidations.heard)
    keep("recovery", partial(_recover, app))
    if app.scheduler is not None:
        app.replica.changes.subscribe(app.scheduler.heard)
        keep("schedule", app.scheduler.run)


async def _recover(app: App) -> None:
    """Carry out, space by space, the runs that a process committed before it crashed.

    At once if that may have been the process before this one; else later, so that a fresh mount answers quickly.
    """
    if not app.replica.after_crash:
        await trio.sleep(RECOVERY_SECONDS)
    with suppress(LiveMemError):  # without the bucket, the next run of each space does this
        top = await app.replica.names.listing("")
        await app.consolidations.recover(sorted(name for name in top.folders if not name.startswith("_")))
