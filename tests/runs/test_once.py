"""Once: a note is taken once, and what somebody took away does not come back, whatever its writer heard of its upload.

Two hosts on one bucket in memory. The writer's first upload meets one of five mishaps while the other host does one of
five things with the note; then the writer recovers, what is on its way arrives, and there is one more run. Time is
virtual.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import virtual
from consolidation_world import SPACE, World, thinking

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.note import Note, canonical_name
from livememfs.runs.consolidation.inputs import gather
from livememfs.runs.consolidation.prompt import consolidation_prompt
from livememfs.runs.inputs import NoteChoice
from livememfs.runs.options import RunKind, RunOptions, RunSettings
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import RunResult
from livememfs.runs.taken import added
from livememfs.runs.undo import run as undo
from livememfs.runs.undo.restore import restore_backup
from livememfs.spaces import backups
from livememfs.spaces.lease import Leases
from livememfs.store.base import Condition, ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing.llm import consolidation_reply
from livememfs.testing.store import Fault, FaultyStore

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
        runs = RunQueue(replica, world.clock, None, RunSettings(), nursery=nursery)
        result = await runs.run_once(SPACE, RunOptions(kind=kind, **options))
        nursery.cancel_scope.cancel()
    assert result.state == "ok", result
    world.clock.advance(60)
    return result


@asynccontextmanager
async def leased(world: World, replica: Replica) -> AsyncIterator[Leases]:
    async with trio.open_nursery() as nursery:
        yield Leases(replica, world.clock, "here", nursery)
        nursery.cancel_scope.cancel()
    world.clock.advance(60)


async def undone(world: World, replica: Replica) -> None:
    """The last run, taken back."""
    async with leased(world, replica) as leases:
        await undo.undo(replica, world.clock, leases, "here", SPACE)


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


# --- what the other host does -----------------------------------------------------------------------------------------


async def consolidates(scene: Scene, other: Replica) -> None:
    await run(scene.world, other)


async def digests(scene: Scene, other: Replica) -> None:
    await run(scene.world, other, "digest")


async def deletes(scene: Scene, other: Replica) -> None:
    other.remove(scene.key, base=await other.names.stat(scene.key, fresh=True))
    await settled(other)


async def edits(scene: Scene, other: Replica) -> None:
    info = await other.names.stat(scene.key, fresh=True)
    changed = scene.data.replace(TEXT.encode(), f"{MORE} {TEXT}".encode())
    other.save(scene.key, changed, meta={"livememfs-name": "store"}, base=info)
    await settled(other)


async def renames(scene: Scene, other: Replica) -> None:
    info = await other.names.stat(scene.key, fresh=True)
    moved = other.move(info, scene.key.replace("0000000a", "0000000b"), replaces=None)
    other.restamp(moved, {"livememfs-name": "bucket"})
    await settled(other)


ACTIONS = [consolidates, digests, deletes, edits, renames]
MISHAPS = ["answer lost", "killed before", "killed after", "late", "silent"]


async def staged(tmp_path: Path, mishap: str, action: Callable[[Scene, Replica], Awaitable[None]]) -> Scene:
    """The whole story but for the last run; afterwards the writer's process shows what the bucket has."""
    world = await World.seeded(meta={"extra": {"distil": ["digest"]}} if action is digests else None)
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
        shown = {
            info.key for info in await replica.names.walk(keys.live_prefix(SPACE), local=True) if "/." not in info.key
        }
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
@virtual.timed
async def test_whatever_its_writer_heard_a_note_is_taken_once_and_does_not_come_back(
    tmp_path: Path, mishap: str, action: Callable[[Scene, Replica], Awaitable[None]]
) -> None:
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


async def takes_an_edit(scene: Scene, other: Replica) -> None:
    """The run takes another version than the one that its writer sent."""
    await edits(scene, other)
    await edits_again(scene, other)
    await consolidates(scene, other)


async def edits_again(scene: Scene, other: Replica) -> None:
    """By a host that has not heard the metadata of what it edits."""
    info = replace(await other.names.stat(scene.key, fresh=True), meta=None)
    other.save(scene.key, b"\n".join([(await other.read(scene.key)).data, b"And so on."]), meta={}, base=info)
    await settled(other)


async def deletes_an_edit(scene: Scene, other: Replica) -> None:
    await edits(scene, other)
    await deletes(scene, other)


async def deletes_unheard(scene: Scene, other: Replica) -> None:
    """By a host that knows of the note from a listing alone."""
    other.remove(scene.key, base=replace(await other.names.stat(scene.key, fresh=True), meta=None))
    await settled(other)


async def takes_as_before(scene: Scene, other: Replica) -> None:
    """By a livememfs that does not write down whose notes it takes."""
    await consolidates(scene, other)
    (entry,) = await scene.world.ledger()
    await scene.world.put(keys.ledger_key(SPACE, 1), replace(entry, origins={}).render())


