"""An agent's own memory: an index that many write loses no line of anybody, and all else is as in any folder."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
from hosts import APPEND, EDIT, LISTED_ANEW, READ, REPLACE, SPACE, Host, World, read_all

from livememfs.errors import Unreachable
from livememfs.store.base import list_all
from livememfs.testing.store import Fault
from livememfs.tree.adopted import AdoptedHandle
from livememfs.tree.body import Body
from livememfs.tree.node import AttrChange, Caller, File, OpenMode

FOLDER = f"{SPACE}/agents/claude-code"
INDEX = f"{FOLDER}/MEMORY.md"
A, B = 4_000_001, 4_000_002
"""Processes that are not there, so that only their own reads count."""


@pytest.fixture
async def adopted(world: World, autojump_clock: object) -> World:
    """A space with the folder, and an index of one line."""
    for path in (f"{SPACE}/agents", FOLDER):
        await world.here.mkdir(path)
    await world.here.write(INDEX, "- first\n")
    return world


async def read(host: Host, pid: int, path: str = INDEX) -> bytes:
    handle = await host.open(path, READ, pid=pid)
    try:
        return await read_all(handle)
    finally:
        await handle.release()


async def put_in_place(host: Host, data: bytes, pid: int) -> None:
    """As programs write safely: a temporary file, then a rename."""
    await host.write(f"{FOLDER}/MEMORY.md.tmp.{pid}", data, pid=pid)
    await host.rename(f"{FOLDER}/MEMORY.md.tmp.{pid}", INDEX)


def counted(data: bytes) -> Counter[bytes]:
    return Counter(data.splitlines())


async def settled(world: World) -> bytes:
    """What the bucket has in the end; nothing else is left beside it."""
    for host in (world.here, world.there):
        await host.replica.uploaded()
    keys = {info.key for info in (await list_all(world.memory, f"{FOLDER}/")).objects}
    assert {key for key in keys if not key.endswith("/")} == {INDEX}
    return (await world.memory.get(INDEX)).data


@pytest.mark.parametrize("way", ["rename", "truncate"])
async def test_lines_that_came_since_a_process_read_are_kept(adopted: World, way: str) -> None:
    """Another process of the same mount appends between its read and its write."""
    here = adopted.here
    seen = await read(here, A)
    await here.write(INDEX, "- of another\n", APPEND, pid=B)
    if way == "rename":
        await put_in_place(here, seen + b"- mine\n", A)
    else:
        await here.write(INDEX, seen + b"- mine\n", REPLACE, pid=A)

    assert counted(await read(here, B)) == counted(b"- first\n- of another\n- mine\n")
    assert await settled(adopted) == await read(here, B)


@pytest.mark.parametrize("way", ["rename", "truncate", "append"])
async def test_lines_of_two_hosts_are_each_there_once(adopted: World, way: str) -> None:
    """Neither hears of the other before both have written."""
    here, there = adopted.here, adopted.there
    mine, theirs = await read(here, A), await read(there, B)
    assert mine == theirs == b"- first\n"
    here.prompt = there.prompt = False
    for host, pid, line in ((here, A, b"- here\n"), (there, B, b"- there\n")):
        if way == "append":
            await host.write(INDEX, line, APPEND, pid=pid)
        elif way == "truncate":
            await host.write(INDEX, mine + line, REPLACE, pid=pid)
        else:
            await put_in_place(host, mine + line, pid)

    assert counted(await settled(adopted)) == counted(b"- first\n- here\n- there\n")


async def test_a_line_that_a_process_takes_out_stays_out(adopted: World) -> None:
    here, there = adopted.here, adopted.there
    await here.write(INDEX, "- second\n", APPEND)
    seen = await read(here, A)
    await there.write(INDEX, "- of another\n", APPEND)
    await put_in_place(here, seen.replace(b"- first\n", b""), A)

    assert counted(await settled(adopted)) == counted(b"- second\n- of another\n")


@pytest.mark.parametrize("way", ["rename", "truncate"])
async def test_what_a_process_wrote_itself_it_may_take_out_without_reading_again(adopted: World, way: str) -> None:
    here = adopted.here
    seen = await read(here, A)
    for data in (seen + b"- doubtful\n", seen):
        if way == "rename":
            await put_in_place(here, data, A)
        else:
            await here.write(INDEX, data, REPLACE, pid=A)
        await here.write(INDEX, f"- of another {len(data)}\n", APPEND, pid=B)

    assert counted(await settled(adopted)) == counted(b"- first\n- of another 19\n- of another 8\n")


async def test_who_empties_the_index_removes_what_it_has_read(adopted: World) -> None:
    """As the kernel does it for programs that call `truncate`: what came since is kept."""
    here = adopted.here
    await read(here, A)
    await adopted.there.write(INDEX, "- of another\n", APPEND)
    await trio.sleep(LISTED_ANEW)
    await (await here.node(INDEX)).change(AttrChange(size=0), Caller(pid=A))

    assert await settled(adopted) == await read(here, B) == b"- of another\n"


async def test_a_line_that_is_edited_in_place_replaces_the_one_there_was(adopted: World) -> None:
    """Also when another host's version was heard of since the file was opened, and when it is cut by the descriptor."""
    here = adopted.here
    await adopted.there.write(INDEX, "- second\n", APPEND)
    await trio.sleep(LISTED_ANEW)
    handle = await here.open(INDEX, EDIT, pid=A)
    await adopted.there.write(INDEX, "- there\n", APPEND)
    await here.replica.names.head(INDEX)
    await handle.write(0, b"- FIRST\n- doubtful\n")
    await handle.flush()
    await handle.change(await here.node(INDEX), AttrChange(size=8), Caller(pid=A))
    await handle.flush()
    await handle.release()

    assert counted(await settled(adopted)) == counted(b"- FIRST\n- there\n")


