"""The parts that agents use: hooks, the pages before a session, the rule files in their projects.

Owns how their errors are reported. Any thread, but not for the objects that it makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from livememfs.agents.contextfile import ContextFiles
from livememfs.agents.door import Door, Projects
from livememfs.agents.hooks import Hooks
from livememfs.app.basics import Basics
from livememfs.code.workplaces import Workplaces
from livememfs.environment import environment_of_others
from livememfs.errors import LiveMemError
from livememfs.recall.turn.context import ContextPages

if TYPE_CHECKING:
    from livememfs.app import App, Keep
    from livememfs.cache.replica import Replica
    from livememfs.observing.capture import Capture
    from livememfs.observing.observer import Observer
    from livememfs.recall.turn.prehook import Prehook
    from livememfs.records.access import Access


def open_code(basics: Basics) -> Workplaces:
    """What knows in which code agents work. A command speaks for who started it, in the directory where it was."""
    own = "" if basics.serving or basics.mountpoint is not None else _working_directory()
    return Workplaces(basics.settings.host_name, environment_of_others(), mounted=basics.mounted, own=own)


def _working_directory() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return ""


def open_hooks(
    basics: Basics, *, capture: Capture, prehook: Prehook, pages: ContextPages, observer: Observer, code: Workplaces
) -> Hooks:
    """The part that answers the hooks of agents."""

    def failed(_space: str, path: str, error: LiveMemError) -> None:
        basics.errors.record("hook", path, error)

    return Hooks(capture, prehook, pages.page, observer.trouble, failed, code)


def open_pages(basics: Basics, *, replica: Replica, code: Workplaces) -> ContextPages:
    """The pages with which a session of an agent begins."""
    at = {"mounted": basics.mounted, "alone": basics.alone}
    return ContextPages(replica, basics.clock, **at, budget=basics.settings.context_budget, code=code)


def open_door(
    basics: Basics, *, hooks: Hooks, replica: Replica, access: Callable[[], Access], owner: str
) -> Door | None:
    """The part that answers the hooks of all projects of this machine; None without a mount."""
    if basics.mountpoint is None:
        return None
    failed, home = partial(basics.errors.record, "hook"), Path.home().resolve()
    place = {"host": basics.host, "mountpoint": basics.mounted, "owner": owner}
    return Door(hooks, Projects(replica, basics.clock, access, failed, home=home, **place))


def look_after(app: App, keep: Keep, mountpoint: Path) -> None:
    """Start what only a mount does: observing agents, and writing the rule files of their projects."""
    rules = ContextFiles(mountpoint, app.pages.page, partial(app.errors.record, "rule file"))
    app.replica.changes.subscribe(rules.heard)
    keep("observer", app.observer.run)
    keep("rule files", rules.run)