@pytest.mark.parametrize("action", [takes_an_edit, deletes_an_edit, deletes_unheard, takes_as_before])
@pytest.mark.parametrize("mishap", ["answer lost", "killed before", "silent"])
@virtual.timed
async def test_what_others_made_of_a_note_before_they_took_it_away_makes_no_difference(
    tmp_path: Path, mishap: str, action: Callable[[Scene, Replica], Awaitable[None]]
) -> None:
    scene = await staged(tmp_path, mishap, action)
    assert await scene.there() == {}
    assert len(await scene.taken()) == (0 if action in (deletes_an_edit, deletes_unheard) else 1)


# --- what is no repetition --------------------------------------------------------------------------------------------


@asynccontextmanager
async def one_host() -> AsyncIterator[tuple[World, Scene, Replica]]:
    """A space with a note that was accepted and uploaded."""
    world = await World.seeded()
    scene = Scene(world)
    async with Host(world, None, world.memory).process() as replica:
        scene.accept(replica)
        await settled(replica)
        yield world, scene, replica


async def again(scene: Scene, replica: Replica) -> None:
    """The same bytes under the same name, by somebody who wants them there."""
    scene.accept(replica)
    await settled(replica)


@pytest.mark.parametrize("action", [consolidates, deletes])
@virtual.timed
async def test_a_note_that_somebody_brings_back_is_taken_like_any_other(action: Callable[..., Awaitable[None]]) -> None:
    async with one_host() as (world, scene, replica):
        await action(scene, replica)
        await again(scene, replica)
        result = await run(world, replica)
        assert (result.metrics.notes_processed, result.message) == (1, "")
        assert await scene.there() == {}


@pytest.mark.parametrize("action", [consolidates, deletes, renames])
@virtual.timed
async def test_a_note_that_somebody_brings_back_is_stored_however_often_that_is_tried(
    tmp_path: Path, action: Callable[..., Awaitable[None]]
) -> None:
    """Its bytes are those of the note that was taken away, and an upload of it failed; it is no repetition of that."""
    world = await World.seeded()
    scene, line = Scene(world), FaultyStore(world.memory)
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        await settled(replica)
        await action(scene, replica)
        unsent = Fault(before=errors.Unreachable("refused", endpoint="the bucket"))
        line.script("put", unsent)
        line.script("copy", unsent)
        if action is renames:
            (moved,) = await scene.there()
            replica.move(await replica.names.stat(moved), scene.key, replaces=None)
            await settled(replica)
        else:
            await again(scene, replica)
        assert list(await scene.there()) == [scene.key]


@pytest.mark.parametrize("action", [consolidates, deletes])
@virtual.timed
async def test_a_note_that_a_restore_brings_back_is_taken_like_any_other(
    action: Callable[..., Awaitable[None]],
) -> None:
    async with one_host() as (world, scene, replica):
        made = await backups.create(replica, world.clock, SPACE, automatic=False)
        await action(scene, replica)
        async with leased(world, replica) as leases:
            await restore_backup(replica, world.clock, leases, SPACE, made.stamp, replace=True)
        assert list(await scene.there()) == [scene.key]
        assert (await run(world, replica)).metrics.notes_processed == 1


@virtual.timed
async def test_a_note_that_an_undo_brings_back_is_taken_again_and_a_late_copy_of_it_is_not() -> None:
    async with one_host() as (world, scene, replica):
        first = await world.memory.get(scene.key)
        await run(world, replica)
        await undone(world, replica)
        assert (await run(world, replica)).metrics.notes_processed == 1
        await world.memory.put(scene.key, first.data, meta=first.info.meta)
        result = await run(world, replica)
        assert (result.metrics.notes_processed, "taken before" in result.message) == (0, True)


@virtual.timed
async def test_a_copy_that_comes_long_after_its_note_was_taken_was_brought_by_somebody() -> None:
    """A tool that copies a note out of a backup copies the id of its write as well."""
    async with one_host() as (world, scene, replica):
        first = await world.memory.get(scene.key)
        await run(world, replica)
        world.clock.advance(hours=2)
        await world.memory.put(scene.key, first.data, meta=first.info.meta)
        assert (await run(world, replica)).metrics.notes_processed == 1


@virtual.timed
async def test_a_dry_run_leaves_a_late_copy_where_it_is_and_says_so() -> None:
    async with one_host() as (world, scene, replica):
        first = await world.memory.get(scene.key)
        await run(world, replica)
        await world.memory.put(scene.key, first.data, meta=first.info.meta)
        result = await run(world, replica, dry_run=True)
        assert (result.metrics.notes_processed, "taken before" in result.message) == (0, True)
        assert list(await scene.there()) == [scene.key]


