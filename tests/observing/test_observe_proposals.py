"""In a space that asks, what the observer would write waits for a person, and its events are finished all the same."""

from __future__ import annotations

from datetime import UTC, datetime

from observe_world import SESSION, SPACE, World, accounted, with_model, without_model

from livememfs.memories import proposals
from livememfs.records import keys
from livememfs.records.proposal import Proposal
from livememfs.records.space import Meta
from livememfs.records.trust import Trust


async def ask_first(world: World) -> None:
    meta = Meta(SPACE, "", "me", datetime(2026, 1, 1, tzinfo=UTC)).with_proposals(True)
    await world.memory.put(keys.meta_key(SPACE), meta.render())


async def waiting(world: World) -> list[Proposal]:
    await world.replica.uploaded()
    return [proposal for _, proposal in await proposals.waiting(world.replica, SPACE)]


async def accept(world: World, name: str) -> None:
    await proposals.accept(world.replica, world.clock, SPACE, name, by="ada")


@without_model()
async def test_observations_and_the_summary_wait_and_events_are_finished(world: World) -> None:
    await ask_first(world)
    await world.say("prompt", "mend the login")
    await world.tool(1)
    await world.say("end")
    await world.settled()

    kinds = sorted(proposal.folder for proposal in await waiting(world))
    assert kinds == ["observations", f"sessions/{SESSION}"]
    assert (await world.observations(), await world.summary()) == ([], None)
    assert accounted(world.events())
    assert world.events().observed >= 1


@with_model()
async def test_an_accepted_observation_has_its_class_and_belongs_to_its_session(world: World) -> None:
    await ask_first(world)
    for number in range(16):
        await world.tool(number)
    await world.settled()
    proposal = next(each for each in await waiting(world) if each.folder == "observations")
    assert proposal.trust is Trust.TOOL

    await accept(world, proposal.name)

    (observation,) = await world.observations()
    assert (observation.trust, observation.session) == (Trust.TOOL, SESSION)
    assert observation.name in (await world.session()).observations


@without_model()
async def test_a_later_summary_takes_the_place_of_one_that_still_waits(world: World) -> None:
    await ask_first(world)
    for number in (1, 2):
        await world.tool(number)
        await world.say("stop")
        await world.settled()

    summaries = [proposal for proposal in await waiting(world) if proposal.folder.startswith("sessions")]
    assert len(summaries) == 1
    assert "f2.py" in summaries[0].content
    await accept(world, summaries[0].name)
    assert await world.summary() is not None


@without_model()
async def test_what_a_host_observes_while_the_record_cannot_be_had_is_not_stored_unasked(world: World) -> None:
    await ask_first(world)
    world.away(True)
    await world.tool(1)
    await world.until(lambda: bool(world.errors))
    assert world.events().waiting == 1

    world.away(False)
    await world.settled()

    assert [proposal.folder for proposal in await waiting(world)] == ["observations"]
    assert await world.observations() == []


@with_model()
async def test_the_model_is_reminded_of_what_waits_so_that_it_does_not_propose_it_again(world: World) -> None:
    await ask_first(world)
    for start in (0, 100):
        for number in range(16):
            await world.tool(start + number)
        await world.settled()
        await world.replica.uploaded()

    assert "Edit was used in a batch of 16" in world.requests[-1].text
    assert "do not repeat" in world.requests[-1].text
    assert "do not repeat" not in world.requests[0].text
