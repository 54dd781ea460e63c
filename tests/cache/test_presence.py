"""Directories that go: their markers go last, and a folder without a key is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hierarchical import HierarchicalStore
from journal_world import Machine
from trio.abc import Clock

from livememfs.cache.presence import known_below, knows
from livememfs.store.markers import MarkerStore
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

FILES = [f"space/d/{folder}{number}" for folder in ("", "below/") for number in range(3)]


@pytest.mark.parametrize("crash", [False, True], ids=["", "after a crash"])
async def test_a_marker_is_removed_after_all_that_was_below_it(
    machine: Machine, autojump_clock: Clock, crash: bool
) -> None:
    async with machine.running() as replica:
        infos = [replica.save(key, b"1", meta={}, base=None) for key in ("space/d/", "space/d/below/", *FILES)]
        await replica.uploaded()
    machine.store.forget()
    machine.store.plan = lambda asked, count: Fault(delay=1.0 / (1 + count)) if asked.verb == "delete" else None
    async with machine.stopped() if crash else machine.running() as replica:
        await replica.names.listing("space/d/")
        for info in infos:
            replica.remove(info.key, base=info)
        if not crash:
            await replica.uploaded()
    if crash:
        async with machine.running() as replica:
            await replica.uploaded()

    removed = [asked.key for asked in machine.store.requests if asked.verb == "delete"]
    assert sorted(removed) == sorted(info.key for info in infos)
    assert removed[-2:] == ["space/d/below/", "space/d/"]


async def test_a_marker_that_comes_again_does_not_wait_for_what_is_below(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        marker, file = (replica.save(key, b"1", meta={}, base=None) for key in ("space/d/", "space/d/file"))
        await replica.uploaded()
        machine.store.plan = lambda asked, _: Fault(delay=20.0) if asked == StoreRequest("delete", file.key) else None
        replica.remove(file.key, base=file)
        replica.remove(marker.key, base=marker)
        replica.save(marker.key, b"", meta={"livememfs-mode": "700"}, base=None)
        await trio.sleep(5.0)

        assert (await machine.memory.head(marker.key)).meta is not None
        assert (await machine.memory.head(marker.key)).meta["livememfs-mode"] == "700"


async def test_a_folder_that_lost_its_last_key_is_not_there(tmp_path: Path, autojump_clock: Clock) -> None:
    bucket = HierarchicalStore(ManualClock())
    for key in ("space/gone/file", "space/gone/deep/er/file", "space/kept/deep/file"):
        await bucket.put(key, b"1")
    for key in ("space/gone/file", "space/gone/deep/er/file"):
        await bucket.delete(key)
    machine = Machine(tmp_path / "cache", bucket)
    machine.store = FaultyStore(MarkerStore(bucket))
    async with machine.running() as replica:
        assert (await replica.names.listing("space/")).folders == {"gone", "kept"}
        assert not await replica.presence.is_there("space/gone/deep/er/")
        assert not await replica.presence.is_there("space/gone/")
        assert await replica.presence.empty("space/") == {"gone"}

        await bucket.put("space/gone/file", b"2")
        await trio.sleep(60.0)
        assert await replica.presence.empty("space/") == set()


async def test_on_s3_no_folder_is_asked_for(tmp_path: Path, autojump_clock: Clock) -> None:
    machine = Machine(tmp_path / "cache", MemoryStore(ManualClock()))
    for number in range(5):
        await machine.memory.put(f"space/{number}/file", b"1")
    async with machine.running() as replica:
        assert await replica.presence.empty("space/") == set()
        assert await replica.presence.is_there("space/1/")

    assert machine.store.counts["list"] == 2


async def test_what_is_known_below_a_prefix_is_told_without_asking_and_only_as_a_whole(
    machine: Machine, autojump_clock: Clock
) -> None:
    for key in ("space/a", "space/d/b", "space/d/e/c", "spaces"):
        await machine.memory.put(key, b"1")
    async with machine.running() as replica:
        names = replica.names
        assert known_below(names, "space/") is None
        assert (knows(names, "space/"), knows(names, "space/a")) == (True, False)
        for prefix in ("", "space/", "space/d/"):
            await names.listing(prefix)
            assert known_below(names, "space/") is None, "some level is not known"
        await names.listing("space/d/e/")
        asked = machine.store.counts["list"]
        found = known_below(names, "space/")
        assert found is not None
        assert {info.key for info in found} == {"space/a", "space/d/b", "space/d/e/c"}
        assert machine.store.counts["list"] == asked
        assert [knows(names, key) for key in ("space/", "other/", "space/a", "space/x")] == [True, False, True, False]
