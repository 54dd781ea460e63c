"""The end of a process: end runs, upload what was accepted, and name what the bucket does not have.

Owns the order in which things end. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError

if TYPE_CHECKING:
    from livememfs.app import App

SHOWN_UNSAVED = 5
REPORT_SECONDS = 0.3
EVIDENCE_SECONDS = 1.0
"""How long the end waits until it is known what of the told was used."""
SCHEDULE_SECONDS = 5.0
"""How long the end waits until the result of a scheduled run is stored."""


async def report(replica: Replica, on_drain: Callable[[int], None]) -> None:
    """Report now and then how many files are left."""
    while True:
        on_drain(len(replica.journal.ops))
        await trio.sleep(REPORT_SECONDS)


async def drain(app: App) -> list[str]:
    """End the runs and save the rest. Returns the paths of what could not be saved."""
    timeout = app.settings.drain_timeout
    refused: list[str] = []
    if app.scheduler is not None:
        app.scheduler.stop()
    with trio.move_on_after(EVIDENCE_SECONDS):
        await app.evidence.settle()
    app.uses.write()
    with trio.move_on_after(timeout):
        await app.consolidations.drain(timeout)
        refused = await app.tree.drain()
        await app.merging.stop()
        await app.tokens.write_uses()
        if app.mountpoint is not None:
            await app.observer.stop()
        with suppress(LiveMemError):  # `complain` names what is left
            await app.replica.uploaded()
            if app.mountpoint is not None:
                app.observer.leave()
                await app.replica.uploaded()
        await app.prehook.flush()
        await app.replica.beacon.flush()
        await app.recall.drain()
        if app.scheduler is not None:
            with trio.move_on_after(SCHEDULE_SECONDS):
                await app.scheduler.stopped()
    return sorted({*refused, *(file.path for file in app.tree.unsaved_files())})


def complain(refused: list[str], replica: Replica) -> None:
    """Raise LiveMemError with the names of the files that the bucket does not have."""
    waiting = sorted({op.key for op in replica.journal.ops.pending()})
    unsaved = [
        f"{len(names)} of the files written {text}: {', '.join(names[:SHOWN_UNSAVED])}"
        + (" and others" if len(names) > SHOWN_UNSAVED else "")
        for names, text in (
            (refused, "could not be saved"),
            (waiting, "wait in the local state and are uploaded by the next mount"),
        )
        if names
    ]
    if unsaved:
        raise LiveMemError("the bucket did not take everything; " + "; ".join(unsaved))
