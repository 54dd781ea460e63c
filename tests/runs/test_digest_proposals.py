"""In a space that asks, a digest proposes: what it took is not taken again, and nothing is remembered before a person
accepts it.
"""

from __future__ import annotations

import pytest
from consolidation_world import SPACE, World
from digest_world import contents, digest, digest_without_model, memories

from livememfs.memories import proposals
from livememfs.records.proposal import Proposal
from livememfs.records.space import PROPOSALS
from livememfs.spaces import changing
from livememfs.testing.llm import digest_reply, remembered

BROTHER = remembered("David is the brother of Mickael", 1, subjects=["David"])
ASKS = {"extra": {PROPOSALS: True}}


@pytest.fixture
async def world() -> World:
    world = await World.seeded(meta=ASKS)
    await world.note("David, my brother, has called.", agent="mickael")
    return world


async def waiting(world: World) -> list[Proposal]:
    return [proposal for _, proposal in await proposals.waiting(world.replica, SPACE)]


async def test_what_a_digest_would_store_waits_with_its_source(world: World) -> None:
    (note,) = await world.live()

    result, _ = await digest(world, digest_reply(BROTHER))

    (proposal,) = await waiting(world)
    assert (result.state, await memories(world)) == ("ok", {})
    assert (result.metrics.memories_stored, result.metrics.memories_proposed) == (0, 1)
    assert (proposal.by, proposal.why) == ("digest 1", f"from {note.rpartition('/')[2]}")
    assert "David is the brother of Mickael" in proposal.content


async def test_an_accepted_one_is_the_memory_that_the_digest_would_have_stored(world: World) -> None:
    await digest(world, digest_reply(BROTHER))
    (proposal,) = await waiting(world)

    await proposals.accept(world.replica, world.clock, SPACE, proposal.name, by="ada")

    ((key, memory),) = (await memories(world)).items()
    assert (key, memory.content) == (proposal.target, "David is the brother of Mickael\n")
    (entry,) = await world.ledger()
    assert entry.keeps[0].used_in == (key,)


@pytest.mark.parametrize("accepted", [True, False])
async def test_notes_that_were_proposed_from_are_not_read_again_whatever_was_decided(
    world: World, accepted: bool
) -> None:
    await digest(world, digest_reply(BROTHER))
    (proposal,) = await waiting(world)
    act = proposals.accept if accepted else proposals.refuse
    await act(world.replica, world.clock, SPACE, proposal.name, by="ada")

    result, requests = await digest(world, digest_reply(BROTHER))

    assert (requests, await waiting(world)) == ([], [])
    assert len(await memories(world)) == accepted
    assert result.metrics.notes_processed == 0


async def test_the_model_is_shown_what_waits_so_that_it_does_not_propose_it_again(world: World) -> None:
    await digest(world, digest_reply(BROTHER))
    await world.note("David is my brother, and he is in Pau.")

    _, (request,) = await digest(world, digest_reply(BROTHER))

    assert "David is the brother of Mickael" in str(request.messages)
    assert len(await waiting(world)) == 1


async def test_without_a_model_notes_are_proposed_as_they_are(world: World) -> None:
    await world.note("We chose S3.", category="decision")

    await digest_without_model(world)

    (proposal,) = await waiting(world)
    assert ("We chose S3." in proposal.content, await contents(world)) == (True, [])


async def test_a_space_that_asks_no_more_stores_at_once(world: World) -> None:
    assert (await changing.want_proposals(world.replica, SPACE, False)).proposals is False

    await digest(world, digest_reply(BROTHER))

    assert (await waiting(world), len(await memories(world))) == ([], 1)
