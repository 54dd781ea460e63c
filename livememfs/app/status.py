"""The status of a process: the value of `status.json`, and the figures for Prometheus. Trio thread only."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio

from livememfs.memories.proposals import counted
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.app import App


def status_of(app: App) -> dict[str, Any]:
    """The value of `status.json`: start and place, the state, the names, then all figures."""
    replica, tree, failing = app.replica.statistics(), app.tree.statistics(), app.background.failing()
    ago = replica.failing_s
    return {
        "since": app.since,
        "mountpoint": str(app.mountpoint or ""),
        "state": "degraded" if replica.last_error or failing else "ok",
        "last_error": replica.last_error,
        "failing_tasks": failing,
        "store": app.store.label,
        "model": app.settings.model_name,
        "host": app.settings.host_name,
        "unsaved": tree.unsaved,
        "pending": replica.journal.pending,
        "pending_bytes": replica.journal.pending_bytes,
        "failing_since": iso(app.clock.now() - timedelta(seconds=ago)) if ago is not None else None,
        "stuck": [{"key": op.key, "reason": op.error} for op in app.replica.journal.ops.stuck()],
        "proposals": counted(app.replica),
        "schedule": app.scheduler.status() if app.scheduler is not None else None,
        "sessions": asdict(app.observer.statistics()),
        "statistics": {
            "store": asdict(app.store.statistics()) | asdict(app.store.retry_statistics()),
            "replica": asdict(replica),
            "tree": asdict(tree),
            **_statistics(app),
        },
    }


def _statistics(app: App) -> dict[str, Any]:
    """The figures of the other parts."""
    scheduler, model = app.scheduler, app.models.consolidating
    return {
        "consolidations": asdict(app.consolidations.statistics()),
        "leases": asdict(app.consolidations.leases.statistics()),
        "schedule": asdict(scheduler.statistics()) if scheduler is not None else None,
        "model": asdict(model.statistics()) if model is not None else None,
        "recall": asdict(app.recall.statistics()),
        "prehook": app.prehook.statistics(),
        "uses": asdict(app.uses.statistics()),
        "evidence": app.evidence.statistics(),
        "merging": asdict(app.merging.statistics()),
        "expiry": asdict(app.expiry.statistics()),
        "tokens": asdict(app.tokens.statistics()),
        "gate": asdict(app.gate.statistics()),
        "capture": app.capture.statistics(),
        "hooks": app.hooks.statistics(),
        "code": app.code.statistics(),
        "context": app.pages.statistics(),
        "errors": asdict(app.errors.statistics()),
        "unread": asdict(app.replica.unread.statistics()),
        "background": asdict(app.background.statistics()),
        "rejected": asdict(app.rejected.statistics()),
        "changes": asdict(app.replica.changes.statistics()),
        **{name: figures() for name, figures in app.served.items()},
    }


async def metrics_of(app: App) -> bytes:
    """The figures of `status_of`, in the text format of Prometheus."""
    # In a thread: the first call loads the library, and other tasks must not wait for that.
    return await trio.to_thread.run_sync(_rendered, status_of(app))


def _rendered(status: dict[str, Any]) -> bytes:
    from livememfs.serve.metrics import render

    return render(status)
