"""The observer's process dies, at each step from the first claim to the last confirmation: what the next makes of it.

Nothing is written by a process that is dead: neither to its local state nor to the bucket, which outlive it. Afterwards
every event is in exactly one observation or skipped for a reason, and everything is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
from observe_world import SPACE, World, accounted, in_virtual_time

from livememfs.observing.ask import ObserveSettings
from livememfs.records import keys
from livememfs.store.memory import MemoryStore
from livememfs.testing.llm import ScriptedLLM
from livememfs.testing.observer import events_in, observing
from livememfs.testing.store import Fault, StoreRequest

STEPS = frozenset(
    f"{when} {what}"
    for what in ("a claim", "a call", "saving", "an object", "a put", "a confirmation")
    for when in ("before", "after")
) | {"before its events", "after its events", "after the commit"}
SETTINGS = ObserveSettings(batch=3, idle=5.0, stop_idle=1.0)
TOOLS = 5
LOOKED = 1
"""The number of the tool that only looks around."""


class Died(BaseException):
    """The process is gone."""


class Gone:
    """In place of a connection to a database: a dead process has none."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Died


class Fate:
    """When a process dies. `seen` are its steps."""

    def __init__(self, at: int) -> None:
        self.at, self.seen, self.dead = at, list[str](), False
        self.die: Callable[[], None] = lambda: None

    def step(self, name: str) -> None:
        if self.dead:
            raise Died
        self.seen.append(name)
        if len(self.seen) == self.at:
            self.dead = True
            self.die()
            raise Died

    def around(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **named: Any) -> Any:
            self.step(f"before {what}")
            found = call(*args, **named)
            self.step(f"after {what}")
            return found

        return wrapped


def doomed(world: World, fate: Fate) -> None:
    """Have a process meet its fate at one of its steps."""
    replica, model, database = world.replica, world.model, world.replica._database
    assert model is not None
    chat, save_all, accepted, put = model.chat, replica.save_all, replica._accepted, world.memory.put

    def die() -> None:
        database._db.close()  # what was not committed is not there
        database._db = Gone()  # type: ignore[assignment]  # that is the point

    async def call(*args: Any, **named: Any) -> Any:
        fate.step("before a call")
        found = await chat(*args, **named)
        fate.step("after a call")
        return found

    def save(found: Any, also: Callable[[], None]) -> None:
        def inside() -> None:
            fate.step("before its events")
            also()
            fate.step("after its events")

        fate.step("before saving")
        save_all(found, inside)
        fate.step("after saving")

    def committed(*args: Any, **named: Any) -> Any:
        fate.step("after the commit")
        return accepted(*args, **named)

    async def stored(*args: Any, **named: Any) -> Any:
        fate.step("before a put")
        found = await put(*args, **named)
        fate.step("after a put")
        return found

    def plan(_: StoreRequest, __: int) -> Fault | None:
        return Fault(before=Died()) if fate.dead else None  # type: ignore[arg-type]  # it raises what it is given

    fate.die = die
    model.chat = call  # type: ignore[method-assign]  # a process that dies
    replica.save_all, replica._accepted = save, committed  # type: ignore[method-assign]  # as above
    replica.inbox.claim = fate.around("a claim", replica.inbox.claim)  # type: ignore[method-assign]  # as above
    replica.inbox.confirm = fate.around("a confirmation", replica.inbox.confirm)  # type: ignore[method-assign]  # as above
    replica.journal.put = fate.around("an object", replica.journal.put)  # type: ignore[method-assign]  # as above
    world.store.inner = _Putting(world.memory, stored)  # type: ignore[assignment]  # a store but for its put
    world.store.plan = plan


class _Putting:
    """A store with another `put`."""

    def __init__(self, store: MemoryStore, put: Callable[..., Any]) -> None:
        self._store, self.put = store, put

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def captured(memory: MemoryStore, folder: Path, llm: ScriptedLLM) -> None:
    """A process that takes events in and goes before anybody observes them."""
    async with trio.open_nursery() as nursery:
        world = World(nursery, llm, memory=memory, folder=folder)
        await world.say("start", "startup")
        await world.say("prompt", "Mend the login")
        for number in range(TOOLS):
            await world.tool(number, "Grep" if number == LOOKED else "Edit")
        await world.say("stop")
    await _left(world)


