"""A space that goes or comes back while a run is at work on it: each waits for the other, and gone stays gone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import virtual
from consolidation_world import SPACE, World, asking, until_asked

from livememfs import errors
from livememfs.runs.options import RunKind, RunOptions
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import RunResult
from livememfs.runs.undo.restore import restore_backup
from livememfs.spaces import backups
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.testing.llm import Scripted, ScriptedLLM, consolidation_reply, digest_reply, remembered
from livememfs.testing.store import Fault, StoreRequest

REPLIES: dict[RunKind, Any] = {
    "consolidation": consolidation_reply({"progress.md": "# P\n\nnew\n", "x.md": "# X\n\ny\n"}, action="created"),
    "digest": digest_reply(remembered("David is here", 1), remembered("Anna is there", 2)),
}
WRITES = 12


async def remove(world: World, runs: RunQueue) -> None:
    """As commands and tools do."""
    async with runs.leases.hold(SPACE):
        await spaces.delete(world.replica, SPACE)


async def elsewhere(world: World, _: RunQueue) -> None:
    """As a host does that knows of no lease."""
    for info in (await list_all(world.memory, f"{SPACE}/")).objects:
        await world.memory.delete(info.key)


async def left(world: World) -> list[str]:
    return sorted(key for key in await world.everything() if key.startswith(f"{SPACE}/"))


async def beside(
    world: World, llm: ScriptedLLM, kind: RunKind, work: Callable[[RunQueue], Awaitable[object]]
) -> RunResult:
    """The result of a run that `work` is done beside."""
    results: list[RunResult] = []
    async with asking(world, llm) as runs, trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _() -> None:
            results.append(await runs.run_once(SPACE, RunOptions(kind=kind)))

        await work(runs)
    return results[0]


@pytest.mark.parametrize("kind", REPLIES)
async def test_a_space_removed_elsewhere_while_a_model_is_asked_is_not_brought_back(kind: RunKind) -> None:
    world = await World.seeded(notes=2)
    with ScriptedLLM(Scripted(json.dumps(REPLIES[kind]), hold=True)) as llm:

        async def work(runs: RunQueue) -> None:
            await until_asked(llm)
            await elsewhere(world, runs)
            llm.release()

        assert (await beside(world, llm, kind, work)).state == "error"
    assert await left(world) == []


async def test_a_digest_is_not_stored_in_a_space_that_was_made_again() -> None:
    """It is another one, which has only the name of the old."""
    world = await World.seeded(notes=2)
    with ScriptedLLM(Scripted(json.dumps(REPLIES["digest"]), hold=True)) as llm:

        async def work(runs: RunQueue) -> None:
            await until_asked(llm)
            await elsewhere(world, runs)
            world.clock.advance(60)
            await spaces.create(world.replica, world.clock, SPACE)
            llm.release()

        assert (await beside(world, llm, "digest", work)).state == "error"
    assert not [key for key in await left(world) if "/memories/" in key or "/_ledger/" in key]


@pytest.mark.parametrize("at", range(WRITES))
@pytest.mark.parametrize("kind", REPLIES)
@virtual.timed
async def test_a_space_removed_at_any_write_of_a_run_is_not_brought_back(kind: RunKind, at: int) -> None:
    world = await World.seeded(notes=2)
    reached, writes = trio.Event(), 0

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        nonlocal writes
        if asked.verb not in ("put", "delete", "copy"):
            return None
        writes += 1
        if writes > at:
            reached.set()
        return Fault(delay=0.3)

    world.store.plan = plan
    with ScriptedLLM(REPLIES[kind]) as llm:

        async def work(runs: RunQueue) -> None:
            with trio.move_on_after(60):
                await reached.wait()
            await remove(world, runs)

        await beside(world, llm, kind, work)
    assert await left(world) == []


@virtual.timed
async def test_a_restore_waits_for_a_run_of_its_own_process() -> None:
    """A run that is writing would remove the notes that were just brought back."""
    world = World()
    live = await world.seed(notes=2, bank={"progress.md": "# Progress\n\nold\n"})
    made = await backups.create(world.replica, world.clock, SPACE, automatic=False)
    removing = trio.Event()

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        if asked.verb != "delete" or asked.key != live[0] or removing.is_set():
            return None
        removing.set()
        return Fault(delay=20.0)

    world.store.plan = plan
    with ScriptedLLM(consolidation_reply({"progress.md": "# Progress\n\nnew\n"}, action="updated")) as llm:

        async def work(runs: RunQueue) -> None:
            await removing.wait()
            await restore_backup(world.replica, world.clock, runs.leases, SPACE, made.stamp, replace=True)

        assert (await beside(world, llm, "consolidation", work)).state == "ok"
    assert sorted(await world.live()) == sorted(live)
    assert await world.bank() == {"progress.md": "# Progress\n\nold\n"}


async def test_a_restore_that_gives_up_waiting_costs_a_run_nothing() -> None:
    """Nor does it take the lease from a run of its own process, whose reply is paid for."""
    world = await World.seeded(notes=2)
    made = await backups.create(world.replica, world.clock, SPACE, automatic=False)
    with ScriptedLLM(Scripted(json.dumps(REPLIES["consolidation"]), hold=True)) as llm:

        async def work(runs: RunQueue) -> None:
            await until_asked(llm)
            with trio.move_on_after(0.2) as patience:
                await restore_backup(world.replica, world.clock, runs.leases, SPACE, made.stamp, replace=True)
            llm.release()
            assert patience.cancelled_caught

        assert (await beside(world, llm, "consolidation", work)).state == "ok"


async def test_a_space_that_is_not_there_is_not_removed() -> None:
    world = World()
    async with trio.open_nursery() as nursery:
        runs = RunQueue(world.replica, world.clock, None, nursery=nursery)
        with pytest.raises(errors.NotFound):
            await remove(world, runs)
        nursery.cancel_scope.cancel()
