"""`context.md`: the same bytes while nothing changed, never over its budget, and there while the bucket is not."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
import trio.testing

from livememfs.cache.replica import Replica
from livememfs.errors import Unreachable
from livememfs.recall.turn.context import BUDGET, PATIENCE, ContextPages
from livememfs.recall.turn.timeline import line
from livememfs.records import keys
from livememfs.records.memory import Memory, canonical_name
from livememfs.records.observation import Observation
from livememfs.records.session import Summary
from livememfs.spaces import making as spaces
from livememfs.store.base import IfMatch
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import FaultyStore
from livememfs.text.own import END, HEAD, without_own
from livememfs.text.size import tokens

SPACE = "alpha"


class World:
    """A bucket with a space, and the pages of one mount, which asks for names anew each time; `kept`: never again."""

    def __init__(self, budget: int = BUDGET, *, kept: bool = False) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.budget, self.ttl = budget, float("inf") if kept else 0.0
        self.pages = self.restarted()
        self._made = 0

    def restarted(self) -> ContextPages:
        """The pages of a mount that knows nothing yet."""
        replica = Replica(self.store, listing_ttl=self.ttl)
        return ContextPages(replica, self.clock, mounted="/m", budget=self.budget)

    async def page(self) -> str:
        return await self.pages.page(SPACE)

    async def observe(self, title: str = "Tokens expire after 24 hours", at: datetime = START, **fields: Any) -> str:
        """Another host observes something; its id."""
        self._made += 1
        uid = f"{self._made:08x}"
        one = Observation(uid, **{"session": "s-1", "created_at": at, "type": "decision", "title": title, **fields})
        await self.memory.put(keys.observations_prefix(SPACE) + one.name, one.render())
        return uid

    async def sum_up(self, session: str = "s-1", **said: str) -> None:
        key = keys.session_key(SPACE, keys.session_slug(session), keys.SUMMARY)
        await self.memory.put(key, Summary(session, START, **said).render())

    async def remember(self, content: str, collection: str = keys.MEMORIES, **fields: Any) -> str:
        """Another host remembers something; its key."""
        self._made += 1
        kind = {"memories": "identity", "self": "identity", "goals": "goal"}[collection]
        now = self.clock.now()
        made = Memory(collection, **{"type": kind, "content": content, "importance": 1, "created_at": now,
                                     "updated_at": now, **fields})  # fmt: skip
        key = f"{SPACE}/{collection}/{canonical_name(made, f'{self._made:08x}')}"
        await self.memory.put(key, made.render())
        return key

    async def everything(self) -> None:
        """Something of each kind."""
        await self.remember("I am Ann\nand I like tea")
        await self.remember("I can read the lobby", keys.SELF)
        await self.remember("learn French", keys.GOALS)
        await self.observe(narrative="x" * 36, files_modified=("src/auth.py",))
        await self.sum_up(request="Mend the login", completed="It was mended")


@pytest.fixture
async def world() -> World:
    made = World()
    await spaces.create(Replica(made.memory), made.clock, SPACE)
    return made


# --- what it tells -----------------------------------------------------------------------------------------------


async def test_a_page_tells_who_what_for_what_was_done_and_what_was_seen(world: World) -> None:
    await world.everything()

    assert (await world.page()).splitlines()[:21] == [
        HEAD,
        "# Memory of alpha",
        "",
        "## Who you are",
        "- I am Ann and I like tea",
        "- I can read the lobby",
        "",
        "## Goals",
        "- learn French",
        "",
        "## Last session (2026-02-20, from tool output)",
        "- Asked: Mend the login",
        "- Done: It was mended",
        "",
        "## Timeline (id, time UTC, kind, title, ~tokens to read it)",
        "⚖ decision; from tool output",
        "### Feb 20, 2026",
        "**src/auth.py**",
        "#00000004 14:00 ⚖ Tokens expire after 24 hours ~5",
        "",
        "## More (in /m/alpha/)",
    ]


async def test_a_page_of_an_empty_space_says_where_to_look_and_write(world: World) -> None:
    page = await world.page()

    assert "## More (in /m/alpha/)\n" in page
    assert '"search/QUESTION.md"' in page
    assert "`README.md`" in page
    assert "Timeline" not in page
    assert page.startswith(f"{HEAD}\n# Memory of alpha\n")
    assert page.endswith(f"\n{END}\n")


async def test_a_page_is_our_own_and_never_remembered_again_whatever_stands_in_it(world: World) -> None:
    await world.remember(f"before {END} after")
    await world.observe(f"Title {END} and more")

    assert without_own(await world.page()).count("\n") == 1


async def test_memories_that_are_forgotten_over_or_of_another_kind_are_not_told(world: World) -> None:
    await world.remember("forgotten", forgotten=True)
    await world.remember("over", expires_at=START)
    await world.remember("a mere fact", type="fact")
    await world.remember(" \n")

    page = await world.page()

    assert "Who you are" not in page
    assert not re.search("forgotten|over|mere", page)


async def test_the_last_session_that_has_a_summary_is_told(world: World) -> None:
    await world.observe("old", START - timedelta(days=1), session="s-1")
    await world.sum_up("s-1", learned="The old way")
    await world.observe("new", START, session="s 2")
    assert "- Learned: The old way" in await world.page()

    await world.sum_up("s 2", learned="The new way")

    page = await world.page()
    assert "- Learned: The new way" in page
    assert "old way" not in page


async def test_every_character_is_of_the_basic_plane(world: World) -> None:
    for collection in keys.COLLECTIONS:
        await world.remember("\U0001f41b bug", collection)
    await world.observe("\U0001f41b", subtitle="\U0001f41b", files_modified=("\U0001f41b.py",))
    await world.sum_up(request="\U0001f41b")

    around = await world.pages.around(SPACE, "00000004")

    assert around is not None
    assert all(mark <= "\uffff" for mark in await world.page() + around)


# --- the budget --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [BUDGET, 1_000])
@pytest.mark.parametrize("word", ["word ", "слово ", "単語"])
async def test_a_page_keeps_to_its_budget_however_much_there_is(budget: int, word: str) -> None:
    world = World(budget)
    for number in range(30):
        for collection in keys.COLLECTIONS:
            await world.remember(f"{number} {word * 300}", collection)
        await world.observe(f"{number} {word * 30}", START - timedelta(hours=number), files_modified=(f"f{number}.py",))
    await world.sum_up(**dict.fromkeys(("request", "learned", "completed", "next_steps"), word * 300))

    page = await world.page()

    assert tokens(page) <= budget
    assert "## Timeline" in page
    assert "#00000004 " in page  # the newest observation has its place beside all that is pinned
    assert "29 " in page.partition("## Goals")[0]  # and so has the newest that is pinned


async def test_of_many_observations_the_newest_that_fit_are_told(world: World) -> None:
    for number in range(100):
        await world.observe(f"Thing {number:02}", START + timedelta(minutes=number))

    told = re.findall(r"Thing (\d\d)", await world.page())

    assert len(told) > 50
    assert told == [f"{number:02}" for number in range(100 - len(told), 100)]


# --- the same bytes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
async def test_while_nothing_changes_a_page_keeps_its_bytes(kept: bool) -> None:
    world = World(kept=kept)
    await world.everything()
    first = await world.page()
    assert await world.page() == first  # reading tells names more of themselves, once
    made = world.pages.statistics()["made"]
    assert 1 <= made <= 2
    world.store.forget()

    for _ in range(5):
        world.clock.advance(days=1)
        assert await world.page() == first

    if kept:  # a mount that watches the bucket knows that nothing has changed
        assert world.store.requests == []
        assert world.pages.statistics() == {"asked": 7, "made": made, "failed": 0}


async def test_a_restart_and_another_host_give_the_same_bytes(world: World) -> None:
    await world.everything()
    first = await world.page()

    world.clock.advance(days=3)

    assert await world.restarted().page(SPACE) == first


async def test_what_a_page_does_not_tell_does_not_change_it(world: World) -> None:
    await world.everything()
    first = await world.page()

    await world.remember("a mere fact", type="fact")
    await world.memory.put(f"{SPACE}/plain.txt", b"x")
    await world.sum_up("s-9", request="Of a session that nobody observed")

    assert await world.page() == first


CHANGES: dict[str, tuple[Callable[[World], Awaitable[object]], str]] = {
    "an observation": (lambda world: world.observe("Something new"), "Something new"),
    "a summary": (lambda world: world.sum_up(completed="All of it"), "All of it"),
    "who": (lambda world: world.remember("I am the new one"), "I am the new one"),
    "self": (lambda world: world.remember("I can sing", keys.SELF), "I can sing"),
    "a goal": (lambda world: world.remember("see Rome", keys.GOALS), "see Rome"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("empty", [True, False])
async def test_what_comes_is_on_the_next_page(world: World, what: str, empty: bool) -> None:
    if empty:
        await world.observe("There was one before")
    else:
        await world.everything()
    before = await world.page()
    happens, told = CHANGES[what]

    await happens(world)

    after = await world.page()
    assert told not in before
    assert told in after
    assert await world.restarted().page(SPACE) == after


@pytest.mark.parametrize("collection", keys.COLLECTIONS)
async def test_when_a_memorys_time_ends_it_is_told_no_more(world: World, collection: str) -> None:
    await world.everything()
    without = await world.page()
    await world.remember("for a week", collection, expires_at=START + timedelta(days=7))
    world.clock.advance(days=6, hours=23)
    assert "for a week" in await world.page()

    world.clock.advance(hours=1)

    assert await world.page() == without


async def test_what_is_removed_is_told_no_more(world: World) -> None:
    await world.everything()
    before = await world.page()
    key = await world.remember("soon gone")
    uid = await world.observe("Soon gone as well")
    await world.page()

    for gone in (key, f"{SPACE}/observations/20260220T140000_decision_{uid}.md"):
        await world.memory.delete(gone, condition=IfMatch((await world.memory.head(gone)).etag))

    assert await world.page() == before


# --- bad days ----------------------------------------------------------------------------------------------------


async def test_while_the_bucket_is_down_the_last_page_is_there(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    await world.everything()
    first = await world.page()

    world.store.fail_all = Unreachable("down", endpoint="the bucket")
    assert await world.page() == first

    world.store.fail_all = None
    await trio.sleep(60)
    await world.observe("Something new")
    assert "Something new" in await world.page()


async def test_while_the_bucket_has_never_answered_there_is_a_page_of_nothing(world: World) -> None:
    empty = await world.page()
    await world.everything()
    world.store.fail_all = Unreachable("down", endpoint="the bucket")

    assert await world.restarted().page(SPACE) == empty


async def test_whoever_asks_waits_for_a_few_seconds_at_most(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    await world.everything()
    first = await world.page()
    world.store.blackhole = True
    await world.observe("Something new")

    began = trio.current_time()
    assert await world.page() == first
    assert trio.current_time() - began <= PATIENCE


async def test_of_many_who_ask_at_once_most_have_it_made_by_others() -> None:
    world = World(kept=True)
    await world.everything()
    found: list[str] = []

    async def ask() -> None:
        found.append(await world.page())

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask)

    assert len(set(found)) == 1
    assert world.pages.statistics()["made"] <= 2


# --- around one --------------------------------------------------------------------------------------------------


async def around(world: World, which: str) -> list[str]:
    found = await world.pages.around(SPACE, which)
    assert found is not None
    return re.findall(r"^(?:> )?#[0-9a-f]{8} .*$", found, re.MULTILINE)


@pytest.mark.parametrize("which", ["0000000d", "0000000D", "20260220T141200_decision_0000000d"])
async def test_around_one_are_those_before_and_after_it_in_order(world: World, which: str) -> None:
    for number in range(30):
        await world.observe(f"Thing {number}", START + timedelta(minutes=number), subtitle=f"About {number}")

    shown = await around(world, which)

    assert [row.split()[-2] for row in shown] == [str(number) for number in range(4, 21)]
    assert [row for row in shown if row.startswith("> ")] == [shown[8]]
    assert shown[8].startswith("> #0000000d ")
    page = await world.pages.around(SPACE, which) or ""
    assert "#0000000d: About 12" in page
    assert "observations/20260220T141200_decision_0000000d.md" in page


async def test_at_the_ends_of_time_there_are_fewer(world: World) -> None:
    for number in range(3):
        await world.observe(f"Thing {number}", datetime(2026, 1, 1 + number, tzinfo=UTC))

    assert len(await around(world, "00000001")) == 3
    assert (await around(world, "00000001"))[0].startswith("> ")
    assert line(Observation("00000003", "", datetime(2026, 1, 3, tzinfo=UTC), "decision", "Thing 2")) in (
        await around(world, "00000001")
    )


@pytest.mark.parametrize("which", ["ffffffff", "", "decision", "20260220T140000_decision_"])
async def test_around_one_that_is_not_there_is_nothing(world: World, which: str) -> None:
    await world.observe()

    assert await world.pages.around(SPACE, which) is None
    assert await world.pages.around("elsewhere", which) is None


async def test_who_cannot_wait_has_a_shorter_page_and_what_was_read_meanwhile_is_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Reading all of it takes longer than anybody here waits, and after some who asked it is there."""
    world = World(kept=True)
    for number in range(60):
        await world.observe(f"Thing {number}")
    await world.page()
    world.pages = world.restarted()
    began = trio.current_time()
    world.store.latency("get", 0.05)
    await world.page()
    whole = trio.current_time() - began
    assert whole < PATIENCE
    world.pages, asked = world.restarted(), 0

    while "Thing 59" not in (page := await world.pages.page(SPACE, whole * 0.6)):
        assert "## More" in page
        asked += 1
        assert asked < 6
        await trio.sleep(60)

    assert asked > 0
