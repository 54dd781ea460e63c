"""An observer over a bucket in memory: its model is a real HTTP endpoint, its time is virtual.

The clock jumps whenever everybody waits; while the endpoint is asked, somebody does not, so that no time passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from inspect import Signature, signature
from typing import Any, TypeVar
from unittest.mock import patch

import trio
import virtual

from livememfs.cache.database import Database
from livememfs.cache.inbox import InboxStatistics
from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, Unreachable
from livememfs.llm.base import ChatReply
from livememfs.llm.client import OpenAIChat
from livememfs.observing.ask import ObserveSettings
from livememfs.observing.capture import Capture, CaptureSettings, Said
from livememfs.observing.observer import Observer
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.observation import Observation
from livememfs.records.session import Session, Summary
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.llm import Responder, ScriptedLLM
from livememfs.testing.observer import observing
from livememfs.testing.store import Fault, FaultyStore

T = TypeVar("T")
SPACE, SESSION = "alpha", "s-1"
LONG = 10**6
"""Seconds that a call may take where a test is not about that."""


class Unhurried(OpenAIChat):
    """The real client. Virtual time stands while an answer is worked out, and goes on over a held one."""

    def __init__(self, llm: ScriptedLLM, timeout: float) -> None:
        super().__init__(llm.url, "", "scripted", timeout)
        self._llm = llm

    async def chat(self, *args: Any, **named: Any) -> ChatReply:
        with self._llm.asking(), virtual.outside(lambda: self._llm.is_at_work):
            return await super().chat(*args, **named)


class Here(ManualClock):
    """The time of day goes on with trio's clock."""

    def now(self) -> Any:
        from datetime import timedelta

        return super().now() + timedelta(seconds=trio.current_time() - self.began)

    def __init__(self) -> None:
        super().__init__()
        self.began = trio.current_time()


class World:
    """One host. `errors` is what it was told went wrong."""

    def __init__(
        self,
        nursery: trio.Nursery,
        llm: ScriptedLLM | None = None,
        *,
        settings: ObserveSettings | None = None,
        capture: CaptureSettings | None = None,
        memory: MemoryStore | None = None,
        folder: Any = None,
        timeout: float = LONG,
    ) -> None:
        self.nursery = nursery
        self.clock = Here()
        self.memory = memory or MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store, folder=folder, now_ns=lambda: int(self.clock.now().timestamp() * 1e9))
        self.model = Unhurried(llm, timeout) if llm is not None else None
        self.llm = llm
        self.requests = llm.requests if llm is not None else []
        self.errors: list[LiveMemError] = []
        self.redacted: list[tuple[str, ...]] = []
        self.observer = Observer(
            self.replica, self.clock, self.model, settings, failed=lambda _, error: self.errors.append(error)
        )
        self.capture = Capture(
            self.replica.inbox,
            self.clock,
            capture,
            woken=self.observer.wake,
            redacted=lambda _, kinds: self.redacted.append(kinds),
        )

    async def start(self) -> None:
        await self.nursery.start(self.replica.run)
        self.nursery.start_soon(self.observer.run)

    def answer_with(self, responder: Responder) -> None:
        """Have the model answer so from now on."""
        assert self.llm is not None
        self.llm._responder = responder

    def away(self, is_away: bool) -> None:
        """Have the bucket unreachable, or there again."""
        fault = Fault(before=Unreachable("no route", endpoint="the bucket"))
        self.store.plan = (lambda *_: fault) if is_away else None

    async def tool(self, number: int, tool: str = "Edit", session: str = SESSION, **fields: Any) -> Said:
        given = {"input": {"file_path": f"/p/src/f{number}.py", "old_string": "a", "new_string": "b"}, **fields}
        said = Said(session=session, kind="tool", id=f"t{number}", project="/p", agent="claude", tool=tool, **given)
        return await self.capture.take(SPACE, said)

    async def say(self, kind: Any, text: str = "", session: str = SESSION, **fields: Any) -> Said:
        said = Said(session=session, kind=kind, agent="claude", project="/p", text=text, **fields)
        return await self.capture.take(SPACE, said)

    def events(self) -> InboxStatistics:
        return self.replica.inbox.statistics()

    async def until(self, holds: Callable[[], bool], seconds: float = 2_000) -> None:
        """Wait, in virtual time, until something holds."""
        with trio.fail_after(seconds):
            while not holds():
                await trio.sleep(max(seconds / 2_000, 0.5))

    async def settled(self, seconds: float = 2_000) -> None:
        """Wait until no event waits."""
        await self.until(lambda: not self.events().waiting, seconds)

    async def bucket(self) -> dict[str, bytes]:
        found = [info.key for info in (await list_all(self.memory, "")).objects]
        return {key: (await self.memory.get(key)).data for key in found}

    async def observations(self) -> list[Observation]:
        return [
            Observation.parse(data, path=key, name=key.rpartition("/")[2])
            for key, data in sorted((await self.bucket()).items())
            if keys.parse(key).kind == "observation"
        ]

    async def session(self, session: str = SESSION) -> Session:
        data = (await self.bucket())[keys.session_key(SPACE, session)]
        return Session.parse(data, space=SPACE, session=session, now=self.clock.now())

    async def summary(self, session: str = SESSION) -> Summary | None:
        data = (await self.bucket()).get(keys.session_key(SPACE, session, keys.SUMMARY))
        return Summary.parse(data, path="summary") if data is not None else None


def run(main: Callable[[World], Awaitable[None]], llm: ScriptedLLM | None = None, **settings: Any) -> None:
    """Run a test in a world of its own, in virtual time."""

    async def whole() -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery, llm, **settings)
            await world.start()
            await main(world)
            nursery.cancel_scope.cancel()
        if world.model is not None:
            await world.model.aclose()
        world.replica.close()

    in_virtual_time(whole)


def with_model(
    *answers: Any, responder: Responder = observing, **settings: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A test in a world of its own whose model gives these answers first, and then those of `responder`."""

    def of(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def whole(**given: Any) -> None:
            first = list(answers)
            with ScriptedLLM(responder=lambda request: first.pop(0) if first else responder(request)) as llm:
                run(partial(test, **given), llm, **settings)

        return _named_as(test, whole)

    return of


def without_model(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A test in a world of its own that has no model."""
    return lambda test: _named_as(test, lambda **given: run(partial(test, **given), **settings))


def _named_as(test: Callable[..., Any], whole: Callable[..., None]) -> Callable[..., None]:
    """What pytest calls: with the name of the test, and its parameters without the world."""
    _, *parameters = signature(test).parameters.values()
    whole = wraps(test)(whole)
    whole.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # which `signature` looks for
    return whole


def in_virtual_time(main: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Hours of it, which are not to be gone through in half seconds."""
    with patch("livememfs.cache.replica.PERSIST_SECONDS", 3_600.0):
        return virtual.run(main, *arguments)


def accounted(found: InboxStatistics) -> bool:
    """Whether the sum holds."""
    return found.events == found.observed + sum(found.skipped.values()) + found.waiting + found.failed


def lines_of(database: Database) -> list[Event]:
    """The events that a local state still holds."""
    rows = database.rows("SELECT line FROM event WHERE line IS NOT NULL ORDER BY seq")
    return [Event.from_json(line) for (line,) in rows]
