"""The observer, and the capture of events, from settings.

Owns what the settings mean for them, and reports their errors. Any thread, but not for the objects that it makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from livememfs.app.basics import Basics
from livememfs.app.models import NONE
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.observing.ask import ObserveSettings
from livememfs.observing.capture import Capture, CaptureSettings
from livememfs.observing.evidence import Evidence
from livememfs.observing.observer import Observer
from livememfs.observing.parking import Parking
from livememfs.records.keys import SESSIONS
from livememfs.serve.tools import TOOLS
from livememfs.text.privacy import redaction as privacy

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.code.workplaces import Workplaces
    from livememfs.llm.base import ChatModel

EVENTS_ROOM, LEAST_ROOM = 2, 8_000
"""Characters of events for each token of a request. Output of tools is mostly code, with three characters or more for a
token; the rest is room for the instructions. And the least room for events: a request that is too long is split."""


def open_observer(basics: Basics, *, replica: Replica, model: ChatModel | None, code: Workplaces) -> Observer:
    """The observer; without a `model` it makes no request."""

    def failed(space: str, error: LiveMemError) -> None:
        basics.errors.record("observe", space, error)

    return Observer(
        replica,
        basics.clock,
        model,
        observe_settings(basics.settings),
        failed=failed,
        parking=Parking(replica, basics.host),
        background=basics.background,
        code=code,
    )


def open_capture(basics: Basics, *, replica: Replica, observer: Observer, evidence: Evidence) -> Capture:
    """The capture of events, which wakes the observer, and shows what of the told came back."""

    def redacted(space: str, kinds: tuple[str, ...]) -> None:
        path = f"{space}/{SESSIONS}"
        basics.errors.record("privacy", path, privacy.told(path, kinds))

    settings = capture_settings(basics.settings, basics.mounted)
    return Capture(replica.inbox, basics.clock, settings, woken=observer.wake, redacted=redacted, heard=evidence.heard)


def capture_settings(settings: Settings, mounted: str) -> CaptureSettings:
    """Which events are captured."""
    names = (name.strip().lower() for name in settings.observe_skip_tools.split(","))
    return CaptureSettings(
        skip_tools=frozenset(filter(None, names)),
        observe=settings.observe_model != NONE,
        mounted=mounted,
        home=str(Path.home()),
        own_tools=frozenset(tool.name for tool in TOOLS),
    )


def observe_settings(settings: Settings) -> ObserveSettings:
    """When and how events are observed."""
    room = (settings.context_window - ObserveSettings.max_tokens) * EVENTS_ROOM
    return ObserveSettings(
        batch=settings.observe_batch,
        characters=min(max(room, LEAST_ROOM), ObserveSettings.characters),
        idle=settings.observe_idle,
        stop_idle=min(settings.observe_idle, ObserveSettings.stop_idle),
        budget=settings.observe_budget,
    )
