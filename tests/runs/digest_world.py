"""Digests in the world of the consolidations: one run with given answers, and what it stored."""

from __future__ import annotations

from typing import Any

from consolidation_world import SPACE, World, ask, filing

from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.runs.options import RunOptions
from livememfs.runs.result import RunResult
from livememfs.testing.llm import LLMRequest

DIGEST = RunOptions(kind="digest")


async def digest(world: World, *answers: Any, **given: Any) -> tuple[RunResult, list[LLMRequest]]:
    """One digest with these answers; its result, and the requests that it made."""
    return await ask(world, *answers, kind="digest", **given)


async def digest_without_model(world: World) -> RunResult:
    async with filing(world) as runs:
        return await runs.run_once(SPACE, DIGEST)


async def memories(world: World) -> dict[str, Memory]:
    """What is stored, by key relative to the space."""
    found: dict[str, Memory] = {}
    for key, data in (await world.bucket()).items():
        parsed = keys.parse(key)
        if parsed.kind == "memory":
            collection, _, name = parsed.name.partition("/")
            found[parsed.name] = Memory.parse(data, path=key, collection=collection, name=name)
    return found


async def contents(world: World) -> list[str]:
    """What is remembered, in the order of the texts."""
    return sorted(memory.content.strip() for memory in (await memories(world)).values())