@virtual.timed
async def test_an_account_that_cannot_be_read_keeps_a_note() -> None:
    async with one_host() as (world, scene, replica):
        first = await world.memory.get(scene.key)
        await deletes(scene, replica)
        await world.put(keys.removed_key(scene.key), b'{"ids": [')
        await world.memory.put(scene.key, first.data, meta=first.info.meta)
        assert (await run(world, replica)).metrics.notes_processed == 1


# --- one host alone ---------------------------------------------------------------------------------------------------


@virtual.timed
async def test_a_note_that_its_writer_removes_before_it_has_arrived_does_not_stay(tmp_path: Path) -> None:
    world = await World.seeded()
    scene, line = Scene(world), Line(world.memory, "late")
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        while not line.under_way:
            await trio.sleep(0.01)
        replica.remove(scene.key, base=replica.names.now(scene.key))
        await settled(replica)
        world.clock.advance(60)
        await line.arrive()
        assert list(await scene.there()) == [scene.key]
        assert "taken before" in (await run(world, replica)).message
        assert await scene.there() == {}


async def given_up(scene: Scene, replica: Replica) -> None:
    """Wait until an attempt has ended, and the next has not begun."""
    while (op := replica.journal.ops.newest(scene.key)) is not None and op.in_flight:
        await trio.sleep(0.01)


@virtual.timed
async def test_a_note_whose_writer_sets_its_time_while_it_is_being_taken_is_still_the_same_note(tmp_path: Path) -> None:
    world = await World.seeded()
    scene, line = Scene(world), Line(world.memory, "answer lost")
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        await line.arrived.wait()
        await given_up(scene, replica)
        shown = replica.names.now(scene.key)
        assert shown is not None
        replica.restamp(shown, {"livememfs-mtime": "1"})
        async with Host(world, None, world.memory).process() as other:
            await run(world, other)
        line.fail_all = None
        await settled(replica)
    assert await scene.there() == {}


@virtual.timed
async def test_a_note_that_is_removed_and_brought_back_while_answers_are_lost_is_there(tmp_path: Path) -> None:
    world = await World.seeded()
    scene, line = Scene(world), Line(world.memory, "answer lost")
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        await line.arrived.wait()
        await given_up(scene, replica)
        gone, delete = trio.Event(), line.delete

        async def lost(key: str, **more: Any) -> None:
            await delete(key, **more)
            line.fail_all = errors.Unreachable("reset", endpoint="the bucket")
            gone.set()
            raise errors.Unreachable("reset", endpoint="the bucket")

        line.delete = lost  # type: ignore[method-assign]
        replica.remove(scene.key, base=replica.names.now(scene.key))
        line.fail_all = None
        await gone.wait()
        assert await scene.there() == {}
        scene.accept(replica)
        await trio.sleep(60)  # the removal was given up, and the new note has taken its place
        line.fail_all = None
        await settled(replica)
        assert list(await scene.there()) == [scene.key]


@virtual.timed
async def test_what_its_writer_edits_after_it_was_taken_is_stored_and_the_rest_is_not_said_twice(
    tmp_path: Path,
) -> None:
    """The answer to the first upload was lost, a run took the note, and its writer goes on writing."""
    world = await World.seeded()
    scene, line = Scene(world), Line(world.memory, "answer lost")
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        await line.arrived.wait()
        async with Host(world, None, world.memory).process() as other:
            await run(world, other)
            base = replica.names.now(scene.key)
            replica.save(scene.key, scene.data + MORE.encode(), meta={}, base=base)
            line.fail_all = None
            await settled(replica)
            await run(world, other)
    assert await scene.said() == 1
    assert sum(MORE in text for text in (await world.bank()).values()) == 1


@virtual.timed
async def test_an_upload_is_not_repeated_by_whoever_does_not_know_that_its_note_was_taken(tmp_path: Path) -> None:
    """Stores are patient: without a word from here, the next attempt would come within the same request."""
    world = await World.seeded()
    scene, line = Scene(world), FaultyStore(world.memory)

    async def lost(key: str, data: bytes, **more: Any) -> ObjectInfo:
        found = await world.memory.put(key, data, **more)
        if key == scene.key:
            async with Host(world, None, world.memory).process() as other:
                await run(world, other)
            raise errors.Unreachable("reset", endpoint="the bucket")
        return found

    line.put = lost  # type: ignore[method-assign]
    async with Host(world, tmp_path, line).process() as replica:
        scene.accept(replica)
        await settled(replica)
    assert (await scene.there(), len(await scene.taken())) == ({}, 1)


# --- edited while a run took it ---------------------------------------------------------------------------------------


