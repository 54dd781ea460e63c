"""`_backups/`: every backup can be looked at, and nothing in it can be changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from hosts import WRITE, Host, World, refused
from trio.abc import Clock

from livememfs import errors
from livememfs.spaces import backups
from livememfs.tree.locate import places
from livememfs.tree.node import NOBODY, AttrChange

NOTE = "20260220T140000_cline_todo_a1b2c3d4.md"
STAMP = "2026-02-20T14-00-00"
BACKUP = f"_backups/alpha/{STAMP}"


@pytest.fixture
async def backed_up(world: World, here: Host) -> Host:
    """The host, with a backup of the space that has one of everything."""
    for name, data in {f"live/{NOTE}": b"a note", "bank/more/deep.md": b"deep", "_synthesis.md": b"what was"}.items():
        await world.memory.put(f"alpha/{name}", data)
    await backups.create(here.replica, world.clock, "alpha", automatic=True)
    return here


async def test_without_a_backup_there_is_no_such_directory(here: Host) -> None:
    assert "_backups" not in await here.names("")
    await refused(errors.NotFound, here.node("_backups"))
    await refused(errors.InvalidName, here.mkdir("_backups"))


async def test_a_backup_is_browsed_like_a_directory(backed_up: Host) -> None:
    assert await backed_up.names("") == [".livememfs", "_backups", "alpha", "search"]
    assert await backed_up.names("_backups") == ["alpha"]
    assert await backed_up.names("_backups/alpha") == [STAMP]
    assert await backed_up.names(BACKUP) == ["_meta.json", "_synthesis.md", "bank", "live"]
    assert await backed_up.names(f"{BACKUP}/live") == [NOTE]
    assert await backed_up.read(f"{BACKUP}/live/{NOTE}") == b"a note"
    assert await backed_up.read(f"{BACKUP}/bank/more/deep.md") == b"deep"
    assert await backed_up.read(f"{BACKUP}/_meta.json") == await backed_up.read("alpha/_meta.json")


async def test_a_listing_has_the_sizes(backed_up: Host) -> None:
    listed = dict(await (await backed_up.folder(f"{BACKUP}/live")).children())

    shown = listed[NOTE].listed_attrs()
    assert shown is not None
    assert (shown.size, shown.mode) == (6, 0o644)
    assert await backed_up.attrs(f"{BACKUP}/live/{NOTE}") == shown


async def test_a_torn_backup_can_be_looked_at_too(world: World, backed_up: Host) -> None:
    await world.memory.delete(f"{BACKUP}/_meta.json")

    assert await backed_up.names(BACKUP) == ["_synthesis.md", "bank", "live"]


async def test_the_backups_of_a_removed_space_stay(world: World, backed_up: Host, autojump_clock: Clock) -> None:
    await backed_up.replica.delete("alpha/_meta.json")
    await world.settle()

    assert await backed_up.read(f"{BACKUP}/live/{NOTE}") == b"a note"


async def test_another_hosts_backup_shows(world: World, backed_up: Host, there: Host, autojump_clock: Clock) -> None:
    assert await there.names("_backups/alpha") == [STAMP]
    world.clock.advance(minutes=1)
    await backups.create(backed_up.replica, world.clock, "alpha", automatic=True)
    await backups.delete(backed_up.replica, "alpha", STAMP)
    await world.settle()

    assert await there.names("_backups/alpha") == ["2026-02-20T14-01-00"]


CHANGES: dict[str, Callable[[Host], Awaitable[object]]] = {
    "create": lambda host: host.write(f"{BACKUP}/live/new.md", "x"),
    "write": lambda host: host.write(f"{BACKUP}/live/{NOTE}", "x"),
    "write the record": lambda host: host.write(f"{BACKUP}/_meta.json", "x"),
    "unlink": lambda host: host.unlink(f"{BACKUP}/live/{NOTE}"),
    "mkdir": lambda host: host.mkdir(f"{BACKUP}/new"),
    "mkdir of a backup": lambda host: host.mkdir("_backups/alpha/new"),
    "mkdir of a space": lambda host: host.mkdir("_backups/new"),
    "rmdir": lambda host: host.rmdir(f"{BACKUP}/bank"),
    "rmdir of a backup": lambda host: host.rmdir(BACKUP),
    "rmdir of all": lambda host: host.rmdir("_backups"),
    "symlink": lambda host: host.symlink(f"{BACKUP}/link", "x"),
    "rename inside": lambda host: host.rename(f"{BACKUP}/live/{NOTE}", f"{BACKUP}/live/other.md"),
    "rename out": lambda host: host.rename(f"{BACKUP}/live/{NOTE}", "alpha/other.md"),
    "rename in": lambda host: host.rename("alpha/own.txt", f"{BACKUP}/own.txt"),
    "rename of a backup": lambda host: host.rename(BACKUP, "_backups/alpha/other"),
    "rename of all": lambda host: host.rename("_backups", "other"),
}


@pytest.mark.parametrize("how", CHANGES)
async def test_every_change_is_refused_as_read_only(world: World, backed_up: Host, how: str) -> None:
    await backed_up.write("alpha/own.txt", "mine")
    before = await world.bucket()

    with pytest.raises(errors.ReadOnly) as caught:
        await CHANGES[how](backed_up)

    assert "_backups" in str(caught.value)
    assert await world.bucket() == before


@pytest.mark.parametrize("path", ["_backups", "_backups/alpha", BACKUP, f"{BACKUP}/live", f"{BACKUP}/live/{NOTE}"])
async def test_attributes_are_refused_as_read_only(backed_up: Host, path: str) -> None:
    node = await backed_up.node(path)
    for change in (AttrChange(mode=0o777), AttrChange(mtime_ns=1), AttrChange(uid=0), AttrChange(size=0)):
        await refused(errors.ReadOnly, node.change(change, NOBODY))
    await refused(errors.ReadOnly, node.set_xattr("user.mine", b"x"))


async def test_the_refusal_says_what_to_do(backed_up: Host) -> None:
    with pytest.raises(errors.ReadOnly) as refusal:
        await backed_up.open(f"{BACKUP}/live/{NOTE}", WRITE)

    assert "livememfs backup" in refusal.value.advice()
    assert "livememfs backup" not in str(refusal.value)


async def test_a_change_of_a_backup_is_found_where_it_shows(backed_up: Host) -> None:
    node = await backed_up.node(f"{BACKUP}/live/{NOTE}")

    [place] = places(backed_up.root, f"{BACKUP}/live/{NOTE}")

    assert (place.node, place.whole) == (node, True)
