"""A run that dies: at each of its requests, before it, after it, or with the answer lost; what the next process finds.

Afterwards exactly one of two holds: everything is as it was, or everything was carried out. No note is lost, none is
taken twice. The model is a real HTTP endpoint; the bucket is in memory and outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from consolidation_world import SPACE, World, asking
from trio.testing import MockClock

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.pipelines.queue import Consolidations
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing.llm import ScriptedLLM, consolidation_reply
from livememfs.testing.store import Asked, Fault, FaultyStore

OLD = "# Progress\n\n## Done\n\n- began\n"
REPLY = consolidation_reply(
    {"new.md": "# New\n"},
    bank_files=[
        {
            "filename": "progress.md",
            "action": "updated",
            "edits": [{"op": "append", "heading": ["Progress", "Done"], "content": "- more"}],
        },
        {"filename": "new.md", "action": "created", "content": "# New\n"},
    ],
)
NOTES = 3
WAYS = ["before", "after", "lost"]


class Died(BaseException):
    """The process is gone."""


class Process:
    """A process with the same local state's name as the one before it, and a moment at which it dies."""

    def __init__(self, world: World, at: int = -1, way: str = "") -> None:
        self.world = world
        self.at, self.way = at, way
        self.count = 0
        self.where = ""
        self.dead = False
        self.store = FaultyStore(world.memory, plan=self.plan)
        patient = RetryingStore(self.store, RetryPolicy(first_delay=0.01))
        world.store = self.store
        world.replica = Replica(patient)
        world.replica.identity = "the-same"

    def plan(self, asked: Asked, _: int) -> Fault | None:
        """Dead at the moment, and at every request after it: nothing has an effect any more."""
        self.count += 1
        if self.dead:
            return Fault(before=Died())  # type: ignore[arg-type]  # the store raises what it is given
        if self.count != self.at:
            return None
        self.where = f"{asked.verb} {asked.key}"
        self.dead = self.way != "lost"
        if self.way == "before":
            return Fault(before=Died())  # type: ignore[arg-type]  # as above
        if self.way == "after":
            return Fault(after=Died())  # type: ignore[arg-type]  # as above
        return Fault(after=errors.Unreachable("reset", endpoint="the bucket"))

    async def live(self) -> str:
        """One run, as far as it gets; how it ended."""
        with ScriptedLLM(responder=lambda _: REPLY) as llm:
            try:
                async with asking(self.world, llm) as consolidations:
                    return (await consolidations.run_once(SPACE)).state
            except BaseExceptionGroup as group:
                died, rest = group.split(Died)
                if rest is not None or died is None:
                    raise
                return "died"

    async def recover(self) -> None:
        """What a mount does first."""
        async with trio.open_nursery() as nursery:
            made = Consolidations(self.world.replica, self.world.clock, None, nursery=nursery)
            await made.recover([SPACE])
            nursery.cancel_scope.cancel()


async def seeded() -> World:
    world = World()
    await world.seed(notes=NOTES, bank={"progress.md": OLD, "kept.md": "# Kept\n"})
    return world


def started(main: Callable[[], Any]) -> Any:
    return trio.run(main, clock=MockClock(autojump_threshold=0.05))


async def course() -> tuple[dict[str, bytes], dict[str, bytes], int]:
    """The space before and after a run that nothing happens to, and how many requests it makes."""
    world = await seeded()
    before = await world.bucket()
    process = Process(world)
    assert await process.live() == "ok"
    return before, await world.bucket(), process.count


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_dies_at_any_request_has_happened_or_has_not(way: str) -> None:
    before, after, count = started(course)
    seen = set()
    for at in range(1, count + 1):

        async def story(at: int = at) -> None:
            world = await seeded()
            process = Process(world, at, way)
            ended = await process.live()
            await Process(world).recover()
            found = await world.bucket()
            about = f"died {way} request {at}, {process.where}: {ended}"
            assert found in (before, after), about
            seen.add(found == after)
            if way == "lost":
                assert (ended, found == after) == ("ok", True), about

            # Whoever runs next takes every note once, and leaves nothing behind.
            assert await Process(world).live() == "ok", about
            assert await world.bucket() == after, about
            assert Meta.parse(await world.get(keys.meta_key(SPACE))).total_notes_processed == NOTES
            assert [entry.state for entry in await world.ledger()] == ["applied"], about

        started(story)
    print(f"{count} requests, {way}")
    assert seen == ({True} if way == "lost" else {True, False})