async def edited(world: World, scene: Scene, replica: Replica) -> None:
    """A run takes the note, and an edit of it comes between the commit and the removal."""
    info = await replica.names.stat(scene.key, fresh=True)
    store = replica.store.inner  # type: ignore[attr-defined]  # that of `Host.process`
    delete = store.delete

    async def late(key: str, **more: Any) -> None:
        if key == scene.key:
            await store.put(key, scene.data + MORE.encode(), meta=info.meta | {"livememfs-op": "an-edit"})
        await delete(key, **more)

    store.delete = late
    try:
        result = await run(world, replica)
    finally:
        store.delete = delete
    assert "edited meanwhile" in result.message


@virtual.timed
async def test_a_note_edited_while_a_run_took_it_comes_with_what_is_new_in_it() -> None:
    async with one_host() as (world, scene, replica):
        await edited(world, scene, replica)
        inputs = await gather(replica, SPACE, NoteChoice(10, world.clock.now(), ledger=1))
        (live,) = inputs.notes
        assert (live.taken_by, live.new, inputs.late) == (1, MORE, ())
        asked = consolidation_prompt(inputs)[-1].content
        assert f'"taken_by_run": 1, "new_in_it": "{MORE}"' in asked

        await run(world, replica)
        assert [dict(entry.continues) for entry in await world.ledger()] == [{}, {scene.key: 1}]
        assert (await scene.said(), await scene.there()) == (1, {})
        assert sum(text.count(MORE) for text in (await world.bank()).values()) == 1


@virtual.timed
async def test_an_entry_of_a_later_livememfs_is_read_without_what_is_not_known_of_it() -> None:
    async with one_host() as (world, _, replica):
        await run(world, replica)
        (entry,) = await world.ledger()
        later = json.loads(entry.render())
        for part in (later, *later["removes"], *later["writes"]):
            part["new"] = 1
        assert Entry.parse(json.dumps(later).encode()) == entry


@virtual.timed
async def test_a_run_that_was_taken_back_has_left_nothing_to_continue() -> None:
    async with one_host() as (world, scene, replica):
        await edited(world, scene, replica)
        await undone(world, replica)
        (live,) = (await gather(replica, SPACE, NoteChoice(10, world.clock.now(), ledger=2))).notes
        assert (live.taken_by, live.new) == (0, None)


@virtual.timed
async def test_without_the_backup_a_note_still_says_which_run_took_the_rest() -> None:
    async with one_host() as (world, scene, replica):
        await edited(world, scene, replica)
        for key in await world.everything():
            if key.startswith(keys.BACKUPS):
                await world.memory.delete(key)
        (live,) = (await gather(replica, SPACE, NoteChoice(10, world.clock.now(), ledger=1))).notes
        assert (live.taken_by, live.new, live.unread) == (1, None, live.note)


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("one\ntwo\n", "one\ntwo\nthree\n", "three\n"),
        ("one", "one\ntwo", "two"),
        ("one\ntwo\n", "zero\none\n2\n", "zero\n2\n"),
        ("one\ntwo\n", "one\n", ""),
        ("\n" * 6_000, "one\n", None),
    ],
)
def test_what_is_new_in_a_text(before: str, after: str, new: str | None) -> None:
    assert added(before, after) == new


async def test_a_note_that_is_being_renamed_is_taken_under_its_new_name_alone() -> None:
    world = await World.seeded()
    old = {"livememfs-name": "store", "livememfs-op": "a"}
    new = {"livememfs-name": "bucket", "livememfs-op": "r", "livememfs-made": "a"}
    copied = {**old, "livememfs-op": "c"}
    for number, meta in enumerate((old, new, {}, copied, copied)):
        world.clock.advance(1)
        key = f"{SPACE}/live/20260220T140000_cline_todo_0000000{number}.md"
        await world.memory.put(key, TEXT.encode(), meta=meta)

    taken = await gather(world.replica, SPACE, NoteChoice(max_notes=10, now=world.clock.now()))

    # Notes without ids, and copies with the metadata of another one as other tools make them, are notes of their own.
    assert [live.key[-4] for live in taken.notes] == ["1", "2", "3", "4"]


async def test_a_note_that_is_edited_while_the_model_thinks_comes_back_with_what_is_new_in_it() -> None:
    world = await World.seeded(notes=1)
    [key] = await world.live()
    reply = consolidation_reply({"progress.md": "# Progress\n\nThis is note 1.\n"})
    async with thinking(world, reply) as result:
        await world.put(key, await world.get(key) + f"\n{MORE}\n".encode())

    assert "edited meanwhile" in result["message"]
    [live] = (await gather(world.replica, SPACE, NoteChoice(max_notes=10, now=world.clock.now()))).notes
    assert (live.taken_by, live.new) == (1, f"{MORE}\n")
