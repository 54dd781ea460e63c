"""What looks after agents, from settings: the way in for their events, the observer, the hooks, the pages.

Owns which settings mean what to them, and where what goes wrong with them is told. Any thread, but for what it makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from livememfs.agents.door import Door, Projects, Surroundings
from livememfs.agents.hooks import Hooks
from livememfs.app.parts import NONE, usable_host
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.observing.ask import ObserveSettings
from livememfs.observing.capture import Capture, CaptureSettings
from livememfs.observing.observer import Observer
from livememfs.observing.parking import Parking
from livememfs.recall.turn.context import ContextPages
from livememfs.records.keys import SESSIONS
from livememfs.serve.tools import TOOLS
from livememfs.text.privacy import redaction as privacy

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.concurrency import Background
    from livememfs.llm.base import ChatModel
    from livememfs.recall.turn.prehook import Prehook
    from livememfs.records.access import Access
    from livememfs.tree.errorlog import ErrorLog

EVENTS_ROOM, LEAST_ROOM = 2, 8_000
"""Characters of events for a token of a request, of which some are for what they are read with: what tools say is
mostly code, at three and more. And characters that they get anyhow: a request that is too long is asked in parts."""


@dataclass(frozen=True)
class Agents:
    """What looks after the agents of a mount."""

    observer: Observer
    capture: Capture
    hooks: Hooks
    pages: ContextPages


def agents_of(
    settings: Settings,
    clock: Clock,
    model: ChatModel | None,
    mountpoint: Path | None,
    replica: Replica,
    errors: ErrorLog,
    prehook: Prehook,
    background: Background,
) -> Agents:
    """What looks after the agents of a bucket. `model` None: nobody is asked; `mountpoint` None: without a mount."""

    def failed(space: str, error: LiveMemError) -> None:
        errors.record("observe", space, error)

    def redacted(space: str, kinds: tuple[str, ...]) -> None:
        path = f"{space}/{SESSIONS}"
        errors.record("privacy", path, privacy.told(path, kinds))

    def refused(_space: str, path: str, error: LiveMemError) -> None:
        errors.record("hook", path, error)

    parking = Parking(replica, usable_host(settings.host_name))
    observer = Observer(
        replica, clock, model, observe_settings(settings), failed=failed, parking=parking, background=background
    )
    capture = Capture(
        replica.inbox, clock, capture_settings(settings, mountpoint), woken=observer.wake, redacted=redacted
    )
    pages = ContextPages(replica, clock, mounted=str(mountpoint or ""), budget=settings.context_budget)
    return Agents(observer, capture, Hooks(capture, prehook, pages.page, observer.trouble, refused), pages)


def door_of(
    settings: Settings,
    mountpoint: Path | None,
    hooks: Hooks,
    replica: Replica,
    clock: Clock,
    access: Callable[[], Access],
    errors: ErrorLog,
    owner: str,
) -> Door | None:
    """Who answers the hooks of all of this machine's projects; None without a mount."""
    if mountpoint is None:
        return None
    host = usable_host(settings.host_name)
    around = Surroundings(home=Path.home().resolve(), host=host, mountpoint=str(mountpoint), owner=owner)
    return Door(hooks, Projects(replica, clock, access, around, partial(errors.record, "hook")))


def capture_settings(settings: Settings, mountpoint: Path | None) -> CaptureSettings:
    """What is captured of agents."""
    names = (name.strip().lower() for name in settings.observe_skip_tools.split(","))
    return CaptureSettings(
        skip_tools=frozenset(filter(None, names)),
        observe=settings.observe_model != NONE,
        mounted=str(mountpoint or ""),
        home=str(Path.home()),
        own_tools=frozenset(tool.name for tool in TOOLS),
    )


def observe_settings(settings: Settings) -> ObserveSettings:
    """When and how it is observed."""
    room = (settings.context_window - ObserveSettings.max_tokens) * EVENTS_ROOM
    return ObserveSettings(
        batch=settings.observe_batch,
        characters=min(max(room, LEAST_ROOM), ObserveSettings.characters),
        idle=settings.observe_idle,
        stop_idle=min(settings.observe_idle, ObserveSettings.stop_idle),
        budget=settings.observe_budget,
    )
