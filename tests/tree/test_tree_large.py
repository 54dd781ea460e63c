"""Large files: what is true of files in memory is true of those that lie in the cache folder and come in parts."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import test_tree_hosts_model
import test_tree_model
import trio
from hosts import APPEND, EDIT, READ, REPLACE, Host, World, all_is_large, close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from livememfs import errors
from livememfs.cache import conflicts
from livememfs.store.content import LARGE, PART
from livememfs.testing.store import Fault, StoreRequest
from livememfs.tree.node import AttrChange, Caller, Handle

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))

FILE = "alpha/film"
FILM = bytes(range(256)) * (LARGE // 256 + 1)
OpenWorld = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
async def world(nursery: trio.Nursery, open_world: OpenWorld, tmp_path: Path) -> Any:
    async with open_world(tmp_path) as world:
        yield world


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(operations=st.lists(test_tree_model.OPERATIONS, min_size=4, max_size=30))
def test_the_tree_holds_what_a_dictionary_would_hold(open_world: OpenWorld, operations: list[tuple[Any, ...]]) -> None:
    async def main(folder: str) -> None:
        async with open_world(Path(folder)) as world:
            machine = test_tree_model.Machine(world)
            await world.here.mkdir(test_tree_model.TOP)
            for operation in operations:
                await machine.step(*operation)
            await machine.compare(world.here)
            await machine.finish()

    with all_is_large(), tempfile.TemporaryDirectory() as folder:
        trio.run(main, folder, clock=MockClock(autojump_threshold=0))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60 if LONG else 6)
@given(operations=st.lists(test_tree_hosts_model.OPERATIONS, min_size=20, max_size=60), seed=st.integers(0, 1 << 20))
def test_two_hosts_lose_nothing_and_agree_in_the_end(
    open_world: OpenWorld, operations: list[tuple[Any, ...]], seed: int
) -> None:
    async def main(folder: str) -> None:
        async with open_world(Path(folder)) as world:
            machine = test_tree_hosts_model.Machine(world, seed)
            await machine.hosts["one"].mkdir(test_tree_hosts_model.TOP)
            await machine.step("settle")
            for operation in operations:
                await machine.step(*operation)
            await machine.step("settle")

    with all_is_large(), tempfile.TemporaryDirectory() as folder:
        trio.run(main, folder, clock=MockClock(autojump_threshold=0))


async def written(host: Host, path: str, data: bytes) -> Handle:
    """A file that is open, with this content, saved."""
    handle = await host.open(path, EDIT)
    for start in range(0, len(data), 1 << 20):
        await handle.write(start, data[start : start + (1 << 20)])
    await handle.flush()
    return handle


async def test_what_is_accepted_stays_as_it_is_while_its_writer_goes_on(world: World, here: Host) -> None:
    """The uploader reads the file at its leisure: a torn version must never reach the bucket."""
    here.prompt = False
    versions: list[bytes] = []
    put = world.memory.put

    async def noted(key: str, data: Any, **how: Any) -> Any:
        info = await put(key, data, **how)
        if key == FILE:
            versions.append((await world.memory.get(key)).data)
        return info

    world.memory.put = noted  # type: ignore[method-assign]
    handle = await written(here, FILE, FILM)
    await handle.write(5, b"changed")  # not saved yet
    await here.replica.uploaded()
    assert versions == [FILM]
    await close(handle)
    await here.replica.uploaded()
    assert versions == [FILM, FILM[:5] + b"changed" + FILM[12:]]


async def test_a_part_comes_when_it_is_read_and_once_for_all_readers(
    world: World, here: Host, there: Host, autojump_clock: MockClock
) -> None:
    await close(await written(here, FILE, FILM))
    await world.uploaded()
    asked: list[StoreRequest] = []
    there.store.plan = lambda request, _: asked.append(request)  # type: ignore[func-returns-value]
    first, second = await there.open(FILE), await there.open(FILE)
    assert [request for request in asked if request.verb == "get"] == []
    async with trio.open_nursery() as nursery:
        for handle in (first, second):
            nursery.start_soon(handle.read, PART + 5, 10)
    assert await second.read(PART + 5, 10) == FILM[PART + 5 : PART + 15]
    assert sum(request.verb == "get" for request in asked) == 1
    assert await first.read(3, 4) == FILM[3:7]
    assert sum(request.verb == "get" for request in asked) == 2
    there.store.plan = None
    await close(first, second)
    assert (await there.read(FILE)) == FILM
    await there.change(FILE, size=PART)
    assert (await here_bytes(world)) == FILM[:PART]


async def here_bytes(world: World) -> bytes:
    return (await world.bucket())[FILE]


async def test_a_reader_never_gets_two_parts_of_two_versions(world: World, here: Host, there: Host) -> None:
    await close(await written(here, FILE, FILM))
    await world.uploaded()
    reader = await there.open(FILE, READ)
    assert await reader.read(PART, 4) == FILM[PART : PART + 4]
    await here.write(FILE, FILM[::-1], REPLACE)
    with pytest.raises(errors.Stale):
        await reader.read(0, 4)
    assert await reader.read(PART, 4) == FILM[PART : PART + 4]
    await reader.release()
    assert await here.read(FILE) == FILM[::-1]


async def test_nothing_large_is_left_in_memory_or_open_once_it_is_closed(
    world: World, here: Host, tmp_path: Path
) -> None:
    """Each would keep a descriptor and, once the cache has given it up, its space on the disk."""
    here.caches = []  # the kernel goes on holding the nodes
    await close(await written(here, FILE, FILM))
    await here.write(FILE, b"more", APPEND)
    assert await here.read(FILE) == FILM + b"more"
    gc.collect()
    assert list(tmp_path.rglob("*.open")) == []


async def test_what_a_killed_process_was_writing_takes_no_room(tmp_path: Path, open_world: OpenWorld) -> None:
    left = tmp_path / "here/contents/abc.open"
    left.parent.mkdir(parents=True)
    left.write_bytes(FILM)
    async with open_world(tmp_path):
        assert not left.exists()


async def test_of_two_large_versions_both_are_kept(
    world: World, here: Host, there: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not joined, which would take as much memory, and none of them is lost."""
    monkeypatch.setattr(conflicts, "JOINED_BYTES", LARGE)
    await close(await written(here, FILE, FILM))
    mine, yours = await here.open(FILE, EDIT), await there.open(FILE, EDIT)
    await mine.write(0, b"mine")
    await yours.write(0, b"yours")
    await close(mine, yours)
    await world.uploaded()
    kept = sorted(data[:5] for key, data in (await world.bucket("alpha/film")).items())
    assert kept == [b"mine" + FILM[4:5], b"yours"]


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrived", "it did not"])
async def test_a_large_version_whose_answer_was_lost_is_known_again(
    world: World, monkeypatch: pytest.MonkeyPatch, arrives: bool, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(conflicts, "JOINED_BYTES", LARGE)
    here = world.host("third")
    here.prompt = False
    lost: list[str] = []

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        if asked.verb != "put" or asked.key != FILE or lost:
            return None
        lost.append(asked.key)
        failure = errors.Unreachable("reset", endpoint="the bucket")
        return Fault(after=failure) if arrives else Fault(before=failure)

    here.store.plan = plan
    await close(await written(here, FILE, FILM))
    await here.replica.uploaded()
    assert lost == [FILE]
    assert await world.bucket("alpha/film") == {"": FILM}


async def test_a_large_file_is_moved_before_and_after_the_bucket_has_it(world: World, here: Host) -> None:
    here.prompt = False
    await close(await written(here, FILE, FILM))
    await here.rename(FILE, "alpha/second")
    await world.uploaded()
    await here.rename("alpha/second", "alpha/third")
    assert await here.read("alpha/third") == FILM
    here.store.latency("put", 1)
    await close(await written(here, "alpha/new", FILM[::-1]))
    await here.rename("alpha/new", "alpha/newer")
    await world.uploaded()
    stored = await world.bucket("alpha/")
    assert (stored["third"], stored["newer"]) == (FILM, FILM[::-1])
    assert not {"film", "second", "new"} & stored.keys()


async def test_a_file_may_grow_without_bytes_of_its_own(world: World, here: Host) -> None:
    await here.write(FILE, b"begin")
    await (await here.node(FILE)).change(AttrChange(size=PART + 10), Caller())
    await world.uploaded()
    assert (await world.bucket())[FILE] == b"begin" + bytes(PART + 5)


async def test_a_full_disk_is_said_to_the_writer(world: World, here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = await written(here, FILE, FILM)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    await handle.write(0, b"x")
    with monkeypatch.context() as patched:
        patched.setattr("os.pwrite", full)
        with pytest.raises(errors.NoSpace):
            await handle.write(0, b"y")
    await close(handle)
    await world.uploaded()
    assert (await world.bucket())[FILE] == b"x" + FILM[1:]