async def lived(memory: MemoryStore, folder: Path, llm: ScriptedLLM, fate: Fate) -> bool:
    """A process that observes until everything is in the bucket, or it dies; whether it lived."""
    try:
        async with trio.open_nursery() as nursery:
            world = World(nursery, llm, settings=SETTINGS, memory=memory, folder=folder)
            doomed(world, fate)
            await world.start()
            await world.settled()
            nursery.cancel_scope.cancel()
    except* Died:
        pass
    if fate.dead:
        world.replica._database._unlock()
        world.replica.close = lambda: None  # type: ignore[method-assign]  # the dead close nothing
    await _left(world)
    return not fate.dead


async def _left(world: World) -> None:
    assert world.model is not None
    await world.model.aclose()
    world.replica.close()


async def expect_everything_once(memory: MemoryStore, folder: Path, llm: ScriptedLLM, about: str) -> None:
    async with trio.open_nursery() as nursery:
        world = World(nursery, llm, memory=memory, folder=folder)
        found, observations, session = world.events(), await world.observations(), await world.session()
        counts = Counter(event for one in observations for event in one.events)
        assert counts == {f"t{number}": 1 for number in range(TOOLS) if number != LOOKED}, about
        assert accounted(found), about
        assert (found.events, found.waiting, found.failed) == (TOOLS + 3, 0, 0), about
        assert found.skipped == {"only looked around": 1}, about
        assert (session.status, session.prompts) == ("completed", 1), about
        assert (session.observed, session.skipped) == (TOOLS - 1, 1), about
        assert sorted(session.observations) == sorted(one.name for one in observations), about
        assert await world.summary() is not None, about
        prompts = (await world.bucket())[keys.session_key(SPACE, "s-1", keys.PROMPTS)]
        assert prompts.count(b"\n") == 1, about
    await _left(world)


def test_whatever_step_the_process_dies_at_every_event_is_observed_once(tmp_path: Path) -> None:
    seen: set[str] = set()

    async def story(at: int, llm: ScriptedLLM) -> bool:
        memory, folder, fate = MemoryStore(), tmp_path / str(at), Fate(at)
        await captured(memory, folder, llm)
        llm.requests.clear()
        whole = await lived(memory, folder, llm, fate)
        about = f"died at step {at}, {fate.seen[-1]}"
        if not whole:
            seen.add(fate.seen[-1])
            assert await lived(memory, folder, llm, Fate(-1)), about
        await expect_everything_once(memory, folder, llm, about)
        shown = Counter(data for request in llm.requests for _, _, data in events_in(request))
        assert max(shown.values()) <= 2, about  # one death costs one more call for an event, and no more
        return whole

    at = 1
    with ScriptedLLM(responder=observing) as llm:
        while not in_virtual_time(story, at, llm):
            at += 1

    assert seen == STEPS
    assert at > 60


@pytest.mark.parametrize(
    "what", ["before a call", "after a call", "before its events", "after its events", "before a put"]
)
def test_a_process_that_dies_again_and_again_observes_every_event_once_in_the_end(tmp_path: Path, what: str) -> None:
    """Deaths are tries: an event that kills whoever asks about it is asked about in smaller and smaller batches."""

    class Doomed(Fate):
        def step(self, name: str) -> None:
            self.at = len(self.seen) + 1 if name == what and not self.dead else -1
            super().step(name)

    async def story() -> None:
        memory = MemoryStore()
        with ScriptedLLM(responder=observing) as llm:
            await captured(memory, tmp_path, llm)
            for _ in range(3):
                assert not await lived(memory, tmp_path, llm, Doomed(-1))
            assert await lived(memory, tmp_path, llm, Fate(-1))
            await expect_everything_once(memory, tmp_path, llm, what)

    in_virtual_time(story)
