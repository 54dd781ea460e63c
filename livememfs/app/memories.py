"""The tasks that look after memories, from settings. Trio thread only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs.app.basics import Basics
from livememfs.memories.uses import Uses

if TYPE_CHECKING:
    from livememfs.app import App, Keep
    from livememfs.cache.replica import Replica
    from livememfs.recall.service import Recall


def open_uses(basics: Basics, *, replica: Replica, recall: Recall) -> Uses:
    """The counts of how often memories were used. Each local state counts under its own name."""
    return Uses(replica, basics.clock, f"{basics.host}-{replica.identity}", recall.used)


def look_after(app: App, keep: Keep) -> None:
    """Start removing ended memories, merging memories that state the same, and counting uses."""
    app.replica.changes.subscribe(app.expiry.heard)
    app.replica.changes.subscribe(app.merging.heard)
    app.recall.on_opened(app.merging.opened)
    app.recall.on_opened(app.uses.opened)
    keep("expiry", app.expiry.run)
    keep("merging", app.merging.run)
    keep("uses", app.uses.run)
