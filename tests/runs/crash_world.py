"""A process that dies at one of its requests, over a bucket in memory that outlives it.

The model is a real HTTP endpoint that always gives the same reply.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import trio
from consolidation_world import SPACE, World, asking

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.runs.options import RunOptions
from livememfs.runs.queue import RunQueue
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing.llm import ScriptedLLM
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

WAYS = ["before", "lost", *(["after"] if os.environ.get("LIVEMEMFS_TEST_LONG") else [])]
"""Who dies after a request has done what who dies before the next one has, but for what he wrote down in between."""


class Died(BaseException):
    """The process is gone."""


class Process:
    """A process with the same local state's name as the one before it, and a moment at which it dies."""

    def __init__(
        self, world: World, reply: Mapping[str, Any], at: int = -1, way: str = "", options: RunOptions | None = None
    ) -> None:
        self.world, self.reply, self.options = world, reply, options
        self.at, self.way = at, way
        self.count = 0
        self.where = ""
        self.dead = False
        self.store = FaultyStore(world.memory, plan=self.plan)
        patient = RetryingStore(self.store, RetryPolicy(first_delay=0.01))
        world.store = self.store
        world.replica = Replica(patient)
        world.replica.identity = "the-same"

    def plan(self, asked: StoreRequest, _: int) -> Fault | None:
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
        with ScriptedLLM(responder=lambda _: self.reply) as llm:
            try:
                async with asking(self.world, llm) as consolidations:
                    return (await consolidations.run_once(SPACE, self.options)).state
            except BaseExceptionGroup as group:
                died, rest = group.split(Died)
                if rest is not None or died is None:
                    raise
                return "died"

    async def recover(self) -> None:
        """What a mount does first."""
        async with trio.open_nursery() as nursery:
            made = RunQueue(self.world.replica, self.world.clock, None, nursery=nursery)
            await made.recover([SPACE])
            nursery.cancel_scope.cancel()
