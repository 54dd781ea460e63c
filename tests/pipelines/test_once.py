"""Once: a note is taken once, and what somebody took away does not come back, whatever its writer heard of its upload.

Two hosts on one bucket in memory. The writer's first upload meets one of five mishaps while the other host does one of
five things with the note; then the writer recovers, what is on its way arrives, and there is one more run. Time is
virtual.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from consolidation_world import SPACE, World

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.pipelines.options import ConsolidationSettings, RunKind, RunOptions
from livememfs.pipelines.queue import Consolidations
from livememfs.pipelines.result import RunResult
from livememfs.records import keys
from livememfs.records.note import Note, canonical_name
from livememfs.store.base import Condition, ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing import virtual
from livememfs.testing.store import FaultyStore

TEXT = "We keep the notes in S3."
MORE = "And the index on the disk."
PATIENCE = 1_000.0
Story = Callable[[], Awaitable[None]]


class Line(FaultyStore):
    """The writer's way to the bucket. `mishap` befalls the first upload of a note; later ones are as usual."""

    def __init__(self, store: MemoryStore, mishap: str) -> None:
        super().__init__(store)
        self.mishap = mishap
        self.under_way: list[Callable[[], Awaitable[object]]] = []
        self.arrived = trio.Event()

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        if keys.parse(key).kind != "note" or self.arrived.is_set():
            return await super().put(key, data, meta=meta, condition=condition)
        if self.mishap == "late" and not self.under_way:
            self.under_way.append(lambda: self.inner.put(key, data, meta=meta, condition=condition))
            raise errors.Unreachable("reset", endpoint="the bucket")
        found = await super().put(key, data, meta=meta, condition=condition)
        self.arrived.set()
        if self.mishap == "answer lost":
            self.fail_all = errors.Unreachable("reset", endpoint="the bucket")
            raise errors.Unreachable("reset", endpoint="the bucket")
        if self.mishap in ("killed before", "silent"):
            self.blackhole = True
            await trio.sleep_forever()
        return found

    async def arrive(self) -> None:
        """What was given up arrives all the same."""
        for late in self.under_way:
            try:
                await late()
            except errors.PreconditionFailed:
                continue


class Host:
    """One machine: its local state outlives its processes."""

    def __init__(self, world: World, folder: Path | None, store: Any) -> None:
        self.world, self.folder, self.store = world, folder, store

    @asynccontextmanager
    async def process(self) -> AsyncIterator[Replica]:
        patient = RetryingStore(self.store, RetryPolicy(first_delay=0.01, deadline=20.0))
        replica = Replica(patient, folder=self.folder, host=str(self.folder), now_ns=self._now_ns)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(replica.run)
                yield replica
                nursery.cancel_scope.cancel()
        finally:
            replica.close()

    def _now_ns(self) -> int:
        return int(self.world.clock.now().timestamp()) * 1_000_000_000


async def run(world: World, replica: Replica, kind: RunKind = "consolidation", **options: Any) -> RunResult:
    """One run without a model."""
    async with trio.open_nursery() as nursery:
        runs = Consolidations(replica, world.clock, None, ConsolidationSettings(), nursery=nursery)
        result = await runs.run_once(SPACE, RunOptions(kind=kind, **options))
        nursery.cancel_scope.cancel()
    assert result.state == "ok", result
    world.clock.advance(60)
    return result


async def settled(replica: Replica) -> None:
    with trio.fail_after(PATIENCE):
        await replica.uploaded()