async def test_two_files_that_take_the_place_at_once_are_both_in_it(adopted: World) -> None:
    """And one node has the name then: who appends to it is heard of."""
    here = adopted.here
    here.prompt = False
    for pid in (A, B):
        seen = await read(here, pid)
        await here.write(f"{FOLDER}/t{pid}", seen + f"- of {pid}\n".encode(), pid=pid)
    async with trio.open_nursery() as nursery:
        for pid in (A, B):
            nursery.start_soon(here.rename, f"{FOLDER}/t{pid}", INDEX)
    await here.write(INDEX, "- more\n", APPEND)

    assert await here.names(FOLDER) == ["MEMORY.md"]
    assert await read(here, A) == await settled(adopted)
    assert counted(await settled(adopted)) == counted(f"- first\n- of {A}\n- of {B}\n- more\n".encode())


async def test_who_has_the_index_open_to_append_goes_on_in_the_one_that_took_its_place(adopted: World) -> None:
    here = adopted.here
    seen = await read(here, A)
    handle = await here.open(INDEX, APPEND, pid=B)
    await handle.write(0, b"- before\n")
    await put_in_place(here, seen + b"- new\n", A)
    assert b"- before\n" in await read(here, A)
    await handle.write(0, b"- after\n")
    await handle.flush()
    await handle.release()

    assert counted(await settled(adopted)) == counted(b"- first\n- new\n- before\n- after\n")


async def test_what_is_appended_by_such_a_descriptor_is_no_news_to_who_put_the_index_in_place(adopted: World) -> None:
    """Its next version is made from what it has read, and not from what others did to the file that it had made."""
    here = adopted.here
    handle = await here.open(INDEX, APPEND, pid=B)
    await put_in_place(here, await read(here, A) + b"- new\n", A)
    seen = await read(here, A)
    await handle.write(0, b"- late\n")
    await handle.flush()
    await handle.release()
    await put_in_place(here, seen + b"- newer\n", A)

    assert counted(await settled(adopted)) == counted(b"- first\n- new\n- late\n- newer\n")


@pytest.mark.parametrize("mode", [READ, APPEND, REPLACE, EDIT], ids=["read", "append", "replace", "edit"])
async def test_who_looked_the_index_up_a_moment_ago_opens_the_one_in_its_place(adopted: World, mode: OpenMode) -> None:
    """Also when that was replaced in turn: the kernel tries a second time, and no third."""
    here = adopted.here
    former = await here.node(INDEX)
    assert isinstance(former, File)
    for line in (b"- second\n", b"- third\n"):
        await put_in_place(here, await read(here, A) + line, A)
    if mode.truncate:
        await read(here, B)
    version = (await here.attrs(INDEX)).version
    handle = await former.open(mode, Caller(pid=B))
    expected = b"- first\n- second\n- third\n"
    if mode.write:
        start = 0 if mode.truncate else len(expected)
        await handle.write(start, (expected if mode.truncate else b"") + b"- fourth\n")
        await handle.flush()
        expected += b"- fourth\n"
        assert (await here.attrs(INDEX)).version != version, "the kernel would not know that it has changed"
    else:
        assert await read_all(handle) == expected
    await handle.release()

    assert (await former.attrs()).size == len(expected)
    assert await read(here, A) == await settled(adopted) == expected


async def test_a_writer_goes_on_from_its_own_bytes(adopted: World) -> None:
    """What was joined in at its first save is neither lost nor doubled at its second."""
    here = adopted.here
    handle = await here.open(INDEX, EDIT, pid=A)
    await adopted.there.write(INDEX, "- there\n", APPEND)
    await here.replica.names.head(INDEX)
    await handle.write(8, b"- one\n")
    await handle.flush()
    await handle.write(14, b"- two\n")
    assert await handle.read(0, 100) == b"- first\n- one\n- two\n"
    await handle.flush()
    await handle.release()

    assert counted(await settled(adopted)) == counted(b"- first\n- there\n- one\n- two\n")
    assert await read(here, B) == await settled(adopted)


