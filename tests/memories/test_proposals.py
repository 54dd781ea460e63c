"""A proposal has one decision, whoever asks where and whoever dies on the way, and what others wrote is not lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from livememfs.cache.replica import Replica
from livememfs.errors import BadRequest, LiveMemError, NotFound, NotPermitted, Unreachable
from livememfs.memories import proposals
from livememfs.memories.proposalpage import page_of
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.metadata import META_TRUST
from livememfs.records.proposal import Proposal, decided_prefix, is_target, key_of
from livememfs.records.trust import trust_of
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

SPACE = "alpha"
NAME = "20260220T140000_fact_0000000a"
TARGET = f"memories/{NAME}.md"
TEXT = '---\ntype: "fact"\ntrust: "tool"\n---\n\nWe deploy on Fridays.\n'
SUMMARY = "sessions/s-1/summary.md"
PERSON = "ada"


def proposed(target: str = TARGET, content: str = TEXT, **given: Any) -> Proposal:
    return Proposal(target=target, content=content, by="digest 3", why="from a.md", at=START, **given)


class House:
    """A bucket with one proposal, and hosts that see it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)

    @classmethod
    async def with_one(cls, proposal: Proposal | None = None) -> House:
        house = cls()
        await house.put(proposal or proposed())
        return house

    async def put(self, proposal: Proposal) -> None:
        await self.memory.put(key_of(SPACE, proposal.name), proposal.render())

    def host(self, store: Any = None) -> Replica:
        return Replica(store or self.memory)

    async def accept(self, host: Replica, name: str = NAME, by: str = PERSON) -> str:
        return await proposals.accept(host, self.clock, SPACE, name, by=by)

    async def refuse(self, host: Replica, name: str = NAME, by: str = PERSON) -> None:
        await proposals.refuse(host, self.clock, SPACE, name, by=by)

    async def waiting(self, host: Replica | None = None) -> list[str]:
        return [proposal.name for _, proposal in await proposals.waiting(host or self.host(), SPACE)]

    async def bucket(self) -> dict[str, str]:
        found = await list_all(self.memory, f"{SPACE}/")
        return {
            info.key.removeprefix(f"{SPACE}/"): (await self.memory.get(info.key)).data.decode("utf-8", "replace")
            for info in found.objects
        }

    async def stored(self, target: str = TARGET) -> str | None:
        return (await self.bucket()).get(target)

    async def outcome(self) -> tuple[bool, list[str]]:
        """Whether the memory is there, and the decisions."""
        made = await proposals.decisions(self.host(), SPACE)
        return await self.stored() is not None, [each.decision for each in made]


async def test_what_is_accepted_is_stored_as_it_was_proposed_and_waits_no_more() -> None:
    house = await House.with_one(proposed(meta={META_TRUST: "tool"}))
    host = house.host()

    assert await house.accept(host, f"{NAME}.md") == f"{SPACE}/{TARGET}"

    assert (await house.stored(), await house.waiting(host)) == (TEXT, [])
    stored = await house.memory.get(f"{SPACE}/{TARGET}")
    memory = Memory.parse(stored.data, path="", collection=keys.MEMORIES)
    assert trust_of(stored.info.meta, memory.said_of_trust).word == "tool"
    (decided,) = await proposals.decisions(host, SPACE)
    assert (decided.decision, decided.decided_by, decided.decided_at) == ("accepted", PERSON, START)


async def test_what_is_refused_is_kept_with_the_decision_and_does_not_come_back() -> None:
    house = await House.with_one()

    await house.refuse(house.host())
    await house.put(proposed())  # the same input once more, from a host that died before

    assert (await house.outcome(), await house.waiting()) == ((False, ["refused"]), [])
    assert key_of(SPACE, NAME).removeprefix(f"{SPACE}/") not in await house.bucket()
    with pytest.raises((NotFound, BadRequest)):
        await house.accept(house.host())
    assert await house.stored() is None


async def test_an_agent_decides_nothing() -> None:
    house = await House.with_one()

    for act in (house.accept, house.refuse):
        with pytest.raises(NotPermitted):
            await act(house.host(), by="claude")

    assert (await house.outcome(), await house.waiting()) == ((False, []), [NAME])


