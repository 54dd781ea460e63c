"""Stores whose ETag is not the MD5 of the content: encrypted buckets, and objects that were uploaded in parts.

An ETag is opaque: what holds of a file in other buckets holds of it in these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count

import pytest
import trio
from hosts import EDIT, LISTED_ANEW, SPACE, Host, World, close
from trio.abc import Clock

from livememfs.spaces import making as spaces
from livememfs.store.base import Condition, ObjectInfo, StoredObject
from livememfs.store.memory import MemoryStore
from livememfs.tree.node import NOBODY, AttrChange, Handle

FILE = f"{SPACE}/file.txt"
OTHER = f"{SPACE}/other.txt"
IN_PARTS = "0123456789abcdef0123456789abcdef-2"


class NamesEachWrite(MemoryStore):
    """A store that gives each write an ETag of its own, copies too, as a bucket with keys of its own (SSE-KMS) does."""

    _numbers = count(1)

    def _place(self, key: str, data: bytes, meta: dict[str, str], condition: Condition | None) -> ObjectInfo:
        info = replace(super()._place(key, data, meta, condition), etag=f"{next(self._numbers):032x}")
        self._objects[key] = StoredObject(info, bytes(data))
        return info


@pytest.fixture
async def encrypted(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> World:
    """A bucket of that kind, with the space `alpha`."""
    monkeypatch.setattr("hosts.MemoryStore", NamesEachWrite)
    world = World(nursery)
    await spaces.create(world.here.replica, world.clock, SPACE)
    return world


async def put_in_parts(world: World, key: str, data: bytes, meta: Mapping[str, str] | None = None) -> None:
    """Another program's large upload."""
    await world.memory.put(key, data, meta=meta)
    stored = world.memory._objects[key]
    world.memory._objects[key] = replace(stored, info=replace(stored.info, etag=IN_PARTS))
    await world.settle()


async def stored_and_open(host: Host, path: str, data: bytes = b"one\n") -> Handle:
    """A file that the bucket has and somebody holds open for writing."""
    handle = await host.begin(path, data)
    await handle.flush()
    await host.replica.uploaded()
    return handle


async def chmod(host: Host, path: str) -> None:
    await host.change(path, mode=0o600)


async def move(host: Host, path: str) -> None:
    await host.rename(path, f"{SPACE}/aside")
    await host.rename(f"{SPACE}/aside", path)


async def edit(host: Host, path: str) -> None:
    await host.write(path, b"two\n", EDIT)


async def nothing(host: Host, path: str) -> None:
    """The plain case."""


BETWEEN = [nothing, chmod, move, edit]
Between = Callable[[Host, str], Awaitable[None]]


@pytest.mark.parametrize("between", BETWEEN, ids=lambda step: step.__name__)
async def test_a_file_that_is_removed_while_it_is_open_stays_away(
    encrypted: World, autojump_clock: Clock, between: Between
) -> None:
    handle = await stored_and_open(encrypted.here, FILE)
    await between(encrypted.here, FILE)
    await handle.flush()
    await encrypted.uploaded()

    await encrypted.here.unlink(FILE)
    await handle.release()
    await encrypted.settle()

    assert not await encrypted.here.exists(FILE)
    assert "file.txt" not in await encrypted.bucket(f"{SPACE}/")


@pytest.mark.parametrize("between", BETWEEN, ids=lambda step: step.__name__)
async def test_a_file_that_is_moved_while_it_is_open_has_one_name(
    encrypted: World, autojump_clock: Clock, between: Between
) -> None:
    handle = await stored_and_open(encrypted.here, FILE)
    await between(encrypted.here, FILE)
    await handle.flush()
    await encrypted.uploaded()

    await encrypted.here.rename(FILE, OTHER)
    await handle.write(0, b"end\n")
    await close(handle)
    await encrypted.settle()

    objects = await encrypted.bucket(f"{SPACE}/")
    assert {name: data for name, data in objects.items() if name.endswith(".txt")} == {"other.txt": b"end\n"}


async def test_the_mode_of_an_open_file_can_be_changed_again_and_again(encrypted: World, autojump_clock: Clock) -> None:
    handle = await stored_and_open(encrypted.here, FILE)
    node = await encrypted.here.node(FILE)
    for mode in (0o600, 0o640):
        await node.change(AttrChange(mode=mode), NOBODY)
        await handle.flush()
        await encrypted.settle()
        assert (await encrypted.there.attrs(FILE)).mode == mode
    await handle.release()


