"""The end of a process: end runs, upload what was accepted, and name what the bucket does not have.

Owns the order in which things end. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, NoSpace
from livememfs.records.names import STATE

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
        if refused:
            with suppress(NoSpace):  # the next write reports it, and there is none any more
                await app.tree.keep_drafts()
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
    unsaved = []
    if refused:
        again = f"the next mount shows what was written in {STATE}/recovered/"
        unsaved.append(f"{_named(refused)} refused when saved, and not by the bucket; {again}")
    if waiting:
        unsaved.append(f"{_named(waiting)} not taken by the bucket; the next mount uploads what waits")
    if unsaved:
        raise LiveMemError("; ".join(unsaved))


def _named(paths: list[str]) -> str:
    """`1 file (a) was`, `7 files (a, b, c, d, e and others) were`."""
    names = ", ".join(paths[:SHOWN_UNSAVED]) + (" and others" if len(paths) > SHOWN_UNSAVED else "")
    return f"1 file ({names}) was" if len(paths) == 1 else f"{len(paths)} files ({names}) were"