@pytest.mark.parametrize("first", ["accept", "refuse"])
async def test_two_hosts_that_decide_otherwise_have_one_outcome(first: str, autojump_clock: trio.abc.Clock) -> None:
    """Both have read the proposal before either has decided."""
    house = await House.with_one()
    slow, quick = FaultyStore(house.memory), FaultyStore(house.memory)
    slow.latency("put", 1)
    errors: list[LiveMemError] = []

    async def attempt(act: Callable[..., Awaitable[Any]], store: FaultyStore) -> None:
        try:
            await act(house.host(store))
        except LiveMemError as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, house.refuse if first == "accept" else house.accept, slow)
        nursery.start_soon(attempt, house.accept if first == "accept" else house.refuse, quick)

    decision = "accepted" if first == "accept" else "refused"
    assert await house.outcome() == (first == "accept", [decision])
    assert await house.waiting() == []
    assert [type(error) for error in errors] == [BadRequest]
    assert decision in str(errors[0])


async def test_two_hosts_that_decide_alike_both_succeed(autojump_clock: trio.abc.Clock) -> None:
    house = await House.with_one()
    slow = FaultyStore(house.memory)
    slow.latency("put", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.accept, house.host(slow))
        nursery.start_soon(house.accept, house.host())

    assert (await house.outcome(), await house.stored()) == ((True, ["accepted"]), TEXT)


