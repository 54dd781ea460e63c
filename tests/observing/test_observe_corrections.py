"""A later observation corrects an earlier one of any session: by a model's verdict, or by its words without a model;
none hides what has a higher class of trust, and an id that nobody was shown is no id.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from observe_world import SPACE, World, with_model, without_model

from livememfs.observing.corrections import COMPARED, judged_by_words, links_of, related
from livememfs.observing.reply import Draft, read
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.observation import (
    CONTRADICTED,
    CONTRADICTS,
    MAX_LINKS,
    SUPERSEDED,
    SUPERSEDES,
    Observation,
)
from livememfs.records.trust import FIELD, Trust
from livememfs.testing.clock import START
from livememfs.testing.llm import LLMRequest
from livememfs.testing.observer import observation as answered

OLD = "0badcafe"


def observed(uid: str = OLD, *facts: str, title: str = "Tokens last 24 hours", **given: Any) -> Observation:
    fields = {"extra": {FIELD: "tool"}, "files_modified": ("src/auth.py",), "model": "m-1", **given}
    return Observation(uid, "s-0", START, "discovery", title, facts=facts, **fields)


async def there(world: World, *earlier: Observation) -> None:
    for each in earlier:
        await world.memory.put(keys.observations_prefix(SPACE) + each.name, each.render())


async def edited(world: World) -> None:
    await world.tool(1, input={"file_path": "/p/src/auth.py", "old_string": "24", "new_string": "7"})
    await world.settled()
    await world.replica.uploaded()


def said(uid: str) -> Any:
    return lambda request: answered(1, title="Tokens last 7 days", **{SUPERSEDES: uid})


def pair(found: list[Observation]) -> tuple[Observation, Observation]:
    """The older and the newer."""
    (older,) = [each for each in found if each.id == OLD]
    (newer,) = [each for each in found if each.id != OLD]
    return older, newer


@with_model(responder=said(OLD))
async def test_what_a_model_supersedes_says_so_and_the_model_was_shown_its_id(world: World) -> None:
    await there(world, observed(OLD, "A token lasts 24 hours"))
    await edited(world)

    older, newer = pair(await world.observations())

    assert (newer.linked(SUPERSEDES), older.linked(SUPERSEDED)) == ((older.link,), (newer.link,))
    assert (older.title, older.facts, older.trust) == ("Tokens last 24 hours", ("A token lasts 24 hours",), Trust.TOOL)
    assert f"#{OLD} 2026-02-20 Tokens last 24 hours: A token lasts 24 hours" in world.requests[0].text


def contradicting(request: LLMRequest) -> str:
    return answered(1, title="Tokens last 7 days", contradicts=f'["#{OLD}", "ffffffff", ""]')


@with_model(responder=contradicting)
async def test_what_a_model_is_unsure_of_is_kept_as_a_contradiction_of_both(world: World) -> None:
    await there(world, observed())
    await edited(world)

    older, newer = pair(await world.observations())

    assert (newer.linked(CONTRADICTS), older.linked(CONTRADICTED)) == ((older.link,), (newer.link,))
    assert newer.linked(SUPERSEDES) == older.linked(SUPERSEDED) == ()


@with_model(responder=said(OLD))
async def test_what_a_person_vouched_for_is_not_superseded_by_tool_output(world: World) -> None:
    await there(world, observed(extra={FIELD: "agent"}))
    await edited(world)

    older, newer = pair(await world.observations())

    assert newer.trust < older.trust
    assert (newer.linked(SUPERSEDES), older.linked(SUPERSEDED)) == ((), ())
    assert (newer.linked(CONTRADICTS), older.linked(CONTRADICTED)) == ((older.link,), (newer.link,))


@with_model(responder=said(OLD))
async def test_a_page_has_no_say_in_what_else_holds(world: World) -> None:
    await there(world, observed())
    await world.tool(1, tool="WebFetch", input={"url": "https://x.example"}, output="/p/src/auth.py: tokens last 7")
    await world.settled()
    await world.replica.uploaded()

    older, newer = pair(await world.observations())

    assert (newer.trust, newer.linked(SUPERSEDES), older.linked(SUPERSEDED)) == (Trust.WEB, (), ())
    assert OLD not in world.requests[0].text


@with_model(responder=said("deadbeef"))
async def test_an_id_that_nobody_was_shown_is_left_out(world: World) -> None:
    """The observation is there, but from the web: a model was not shown it."""
    await there(world, observed("deadbeef", extra={FIELD: "web"}))
    await edited(world)

    found = await world.observations()
    assert len(found) == 2
    assert [each.linked(field) for each in found for field in (SUPERSEDES, SUPERSEDED)] == [()] * 4


@without_model()
async def test_without_a_model_words_tell_what_the_agent_said_since(world: World) -> None:
    await world.say("said", "The deploy day is Friday.", session="one")
    await world.settled()
    await world.say("said", "The deploy day is Thursday now.", session="two")
    await world.settled()
    await world.replica.uploaded()

    older, newer = sorted(await world.observations(), key=lambda each: each.created_at)
    assert (newer.linked(SUPERSEDES), older.linked(SUPERSEDED)) == ((older.link,), (newer.link,))


@without_model()
async def test_of_several_statements_one_that_is_corrected_hides_not_the_others(world: World) -> None:
    await world.say("said", "The deploy day is Friday.\nThe office is in Pau.", session="one")
    await world.settled()
    await world.say("said", "The deploy day is Thursday now.", session="two")
    await world.settled()
    await world.replica.uploaded()

    older, newer = sorted(await world.observations(), key=lambda each: each.created_at)
    assert (newer.linked(SUPERSEDES), newer.linked(CONTRADICTS)) == ((), (older.link,))


@without_model()
async def test_of_two_edits_or_commands_neither_corrects_the_other(world: World) -> None:
    for number, days in ((1, 24), (2, 7)):
        await world.tool(number, tool="Bash", input={"command": f"make deploy VERSION={days}"})
        await world.tool(number + 10, input={"file_path": "/p/a.py", "old_string": "a\n" * days, "new_string": "b"})
        await world.settled()
    assert all(not each.linked(field) for each in await world.observations() for field in (SUPERSEDES, CONTRADICTS))


@with_model(responder=said(OLD))
async def test_an_observation_that_was_forgotten_meanwhile_does_not_come_back(world: World) -> None:
    old = observed()
    await there(world, old)

    def forgetting(request: LLMRequest) -> str:
        world.memory._objects.pop(keys.observations_prefix(SPACE) + old.name, None)
        return str(said(OLD)(request))

    world.answer_with(forgetting)
    await edited(world)

    (newer,) = await world.observations()
    assert newer.id != OLD


# --- what a reply may say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "ids"),
    [
        (f"<supersedes>{OLD}</supersedes>", (OLD,)),
        (f"<supersedes>#{OLD}, #DEADBEEF</supersedes>", (OLD, "deadbeef")),
        (f'<supersedes>["{OLD}"]</supersedes>', (OLD,)),
        (f"<supersedes><item>{OLD}</item></supersedes>", (OLD,)),
        (f'<supersedes>{{"id": "{OLD}", "why": 3}}</supersedes>', (OLD,)),
        (f"<supersedes>{OLD}\n<title>x</title>", (OLD,)),
        ("<supersedes>none</supersedes>", ()),
        ("<supersedes>[null, 7, true]</supersedes>", ()),
        (f"<supersedes>{OLD}0</supersedes>", ()),
        ("<supersedes/>", ()),
        ("", ()),
        ("<supersedes>" + " ".join(f"{number:08x}" for number in range(100)) + "</supersedes>", 16),
    ],
)
def test_ids_are_read_as_models_write_them(element: str, ids: tuple[str, ...] | int) -> None:
    reply = read(f"<observation><events>1</events><title>t</title>{element}</observation>", "stop", 1)

    (draft,) = reply.observations
    assert len(draft.supersedes) == MAX_LINKS == ids if isinstance(ids, int) else draft.supersedes == ids


def test_what_is_superseded_is_not_contradicted_as_well() -> None:
    draft = Draft((1,), "discovery", "t", supersedes=(OLD,), contradicts=(OLD,))
    assert links_of(draft, "0", Trust.TOOL, [observed()]) == {SUPERSEDES: [observed().link]}


def test_an_observation_does_not_supersede_itself() -> None:
    assert links_of(Draft((1,), "discovery", "t", supersedes=(OLD,)), OLD, Trust.TOOL, [observed()]) == {}


@pytest.mark.parametrize(
    "given", ["x", 7, None, ["../../_meta.json", 3, "x" * 10_000, {}], {"a": 1}, ["20260220T140000_discovery_zzzzzzzz"]]
)
def test_odd_links_in_an_object_are_left_out(given: Any) -> None:
    odd = observed(extra={SUPERSEDED: given})
    again = Observation.parse(odd.render(), path="", name=odd.name)
    assert again.linked(SUPERSEDED) == ()


# --- what it costs ------------------------------------------------------------------------------------------------


async def test_the_comparison_of_words_is_bounded() -> None:
    lines = tuple(f"The deploy day of service {number} is Friday." for number in range(24))
    drafts = [Draft((1,), "discovery", "The agent said: x", facts=lines) for _ in range(16)]
    earlier = [observed(f"{number:08x}", *lines) for number in range(30)]
    began = time.process_time()

    await judged_by_words(drafts, earlier)

    assert COMPARED <= 300
    assert time.process_time() - began < 10  # hundreds of thousands of comparisons would take minutes


def test_a_model_is_shown_few_of_many() -> None:
    event = Event("1", "s", "tool", START, tool="Edit", project="/p", input={"file_path": "/p/src/auth.py"})
    earlier = [observed(f"{number:08x}", "word " * 200) for number in range(200)]
    assert 0 < len(related(earlier, [event])) <= 8
    assert related([observed(files_modified=())], [event]) == []
