"""Readers follow their file: what another host made of it, they get as soon as the kernel has its attributes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hosts import EDIT, READ, REPLACE, Host, World, all_is_large, close, read_all
from trio.abc import Clock

from livememfs import errors
from livememfs.tree.node import NOBODY, File

FILE = "alpha/file.txt"
BANK = "alpha/bank/progress.md"
OpenWorld = Callable[..., AbstractAsyncContextManager[World]]


async def told(host: Host, path: str) -> File:
    """`stat` by way of the kernel, which is given what the file has now."""
    node = await host.node(path)
    assert isinstance(node, File)
    node.shown((await node.attrs()).version)
    return node


@pytest.mark.parametrize("path", [FILE, "alpha/live/note.md", BANK])
async def test_the_node_stays_and_its_readers_go_on_in_the_new_version(
    world: World, here: Host, there: Host, path: str, autojump_clock: Clock
) -> None:
    if path == BANK:
        await world.memory.put(path, b"one\n")
    else:
        await here.write(path, "one\n")
    await world.settle()
    node, reader = await there.node(path), await there.open(path)
    first = await read_all(reader)
    key = path if path == BANK else next(key for key in await world.bucket() if key.endswith(path[-3:]))
    await world.memory.put(key, first + b"two\n")
    await world.settle()

    assert await told(there, path) is node

    assert await reader.read(len(first), 100) == b"two\n"
    assert await read_all(await there.open(path)) == first + b"two\n"


async def test_a_reader_sees_the_old_version_until_the_kernel_has_the_new_ones_size(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    """Else the kernel would cut the new bytes at the old size."""
    await here.write(FILE, "old")
    reader = await there.open(FILE)
    await here.write(FILE, "brand new")
    await world.settle()

    node = await there.node(FILE)
    version = (await node.attrs()).version
    node.shown(reader.version)
    assert await reader.read(0, 100) == b"old"
    node.shown(version)
    assert await reader.read(0, 100) == b"brand new"


async def test_who_writes_stays_with_what_it_writes_and_so_do_the_readers_beside(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.write(FILE, "base\n")
    writer, reader = await there.open(FILE, EDIT), await there.open(FILE)
    await there.write(FILE, "base\n")
    await here.write(FILE, "from another host\n", REPLACE)
    await world.settle()
    await told(there, FILE)

    assert await writer.read(0, 100) == b"base\n"
    await writer.write(0, b"mine")
    assert await reader.read(0, 100) == b"mine\n"
    await close(writer)


async def test_who_writes_a_note_goes_on_in_its_own_bytes_when_it_was_sealed(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    writer = await here.begin("alpha/live/note.md", b"one\n", EDIT)
    await writer.flush()
    sealed = await told(here, "alpha/live/note.md")

    assert await writer.read(0, 100) == b"one\n"
    assert await read_all(await sealed.open(READ, NOBODY)) != b"one\n"
    await writer.release()


async def test_a_file_that_was_removed_and_made_again_is_not_the_one_that_is_held(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.write(FILE, "old")
    held, node = await there.open(FILE), await there.node(FILE)
    await there.unlink(FILE)
    await there.write(FILE, "new")

    assert await told(there, FILE) is not node

    assert await read_all(held) == b"old"


async def test_a_reader_in_the_middle_of_a_large_version_gets_no_part_of_another(
    tmp_path: Path, open_world: OpenWorld, autojump_clock: Clock
) -> None:
    """ESTALE; who has read it to its end, or nothing of it, goes on."""
    async with open_world(tmp_path) as world:
        here, there = world.here, world.there
        with all_is_large(part=30_000):
            await here.write(FILE, b"1" * 100_000)
            amid, begins, done = [await there.open(FILE, READ) for _ in range(3)]
            assert await amid.read(0, 4) == b"1111"
            assert len(await done.read(90_000, 20_000)) == 10_000
            await here.write(FILE, b"2" * 110_000, REPLACE)
            await world.settle()
            await told(there, FILE)

            with pytest.raises(errors.Stale):
                await amid.read(4, 4)
            assert await begins.read(0, 4) == b"2222"
            assert await done.read(100_000, 20_000) == b"2" * 10_000
