"""The tasks that look after memories. Trio thread only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livememfs.app import App, Keep


def look_after(app: App, keep: Keep) -> None:
    """Start removing ended memories, merging memories that state the same, and counting uses."""
    app.replica.changes.subscribe(app.expiry.heard)
    app.replica.changes.subscribe(app.merging.heard)
    app.recall.on_opened(app.merging.opened)
    app.recall.on_opened(app.uses.opened)
    keep("expiry", app.expiry.run)
    keep("merging", app.merging.run)
    keep("uses", app.uses.run)
    keep("evidence", app.evidence.run)
