"""`memories/`, `self/`, `goals/`: what is written is remembered, what is removed can come back."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio
from hosts import Host, World, refused
from trio.abc import Clock

from livememfs import errors
from livememfs.memories import storing as memories
from livememfs.records import keys
from livememfs.records.memory import MAX_MEMORY_BYTES
from livememfs.records.sealing import MemoryForm
from livememfs.text import frontmatter

FOLDER = "alpha/memories"
FIXED = [".by", ".contradictions", ".history", ".recent", ".stale"]
"""What the folder shows besides memories."""


def uid(name: str, folder: str = keys.MEMORIES) -> str:
    return next(MemoryForm(folder).uids("alpha", name))


async def kept(world: World) -> list[str]:
    """What the bucket has of the history."""
    return sorted(await world.bucket(f"{FOLDER}/.history/"))


async def test_plain_text_is_enough(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/david", "David is my brother\n")

    ((name, memory),) = (await world.memories()).items()
    assert name == f"20260220T140000_fact_{uid('david')}.md"
    assert (memory.type, memory.importance, memory.content) == ("fact", 0.6, "David is my brother\n")
    assert memory.extra["agent"] == "me"
    assert await here.names(FOLDER) == [*FIXED, name]
    assert b"David is my brother" in await here.read(f"{FOLDER}/david")
    assert await here.read(f"{FOLDER}/{name}") == memory.render()


@pytest.mark.parametrize(
    ("folder", "name", "kind", "category"),
    [
        ("memories", "preference-dark-mode.md", "preference", ""),
        ("self", "limitation-no-web.md", "identity", "limitation"),
        ("goals", "understanding-travel.md", "goal", "understanding"),
    ],
)
async def test_each_folder_knows_its_kinds(
    world: World, here: Host, folder: str, name: str, kind: str, category: str
) -> None:
    await here.write(f"alpha/{folder}/{name}", "text")

    (memory,) = (await world.memories(folder)).values()
    assert (memory.type, memory.category, memory.space_id) == (kind, category, "alpha")


async def test_writing_it_again_edits_the_same_memory(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/david", "David lives in Ordizan")
    (before,) = (await world.memories()).items()
    world.clock.advance(days=1)

    await here.write(f"{FOLDER}/david", "David lives in Toulouse")

    ((name, memory),) = (await world.memories()).items()
    assert name == before[0]
    assert memory.content == "David lives in Toulouse"
    assert (memory.created_at, memory.updated_at) == (before[1].created_at, before[1].updated_at + timedelta(days=1))


@pytest.mark.parametrize("ttl", ["7d", None])
async def test_another_machine_finds_it_by_the_name_that_was_written(world: World, here: Host, ttl: str | None) -> None:
    await here.write(f"{FOLDER}/ill", frontmatter.join({"ttl": ttl}, "Mickael is ill"))
    await world.uploaded()

    assert b"Mickael is ill" in await world.host("there").read(f"{FOLDER}/ill")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xff\xfe", errors.NotText),
        (b"x" * (MAX_MEMORY_BYTES + 1), errors.TooLarge),
        (b"---\nsource: '" + b'"' * 20_000 + b"'\n---\ntext", errors.TooLarge),  # each is written as two
    ],
)
async def test_what_is_no_text_or_too_long_is_refused_at_close(
    world: World, here: Host, data: bytes, error: type[errors.LiveMemError]
) -> None:
    await refused(error, here.write(f"{FOLDER}/x", data))

    assert await world.memories() == {}


async def test_a_space_with_memories_is_not_empty(here: Host) -> None:
    await here.write(f"{FOLDER}/david", "David is my brother")

    await refused(errors.NotEmpty, here.rmdir("alpha"), match="1 in memories/")


# --- time ---------------------------------------------------------------------------------------------------------


ILL = frontmatter.join({"ttl": "7d"}, "Mickael is ill")


async def test_what_lasts_a_while_is_gone_at_that_second_on_every_machine(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/ill", ILL)
    (name,) = await world.memories()
    assert name.endswith("_until_20260227T140000.md")
    there = world.host("there")

    world.clock.advance(timedelta(days=7).total_seconds() - 1)
    assert await here.names(FOLDER) == await there.names(FOLDER) == [*FIXED, name]

    world.clock.advance(1)
    for host in (here, there):
        assert await host.names(FOLDER) == FIXED
        for gone in (name, "ill"):
            await refused(errors.NotFound, host.read(f"{FOLDER}/{gone}"))


async def test_the_daemon_removes_what_any_host_let_end(world: World, here: Host, autojump_clock: Clock) -> None:
    await here.write(f"{FOLDER}/ill", ILL)
    await here.write(f"{FOLDER}/david", "David is my brother")
    await world.uploaded()
    there = world.host("there")
    await there.names(FOLDER)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(there.context.expiry.run)
        await trio.sleep(100)
        assert len(await world.memories()) == 2

        world.clock.advance(days=7)
        await trio.sleep(100)
        await there.sent()
        (left,) = (await world.memories()).values()
        nursery.cancel_scope.cancel()

    assert left.content == "David is my brother"
    assert there.context.expiry.statistics().removed == 1
    assert await kept(world) == [], "what was to end was not forgotten"


async def test_what_was_made_to_last_meanwhile_is_not_removed(world: World, here: Host, autojump_clock: Clock) -> None:
    await here.write(f"{FOLDER}/ill", ILL)
    await here.names(FOLDER)
    await here.write(f"{FOLDER}/ill", frontmatter.join({"ttl": None}, "Mickael has asthma"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.context.expiry.run)
        world.clock.advance(days=8)
        await trio.sleep(100)
        nursery.cancel_scope.cancel()

    (memory,) = (await world.memories()).values()
    assert memory.content == "Mickael has asthma"


async def test_an_edit_of_how_long_it_lasts_moves_the_object_and_leaves_one(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/ill", ILL)
    (first,) = await world.memories()

    await here.write(f"{FOLDER}/ill", frontmatter.join({"ttl": "1h"}, "Mickael is nearly well"))
    (second,) = await world.memories()
    await here.write(f"{FOLDER}/ill", frontmatter.join({"ttl": None}, "Mickael has asthma"))
    ((third, memory),) = (await world.memories()).items()

    assert first.partition("_until_")[0] == second.partition("_until_")[0] == third.removesuffix(".md")
    assert memory.content == "Mickael has asthma"
    assert await here.names(FOLDER) == [*FIXED, third]
    assert b"asthma" in await here.read(f"{FOLDER}/ill")
    assert b"asthma" in await world.host("there").read(f"{FOLDER}/ill")


# --- forgetting ---------------------------------------------------------------------------------------------------


async def test_what_is_removed_is_forgotten_and_kept(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/david", "David is my brother")
    (name,) = await world.memories()

    await here.unlink(f"{FOLDER}/david")

    assert await world.memories() == {}
    assert await here.names(FOLDER) == FIXED
    (old,) = await kept(world)
    assert old.startswith(name.removesuffix(".md") + "/20260220T140000")
    assert b"David is my brother" in await here.read(f"{FOLDER}/.history/{old}")


async def test_nobody_writes_in_the_history(here: Host) -> None:
    await refused(errors.ReadOnly, here.write(f"{FOLDER}/.history/x", "x"))


async def test_what_was_forgotten_is_brought_back_as_it_was(world: World, here: Host) -> None:
    await here.write(
        f"{FOLDER}/david", frontmatter.join({"subjects": ["david"], "importance": 0.9}, "David is my brother")
    )
    before = await world.memories()
    await here.unlink(f"{FOLDER}/david")
    (name,) = before

    (old,) = await memories.forgotten(here.replica, "alpha", keys.MEMORIES)
    await memories.restore(here.replica, world.clock, "alpha", keys.MEMORIES, old.id)

    assert await world.memories() == before
    assert await kept(world) == []
    assert await here.names(FOLDER) == [*FIXED, name]
    await refused(errors.NotFound, memories.restore(here.replica, world.clock, "alpha", keys.MEMORIES, old.id))


async def test_a_damaged_version_hides_no_other(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/david", "David is my brother")
    await here.unlink(f"{FOLDER}/david")
    prefix = keys.memory_history_prefix("alpha", keys.MEMORIES)
    await world.memory.put(f"{prefix}20260101T000000_fact_00000001/20260102T000000.000000Z.md", b"\xff\xfe")

    assert len(await memories.forgotten(here.replica, "alpha", keys.MEMORIES)) == 1


async def test_what_has_expired_meanwhile_comes_back_for_good(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/ill", ILL)
    await here.unlink(f"{FOLDER}/ill")
    world.clock.advance(days=30)
    (old,) = await memories.forgotten(here.replica, "alpha", keys.MEMORIES)

    await memories.restore(here.replica, world.clock, "alpha", keys.MEMORIES, old.id)

    ((name, memory),) = (await world.memories()).items()
    assert "_until_" not in name
    assert (memory.expires_at, memory.forgotten) == (None, False)


async def test_an_editor_that_saves_by_renaming_forgets_nothing(world: World, here: Host) -> None:
    await here.write(f"{FOLDER}/david.md", "one")
    await here.rename(f"{FOLDER}/david.md", f"{FOLDER}/david.md~")
    await here.write(f"{FOLDER}/david.md", "two")
    await here.unlink(f"{FOLDER}/david.md~")

    (memory,) = (await world.memories()).values()
    assert memory.content == "two"
    assert await kept(world) == []


async def test_two_machines_that_write_the_same_name_keep_both(world: World, here: Host, autojump_clock: Clock) -> None:
    there = world.host("there")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.write, f"{FOLDER}/david", "David is my brother")
        nursery.start_soon(there.write, f"{FOLDER}/david", "David lives in Toulouse")
    await here.sent()
    await there.sent()

    contents = {memory.content for memory in (await world.memories()).values()}
    assert contents == {"David is my brother", "David lives in Toulouse"}