async def test_two_hosts_that_both_make_the_index_make_one(world: World, autojump_clock: object) -> None:
    for path in (f"{SPACE}/agents", FOLDER):
        await world.here.mkdir(path)
    assert not await world.there.exists(INDEX)
    world.here.prompt = world.there.prompt = False
    await world.here.write(INDEX, "- here\n")
    await world.there.write(INDEX, "- there\n")

    assert counted(await settled(world)) == counted(b"- here\n- there\n")


async def test_an_index_that_takes_a_place_keeps_its_own_mode(adopted: World) -> None:
    here = adopted.here
    await here.change(INDEX, mode=0o600)
    await here.write(f"{FOLDER}/t", "- first\n", pid=A)
    await here.change(f"{FOLDER}/t", mode=0o640)
    await here.rename(f"{FOLDER}/t", INDEX)

    assert (await here.attrs(INDEX)).mode == 0o640


async def test_a_topic_file_is_an_ordinary_file(adopted: World) -> None:
    """To the byte, and of two hosts' versions that touch both are kept."""
    here, there = adopted.here, adopted.there
    path, data = f"{FOLDER}/user_role.md", b"---\r\nname: x\r\ntype: user\r\n---\r\n\r\nno end"
    await here.write(path, data)
    assert await there.read(path) == data
    here.prompt = there.prompt = False
    await here.write(path, "one\n", REPLACE)
    await there.write(path, "other\n", REPLACE)
    for host in (here, there):
        await host.replica.uploaded()
    found = [info.key for info in (await list_all(adopted.memory, f"{FOLDER}/user_role")).objects]
    assert sorted([(await adopted.memory.get(key)).data for key in found]) == [b"one\n", b"other\n"]


# --- former versions of topics --------------------------------------------------------------------------------------


async def kept(host: Host, name: str = "a.md") -> list[bytes]:
    """The former versions of a topic, the oldest first."""
    folder = f"{SPACE}/agents/.history/claude-code/{name}"
    if not await host.exists(folder):
        return []
    return [await host.read(f"{folder}/{version}") for version in sorted(await host.names(folder))]


@pytest.mark.parametrize("way", ["write", "rename", "remove"])
async def test_a_version_of_a_topic_that_the_bucket_had_is_kept(adopted: World, way: str) -> None:
    here, path = adopted.here, f"{FOLDER}/a.md"
    await here.write(path, "one\n")
    if way == "write":
        await here.write(path, "two\n", REPLACE)
    elif way == "rename":
        await here.write(f"{FOLDER}/a.md.tmp", "two\n")
        await here.rename(f"{FOLDER}/a.md.tmp", path)
    else:
        await here.unlink(path)
    assert await kept(here) == await kept(adopted.there) == [b"one\n"]


async def test_of_versions_in_quick_succession_and_of_equal_ones_none_is_kept(adopted: World) -> None:
    here, path = adopted.here, f"{FOLDER}/a.md"
    await here.write(path, "one\n")
    await here.write(path, "one\n", REPLACE)
    assert await kept(here) == []
    here.prompt = False
    for text in ("two\n", "three\n", "four\n"):
        await here.write(path, text, REPLACE)
    assert await kept(here) == [b"one\n"]


async def test_of_an_index_and_of_other_files_nothing_is_kept(adopted: World) -> None:
    here = adopted.here
    await here.write(INDEX, "- more\n", APPEND)
    await here.write(f"{FOLDER}/a.txt", "one")
    await here.write(f"{FOLDER}/a.txt", "two", REPLACE)
    assert await here.names(f"{SPACE}/agents") == ["claude-code"]


async def test_a_former_version_that_cannot_be_read_now_does_not_stand_in_the_way(adopted: World) -> None:
    """It was too large to come with the listing."""
    here, path = adopted.here, f"{FOLDER}/a.md"
    await adopted.there.write(path, b"x" * 70_000)
    await trio.sleep(LISTED_ANEW)
    await here.node(path)
    fault = Fault(before=Unreachable("the store is away"))
    here.store.script("get", fault, fault, fault)
    await here.write(path, "two\n", REPLACE)
    assert (await adopted.memory.get(path)).data == b"two\n"
    assert await kept(here) == []


async def test_a_reader_gets_one_version_to_its_end_and_then_what_has_come_since(adopted: World) -> None:
    """Lines that others put in between move the rest: half of one line would be glued to half of another."""
    here = adopted.here
    handle = await here.open(INDEX, READ, pid=A)
    assert isinstance(handle, AdoptedHandle)
    assert await handle.read(0, 4) == b"- fi"
    handle.body = Body(handle.body.info, b"- zero\n- first\n- last\n")
    handle.body.mark_dirty()  # as by somebody who appends at this moment

    assert await handle.read(4, 100) == b"rst\n"
    assert await handle.read(8, 100) == b""
    assert here.context.index_reads.base(INDEX, handle.who) == b"- first\n"

    assert await handle.read(8, 100) == b" first\n- last\n"
    await handle.release()