class Died(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("way", ["before", "after"])
@pytest.mark.parametrize("act", ["accept", "refuse"])
async def test_who_dies_at_any_step_leaves_a_decision_that_the_next_look_carries_out(act: str, way: str) -> None:
    steps, ends = 0, set()
    while steps < 50:
        house, steps = await House.with_one(), steps + 1
        count = 0

        def plan(asked: StoreRequest, _: int, at: int = steps) -> Fault | None:
            nonlocal count
            count += 1
            if count < at:
                return None
            fault = Died()
            return Fault(before=fault) if way == "before" or count > at else Fault(after=fault)  # type: ignore[arg-type]

        try:
            await getattr(house, act)(house.host(FaultyStore(house.memory, plan=plan)))
            died = False
        except Died:
            died = True
        names = await house.waiting()
        there, decisions = await house.outcome()
        ends.add((there, tuple(decisions), tuple(names)))
        assert decisions or names == [NAME], "nothing was decided, and nothing waits"
        assert there == (decisions == ["accepted"])
        if decisions:
            assert key_of(SPACE, NAME).removeprefix(f"{SPACE}/") not in await house.bucket()
        if not died:
            break
    decision = "accepted" if act == "accept" else "refused"
    assert ends == {(False, (), (NAME,)), (act == "accept", (decision,), ())}


async def test_what_was_accepted_and_forgotten_before_the_last_step_stays_forgotten() -> None:
    house = await House.with_one()
    host = house.host()
    await house.accept(host)
    history = keys.memory_history_key(SPACE, "memories", NAME, house.clock.now())
    await house.memory.put(history, TEXT.encode())
    await house.memory.delete(f"{SPACE}/{TARGET}")
    await house.put(proposed())  # the process had died before it removed this

    assert await house.waiting() == []
    assert await house.stored() is None


async def test_what_was_accepted_and_edited_before_the_last_step_keeps_the_edit() -> None:
    house = await House.with_one()
    await house.accept(house.host())
    await house.memory.put(f"{SPACE}/{TARGET}", b"edited")
    await house.put(proposed())

    assert (await house.waiting(), await house.stored()) == ([], "edited")


# --- what changed meanwhile ---------------------------------------------------------------------------------------


async def changed(now: str) -> House:
    """A proposal for a summary that somebody has changed since."""
    house = House()
    await house.memory.put(f"{SPACE}/{SUMMARY}", b"one\ntwo\nthree\nfour\nfive\n")
    base = await house.memory.head(f"{SPACE}/{SUMMARY}")
    was, new = "one\ntwo\nthree\nfour\nfive\n", "ONE\ntwo\nthree\nfour\nfive\n"
    await house.put(proposed(SUMMARY, new, base=base.etag, was=was))
    await house.memory.put(f"{SPACE}/{SUMMARY}", now.encode())
    return house


async def test_what_is_accepted_is_joined_with_what_others_wrote_since() -> None:
    house = await changed("one\ntwo\nthree\nfour\nFIVE\n")

    await house.accept(house.host(), "summary_s-1")

    assert await house.stored(SUMMARY) == "ONE\ntwo\nthree\nfour\nFIVE\n"


async def test_what_cannot_be_joined_is_not_decided_and_still_waits() -> None:
    house = await changed("uno\ntwo\nthree\nfour\nfive\n")

    with pytest.raises(BadRequest):
        await house.accept(house.host(), "summary_s-1")

    assert (await house.waiting(), await proposals.decisions(house.host(), SPACE)) == (["summary_s-1"], [])
    assert await house.stored(SUMMARY) == "uno\ntwo\nthree\nfour\nfive\n"


async def test_a_newer_proposal_for_the_same_object_outlives_the_decision_about_the_older() -> None:
    house = House()
    await house.put(proposed(SUMMARY, "first\n"))
    host = house.host()
    await proposals.the_one(host, SPACE, "summary_s-1")
    await house.refuse(host, "summary_s-1")
    await house.put(proposed(SUMMARY, "second\n"))

    assert await house.waiting() == ["summary_s-1"]
    await house.accept(house.host(), "summary_s-1")
    assert await house.stored(SUMMARY) == "second\n"


# --- what anybody may have written --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"form": 1}',
        b"\xff",
        proposed().render().replace(b'"form": 1', b'"form": 2'),
        proposed().render().replace(b'"meta": {}', b'"meta": []'),
        proposed("_meta.json").render(),
        proposed("_rules.md").render(),
        proposed("bank/progress.md").render(),
        proposed("_ledger/00000001.json").render(),
        proposed("sessions/s-1/session.json").render(),
        proposed("../beta/memories/20260220T140000_fact_0000000a.md").render(),
        proposed("memories/20260220T140000_fact_0000000b.md").render(),
    ],
)
async def test_an_odd_object_is_passed_over_and_the_others_are_shown(data: bytes) -> None:
    house = await House.with_one(proposed("memories/20260220T150000_fact_0000000c.md"))
    await house.memory.put(key_of(SPACE, NAME), data)
    host = house.host()

    assert await house.waiting(host) == ["20260220T150000_fact_0000000c"]
    with pytest.raises(BadRequest):
        await house.accept(host)
    assert await house.outcome() == (False, [])


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        (TARGET, True),
        ("self/x.md", True),
        ("live/20260220T140000_c_todo_a1b2c3d4.md", True),
        ("observations/20260220T140000_bugfix_1a2b3c4d.md", True),
        (SUMMARY, True),
        ("memories/.history/x/y.md", False),
        ("live/picture.png", False),
        ("observations/x.md", False),
        ("notes/plan.txt", False),
        ("", False),
    ],
)
def test_only_memories_notes_observations_and_summaries_are_proposed(target: str, is_one: bool) -> None:
    assert is_target(SPACE, target) is is_one


async def test_a_decision_that_does_not_arrive_is_no_decision() -> None:
    house = await House.with_one()
    store = FaultyStore(house.memory)
    store.script("put", Fault(before=Unreachable("reset", endpoint="the bucket")))

    with pytest.raises(Unreachable):
        await house.accept(house.host(store))

    assert (await house.outcome(), await house.waiting()) == ((False, []), [NAME])


async def test_decisions_are_where_watchers_do_not_look() -> None:
    assert decided_prefix(SPACE).startswith(keys.ledger_prefix(SPACE))


async def test_the_page_shows_what_a_memory_would_correct_as_a_diff() -> None:
    house = House()
    older = "20260101T000000_fact_0000000d"
    await house.memory.put(f"{SPACE}/memories/{older}.md", b"We deploy on Thursdays.\n")
    proposal = proposed(content=f'---\ncorrects: ["{older}"]\n---\n\nWe deploy on Fridays.\n```\n')

    page = (await page_of(house.host(), SPACE, proposal)).decode()

    assert "\n-We deploy on Thursdays.\n+We deploy on Fridays.\n" in page
    assert "````diff\n" in page  # the text cannot end the block
    assert page.endswith(proposal.content)
