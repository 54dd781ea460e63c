"""A numbered list of the last events, for open pages.

Owns the numbers, the content of an event, and how many events are kept. One list serves all pages: each has its place
in it, so a slow page costs nothing, and a page whose place is no longer kept is told to reload. Refuses contents: an
event only names what changed, and the page requests it. Runs and the upload queue send no changes of objects; the
listening pages check them, at most once a second. Trio thread only.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import trio

from livememfs.records import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from livememfs.cache.changes import Change
    from livememfs.tree.root import Root

Kind = Literal["note", "bank", "observation", "memory", "session", "summary", "space", "conflict", "run", "status"]
KEPT = 512
"""Most events kept."""
LOOK_SECONDS = 1.0
MOST_TOLD = 20
"""Conflicts of one second that are told; a page reads the list anyway."""
_KINDS: dict[str, Kind] = {
    "note": "note", "bank": "bank", "observation": "observation", "memory": "memory", "session": "session",
    "rules": "space", "meta": "space", "synthesis": "space",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageEvent:
    """One event. `space` is empty for what concerns no space alone; `data` is JSON on one line."""

    number: int
    kind: Kind
    space: str
    data: str


@dataclass(frozen=True)
class EventsStatistics:
    """Events since the start, kept events, and open streams."""

    published: int
    kept: int
    streams: int


class Events:
    """The events of one tree. Subscribes to its changes, for good."""

    def __init__(self, root: Root, kept: int = KEPT) -> None:
        self._root, self._context = root, root.context
        self._start = secrets.token_hex(4)  # marks places of this process: those of an earlier one are invalid
        self._ring: deque[PageEvent] = deque(maxlen=kept)
        self.last = 0
        """The number of the newest event."""
        self._news = trio.Event()
        self._looked = float("-inf")
        self._runs: dict[str, dict[str, Any]] = {}
        self._status: dict[str, Any] = {}
        self._conflicts = self._context.errors.statistics().conflicts
        self.told: Callable[[str, str], None] = _nobody
        """Called with the kind and the space of each event."""
        self.closed = False
        self.streams: Counter[str] = Counter()
        """Open streams by token."""
        self._context.replica.changes.subscribe(self.heard)

    # --- telling ------------------------------------------------------------------------------------------------

    def heard(self, change: Change) -> None:
        """Take a change; subscribed to `changes`."""
        parsed = keys.parse(change.key)
        kind = _KINDS.get(parsed.kind)
        if kind is None:
            return
        if kind == "session" and parsed.name.endswith(f"/{keys.SUMMARY}"):
            kind = "summary"
        key = change.key.removeprefix(f"{parsed.space}/")
        about = {"space": parsed.space, "name": parsed.name, "key": key, "kind": change.kind, "etag": change.etag}
        self._tell(kind, parsed.space, about)

    def look(self) -> None:
        """Check runs and the upload queue, and add events for changes."""
        now = trio.current_time()
        if now < self._looked + LOOK_SECONDS * 0.9:
            return
        self._looked = now
        for space in self._context.consolidations.asked():
            run = run_of(self._context.consolidations.status(space))
            if run["state"] != "idle" and run != self._runs.get(space):
                self._tell("run", space, run)
            self._runs[space] = run
        self._look_for_conflicts()
        status = self.status()
        if status != self._status:
            self._tell("status", "", status)
        self._status = status

    def _look_for_conflicts(self) -> None:
        count = self._context.errors.statistics().conflicts
        new = min(count - self._conflicts, MOST_TOLD)
        self._conflicts = count
        lines = self._context.errors.conflicts().decode("utf-8", "replace").splitlines()[-new:] if new else []
        for path in (json.loads(line)["path"] for line in lines):
            space = path.strip("/").partition("/")[0]
            self._tell("conflict", space, {"space": space, "path": path})

    def look_now(self) -> None:
        """The same at once, after a change."""
        self._looked = float("-inf")
        self.look()

    def watch(self, space: str) -> None:
        """A page shows a space: check for changes of other hosts as often as for a space in use."""
        self._context.replica.names.watch.used(keys.live_prefix(space))

    def status(self) -> dict[str, Any]:
        """The state of the mount, for every page."""
        replica = self._context.replica.statistics()
        return {
            "state": "degraded" if replica.last_error else "ok",
            "pending": replica.journal.pending,
            "unsaved": self._root.statistics().unsaved,
        }

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        self._wake()

    def _tell(self, kind: Kind, space: str, about: dict[str, Any]) -> None:
        self.last += 1
        self._ring.append(PageEvent(self.last, kind, space, json.dumps(about)))
        self.told(kind, space)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()

    # --- listening ----------------------------------------------------------------------------------------------

    def place(self, number: int) -> str:
        """A place in the list, for a page to remember; valid in this process only."""
        return f"{self._start}.{number}"

    def number_of(self, place: str) -> int | None:
        """The number of a page's place; None if the events after it are not kept."""
        start, _, number = place.partition(".")
        if start != self._start or not (number.isascii() and number.isdecimal() and len(number) < 19):
            return None
        return int(number) if self.has_since(int(number)) else None

    def has_since(self, number: int) -> bool:
        """Whether all events after this number are kept."""
        oldest = self._ring[0].number if self._ring else self.last + 1
        return oldest - 1 <= number <= self.last

    def since(self, number: int) -> list[PageEvent]:
        """The events after this number, which `has_since`."""
        missing = self.last - number
        return list(self._ring)[-missing:] if missing else []

    async def news(self, number: int) -> None:
        """Wait until there is an event after this number, or the end."""
        while self.last <= number and not self.closed:
            await self._news.wait()

    def statistics(self) -> EventsStatistics:
        """Counters, cheap."""
        return EventsStatistics(self.last, len(self._ring), self.streams.total())


def _nobody(_kind: str, _space: str) -> None:
    """Nobody wants to know."""


def run_of(status: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event for a run."""
    fields = ("space", "run", "state", "phase", "elapsed_seconds", "dry_run", "queued", "notes")
    return {name: status[name] for name in fields if name in status}
