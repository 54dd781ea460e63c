"""Two hosts change one file: neither ever loses a byte, whatever else was done to it in between.

The stores insist, as they do in a mount: a write carries an id, and an id that travels on would make a stranger's
version pass for ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from hosts import APPEND, WRITE, Host, World, close, read_all, refused
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.replica import Listing
from livememfs.records.metadata import META_OP
from livememfs.spaces import making as spaces
from livememfs.tree.node import NOBODY
from livememfs.tree.space.root import Space


@pytest.fixture
def one(world: World) -> Host:
    """A host behind a store that tries again, as a mount's does."""
    return world.host("one", insists=True)


@pytest.fixture
def other(world: World) -> Host:
    return world.host("other", insists=True)


async def touch(host: Host, path: str) -> None:
    await host.change(path, mtime_ns=10**18)


async def chmod(host: Host, path: str) -> None:
    await host.change(path, mode=0o600)


async def label(host: Host, path: str) -> None:
    await (await host.node(path)).set_xattr("user.colour", b"blue")
    await host.sent()


async def nothing(host: Host, path: str) -> None:
    """The plain case."""


BETWEEN = [nothing, touch, chmod, label]


@pytest.mark.parametrize("between", BETWEEN, ids=lambda step: step.__name__)
async def test_both_edits_of_one_version_survive(
    world: World, one: Host, other: Host, between: Callable[[Host, str], Awaitable[None]]
) -> None:
    await one.write("alpha/f", "base\n")
    mine = await one.open("alpha/f", WRITE)
    await other.write("alpha/f", "from the other\n")

    await between(one, "alpha/f")
    await mine.write(0, b"from me")
    await close(mine)

    kept = await world.bucket("alpha/f")
    assert kept.pop("") == b"from the other\n"
    [copy] = kept.values()
    assert copy.startswith(b"from me")
    assert b"alpha/f" in one.errors.conflicts()


@pytest.mark.parametrize("between", [touch, chmod, label], ids=lambda step: step.__name__)
async def test_setting_attributes_of_a_file_changed_elsewhere_shows_what_is_there_now(
    world: World, one: Host, other: Host, between: Callable[[Host, str], Awaitable[None]]
) -> None:
    await one.write("alpha/f", "base\n")
    await one.read("alpha/f")
    await other.write("alpha/f", "from the other\n")

    await between(one, "alpha/f")

    assert await one.read("alpha/f") == b"from the other\n"
    await one.write("alpha/f", "and me\n", APPEND)
    assert await world.bucket("alpha/f") == {"": b"from the other\nand me\n"}


async def test_both_hosts_additions_to_one_note_survive(world: World, one: Host, other: Host) -> None:
    await one.write("alpha/live/decision.md", "we chose S3\n")
    [name] = await world.notes()
    mine = await one.open(f"alpha/live/{name}", APPEND)
    await other.write(f"alpha/live/{name}", "from the other\n", APPEND)

    await mine.write(0, b"from me\n")
    await close(mine)

    [text] = (await world.notes()).values()
    assert text.endswith(b"we chose S3\nfrom the other\nfrom me\n")


async def test_a_renamed_file_does_not_overwrite_what_another_host_wrote(world: World, one: Host, other: Host) -> None:
    await one.write("alpha/f", "base\n")
    mine = await one.open("alpha/f", WRITE)
    await other.write("alpha/f", "from the other\n")

    await one.rename("alpha/f", "alpha/g")
    await mine.write(0, b"from me")
    await close(mine)

    found = await world.bucket("alpha/")
    assert (found["f"], found["g"]) == (b"from the other\n", b"from me")


async def test_the_id_of_a_write_is_not_handed_on(world: World, one: Host) -> None:
    ids = set()
    for step in (one.write("alpha/f", "one"), one.write("alpha/f", "two"), touch(one, "alpha/f")):
        await step
        ids.add(((await world.memory.head("alpha/f")).meta or {}).get(META_OP))

    assert len(ids) == 3


async def test_times_set_through_a_descriptor_are_stored_at_its_close(world: World, one: Host, other: Host) -> None:
    """As GNU touch does it with a file that exists."""
    await one.write("alpha/f", "x")
    await one.write("alpha/live/todo.md", "x")
    [note] = await world.notes()
    for path in ("alpha/f", f"alpha/live/{note}"):
        handle = await one.open(path, WRITE)
        await handle.flush()
        await touch(one, path)
        await close(handle)
        await one.sent()

        assert (await other.attrs(path)).mtime_ns == 10**18


async def test_the_mode_of_a_directory_is_what_the_last_host_made_it(
    world: World, one: Host, other: Host, autojump_clock: Clock
) -> None:
    await one.mkdir("alpha/d", 0o750)
    assert (await one.attrs("alpha/d")).mode == (await other.attrs("alpha/d")).mode == 0o750

    world.clock.advance(2)
    await chmod(other, "alpha/d")
    await world.settle()

    assert (await one.attrs("alpha/d")).mode == 0o600


async def test_what_is_written_after_the_last_close_is_stored_at_release(world: World, one: Host) -> None:
    """As a mapping does that outlives its descriptor."""
    await one.write("alpha/f", "0123456789")
    handle = await one.open("alpha/f", WRITE)
    await handle.flush()
    await handle.write(0, b"mapped")
    await handle.release()

    assert await world.bucket("alpha/f") == {"": b"mapped6789"}


async def test_a_file_that_changed_elsewhere_is_opened_for_writing_as_it_is_now(
    world: World, one: Host, other: Host, autojump_clock: Clock
) -> None:
    await one.write("alpha/f", "base\n")
    old = await one.node("alpha/f")
    held = await one.open("alpha/f")
    await other.write("alpha/f", "from the other\n")
    await world.settle()
    assert await one.node("alpha/f") is old

    writer = await old.open(APPEND, NOBODY)  # type: ignore[attr-defined]  # it is a file
    await writer.write(0, b"mine\n")
    await close(writer)

    assert await read_all(held) == b"base\n"  # the kernel was not given the new size
    assert (await world.bucket("alpha/f"))[""] == b"from the other\nmine\n"


async def test_a_name_that_is_not_utf8_does_not_make_the_error_list_unreadable(world: World) -> None:
    world.here.errors.record("create", "alpha/\udcff", errors.NotText(path="alpha/\udcff", detail="no"))
    world.here.errors.conflict("alpha/\udcff", "copy", "why")

    assert b"alpha/\\udcff" in world.here.errors.errors()
    assert b"alpha/\\udcff" in world.here.errors.conflicts()


async def test_a_space_that_another_host_makes_during_a_look_is_never_taken_for_a_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a plain folder, a note would be an ordinary file. A look that just missed the space finds nothing."""
    root, listing = world.here.root, world.here.replica.names.listing

    async def made_right_after(prefix: str, **options: float) -> Listing:
        found = await listing(prefix, **options)
        if not prefix and options:
            monkeypatch.undo()
            await spaces.create(world.there.replica, world.clock, "beta")
            world.here.replica.names.doubt("")
        return found

    monkeypatch.setattr(world.here.replica.names, "listing", made_right_after)
    await refused(errors.NotFound, root.child("beta"))

    assert isinstance(await root.child("beta"), Space)
