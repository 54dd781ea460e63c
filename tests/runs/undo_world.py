"""Undoing in the world of the consolidations: runs of several kinds, and pictures of a space to compare."""

from __future__ import annotations

from collections.abc import Callable

import trio
from consolidation_world import SPACE, World, filing, run

from livememfs.cache.replica import Replica
from livememfs.concurrency import the_one
from livememfs.errors import Unreachable
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.undo.run import undo
from livememfs.spaces.lease import Leases
from livememfs.testing.llm import consolidation_reply
from livememfs.testing.store import Fault, StoreRequest

BRINGS_BACK = ("synthesis", "note", "bank")


async def take_back(world: World, number: int | None = None, *, space: str = SPACE) -> Entry:
    """One undo by a process of its own."""
    try:
        async with trio.open_nursery() as nursery:
            leases = Leases(world.replica, world.clock, "here", nursery)
            return await undo(world.replica, world.clock, leases, "here", space, number)
    except BaseExceptionGroup as group:
        raise the_one(group) from None


async def consolidate(world: World, files: dict[str, str], synthesis: str = "Filed.") -> Entry:
    """One run of the scripted model with these files, a minute later; its entry."""
    world.clock.advance(60)
    result = await run(world, consolidation_reply(files, synthesis=synthesis))
    assert (result.state, result.reason) == ("ok", "")
    return (await world.ledger())[-1]


async def picture(world: World) -> dict[str, bytes]:
    """What an undo brings back, byte for byte."""
    return {key: data for key, data in (await world.bucket()).items() if keys.parse(key).kind in BRINGS_BACK}


async def recovered(world: World) -> None:
    """What the next process does first, as one that has never heard of the bucket."""
    world.replica = Replica(world.store)
    async with filing(world) as consolidations:
        await consolidations.recover([SPACE])


# --- a crash ---------------------------------------------------------------------------------------------------------


async def twin_of(world: World) -> World:
    """Another bucket with the same objects."""
    twin = World()
    for key in await world.everything():
        found = await world.memory.get(key)
        await twin.memory.put(key, found.data, meta=found.info.meta)
    return twin


def dies(world: World, call: int, *, after: bool) -> Callable[[], bool]:
    """From this request on nobody hears of the process again; `after`: the request itself is still carried out."""
    asked = 0

    def plan(_: StoreRequest, __: int) -> Fault | None:
        nonlocal asked
        asked += 1
        if asked < call:
            return None
        return Fault(after=Unreachable("dead")) if after and asked == call else Fault(before=Unreachable("dead"))

    world.store.plan = plan
    return lambda: asked >= call


async def space_of(world: World) -> dict[str, bytes]:
    """All objects of the space."""
    return {key: data for key, data in (await world.bucket()).items() if key.startswith(f"{SPACE}/")}
