"""Links that whoever is confined to spaces may make: others follow them, so none may lead out of its space."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hosts import SPACE, Host, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from livememfs.errors import CrossesKinds, LinkLeaves, LiveMemError
from livememfs.records.access import EVERYTHING, Access
from livememfs.tree.plainfile import stays
from livememfs.tree.root import Root

WRITER = Access("writer", frozenset({"write"}), (SPACE, "beta"))
INSIDE = ("file", "file/", "./file", "deep/er/file", "../file", "../x/y", ".//..//file", "..", ".", "live")
OUTSIDE = (
    "/etc/passwd", "//etc/passwd", "/", "../../beta/live", "../..", "../../", ".././../beta", "a/../../../beta",
    "a/../../beta", "a/..", "../a/../b",
)  # fmt: skip


def confine(host: Host, access: Access = WRITER) -> None:
    host.context = replace(host.context, access=lambda: access)
    host.root = Root(host.context)


@pytest.fixture
async def guest(here: Host) -> Host:
    """A host with a token for two spaces; in one there is the directory `d`, and in that `e`."""
    for path in ("beta", f"{SPACE}/d", f"{SPACE}/d/e"):
        await here.mkdir(path)
    confine(here)
    return here


async def leads_out(host: Host, path: str, target: str) -> bool:
    """Whether a link is refused because it would lead out of its space."""
    try:
        await host.symlink(path, target)
    except LinkLeaves as error:
        return error.errno == errno.EPERM and "relative" in error.advice()
    return False


@pytest.mark.parametrize("target", INSIDE)
async def test_a_link_may_lead_to_what_is_in_its_space(guest: Host, target: str) -> None:
    assert not await leads_out(guest, f"{SPACE}/d/link", target)
    assert await guest.node(f"{SPACE}/d/link")


@pytest.mark.parametrize("target", OUTSIDE)
async def test_no_link_may_lead_out_of_its_space(guest: Host, target: str) -> None:
    assert await leads_out(guest, f"{SPACE}/d/link", target)
    assert not await guest.exists(f"{SPACE}/d/link")


@pytest.mark.parametrize("target", OUTSIDE)
@pytest.mark.parametrize("access", [EVERYTHING, Access("root", frozenset({"admin"}))])
async def test_who_administers_the_bucket_makes_any_link(here: Host, access: Access, target: str) -> None:
    confine(here, access)

    assert not await leads_out(here, f"{SPACE}/link", target)


@given(st.lists(st.sampled_from(["..", ".", "a", "b", ""]), max_size=6).map("/".join), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_what_stays_leads_into_the_space_whatever_its_names_are(target: str, depth: int) -> None:
    """Any name on the way may be a link to the top of the space: the worst that those who are confined can make."""
    prefix = "/".join(["space", *["d"] * (depth - 1), ""])
    level = depth - 1  # how far below the space
    for part in target.split("/"):
        if part == "..":
            level -= 1
        elif part not in ("", "."):
            level = 0
        if level < 0:
            break
    leaves = target.startswith("/") or level < 0

    assert not (leaves and stays(target, prefix))


async def test_a_link_is_not_moved_to_where_it_would_lead_out(guest: Host) -> None:
    await guest.symlink(f"{SPACE}/d/e/link", "../../file")
    await refused(
        LinkLeaves, guest.rename(f"{SPACE}/d/e/link", f"{SPACE}/d/link"), guest.rename(f"{SPACE}/d/e/link", "beta/link")
    )

    await guest.rename(f"{SPACE}/d/e/link", f"{SPACE}/d/e/moved")
    assert await guest.names(f"{SPACE}/d") == ["e"]


async def test_a_refused_move_leaves_what_it_would_have_replaced(guest: Host) -> None:
    await guest.symlink(f"{SPACE}/d/link", "../file")
    await guest.write(f"{SPACE}/link", "here before")
    await refused(LinkLeaves, guest.rename(f"{SPACE}/d/link", f"{SPACE}/link"))

    assert await guest.read(f"{SPACE}/link") == b"here before"


async def test_a_directory_moves_up_by_the_way_of_copying(guest: Host) -> None:
    """`mv` does that on EXDEV, and then makes each of its links anew, which asks for each."""
    with pytest.raises(CrossesKinds) as caught:
        await guest.rename(f"{SPACE}/d/e", f"{SPACE}/e")
    assert caught.value.errno == errno.EXDEV

    await guest.mkdir(f"{SPACE}/other")
    await guest.rename(f"{SPACE}/other", f"{SPACE}/d/other")  # further down, or beside, no link can come to lead out
    await guest.rename(f"{SPACE}/d/other", f"{SPACE}/d/beside")
    assert await guest.exists(f"{SPACE}/d/beside")


@pytest.mark.parametrize("path", [f"{SPACE}/live/link", f"{SPACE}/bank/link", f"{SPACE}/.history/link", "link"])
@pytest.mark.parametrize("target", ["file", "/etc/passwd"])
async def test_where_there_are_no_links_nobody_makes_any(guest: Host, path: str, target: str) -> None:
    with pytest.raises(LiveMemError) as caught:
        await guest.symlink(path, target)
    assert caught.value.errno in (errno.EPERM, errno.EROFS)


async def test_a_link_that_somebody_else_made_is_shown_as_it_is(here: Host) -> None:
    await here.symlink(f"{SPACE}/link", "/etc/hostname")
    confine(here)
    node = await here.node(f"{SPACE}/link")

    assert await node.target() == "/etc/hostname"  # type: ignore[attr-defined]


async def test_whether_there_is_a_space_is_not_told_by_a_link_between_memories(here: Host) -> None:
    await here.mkdir("secret")
    for name in ("one", "two"):
        await here.write(f"{SPACE}/memories/{name}", f"what {name} is\n")
    confine(here)

    for space in ("secret", "nothing"):  # only the name of the memory counts, if there is no such space
        await here.symlink(
            f"{SPACE}/memories/one.links/{'updates' if space == 'secret' else 'part_of'}/l",
            f"../../../{space}/memories/two.md",
        )


def test_the_kernel_resolves_nothing_that_stays_to_what_is_outside(tmp_path: Path) -> None:
    """The same on a real file system, with the worst names there are: links to the top of the space."""
    (tmp_path / "beta").mkdir()
    (tmp_path / "alpha/d/e").mkdir(parents=True)
    for place in ("alpha", "alpha/d", "alpha/d/e"):
        (tmp_path / place / "up").symlink_to("/".join([".."] * place.count("/")) or ".")
    for place in ("alpha", "alpha/d", "alpha/d/e"):
        for target in (*INSIDE, *OUTSIDE, "up/..", "up/../beta", "../up/x", "../up/../beta", "up/up/../../beta"):
            if stays(target, f"{place}/"):
                resolved = os.path.realpath(tmp_path / place / target)
                assert Path(resolved).is_relative_to(tmp_path / "alpha"), (place, target)
