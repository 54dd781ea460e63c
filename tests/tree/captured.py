"""A mount that captures what agents do; hooks and the observer are doubles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hosts import SPACE, World

from livememfs.observing.capture import Capture, CaptureSettings
from livememfs.recall.turn.context import ContextPages
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.observation import Observation
from livememfs.testing.clock import START
from livememfs.tree.root import Root

SESSIONS, MINE = f"{SPACE}/sessions", f"{SPACE}/sessions/s-1"
EVENTS, STOP, PROMPTS = f"{MINE}/events", f"{MINE}/.stop", f"{MINE}/prompts.ndjson"


class Answering:
    """Hooks that answer with what they were asked."""

    events: Sequence[str] = ("SessionStart", "Stop")

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []

    async def answer(self, space: str, event: str, request: bytes) -> bytes:
        self.asked.append((space, event, request))
        return b'{"n": %d}' % len(self.asked)


class Listening:
    """An observer that only hears."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def again(self, space: str, session: str) -> None:
        self.asked.append((space, session))


class Mount:
    """A mount that captures; `hooks` and `observer` are doubles."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world, self.host = world, world.here
        self.host.replica.names._ttl = 0.0  # names are asked for anew each time
        self.hooks, self.observer = Answering(), Listening()
        self.host.context = replace(
            self.host.context,
            capture=Capture(self.host.replica.inbox, world.clock, CaptureSettings(**settings)),
            pages=ContextPages(self.host.replica, world.clock, mounted="/m"),
            hooks=self.hooks,
            observer=self.observer,  # type: ignore[arg-type]  # a double
        )
        self.host.root = Root(self.host.context)
        self.host.agents[7] = "codex"

    def rows(self) -> list[tuple[Any, ...]]:
        database = self.host.replica._database
        return database.rows("SELECT session, kind, state, reason FROM event ORDER BY seq")

    def events(self) -> list[Event]:
        rows = self.host.replica._database.rows("SELECT line FROM event WHERE line IS NOT NULL ORDER BY seq")
        return [Event.from_json(line) for (line,) in rows]

    async def event(self, data: str | bytes, name: str = "e.json") -> Event:
        """The event that a file becomes."""
        await self.host.write(f"{EVENTS}/{name}", data, pid=7)
        return self.events()[-1]

    async def observe(self, uid: str, title: str = "Tokens last a day", minute: int = 0) -> str:
        """Another host observes something; its name."""
        seen = Observation(uid, "s-1", START.replace(minute=minute), "bugfix", title, narrative="It was so.\n")
        await self.put(keys.observations_prefix(SPACE) + seen.name, seen.render())
        return seen.name

    async def put(self, key: str, data: bytes) -> None:
        """Another host writes an object."""
        await self.world.memory.put(key, data)