async def test_an_open_file_can_be_written_to_again_and_again(encrypted: World, autojump_clock: Clock) -> None:
    handle = await stored_and_open(encrypted.here, FILE, b"\0one")
    for data in (b"\0two", b"\0end"):
        await handle.write(0, data)
        await handle.flush()
        await encrypted.settle()
        assert await encrypted.bucket(f"{SPACE}/file") == {".txt": data}
    await handle.release()
    assert encrypted.here.replica.statistics().uploader.conflicts == 0


async def test_another_hosts_edit_is_no_version_of_the_writers(encrypted: World, autojump_clock: Clock) -> None:
    handle = await stored_and_open(encrypted.here, FILE)
    await edit(encrypted.there, FILE)

    await encrypted.here.unlink(FILE)
    await handle.release()
    await encrypted.settle()

    assert await encrypted.here.read(FILE) == b"two\n"  # the edit wins


async def test_a_change_of_attributes_does_not_take_another_hosts_edit_for_its_own(
    encrypted: World, autojump_clock: Clock
) -> None:
    """The edit comes in the round trip between the look and the change."""
    handle = await stored_and_open(encrypted.here, FILE)
    here, memory = encrypted.here, encrypted.memory
    here.prompt = False
    here.store.latency("copy", 1)
    await chmod(here, FILE)
    await handle.flush()
    with trio.fail_after(30):
        while not any(asked.verb == "copy" and asked.key == FILE for asked in here.store.requests):
            await trio.sleep(0.01)
    await memory.put(FILE, b"two\n")
    await here.replica.uploaded()

    await here.unlink(FILE)
    await handle.release()
    await encrypted.settle()

    assert await encrypted.bucket(FILE) == {"": b"two\n"}


async def test_a_note_that_is_removed_while_it_is_open_stays_away(encrypted: World, autojump_clock: Clock) -> None:
    handle = await stored_and_open(encrypted.here, f"{SPACE}/live/note", b"hello\n")

    await encrypted.here.unlink(f"{SPACE}/live/note")
    await handle.release()
    await encrypted.settle()

    assert await encrypted.notes() == {}


async def test_a_note_that_is_renamed_can_be_written_to(encrypted: World, autojump_clock: Clock) -> None:
    handle = await stored_and_open(encrypted.here, f"{SPACE}/live/note", b"hello\n")
    await handle.release()

    await encrypted.here.rename(f"{SPACE}/live/note", f"{SPACE}/live/renamed")
    await encrypted.here.write(f"{SPACE}/live/renamed", b"again\n")
    await encrypted.settle()

    [note] = (await encrypted.notes()).values()
    assert note.endswith(b"again\n")


async def test_a_folder_can_be_moved(encrypted: World, autojump_clock: Clock) -> None:
    here = encrypted.here
    await here.mkdir(f"{SPACE}/old")
    await here.write(f"{SPACE}/old/file", b"one\n")

    await here.rename(f"{SPACE}/old", f"{SPACE}/new")
    await encrypted.settle()

    assert await encrypted.bucket(f"{SPACE}/old") == {}
    assert await here.read(f"{SPACE}/new/file") == b"one\n"


@pytest.mark.parametrize("folder", [False, True])
async def test_what_was_uploaded_in_parts_can_be_moved(world: World, autojump_clock: Clock, folder: bool) -> None:
    here = world.here
    await put_in_parts(world, f"{SPACE}/old/file", b"part one, part two", {"livememfs-mode": "600"})
    assert await here.read(f"{SPACE}/old/file") == b"part one, part two"

    await (here.rename(f"{SPACE}/old", f"{SPACE}/new") if folder else here.rename(f"{SPACE}/old/file", OTHER))
    await trio.sleep(LISTED_ANEW)

    moved = f"{SPACE}/new/file" if folder else OTHER
    assert await world.bucket(moved) == {"": b"part one, part two"}
    assert await world.bucket(f"{SPACE}/old/file") == {}
    assert (await here.attrs(moved)).mode == 0o600
    assert len(here.replica.journal.ops) == 0
