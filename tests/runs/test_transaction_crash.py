"""A run that dies: at each of its requests, before it, after it, or with the answer lost; what the next process finds.

Afterwards exactly one of two holds: everything is as it was, or everything was carried out. No note is lost, none is
taken twice. The model is a real HTTP endpoint; the bucket is in memory and outlives the process.
"""

from __future__ import annotations

import pytest
import virtual
from consolidation_world import SPACE, World
from crash_world import WAYS, Process

from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.testing.llm import consolidation_reply

OLD = "# Progress\n\n## Done\n\n- began\n"
REPLY = consolidation_reply(
    {"new.md": "# New\n"},
    bank_files=[
        {
            "filename": "progress.md",
            "action": "updated",
            "edits": [{"op": "append", "heading": ["Progress", "Done"], "content": "- more"}],
        },
        {"filename": "new.md", "action": "created", "content": "# New\n"},
    ],
)
NOTES = 3


async def seeded() -> World:
    return await World.seeded(notes=NOTES, bank={"progress.md": OLD, "kept.md": "# Kept\n"})


async def course() -> tuple[dict[str, bytes], dict[str, bytes], int]:
    """The space before and after a run that nothing happens to, and how many requests it makes."""
    world = await seeded()
    before = await world.bucket()
    process = Process(world, REPLY)
    assert await process.live() == "ok"
    return before, await world.bucket(), process.count


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_dies_at_any_request_has_happened_or_has_not(way: str) -> None:
    before, after, count = virtual.run(course)
    seen = set()
    for at in range(1, count + 1):

        async def story(at: int = at) -> None:
            world = await seeded()
            process = Process(world, REPLY, at, way)
            ended = await process.live()
            await Process(world, REPLY).recover()
            found = await world.bucket()
            about = f"died {way} request {at}, {process.where}: {ended}"
            assert found in (before, after), about
            seen.add(found == after)
            if way == "lost":
                assert (ended, found == after) == ("ok", True), about

            # Whoever runs next takes every note once, and leaves nothing behind.
            assert await Process(world, REPLY).live() == "ok", about
            assert await world.bucket() == after, about
            assert Meta.parse(await world.get(keys.meta_key(SPACE))).total_notes_processed == NOTES
            assert [entry.state for entry in await world.ledger()] == ["applied"], about

        virtual.run(story)
    print(f"{count} requests, {way}")
    assert seen == ({True} if way == "lost" else {True, False})
