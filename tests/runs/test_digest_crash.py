"""A digest that dies: at each of its requests, before it, after it, or with the answer lost; what the next one finds.

Afterwards exactly one of two holds: nothing was stored, or everything was. No note is lost, no memory is there twice.
"""

from __future__ import annotations

import os

import pytest
import virtual
from consolidation_world import SPACE, World
from crash_world import WAYS, Process
from digest_world import DIGEST, contents, memories

from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.testing.llm import digest_reply, remembered

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))

REPLY = digest_reply(
    remembered("David is the brother of Mickael", 1, 2),
    remembered("Mickael is ill", 2, ttl="7d"),
    remembered("I can read the lobby", 1, collection="self", type="identity"),
    skipped={3: "a greeting"},
)
STORED = ["David is the brother of Mickael", "I can read the lobby", "Mickael is ill"]
NOTES = 3


async def seeded(*, leave: bool) -> World:
    """A space with notes, which `leave` once they were digested, or stay."""
    world = await World.seeded(notes=NOTES, bank={"kept.md": "# Kept\n"})
    if leave:
        record = Meta(SPACE, "a space", "me", world.clock.now(), extra={"distil": ["digest"]})
        await world.put(keys.meta_key(SPACE), record.render())
    return world


async def state(world: World) -> tuple[list[str], int]:
    """What is remembered, and how many notes there are."""
    return await contents(world), len(await world.live())


async def course(*, leave: bool) -> int:
    """How many requests a digest makes that nothing happens to."""
    world = await seeded(leave=leave)
    process = Process(world, REPLY, options=DIGEST)
    assert await process.live() == "ok"
    assert await state(world) == (STORED, 0 if leave else NOTES)
    return process.count


@pytest.mark.parametrize(
    "leave", [True, False] if LONG else [True], ids=lambda leave: f"notes {'leave' if leave else 'stay'}"
)
@pytest.mark.parametrize("way", WAYS)
def test_a_digest_that_dies_at_any_request_has_happened_or_has_not(way: str, leave: bool) -> None:
    before, after = ([], NOTES), (STORED, 0 if leave else NOTES)
    count = virtual.run(lambda: course(leave=leave))
    seen = set()
    for at in range(1, count + 1):

        async def story(at: int = at) -> None:
            world = await seeded(leave=leave)
            process = Process(world, REPLY, at, way, DIGEST)
            ended = await process.live()
            await Process(world, REPLY, options=DIGEST).recover()
            found = await state(world)
            about = f"died {way} request {at}, {process.where}: {ended}"
            assert found in (before, after), about
            seen.add(found == after)
            if way == "lost":
                assert (ended, found == after) == ("ok", True), about
            kept = await memories(world)

            # Whoever runs next reads what was not read, once, and leaves nothing behind.
            assert await Process(world, REPLY, options=DIGEST).live() == "ok", about
            assert await state(world) == after, about
            assert kept.items() <= (await memories(world)).items(), about
            assert [entry.state for entry in await world.ledger()] == ["applied"], about

        virtual.run(story)
    assert seen == ({True} if way == "lost" else {True, False})


async def _died_before_the_mark() -> World:
    """Everything is stored, and the process died before it could say so."""
    world = await seeded(leave=True)
    assert await Process(world, REPLY, options=DIGEST).live() == "ok"
    [entry] = await world.ledger()
    await world.memory.delete(keys.stored_key(SPACE, 1))
    data = (await world.get(keys.ledger_key(SPACE, 1))).replace(b'"applied"', b'"committed"')
    await world.put(keys.ledger_key(SPACE, 1), data)
    assert (await world.ledger())[0].state == "committed"
    assert len(entry.writes) == len(STORED)
    return world


@pytest.mark.parametrize("leaves", ["forgotten", "edited", "longer"])
@virtual.timed
async def test_what_became_of_a_memory_before_the_recovery_is_left_so(leaves: str) -> None:
    world = await _died_before_the_mark()
    process = Process(world, REPLY)
    [name] = [name for name, memory in (await memories(world)).items() if memory.content.startswith("Mickael")]
    key = f"{SPACE}/{name}"
    if leaves == "forgotten":
        data = await world.get(key)
        kept = keys.memory_history_key(SPACE, keys.MEMORIES, name.split("/")[1].split("_until_")[0], world.clock.now())
        await world.put(kept, data)
        await world.memory.delete(key)
    elif leaves == "edited":
        await world.put(key, b"Mickael is well again")
    else:
        await world.put(key.partition("_until_")[0] + ".md", await world.get(key))
        await world.memory.delete(key)
    before = await memories(world)

    await process.recover()

    assert await memories(world) == before
    assert [entry.state for entry in await world.ledger()] == ["applied"]


@virtual.timed
async def test_a_memory_that_has_ended_before_the_recovery_is_not_stored_any_more() -> None:
    world = await _died_before_the_mark()
    for name in await memories(world):
        await world.memory.delete(f"{SPACE}/{name}")
    world.clock.advance(days=8)

    await Process(world, REPLY).recover()

    assert await contents(world) == [text for text in STORED if text != "Mickael is ill"]


@virtual.timed
async def test_a_consolidation_after_a_digest_that_died_carries_it_out_first() -> None:
    world = await _died_before_the_mark()
    for name in await memories(world):
        await world.memory.delete(f"{SPACE}/{name}")

    assert await Process(world, {}).live() == "ok"

    assert await contents(world) == STORED
    assert [entry.state for entry in await world.ledger()] == ["applied"]