class Scene:
    """A note, where it is, and what became of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        note = Note(world.clock.now(), "cline", "decision", (), SPACE, f"{TEXT}\n")
        self.name = canonical_name(note, "0000000a")
        self.key, self.data = keys.live_key(SPACE, self.name), note.render()

    def accept(self, replica: Replica) -> None:
        """What a close does."""
        replica.save(self.key, self.data, meta={"livememfs-name": "store"}, base=None)

    async def there(self) -> dict[str, str]:
        """The notes in the bucket."""
        return {key: (await self.world.get(key)).decode() for key in await self.world.live()}

    async def taken(self) -> list[tuple[str, str]]:
        """Key and digest of every note that a run has taken, once for each time."""
        return [(note.key, note.sha256) for entry in await self.world.ledger() for note in entry.removes]

    async def said(self) -> int:
        """How often the bank and the memories say it."""
        found = await self.world.bucket()
        texts = [data.decode() for key, data in found.items() if "/bank/" in key or "/memories/" in key]
        return sum(text.count(TEXT) for text in texts)


# --- what the other host does ----------------------------------------------------------------------------------------


async def consolidates(scene: Scene, other: Replica) -> None:
    await run(scene.world, other)


async def digests(scene: Scene, other: Replica) -> None:
    await run(scene.world, other, "digest")


async def deletes(scene: Scene, other: Replica) -> None:
    other.remove(scene.key, base=await other.stat(scene.key, fresh=True))
    await settled(other)


async def edits(scene: Scene, other: Replica) -> None:
    info = await other.stat(scene.key, fresh=True)
    changed = scene.data.replace(TEXT.encode(), f"{MORE} {TEXT}".encode())
    other.save(scene.key, changed, meta={"livememfs-name": "store"}, base=info)
    await settled(other)


async def renames(scene: Scene, other: Replica) -> None:
    info = await other.stat(scene.key, fresh=True)
    moved = other.move(info, scene.key.replace("0000000a", "0000000b"), replaces=None)
    other.restamp(moved, {"livememfs-name": "bucket"})
    await settled(other)


ACTIONS = [consolidates, digests, deletes, edits, renames]
MISHAPS = ["answer lost", "killed before", "killed after", "late", "silent"]


async def staged(tmp_path: Path, mishap: str, action: Callable[[Scene, Replica], Awaitable[None]]) -> Scene:
    """The whole story but for the last run; afterwards the writer's process shows what the bucket has."""
    world = World()
    await world.seed(meta={"extra": {"distil": ["digest"]}} if action is digests else None)
    scene = Scene(world)
    line = Line(world.memory, mishap)
    writer, there = Host(world, tmp_path / "writer", line), Host(world, tmp_path / "other", world.memory)

    async def act() -> None:
        world.clock.advance(60)
        async with there.process() as other:
            await action(scene, other)
        world.clock.advance(60)

    async def recovered(replica: Replica) -> None:
        line.fail_all, line.blackhole = None, False
        await settled(replica)
        await line.arrive()
        shown = {info.key for info in await replica.walk(keys.live_prefix(SPACE), local=True) if "/." not in info.key}
        assert shown == set(await scene.there())

    async with writer.process() as replica:
        scene.accept(replica)
        await line.arrived.wait()
        if mishap in ("late", "killed after"):
            await settled(replica)
        if not mishap.startswith("killed"):
            await act()
            await recovered(replica)
    if mishap.startswith("killed"):
        await act()
        async with writer.process() as replica:
            await recovered(replica)
    return scene


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("mishap", MISHAPS)
def test_whatever_its_writer_heard_a_note_is_taken_once_and_does_not_come_back(
    tmp_path: Path, mishap: str, action: Callable[[Scene, Replica], Awaitable[None]]
) -> None:
    async def main() -> None:
        scene = await staged(tmp_path, mishap, action)
        before = await scene.there()
        expected = {
            consolidates: {},
            digests: {},
            deletes: {},
            edits: {scene.key: MORE},
            renames: {scene.key.replace("0000000a", "0000000b"): TEXT},
        }[action]
        if mishap != "late":  # what is on its way cannot be stopped; the run finds it
            assert before.keys() == expected.keys()
        assert all(text in before[key] for key, text in expected.items())

        async with Host(scene.world, None, scene.world.memory).process() as other:
            last = await run(scene.world, other, "digest" if action is digests else "consolidation")
        late = mishap == "late" and action is not edits
        assert ("taken before" in last.message) == late, last.message
        assert await scene.there() == {}
        assert len(await scene.taken()) == (0 if action is deletes else 1)
        assert await scene.said() == (0 if action is deletes else 1)

    virtual.run(main)
