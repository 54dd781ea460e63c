"""`.proposals/`: what waits is read there; a person accepts it by moving it where it belongs, and refuses it by rm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hosts import REPLACE, Host, World, refused

from livememfs.errors import NotFound, NotPermitted, ReadOnly
from livememfs.memories import proposals
from livememfs.records.proposal import Proposal, key_of
from livememfs.testing.clock import START
from livememfs.tree.node import ACTING, Caller

AGENT, PERSON = 7, 8
NAME = "20260220T140000_fact_0000000a"
FILE = f"alpha/.proposals/{NAME}.md"
TARGET = f"memories/{NAME}.md"
TEXT = "---\ntype: fact\n---\n\nWe deploy on Fridays.\n"


@contextmanager
def acting(pid: int | None) -> Iterator[None]:
    """As a request of the kernel for a process; None: no process has asked."""
    token = ACTING.set(Caller(pid=pid) if pid is not None else None)
    try:
        yield
    finally:
        ACTING.reset(token)


async def propose(world: World, target: str = TARGET, content: str = TEXT) -> None:
    made = Proposal(target=target, content=content, by="digest 3", why="from a.md", at=START)
    await world.memory.put(key_of("alpha", made.name), made.render())


@pytest.fixture
async def waiting(world: World, here: Host, there: Host) -> None:
    await propose(world)
    for host in (here, there):
        host.agents[AGENT] = "claude"


async def decided(host: Host) -> list[str]:
    made = await proposals.decisions(host.replica, "alpha")
    return [f"{each.decision} by {each.decided_by}" for each in made]


async def test_what_waits_is_shown_with_its_diff_and_is_no_memory(waiting: None, here: Host) -> None:
    assert await here.names("alpha/.proposals") == [".decided", f"{NAME}.md"]
    page = (await here.read(FILE)).decode()
    assert f"--- nothing\n+++ {TARGET}\n" in page
    assert "\n+We deploy on Fridays.\n" in page
    assert page.endswith(TEXT)
    assert not await here.exists(f"alpha/{TARGET}")
    assert (await here.attrs(FILE)).size == len(page.encode())


async def test_moving_it_to_its_folder_accepts_it_for_every_host(
    waiting: None, world: World, here: Host, there: Host
) -> None:
    held = await here.node(FILE)  # the kernel goes on taking this for the file that it has moved

    with acting(PERSON):
        await here.rename(FILE, f"alpha/{TARGET}")

    assert (await here.read(f"alpha/{TARGET}")).decode() == TEXT
    assert (await here.names("alpha/.proposals"), await decided(here)) == ([".decided"], ["accepted by me"])
    await world.settle()
    assert (await there.read(f"alpha/{TARGET}")).decode() == TEXT
    assert (await there.names("alpha/.proposals")) == [".decided"]
    assert (await held.attrs()).size == len(TEXT.encode())


async def test_removing_it_refuses_it_and_it_can_be_looked_up(waiting: None, here: Host) -> None:
    with acting(PERSON):
        await here.unlink(FILE)

    assert (await here.names("alpha/.proposals"), await decided(here)) == ([".decided"], ["refused by me"])
    (name,) = await here.names("alpha/.proposals/.decided")
    page = (await here.read(f"alpha/.proposals/.decided/{name}")).decode()
    assert "Refused by me" in page
    assert page.endswith(TEXT)
    assert not await here.exists(f"alpha/{TARGET}")


@pytest.mark.parametrize("pid", [AGENT, None], ids=["agent", "tool"])
async def test_neither_an_agent_nor_a_tool_decides(waiting: None, here: Host, pid: int | None) -> None:
    with acting(pid):
        await refused(NotPermitted, here.rename(FILE, f"alpha/{TARGET}"), here.unlink(FILE))

    assert (await here.exists(FILE), await decided(here)) == (True, [])


@pytest.mark.parametrize(
    "target", [f"alpha/live/{NAME}.md", f"alpha/self/{NAME}.md", "alpha/memories/friday.md", f"alpha/{NAME}.md"]
)
async def test_moving_it_elsewhere_is_refused_and_decides_nothing(waiting: None, here: Host, target: str) -> None:
    """With EXDEV `mv` would copy the page and then remove, which is to refuse, the proposal."""
    with acting(PERSON):
        await refused(NotPermitted, here.rename(FILE, target))

    assert (await here.exists(FILE), await decided(here)) == (True, [])


async def test_nobody_writes_there(waiting: None, here: Host) -> None:
    await refused(
        (ReadOnly, NotFound),
        here.write(FILE, "x", REPLACE),
        here.write("alpha/.proposals/new.md", "x"),
        here.mkdir("alpha/.proposals/folder"),
        here.write("alpha/_proposals/x.json", "x"),
    )


async def test_each_kind_is_accepted_where_it_belongs(world: World, here: Host) -> None:
    kinds = {
        "live/20260220T140000_c_todo_a1b2c3d4.md": "a note\n",
        "observations/20260220T140000_bugfix_1a2b3c4d.md": "seen\n",
        "goals/20260220T140000_goal_0000000b.md": "a goal\n",
    }
    for target, text in kinds.items():
        await propose(world, target, text)
    for target, text in kinds.items():
        with acting(PERSON):
            await here.rename(f"alpha/.proposals/{target.rpartition('/')[2]}", f"alpha/{target}")
        assert (await here.read(f"alpha/{target}")).decode() == text
