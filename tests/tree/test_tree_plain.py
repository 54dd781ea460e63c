"""Ordinary files and directories: POSIX as far as a bucket carries it, and no byte lost between two hosts."""

from __future__ import annotations

import gc
import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import trio
from hosts import (
    APPEND,
    EDIT,
    REPLACE,
    WRITE,
    Host,
    World,
    close,
    during,
    full_disk,
    refused,
    unreachable,
    while_saving,
    without_room,
)
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.asking import PATIENCE
from livememfs.cache.journal.operation import Operation
from livememfs.store.base import Page
from livememfs.store.s3_replies import encode_meta
from livememfs.testing.store import Fault
from livememfs.tree import renaming
from livememfs.tree.node import NOBODY, AttrChange
from livememfs.tree.objectfile import HASHED_AT_ONCE

FILE = "alpha/file.txt"
LARGE = b"large" * HASHED_AT_ONCE
HASH = "livememfs.tree.objectfile.content_etag"


@pytest.fixture(params=["new file", "edited file"])
async def existing(request: pytest.FixtureRequest, here: Host) -> None:
    """Two cases of a test: the bucket has no FILE, or an old one."""
    if request.param == "edited file":
        await here.write(FILE, "old")


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)) * 4_096], ids=["empty", "text", "binary"])
async def test_what_is_written_is_in_the_bucket_at_close_and_reads_back_everywhere(
    world: World, here: Host, there: Host, data: bytes
) -> None:
    await here.write(FILE, data)

    assert (await world.bucket())[FILE] == data
    for host in (here, there):
        assert await host.read(FILE) == data
        assert (await host.attrs(FILE)).size == len(data)
        assert "file.txt" in await host.names("alpha")


async def test_a_file_shows_before_it_is_closed_on_this_host_only(world: World, here: Host, there: Host) -> None:
    _handle = await here.begin(FILE, b"half")

    assert "file.txt" in await here.names("alpha")
    assert await here.read(FILE) == b"half"
    assert (await here.attrs(FILE)).volatile
    assert not await there.exists(FILE)


async def test_appends_go_to_the_end_whatever_offset_the_kernel_computed(world: World, here: Host) -> None:
    await here.write(FILE, "one\n")
    handle = await here.begin(FILE, b"two\n", APPEND)
    await handle.write(2, b"three\n")
    await handle.flush()

    assert await here.read(FILE) == b"one\ntwo\nthree\n"


async def test_random_writes_and_holes(here: Host) -> None:
    await here.write(FILE, "0123456789")
    handle = await here.open(FILE, EDIT)
    await handle.write(3, b"abc")
    await handle.write(15, b"end")
    await handle.flush()

    assert await here.read(FILE) == b"012abc6789" + bytes(5) + b"end"
    assert await handle.read(16, 100) == b"nd"
    assert await handle.read(18, 100) == b""


@pytest.mark.parametrize("size", [0, 4, 10, 14])
@pytest.mark.parametrize("through_handle", [False, True])
async def test_truncating_cuts_or_extends_with_zeros(world: World, here: Host, size: int, through_handle: bool) -> None:
    await here.write(FILE, "0123456789")
    node = await here.node(FILE)
    if through_handle:
        handle = await here.open(FILE, EDIT)
        await handle.change(node, AttrChange(size=size), NOBODY)
        await close(handle)
    else:
        await node.change(AttrChange(size=size), NOBODY)

    assert (await world.bucket())[FILE] == (b"0123456789" + bytes(4))[:size]
    assert (await here.attrs(FILE)).size == size


@pytest.mark.parametrize("size", [0, 4])
async def test_a_file_cut_by_its_path_while_somebody_reads_it_is_stored(world: World, here: Host, size: int) -> None:
    """A reader's close saves nothing."""
    await here.write(FILE, "0123456789")
    reader = await here.open(FILE)

    await here.change(FILE, size=size)

    assert (await world.bucket())[FILE] == b"0123456789"[:size]
    assert await reader.read(0, 100) == b"0123456789"[:size]
    assert here.root.unsaved_files() == []


async def test_a_file_cut_by_its_path_while_somebody_writes_it_is_stored_at_the_close(world: World, here: Host) -> None:
    await here.write(FILE, "0123456789")
    writer = await here.open(FILE, EDIT)

    await here.change(FILE, size=4)

    assert (await world.bucket())[FILE] == b"0123456789"
    await writer.flush()
    assert (await world.bucket())[FILE] == b"0123"


async def test_a_close_without_a_change_makes_no_request(here: Host) -> None:
    await here.write(FILE, "text")
    handle = await here.open(FILE, EDIT)
    here.store.forget()
    await handle.flush()
    await handle.flush()

    assert here.store.requests == []


async def test_two_descriptors_see_each_others_writes_at_once(here: Host) -> None:
    await here.write(FILE, "0123456789")
    one, two = await here.open(FILE, EDIT), await here.open(FILE, EDIT)

    await one.write(0, b"ab")
    await two.write(8, b"yz")

    assert await one.read(0, 10) == await two.read(0, 10) == b"ab234567yz"
    await one.flush()
    await two.flush()
    assert await here.read(FILE) == b"ab234567yz"


