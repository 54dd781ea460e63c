"""Directories that sandboxes of agents make to mount on: empty, on this machine only, gone with the mount."""

from __future__ import annotations

import pytest
from hosts import WRITE, Host, World, refused

from livememfs import errors
from livememfs.tree.node import AttrChange, Caller
from livememfs.tree.sandbox import MOST

ABOVE = ["", "alpha/live/", "alpha/memories/", "alpha/self/", "alpha/goals/"]
NAMES = [".git", ".codex", ".agents", ".claude", ".vscode"]


@pytest.mark.parametrize("above", ABOVE)
async def test_a_place_is_made_and_removed_and_never_reaches_the_bucket(above: str, here: Host, world: World) -> None:
    """As Codex does before and after each command, time and again."""
    before, names = await world.bucket(), await here.names(above)
    for _ in range(2):
        for name in NAMES:
            await here.mkdir(above + name)
            assert (await here.attrs(above + name)).kind == "directory"
            await refused(errors.AlreadyExists, here.mkdir(above + name))
        assert await here.names(above) == names
        for name in NAMES:
            await here.rmdir(above + name)
            assert not await here.exists(above + name)

    assert await world.bucket() == before


async def test_a_place_is_of_this_mount_alone(here: Host, there: Host) -> None:
    await here.mkdir("alpha/live/.git")

    assert not await there.exists("alpha/live/.git")


async def test_nothing_can_be_put_into_a_place(here: Host) -> None:
    place = await here.mkdir("alpha/live/.git")
    await here.write("alpha/live/note", "We chose S3.")
    live = await here.folder("alpha/live")

    await refused(errors.ReadOnly, here.write("alpha/live/.git/config", "x"), match="sandbox")
    await refused(errors.ReadOnly, here.mkdir("alpha/live/.git/hooks"), live.rename("note", place, "note"))
    await place.change(AttrChange(mode=0o500), Caller())
    assert await here.names("alpha/live/.git") == []


@pytest.mark.parametrize("above", ABOVE[1:])
async def test_other_directories_are_refused_as_before(above: str, here: Host) -> None:
    await refused(errors.NotPermitted, here.mkdir(f"{above}folder"), here.rmdir(f"{above}.git"))


async def test_names_that_mean_something_are_not_taken(here: Host) -> None:
    for path in (".livememfs", "alpha/memories/.by"):
        await refused(errors.AlreadyExists, here.mkdir(path))
    await refused(errors.NameTooLong, here.mkdir("." + "x" * 255))


async def test_a_draft_keeps_its_name(here: Host) -> None:
    await here.open("alpha/live/.git", WRITE)

    await refused(errors.AlreadyExists, here.mkdir("alpha/live/.git"))


async def test_places_are_few(here: Host) -> None:
    for number in range(MOST):
        await here.mkdir(f".{number}")

    await refused(errors.NotPermitted, here.mkdir(".more"))