async def test_an_fsync_by_any_descriptor_saves_what_all_have_written(world: World, here: Host, existing: None) -> None:
    writer, reader = await here.open(FILE, REPLACE), await here.open(FILE)
    await writer.write(0, b"written")

    await reader.fsync()

    assert (await world.bucket())[FILE] == b"written"
    await writer.write(7, b" and more")
    await writer.flush()
    assert (await world.bucket())[FILE] == b"written and more"


@pytest.mark.parametrize("name", ["live/decision.md", "_rules.md"])
async def test_an_fsync_by_a_reader_seals_nothing_that_is_half_written(world: World, here: Host, name: str) -> None:
    writer = await here.open(f"alpha/{name}", REPLACE)
    reader = await here.open(f"alpha/{name}")
    await writer.write(0, b"half of ")

    await reader.fsync()

    await writer.write(8, b"it")
    await writer.flush()
    [sealed] = [data for key, data in (await world.bucket("alpha/")).items() if b"half of" in data]
    assert sealed.endswith(b"half of it")


async def test_a_file_over_the_limit_is_refused_at_the_write(here: Host) -> None:
    handle = await here.open(FILE, WRITE)

    await refused(errors.TooLarge, handle.write(here.context.max_file_size, b"x"))
    with pytest.raises(errors.TooLarge):
        await handle.change(await here.node(FILE), AttrChange(size=here.context.max_file_size + 1), NOBODY)


async def test_an_open_file_that_is_removed_keeps_its_bytes(world: World, here: Host) -> None:
    await here.write(FILE, "text")
    handle = await here.open(FILE, EDIT)
    await here.unlink(FILE)

    await handle.write(4, b" more")
    await handle.flush()

    assert await handle.read(0, 100) == b"text more"
    assert FILE not in await world.bucket()
    assert not await here.exists(FILE)
    await handle.release()
    await here.write(FILE, "new")
    assert await here.read(FILE) == b"new"


async def test_a_file_that_is_removed_while_it_is_being_saved_does_not_come_back(
    world: World, here: Host, existing: None, autojump_clock: Clock
) -> None:
    handle = await here.begin(FILE, b"text", EDIT)
    await while_saving(here, handle, here.unlink(FILE))

    assert FILE not in await world.bucket()
    assert not await here.exists(FILE)


async def test_what_is_written_while_a_save_is_on_its_way_is_saved_by_the_next_one(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    handle = await here.begin(FILE, b"one ", EDIT)
    await while_saving(here, handle, handle.write(4, b"two"))
    assert [file.path for file in here.root.unsaved_files()] == [FILE]

    await handle.flush()

    assert (await world.bucket())[FILE] == b"one two"
    assert here.root.unsaved_files() == []


async def test_a_file_that_is_renamed_while_it_is_being_saved_is_whole_under_the_new_name(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    handle = await here.begin(FILE, b"text", EDIT)
    await while_saving(here, handle, here.rename(FILE, "alpha/other.txt"))

    assert await here.read("alpha/other.txt") == b"text"
    assert not await here.exists(FILE)
    assert FILE not in await world.bucket()


async def test_a_file_that_was_never_closed_can_be_removed(world: World, here: Host) -> None:
    handle = await here.begin(FILE, b"text")
    await here.unlink(FILE)
    await handle.flush()

    assert FILE not in await world.bucket()


# --- renaming ----------------------------------------------------------------------------------------------------


async def test_a_rename_replaces_the_file_that_had_the_name(world: World, here: Host, there: Host) -> None:
    await here.write(FILE, "old")
    await here.write("alpha/new.txt", "new")
    reader = await here.open(FILE)

    await here.rename("alpha/new.txt", FILE)

    assert await here.read(FILE) == await there.read(FILE) == b"new"
    assert await reader.read(0, 10) == b"old"
    assert not await here.exists("alpha/new.txt")


@pytest.mark.parametrize("before", ["nothing", "a file on its way", "a stored file"])
async def test_a_file_moved_over_one_whose_close_still_runs_replaces_it(world: World, here: Host, before: str) -> None:
    """What is large is hashed in a thread, and accepted when that is done: not over what came meanwhile."""
    here.prompt = before != "a file on its way"
    await here.write("alpha/new.txt", "new")
    if before != "nothing":
        await here.write(FILE, "old")
    handle = await here.begin(FILE, LARGE, EDIT)

    await during(handle.flush, HASH, lambda: here.rename("alpha/new.txt", FILE))
    await handle.release()

    assert await here.read(FILE) == (await world.bucket())[FILE] == b"new"
    assert await handle.read(0, 4) == LARGE[:4]
    assert "new.txt" not in await world.bucket("alpha/")


async def test_two_renames_that_cross_end_while_both_files_are_being_saved(world: World, here: Host) -> None:
    for path in (FILE, "alpha/new.txt"):
        await here.write(path, "old")
    one, two = await here.open(FILE, EDIT), await here.open("alpha/new.txt", EDIT)
    await one.write(0, LARGE)
    await two.write(0, LARGE)

    async def both(*calls: Callable[[], Awaitable[None]]) -> None:
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(call)

    def there_and_back() -> Awaitable[None]:
        return both(lambda: here.rename("alpha/new.txt", FILE), lambda: here.rename(FILE, "alpha/new.txt"))

    with trio.fail_after(5):
        await during(lambda: both(one.flush, two.flush), HASH, there_and_back)

    assert LARGE in (await world.bucket()).values()


async def test_what_is_closed_while_a_rename_over_it_fails_is_not_forgotten(world: World, here: Host) -> None:
    await here.write("alpha/new.txt", "new")
    await here.write(FILE, "old")
    _handle = await here.begin(FILE, b"OLD", EDIT)

    await without_room(here, here.rename("alpha/new.txt", FILE))

    assert [file.path for file in here.context.unsaved] == [FILE]


async def test_a_rename_that_must_not_replace_leaves_both(here: Host) -> None:
    await here.write(FILE, "old")
    await here.write("alpha/new.txt", "new")

    await refused(errors.AlreadyExists, here.rename("alpha/new.txt", FILE, replace=False))

    assert (await here.read(FILE), await here.read("alpha/new.txt")) == (b"old", b"new")


async def test_what_is_written_before_and_after_a_rename_arrives_under_the_new_name(world: World, here: Host) -> None:
    """Atomic writers rename while the descriptor is still open."""
    await here.write(FILE, "old")
    handle = await here.begin("alpha/file.tmp", b"new ")
    await here.rename("alpha/file.tmp", FILE)
    await handle.write(4, b"and more")
    await close(handle)

    assert await here.read(FILE) == b"new and more"
    assert set(await world.bucket("alpha/")) >= {"file.txt"}
    assert "file.tmp" not in await world.bucket("alpha/")
    assert not any("conflict" in name for name in await world.bucket("alpha/"))


async def test_a_rename_onto_itself_changes_nothing(here: Host) -> None:
    await here.write(FILE, "text")
    await here.rename(FILE, FILE)

    assert await here.read(FILE) == b"text"


async def test_a_directory_moves_with_everything_in_it(world: World, here: Host, there: Host) -> None:
    await here.mkdir("alpha/a")
    await here.mkdir("alpha/a/empty")
    await here.mkdir("alpha/a/sub")
    await here.write("alpha/a/sub/file", "text")
    await here.mkdir("alpha/b")
    held = await here.open("alpha/a/sub/file", EDIT)

    await here.rename("alpha/a", "alpha/b/c")
    await held.write(4, b" more")
    await held.flush()
    await here.sent()

    for host in (here, there):
        assert await host.read("alpha/b/c/sub/file") == b"text more"
        assert await host.names("alpha/b/c") == ["empty", "sub"]
        assert not await host.exists("alpha/a")
    assert not any(key.startswith("alpha/a/") for key in await world.bucket())


async def test_a_directory_with_a_file_that_is_not_saved_yet_moves_with_it(world: World, here: Host) -> None:
    await here.mkdir("alpha/a")
    handle = await here.begin("alpha/a/file", b"half")
    await here.rename("alpha/a", "alpha/b")
    await handle.write(4, b" whole")
    await handle.flush()

    assert await here.read("alpha/b/file") == b"half whole"
    assert [key for key in await world.bucket() if key.endswith("file")] == ["alpha/b/file"]


async def test_what_is_closed_while_its_directory_moves_is_saved_in_the_new_place(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    """Whatever the store is asked for the move, each moment of which is tried."""
    for tenths in range(1, 40, 4):
        source, target = f"alpha/{tenths}", f"alpha/to-{tenths}"
        await here.mkdir(source)
        await here.mkdir(target)
        await here.write(f"{source}/file", "version one")
        handle = await here.open(f"{source}/file", EDIT)
        here.store.latency("list", 0.7)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.rename, source, f"{target}/moved")
            await trio.sleep(tenths / 10)
            await handle.write(0, b"VERSION TWO")
            await close(handle)
        here.store.latency("list", 0)

        objects = {key: data for key, data in (await world.bucket()).items() if str(tenths) in key and data}
        assert objects == {f"{target}/moved/file": b"VERSION TWO"}


async def test_a_save_on_its_way_when_its_directory_moves_ends_in_the_new_place(world: World, here: Host) -> None:
    await here.mkdir("alpha/a")
    await here.write("alpha/a/file", "old")
    handle = await here.begin("alpha/a/file", LARGE, EDIT)

    await during(handle.flush, HASH, lambda: here.rename("alpha/a", "alpha/b"))
    await here.sent()

    assert {key: data for key, data in (await world.bucket()).items() if data == LARGE} == {"alpha/b/file": LARGE}
    assert "alpha/a/file" not in await world.bucket()


async def test_a_file_created_while_its_directory_moves_is_saved_in_the_new_place(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    await here.mkdir("alpha/a")
    folder = await here.folder("alpha/a")
    await folder.children()
    here.store.latency("list", 0.9)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.rename, "alpha/a", "alpha/b")
        await trio.sleep(0.5)
        file = await folder.create("file", 0o644, NOBODY)
        handle = await file.open(WRITE, NOBODY)
        await handle.write(0, b"text")
    await close(handle)

    assert (await world.bucket())["alpha/b/file"] == b"text"
    assert "alpha/a/file" not in await world.bucket()


async def test_moves_that_posix_forbids(here: Host) -> None:
    await here.mkdir("alpha/a")
    await here.mkdir("alpha/b")
    await here.write("alpha/b/file", "x")
    await here.write(FILE, "x")
    await refused(errors.InvalidName, here.rename("alpha/a", "alpha/a/below"))
    await refused(errors.NotEmpty, here.rename("alpha/a", "alpha/b"))
    await refused(errors.NotADirectory, here.rename("alpha/a", FILE))
    await refused(errors.IsADirectory, here.rename(FILE, "alpha/a"))
    await refused(errors.NotFound, here.rename("alpha/none", "alpha/x"))


@pytest.mark.parametrize("why", ["too many", "too long", "full disk", "no answer"])
async def test_a_directory_whose_move_is_refused_leaves_the_empty_one_that_it_was_to_replace(
    world: World, here: Host, why: str, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 253
    target = f"alpha/{long}/{long}/{long}/empty" if why == "too long" else "alpha/empty"
    for depth in range(1, target.count("/") + 1):
        await here.mkdir("/".join(target.split("/")[: depth + 1]), 0o700)
    await here.mkdir("alpha/full")
    await here.write(f"alpha/full/{long}", "kept")
    before = await world.bucket("alpha/")
    if why == "too many":
        monkeypatch.setattr(renaming, "MAX_MOVED", 1)
    if why == "no answer":
        here.replica.names.doubt("alpha/full/")
        here.store.script("list", Fault(before=unreachable()))  # what is to be moved

    with pytest.raises(errors.LiveMemError), full_disk(here) if why == "full disk" else nullcontext():
        await here.rename("alpha/full", target)

    assert ((await here.attrs(target)).mode, await here.names(target)) == (0o700, [])
    assert await here.read(f"alpha/full/{long}") == b"kept"
    assert await world.bucket("alpha/") == before


@pytest.mark.parametrize("marked", [True, False], ids=["made here", "made by a stranger"])
async def test_a_directory_that_replaces_an_empty_one_brings_its_own_mode(
    world: World, here: Host, there: Host, marked: bool, autojump_clock: Clock
) -> None:
    await here.mkdir("alpha/empty", 0o700)
    if marked:
        await here.mkdir("alpha/full", 0o750)
    await world.memory.put("alpha/full/file", b"moved")
    await world.settle()
    held = await here.folder("alpha/empty")

    await here.rename("alpha/full", "alpha/empty")

    mode = 0o750 if marked else 0o755
    assert (await held.attrs()).nlink == 0
    assert ((await here.attrs("alpha/empty")).mode, await here.read("alpha/empty/file")) == (mode, b"moved")
    await world.settle()
    assert ((await there.attrs("alpha/empty")).mode, await there.names("alpha/empty")) == (mode, ["file"])
    assert not await here.exists("alpha/full")
    assert not await there.exists("alpha/full")


async def test_a_move_that_fails_loses_nothing(world: World, here: Host) -> None:
    await here.mkdir("alpha/a")
    for number in range(5):
        await here.write(f"alpha/a/{number}", f"{number}")

    await without_room(here, here.rename("alpha/a", "alpha/b"))

    assert [await here.read(f"alpha/a/{number}") for number in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


# --- directories -------------------------------------------------------------------------------------------------


async def test_an_empty_directory_is_there_on_the_other_host(world: World, here: Host, there: Host) -> None:
    await here.mkdir("alpha/a", 0o700)

    assert (await world.bucket())["alpha/a/"] == b""
    assert await there.names("alpha/a") == []
    assert (await there.attrs("alpha/a")).mode == 0o700


async def test_a_folder_outlives_its_last_entry(world: World, here: Host, there: Host, autojump_clock: Clock) -> None:
    await world.memory.put("alpha/a/file", b"x")
    await world.memory.put("alpha/b/sub/", b"")
    await world.memory.put("alpha/c/file", b"x")
    await world.memory.put("alpha/d/sub/file", b"x")
    await here.unlink("alpha/a/file")
    await here.rmdir("alpha/b/sub")
    await here.rename("alpha/c/file", "alpha/moved")
    await here.rename("alpha/d/sub", "alpha/moved-sub")
    await world.settle()

    for host in (here, there):
        for name in "abcd":
            assert await host.names(f"alpha/{name}") == []


async def test_rmdir_takes_empty_directories_only(world: World, here: Host) -> None:
    await here.mkdir("alpha/a")
    await here.write("alpha/a/file", "x")
    await refused(errors.NotEmpty, here.rmdir("alpha/a"))
    await refused(errors.NotADirectory, here.rmdir("alpha/a/file"))
    await refused(errors.IsADirectory, here.unlink("alpha/a"))

    await here.unlink("alpha/a/file")
    await here.rmdir("alpha/a")

    assert not await here.exists("alpha/a")
    assert not any(key.startswith("alpha/a") for key in await world.bucket())


async def test_what_another_host_has_just_put_into_a_directory_outlives_its_removal(
    here: Host, there: Host, autojump_clock: Clock
) -> None:
    """A removal asks nobody, so it may come too early: then the directory comes back with what is in it."""
    await here.mkdir("alpha/a")
    assert await here.names("alpha/a") == []
    await there.write("alpha/a/file", "x")
    here.store.forget()
    await here.rmdir("alpha/a")
    assert not [asked for asked in here.store.requests if asked.verb == "list"]
    await here.replica.uploaded()
    await trio.sleep(5.0)

    assert await here.read("alpha/a/file") == b"x"


async def test_what_is_known_is_made_moved_and_removed_without_asking(here: Host, autojump_clock: Clock) -> None:
    assert "a" not in await here.names("alpha")
    here.store.forget()
    await here.mkdir("alpha/a")
    await here.write("alpha/a/file", "x")
    await here.rename("alpha/a", "alpha/b")
    await here.mkdir("alpha/c")
    await here.rmdir("alpha/c")

    assert not [asked for asked in here.store.requests if asked.verb == "list"]
    await here.replica.uploaded()
    assert await here.read("alpha/b/file") == b"x"


async def test_a_directory_with_a_file_that_is_not_saved_yet_is_not_empty(here: Host) -> None:
    await here.mkdir("alpha/a")
    await here.open("alpha/a/file", WRITE)

    await refused(errors.NotEmpty, here.rmdir("alpha/a"))


# --- names -------------------------------------------------------------------------------------------------------


async def make_deep(host: Host, size: int) -> str:
    """Four directories, each in the one before, with names of this size; the path of the last one."""
    path = "alpha"
    for _ in range(4):
        path += "/" + "d" * size
        await host.mkdir(path)
    return path


async def test_names_that_no_key_can_carry_are_refused(here: Host) -> None:
    deep = await make_deep(here, 240)
    for path, refusal in {
        "alpha/" + "é" * 128: errors.NameTooLong,
        "alpha/caf\udce9": errors.NotText,
        f"{deep}/" + "x" * 100: errors.NameTooLong,
    }.items():
        await refused(refusal, here.write(path, "x"), here.mkdir(path))
        await here.write(FILE, "x")
        await refused(refusal, here.rename(FILE, path))


async def test_a_directory_is_refused_where_its_marker_has_no_room(here: Host) -> None:
    deep = await make_deep(here, 200)
    longest = f"{deep}/" + "x" * (1_024 - len(deep) - 1)
    await here.mkdir("alpha/a")

    await here.write(longest, "a file has room")
    await here.unlink(longest)
    await refused(errors.NameTooLong, here.mkdir(longest), here.rename("alpha/a", longest))
    await here.mkdir(longest[:-1])
    await here.rmdir(longest[:-1])
    await here.rename("alpha/a", longest[:-1])


async def test_a_directory_is_not_moved_where_a_key_below_has_too_many_bytes(here: Host) -> None:
    """The longest in bytes, which is not the longest in characters."""
    deep = await make_deep(here, 200)
    await here.mkdir("alpha/a")
    await here.write("alpha/a/" + "x" * 150, "short")
    await here.write("alpha/a/" + "日" * 80, "long")

    await refused(errors.NameTooLong, here.rename("alpha/a", f"{deep}/b"))

    assert len(await here.names("alpha/a")) == 2


@pytest.mark.parametrize("name", ["é" * 127, "a b", "日本", "-", "~", ".x.swp", "x\ny", "%2F", "\\", "*?"])
async def test_any_other_name_is_taken_as_it_is(here: Host, there: Host, name: str) -> None:
    await here.write(f"alpha/{name}", name)

    assert (await there.read(f"alpha/{name}")).decode() == name
    assert name in await there.names("alpha")


async def test_a_name_is_made_once(here: Host) -> None:
    await here.write(FILE, "x")
    await refused(
        errors.AlreadyExists,
        here.mkdir(FILE),
        here.symlink(FILE, "x"),
        (await here.folder("alpha")).create("file.txt", 0, NOBODY),
    )


# --- attributes --------------------------------------------------------------------------------------------------


async def test_mode_and_times_are_kept_in_the_bucket(world: World, here: Host, there: Host) -> None:
    await here.write(FILE, "text")
    await here.change(FILE, mode=0o755)
    await here.change(FILE, mtime_ns=1_234_567_890_123_456_789)

    shown = await there.attrs(FILE)

    assert (shown.mode, shown.mtime_ns, shown.size) == (0o755, 1_234_567_890_123_456_789, 4)
    await here.write(FILE, "other")
    fresh = await world.host("third").attrs(FILE)
    assert (fresh.mode, fresh.mtime_ns) == (0o755, here.context.now_ns())


async def test_mode_and_times_of_a_directory_are_kept_too(here: Host, there: Host) -> None:
    await here.mkdir("alpha/a")
    await here.change("alpha/a", mode=0o700)
    await here.change("alpha/a", mtime_ns=5)

    shown = await there.attrs("alpha/a")

    assert (shown.mode, shown.mtime_ns) == (0o700, 5)


async def test_times_set_before_the_close_are_those_that_are_stored(here: Host, there: Host) -> None:
    """`cp -p` and tar write, set the times through the descriptor and close."""
    handle = await here.begin(FILE, b"text")
    await handle.change(await here.node(FILE), AttrChange(mtime_ns=7, mode=0o600), NOBODY)
    await close(handle)
    await here.sent()

    shown = await there.attrs(FILE)
    assert (shown.mtime_ns, shown.mode) == (7, 0o600)


async def test_xattrs_are_kept_beside_those_that_livememfs_shows(here: Host, there: Host) -> None:
    await here.write(FILE, "text")
    await (await here.node(FILE)).set_xattr("user.mine", b"\x00\xff")
    await here.sent()

    shown = await (await there.node(FILE)).xattrs()

    assert shown["user.mine"] == b"\x00\xff"
    assert shown["user.livememfs.state"] == b"clean"
    assert shown["user.livememfs.key"] == FILE.encode()
    await here.write(FILE, "other")
    node = await here.node(FILE)
    assert (await node.xattrs())["user.mine"] == b"\x00\xff"
    await node.set_xattr("user.mine", None)
    assert "user.mine" not in await node.xattrs()
    await refused(errors.NoAttribute, node.set_xattr("user.mine", None))
    await refused(errors.NotSupported, node.set_xattr("user.livememfs.key", b"x"))
    await refused(errors.NoSpace, node.set_xattr("user.large", b"x" * 2_000))


async def test_xattrs_set_before_a_close_hide_and_overwrite_nobody_elses(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    here.caches = []
    handle = await here.begin(FILE, b"one\n")
    await (await here.node(FILE)).set_xattr("user.tag", b"old")
    await close(handle)
    await world.settle()
    assert (await (await there.node(FILE)).xattrs())["user.tag"] == b"old"

    await (await there.node(FILE)).set_xattr("user.tag", b"new")
    await there.write(FILE, "one and a half\n", APPEND)
    await world.settle()
    assert (await (await here.node(FILE)).xattrs())["user.tag"] == b"new"
    await here.write(FILE, "two\n", APPEND)
    await world.settle()

    assert (await (await there.node(FILE)).xattrs())["user.tag"] == b"new"


async def test_an_xattr_set_while_a_save_is_on_its_way_is_stored_by_the_next(here: Host, there: Host) -> None:
    handle = await here.begin(FILE, LARGE)
    node = await here.node(FILE)
    await node.set_xattr("user.one", b"1")

    await during(handle.flush, HASH, lambda: node.set_xattr("user.two", b"2"))
    await close(handle)
    await here.sent()

    shown = await (await there.node(FILE)).xattrs()
    assert (shown["user.one"], shown["user.two"]) == (b"1", b"2")


@pytest.mark.parametrize("piece", [b"two words ", b"%", b"\xff", b"\x7f", b"\x00", b'"', b"plain"])
async def test_xattrs_that_are_accepted_fit_into_headers_of_the_store(world: World, here: Host, piece: bytes) -> None:
    """S3 refuses more than 2,048 bytes of metadata as they are sent, and with them every version of the file."""
    await here.write(FILE, "text")
    node = await here.node(FILE)
    fits = 0
    with suppress(errors.NoSpace):
        for size in range(1, 2_000):
            await node.set_xattr("user.text", piece * size)
            fits = size
    await here.write(FILE, "edited")

    meta = encode_meta((await world.memory.head(FILE)).meta or {})
    assert (await node.xattrs())["user.text"] == piece * fits
    assert 1_400 < len(meta["livememfs-xattrs"]) <= 1_500
    assert sum(len(name) + len(value) for name, value in meta.items()) <= 2_048


async def test_a_symbolic_link_reads_back_on_the_other_host(world: World, here: Host, there: Host) -> None:
    await here.symlink("alpha/link", "../elsewhere/été")

    for host in (here, there):
        node = await host.node("alpha/link")
        shown = await node.attrs()
        assert (shown.kind, shown.size) == ("symlink", len("../elsewhere/été".encode()))
        assert await node.target() == "../elsewhere/été"  # type: ignore[attr-defined]  # it is a link
    await here.rename("alpha/link", "alpha/other")
    assert await (await here.node("alpha/other")).target() == "../elsewhere/été"  # type: ignore[attr-defined]  # it is a link
    await here.unlink("alpha/other")
    assert not await here.exists("alpha/other")


@pytest.mark.parametrize(
    "meta",
    [
        {"livememfs-mode": "rw-r--r--", "livememfs-mtime": "yesterday", "livememfs-xattrs": "["},
        {"livememfs-mode": "", "livememfs-mtime": "", "livememfs-xattrs": "3"},
        {"livememfs-mtime": "9" * 30, "livememfs-mode": "7" * 30},
        {"livememfs-mtime": "9" * 5_000},
    ],
)
@pytest.mark.parametrize("key", ["alpha/file.txt", "alpha/folder/"])
async def test_metadata_without_sense_is_as_good_as_none(
    world: World, here: Host, meta: dict[str, str], key: str
) -> None:
    """Anybody can write to the bucket."""
    await world.memory.put(key, b"", meta=meta)

    shown = await here.attrs(key)

    assert shown.mode == (0o755 if key.endswith("/") else 0o644)
    assert shown.mtime_ns == here.context.now_ns()
    await (await here.node(key)).xattrs()


# --- two hosts ---------------------------------------------------------------------------------------------------


async def test_an_open_file_keeps_its_version_and_the_next_open_gets_the_new_one(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.write(FILE, "old")
    old = await here.open(FILE)
    await there.write(FILE, "brand new")
    await world.settle()

    new = await here.open(FILE)

    assert await old.read(0, 100) == b"old"
    assert await new.read(0, 100) == b"brand new"
    assert old.version != new.version
    shown = await here.attrs(FILE)
    assert (shown.size, shown.version) == (9, new.version)


async def test_a_version_that_went_before_it_was_read_is_replaced(world: World, here: Host, there: Host) -> None:
    await there.write(FILE, b"old" * 30_000)  # too much to come along with the attributes
    assert (await here.attrs(FILE)).size == 90_000
    await there.write(FILE, "brand new")

    assert await here.read(FILE) == b"brand new"
    assert (await here.attrs(FILE)).size == 9


async def test_conflicting_writes_keep_both_and_say_so(world: World, here: Host, there: Host) -> None:
    await here.write(FILE, "base")
    theirs = await there.open(FILE, EDIT)
    await here.write(FILE, "from here")
    await theirs.write(0, b"from there")
    await close(theirs)

    objects = await world.bucket("alpha/")
    line = json.loads(there.errors.conflicts())

    assert objects["file.txt"] == b"from here"
    assert objects["file.conflict-there-20260220T140000Z.txt"] == b"from there"
    assert (line["path"], line["copy"]) == (FILE, "alpha/file.conflict-there-20260220T140000Z.txt")
    assert await there.read(FILE) == b"from here"
    assert there.root.unsaved_files() == []


async def test_a_writer_that_goes_on_after_a_conflict_overwrites_nobody(world: World, here: Host, there: Host) -> None:
    await here.write(FILE, "base")
    theirs = await there.open(FILE, EDIT)
    await here.write(FILE, "from here")
    for offset, data in ((0, b"from there"), (10, b" and more")):
        await theirs.write(offset, data)
        await theirs.flush()

    objects = await world.bucket("alpha/")

    assert objects["file.txt"] == b"from here"
    assert b"from there and more" in objects.values()


async def test_two_hosts_that_make_the_same_file_keep_both(world: World, here: Host, there: Host) -> None:
    one, two = await here.begin(FILE, b"from here"), await there.begin(FILE, b"from there")
    await one.flush()
    await two.flush()

    assert sorted((await world.bucket("alpha/file")).values()) == [b"from here", b"from there"]


async def test_the_same_bytes_from_two_hosts_are_no_conflict(world: World, here: Host, there: Host) -> None:
    one, two = await here.open(FILE, WRITE), await there.open(FILE, WRITE)
    for handle in (one, two):
        await handle.write(0, b"same")
        await handle.flush()

    assert list(await world.bucket("alpha/file")) == [".txt"]
    assert there.errors.conflicts() == b""


async def test_an_edit_wins_over_a_removal(world: World, here: Host, there: Host) -> None:
    await here.write(FILE, "base")
    theirs = await there.open(FILE, EDIT)
    await here.unlink(FILE)
    await theirs.write(4, b" and more")
    await theirs.flush()

    assert (await world.bucket())[FILE] == b"base and more"


async def test_a_file_removed_by_the_other_host_is_not_found_and_a_held_one_stale(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.write(FILE, "text")
    node = await here.node(FILE)
    await there.unlink(FILE)
    await world.settle()

    await refused(errors.NotFound, here.node(FILE))
    await refused(errors.Stale, node.attrs())


async def test_a_file_read_while_the_other_host_removes_it_stays_readable(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.write(FILE, "text")
    handle = await here.open(FILE)
    await there.unlink(FILE)
    await world.settle()

    assert await handle.read(0, 100) == b"text"


async def test_an_unlink_does_not_remove_what_it_never_saw(world: World, here: Host, there: Host) -> None:
    """A new file of ours that was not saved yet is dropped; the file the other host made meanwhile stays."""
    _handle = await here.begin(FILE, b"mine")
    await there.write(FILE, "theirs")

    await here.unlink(FILE)

    assert (await world.bucket())[FILE] == b"theirs"


# --- when the bucket does not answer -----------------------------------------------------------------------------


async def test_a_failed_close_keeps_the_bytes_and_the_next_saves_them(world: World, here: Host, existing: None) -> None:
    handle = await here.begin(FILE, b"new", REPLACE)
    await without_room(here, handle.flush())
    assert await here.read(FILE) == b"new"

    await handle.flush()

    assert await world.bucket("alpha/file") == {".txt": b"new"}
    assert here.root.unsaved_files() == []


@pytest.mark.parametrize("existing", [False, True], ids=["new file", "edited file"])
async def test_draining_saves_what_a_close_could_not(world: World, here: Host, existing: bool) -> None:
    """Also for a file in a folder that nobody holds any more."""
    await here.mkdir("alpha/folder")
    if existing:
        await here.write("alpha/folder/file", "old")
    await without_room(here, here.write("alpha/folder/file", "new"))
    gc.collect()
    assert [file.path for file in here.root.unsaved_files()] == ["alpha/folder/file"]

    assert await here.root.drain() == []

    assert (await world.bucket())["alpha/folder/file"] == b"new"


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_a_close_does_not_wait_for_a_bucket_that_does_not_answer(
    world: World, here: Host, existing: None, lost: str, autojump_clock: Clock
) -> None:
    """What was accepted is stored once, when the bucket answers again, whether the request or its reply was lost."""
    here.prompt = False
    fault = Fault(before=unreachable()) if lost == "request" else Fault(after=unreachable())
    here.store.script("put", fault, fault, fault)

    await here.write(FILE, "new")

    assert await here.read(FILE) == b"new"
    assert here.root.unsaved_files() == []
    assert await world.bucket("alpha/file") == {".txt": b"new"}


async def test_a_directory_made_while_the_bucket_does_not_answer_can_be_used_at_once(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    await here.mkdir("alpha/files")
    here.prompt = False
    here.store.blackhole = True

    with trio.fail_after(3 * PATIENCE):
        made = await here.mkdir("alpha/files/new")
        assert (await made.attrs()).kind == "directory"
        await here.mkdir("alpha/files/new/below")
        await here.write("alpha/files/new/below/file", "new")
        await here.rename("alpha/files/new/below/file", "alpha/files/new/moved")
        assert await here.names("alpha/files/new") == ["below", "moved"]
        assert await here.read("alpha/files/new/moved") == b"new"

    here.store.blackhole = False
    assert await world.bucket("alpha/files/new/") == {"": b"", "below/": b"", "moved": b"new"}


async def test_a_directory_that_another_host_made_at_the_same_time_shows_what_it_put_there(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.mkdir("alpha/files")
    await here.names("alpha/files")
    await there.mkdir("alpha/files/new")
    await there.write("alpha/files/new/theirs", "theirs")

    await here.mkdir("alpha/files/new")
    await here.write("alpha/files/new/ours", "ours")
    await world.settle()

    assert await here.names("alpha/files/new") == ["ours", "theirs"]


@pytest.mark.parametrize("change", ["new", "removed"])
async def test_what_arrives_while_its_directory_is_moved_goes_with_it(
    world: World, here: Host, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The store has looked before, and its answer comes after: neither knows of a new file, or that one has gone."""
    await here.write("alpha/kept", "not in the way")
    await here.mkdir("alpha/x")
    await here.write("alpha/x/old", "old")
    await world.uploaded()
    look, here.prompt = here.store.list_page, False
    await (here.write("alpha/x/new", "new") if change == "new" else here.unlink("alpha/x/old"))

    async def looked_before(prefix: str, *, delimiter: str = "", **options: Any) -> Page:
        page = await look(prefix, delimiter=delimiter, **options)
        if prefix == "alpha/x/" and not delimiter:
            await here.replica.uploaded()
        return page

    monkeypatch.setattr(here.store, "list_page", looked_before)
    await here.rename("alpha/x", "alpha/w")

    moved = {"": b"", "old": b"old", "new": b"new"} if change == "new" else {"": b""}
    assert await world.bucket("alpha/w/") == moved
    assert await world.bucket("alpha/x/") == {}


async def test_draining_waits_for_the_room_that_uploads_leave(
    world: World, here: Host, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full of what the bucket has not taken yet, and it answers again just as the mount ends."""
    await here.mkdir("alpha/folder")
    replica, here.prompt = here.replica, False
    here.store.blackhole = True
    await here.write("alpha/folder/waits", "waits")
    save = replica.journal.put

    def full(*arguments: Any, **named: Any) -> Operation:
        if len(replica.journal.ops):
            raise errors.NoSpace("the disk is full")
        return save(*arguments, **named)

    monkeypatch.setattr(replica.journal, "put", full)
    await refused(errors.NoSpace, here.write("alpha/folder/late", "late"))

    here.store.blackhole = False
    assert await here.root.drain() == []
    assert await world.bucket("alpha/folder/") == {"": b"", "waits": b"waits", "late": b"late"}


async def test_draining_returns_what_is_refused_for_good(world: World, here: Host) -> None:
    await refused(errors.NotText, here.write("alpha/live/x.md", b"\xff"))

    assert await here.root.drain() == ["alpha/live/x.md"]


@pytest.mark.parametrize("path", [FILE, "alpha/live/note.md"])
async def test_a_file_whose_removal_failed_is_there_as_before(world: World, here: Host, path: str) -> None:
    here.caches = []
    await here.write(path, "text")
    await without_room(here, here.unlink(path))

    assert b"text" in await here.read(path)
    assert (await here.attrs(path)).nlink == 1
    await here.write(path, "other")
    assert b"other" in await world.host("third").read(path)
    await here.unlink(path)
    assert not await here.exists(path)


async def test_a_rename_that_failed_leaves_both_files_usable(world: World, here: Host) -> None:
    here.caches = []
    await here.write(FILE, "old")
    await here.write("alpha/new.txt", "new")
    await without_room(here, here.rename("alpha/new.txt", FILE))

    assert (await here.read(FILE), await here.read("alpha/new.txt")) == (b"old", b"new")
    await here.write(FILE, "edited")
    assert (await world.bucket())[FILE] == b"edited"
    await here.rename("alpha/new.txt", FILE)
    assert await here.read(FILE) == await world.host("third").read(FILE) == b"new"


async def test_a_file_removed_after_a_failed_close_is_not_saved_after_all(world: World, here: Host) -> None:
    await without_room(here, here.write(FILE, "x"))

    await here.unlink(FILE)

    assert await here.root.drain() == []
    assert FILE not in await world.bucket()
    assert here.context.unsaved == set()
